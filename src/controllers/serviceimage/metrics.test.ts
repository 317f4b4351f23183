import { describe, expect, test } from "vitest"
import type { Condition, Operation, ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { createMetrics, type MetricFactory } from "#runtime/metrics.ts"
import {
  createServiceImageMetrics,
  type MetricsView,
  samplesOf,
  serviceImageMetrics,
  type TierNumbers,
  tierNumbers,
} from "./metrics.ts"

const tier = (name: string, more: Partial<TierNumbers> = {}): TierNumbers => ({
  name,
  priority: 0,
  total: 10,
  updated: 6,
  upToDate: 4,
  toUpdate: 5,
  unmanaged: 2,
  ignored: 1,
  regressed: 0,
  failures: [],
  ...more,
})

const condition = (
  status: Condition["status"],
  reason: Condition["reason"],
  type: Condition["type"] = "Stalled",
): Condition => ({
  type,
  status,
  reason,
  message: "",
  observedGeneration: 1,
  lastTransitionTime: "2026-03-01T10:00:00Z",
})

const operation = (phase: Operation["phase"], id = "g1"): Operation => ({
  id,
  phase,
  startedAt: "2026-03-01T10:00:00Z",
  images: {},
  total: 0,
  upToDate: 0,
  failed: 0,
})

const judged: ServiceImageStatus["tierStatus"][number] = {
  upgradeTier: "early",
  newDeploymentImage: "",
  conditions: [],
  total: 0,
  updated: 0,
  upToDate: 0,
  newcomers: 0,
  unmanaged: 0,
  ignoredFailures: 0,
  regressed: 0,
  failures: [],
  analysis: {
    of: "a1",
    percent: 50,
    checkedAt: "2026-03-01T10:06:00Z",
    verdict: "BadMetric",
    message: "errors: 9 is above 5",
    failedChecks: 2,
  },
}

const calm: ServiceImageStatus = {
  observedGeneration: 1,
  conditions: [condition("False", "NotStalled")],
  progress: "",
  currentPriority: 1,
  tierStatus: [judged],
  unmatched: 0,
  lostPods: 3,
  oldEndpoints: { checkedAt: "2026-03-01T10:06:00Z", pods: 2, message: "a Service leads" },
  history: [],
  electionID: "",
  inflight: [],
  operation: operation("InProgress"),
  startedAt: "2026-03-01T10:00:00Z",
  completedAt: "2026-02-01T10:00:00Z",
  priorityStartedAt: "2026-03-01T10:05:00Z",
}

const view = (status: Partial<ServiceImageStatus> = {}, tiers?: TierNumbers[], name = "web"): MetricsView => ({
  serviceImage: { metadata: { name } },
  status: { ...calm, ...status },
  tiers: tiers ?? [tier("early", { priority: 1, failures: [{ reason: "Timeout", count: 2 }] }), tier("")],
})

/** `{reason="Timeout",tier="early"}` and the like, without the ServiceImage. */
function shown(seen: MetricsView): Record<string, number> {
  return Object.fromEntries(
    samplesOf(seen).map(({ metric, labels: { serviceimage: _, ...labels }, value }) => {
      const rest = Object.entries(labels).map(([name, text]) => `${name}=${text}`)
      return [`${metric.replace("serviceimage_", "")}${rest.length > 0 ? ` ${rest.join(" ")}` : ""}`, value]
    }),
  )
}

describe("what a view says", () => {
  const cases: Record<string, { given: MetricsView; says: Record<string, number | undefined> }> = {
    "adds up the tiers, and those of the current priority": {
      given: view(),
      says: {
        instances: 20,
        instances_up_to_date: 8,
        instances_to_update: 10,
        instances_unmanaged: 4,
        ignored_failures: 2,
        lost_pods: 3,
        current_priority: 1,
        current_priority_instances: 10,
        current_priority_instances_up_to_date: 4,
        current_priority_instances_to_update: 5,
        current_priority_instances_unmanaged: 2,
        current_priority_ignored_failures: 1,
      },
    },
    "names each tier, also the one without a name": {
      given: view(),
      says: {
        "tier_priority tier=early": 1,
        "tier_priority tier=(default)": 0,
        "tier_instances tier=early": 10,
        "tier_instances_updated tier=early": 6,
        "tier_instances_to_update tier=(default)": 5,
        "tier_failures tier=early reason=Timeout": 2,
      },
    },
    "counts what a tier's analysis found": {
      given: view(),
      says: {
        "tier_failed_checks tier=early": 2,
        "tier_failed_checks tier=(default)": undefined,
        "tier_judged_timestamp_seconds tier=early": Date.parse("2026-03-01T10:06:00Z") / 1000,
        "tier_verdict tier=early verdict=BadMetric": 1,
        "tier_verdict tier=early verdict=Good": undefined,
      },
    },
    "counts old pods behind Services only where some were found": { given: view(), says: { old_endpoints: 2 } },
    "and is silent where none were": {
      given: view({ oldEndpoints: undefined }),
      says: { old_endpoints: undefined },
    },
    "gives times as Unix seconds": {
      given: view(),
      says: {
        upgrade_started_timestamp_seconds: Date.parse("2026-03-01T10:00:00Z") / 1000,
        upgrade_ended_timestamp_seconds: Date.parse("2026-02-01T10:00:00Z") / 1000,
        current_priority_started_timestamp_seconds: Date.parse("2026-03-01T10:05:00Z") / 1000,
      },
    },
    "leaves out a time that has not come, or is none": {
      given: view({ completedAt: undefined, startedAt: "yesterday" }),
      says: { upgrade_ended_timestamp_seconds: undefined, upgrade_started_timestamp_seconds: undefined },
    },
    "is upgrading while halted, and says why": {
      given: view({ operation: operation("Halted"), conditions: [condition("True", "AllFailed")] }),
      says: { upgrading: 1, "stalled reason=AllFailed": 1, "stalled reason=NotStalled": undefined },
    },
    "has ended when it is taken back, at the time of the condition": {
      given: view({ operation: operation("RolledBack"), conditions: [condition("False", "RolledBack", "InProgress")] }),
      says: { upgrading: 0, upgrade_ended_timestamp_seconds: Date.parse("2026-03-01T10:00:00Z") / 1000 },
    },
    "is not upgrading when complete": { given: view({ operation: operation("Complete") }), says: { upgrading: 0 } },
    "says nothing of objects it does not know": {
      given: view({}, []),
      says: { instances: undefined, current_priority: undefined, lost_pods: undefined, upgrading: 1 },
    },
  }
  for (const [name, { given, says }] of Object.entries(cases))
    test(name, () => {
      const all = shown(given)
      expect(Object.fromEntries(Object.keys(says).map(key => [key, all[key]]))).toEqual(says)
    })

  test("has every gauge that is declared", () => {
    const declared = Object.entries(serviceImageMetrics).filter(([, { type }]) => type === "gauge")
    expect(new Set(samplesOf(view()).map(({ metric }) => metric))).toEqual(new Set(declared.map(([name]) => name)))
    for (const { metric, labels } of samplesOf(view()))
      expect(Object.keys(labels)).toEqual([...serviceImageMetrics[metric].labels])
  })
})

describe("a tier of the fleet", () => {
  const seen = { rule: { name: "early" }, total: 12, updated: 8, upToDate: 5, toUpdate: 6, unmanaged: 1, ignored: 1, regressed: 4, troubles: [] } // biome-ignore format: a row

  test("still has to update the objects that the fleet counts", () => {
    expect(tierNumbers(seen, { priority: 1, isComplete: false })).toMatchObject({ toUpdate: 6, regressed: 4 })
  })

  test("once complete, has nothing left to update", () => {
    expect(tierNumbers(seen, { priority: 1, isComplete: true })).toMatchObject({ toUpdate: 0, regressed: 4 })
  })
})

describe("publishing", () => {
  const text = async (metrics: { text(): Promise<string> }, part: string) =>
    (await metrics.text()).split("\n").filter(line => line.startsWith("aim_serviceimage") && line.includes(part))
  const start = () => {
    const registry = createMetrics({ clock: virtualClock() })
    return { registry, metrics: createServiceImageMetrics(registry) }
  }

  test("does nothing without a registry of metrics", () => {
    const metrics = createServiceImageMetrics(undefined)
    metrics.publish(view())
    metrics.stamped("web", 1)
    metrics.forget("web")
  })

  test("writes only what has changed", () => {
    const writes: string[] = []
    const handle = (name: string) => ({
      add: () => {},
      observe: () => {},
      set: () => void writes.push(name),
      remove: () => void writes.push(`remove ${name}`),
    })
    const of = ({ name }: { name: string }) => handle(name)
    const factory: MetricFactory = { counter: of, gauge: of, histogram: of }
    const metrics = createServiceImageMetrics(factory)
    metrics.publish(view())
    expect(writes).toHaveLength(samplesOf(view()).length)
    writes.length = 0
    metrics.publish(view())
    expect(writes).toEqual([])
    metrics.publish(view({ lostPods: 4 }))
    expect(writes).toEqual(["serviceimage_lost_pods"])
  })

  test("lets go of a tier, a reason and a ServiceImage that are no longer there, and of nothing else", async () => {
    const { registry, metrics } = start()
    metrics.publish(view())
    metrics.publish(view({}, undefined, "db"))
    expect(await text(registry, 'tier="early"')).toHaveLength(24)
    expect(await text(registry, 'reason="Timeout"')).toHaveLength(2)

    metrics.publish(view({}, [tier("early", { priority: 1 })]))
    expect(await text(registry, 'serviceimage="web",tier="(default)"')).toEqual([])
    expect(await text(registry, 'reason="Timeout"')).toEqual([
      'aim_serviceimage_tier_failures{serviceimage="db",tier="early",reason="Timeout"} 2',
    ])

    metrics.publish(view({ conditions: [condition("True", "AllFailed")] }))
    expect(await text(registry, 'stalled{serviceimage="web"')).toEqual([
      'aim_serviceimage_stalled{serviceimage="web",reason="AllFailed"} 1',
    ])

    metrics.forget("web")
    metrics.forget("web")
    expect(await text(registry, 'serviceimage="web"')).toEqual([])
    expect((await text(registry, 'serviceimage="db"')).length).toBeGreaterThan(30)
  })

  const rollouts = (phases: [string, Operation["phase"]][]) => {
    const { registry, metrics } = start()
    for (const [id, phase] of phases) metrics.publish(view({ operation: operation(phase, id) }))
    return text(registry, "rollouts_total{").then(lines =>
      Object.fromEntries(
        lines
          .map(line => [/outcome="(\w+)"/.exec(line)![1], Number(line.split(" ").at(-1))] as const)
          .filter(([, count]) => count > 0),
      ),
    )
  }
  // biome-ignore format: a table
  const stories: Record<string, { phases: [string, Operation["phase"]][]; counts: Record<string, number> }> = {
    "one that ends": { phases: [["g1", "InProgress"], ["g1", "Complete"], ["g1", "Complete"]], counts: { Complete: 1 } },
    "one that had ended before": { phases: [["g1", "Complete"], ["g1", "Complete"]], counts: {} },
    "one that is reopened": { phases: [["g1", "InProgress"], ["g1", "Complete"], ["g1", "InProgress"], ["g1", "Complete"]], counts: { Complete: 1 } },
    "one that is superseded": { phases: [["g1", "Halted"], ["g2", "InProgress"]], counts: { Superseded: 1 } },
    "one that halts and goes on": { phases: [["g1", "InProgress"], ["g1", "Halted"], ["g1", "InProgress"], ["g1", "Complete"]], counts: { Halted: 1, Complete: 1 } },
    "two in a row": { phases: [["g1", "InProgress"], ["g1", "Complete"], ["g2", "Complete"]], counts: { Complete: 2 } },
  }
  for (const [name, { phases, counts }] of Object.entries(stories))
    test(`counts ${name}`, async () => expect(await rollouts(phases)).toEqual(counts))

  test("counts stamps, from zero", async () => {
    const { registry, metrics } = start()
    metrics.publish(view())
    expect(await text(registry, "stamps_total")).toEqual(['aim_serviceimage_stamps_total{serviceimage="web"} 0'])
    metrics.stamped("web", 3)
    expect(await text(registry, "stamps_total")).toEqual(['aim_serviceimage_stamps_total{serviceimage="web"} 3'])
  })
})
