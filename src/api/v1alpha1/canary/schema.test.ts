import { expect, expectTypeOf, test } from "vitest"
import type { HookType as CoreHookType } from "#core/canary/hook.ts"
import { nextOf, type Steps, strategyOf } from "#core/canary/steps.ts"
import { type Bounds, judge, rangeOf, type Verdict } from "#core/canary/verdict.ts"
import { canaryCases } from "#test/support/manifests/canary.ts"
import { checkKind } from "#test/support/manifests/check-kind.ts"
import { largest } from "#test/support/manifests/largest.ts"
import { crdOf } from "../../crd.ts"
import type { Rule, StructuralSchema } from "../../structural-schema.ts"
import { validate } from "../../validate.ts"
import {
  type Analysis,
  Canary,
  type CanaryStatus,
  conditions,
  gateStates,
  type HookType,
  type Metric,
  type MetricVerdict,
  phases,
  reasons,
  results,
  rollingStates,
  verdicts,
} from "./index.ts"

checkKind(Canary, canaryCases, { conditions, reasons })

const smallest = canaryCases["the smallest manifest"]!.manifest as object
const problemsOf = (status: unknown) => validate(Canary, { ...smallest, status }).errors
const time = "2026-01-31T12:00:00Z"

test("every rule refuses some case", () => {
  const said = Object.values(canaryCases).flatMap(({ manifest }) => validate(Canary, manifest).errors)
  const messages = rulesIn(Canary.schema.properties!.spec!).map(({ message }) => message)
  expect(messages.filter(message => !said.some(error => error.message === message))).toEqual([])
})

const rulesIn = (schema: StructuralSchema): Rule[] => [
  ...(schema["x-kubernetes-validations"] ?? []),
  ...Object.values(schema.properties ?? {}).flatMap(rulesIn),
  ...(schema.items ? rulesIn(schema.items) : []),
  ...(schema.additionalProperties ? rulesIn(schema.additionalProperties) : []),
]

test("the phases are Flagger's, letter by letter", () => {
  expect(Object.keys(phases)).toEqual([
    "Initializing",
    "Initialized",
    "Waiting",
    "Progressing",
    "WaitingPromotion",
    "Promoting",
    "Finalising",
    "Succeeded",
    "Failed",
    "Terminating",
  ])
  expect(conditions.Promoted.reasons).toEqual(Object.keys(phases))
})

test("kubectl finds and prints it as it did Flagger's", () => {
  const { names, versions } = crdOf(Canary).spec
  expect(names).toEqual({
    kind: "Canary",
    listKind: "CanaryList",
    plural: "canaries",
    // Beyond Flagger's: where both are installed, `canary` is ambiguous and this is not.
    shortNames: ["cn"],
    singular: "canary",
    categories: ["aim", "all"],
  })
  const columns = versions[0]!.additionalPrinterColumns
  const shown = (isWide: boolean) =>
    columns.filter(({ priority = 0 }) => priority > 0 === isWide).map(({ name }) => name)
  expect(shown(false)).toEqual(["Status", "Weight", "LastTransitionTime"])
  expect(shown(true)).toEqual([
    "Suspended",
    "FailedChecks",
    "Interval",
    "Mirror",
    "StepWeight",
    "StepWeights",
    "MaxWeight",
  ])
})

/** A run that waits, as a controller reports it. */
const full: CanaryStatus = {
  phase: "WaitingPromotion",
  canaryWeight: 50,
  failedChecks: 1,
  iterations: 0,
  sessionAffinityCookie: "canary=LQVGXqwKwI",
  previousSessionAffinityCookie: "canary=aaaaaaaaaa",
  trackedConfigs: { "configmap/web.conf": "0123abcd", "secret/web": "89efabcd" },
  configs: [{ workload: "web", hash: "5f4e", snapshots: { "web.conf": "0123456789abcdef" } }],
  untrackedConfigs: [{ name: "secret/key", reason: "ConfigNotTracked" }],
  lastAppliedSpec: "v1-6c7d",
  lastPromotedSpec: "v1-5f4e",
  lastTransitionTime: time,
  rollingState: "rollingInBatches",
  currentBatch: 1,
  observedGeneration: 3,
  conditions: [
    {
      type: "Promoted",
      status: "Unknown",
      observedGeneration: 3,
      lastTransitionTime: time,
      reason: "WaitingPromotion",
      message: "",
    },
  ],
  run: {
    id: "g3",
    checksum: "6c7d5f4e",
    startedAt: time,
    source: { hash: "5f4e", workload: "web", images: ["registry.example.com/web:v1"] },
    target: { hash: "6c7d", workload: "web-6c7d", images: ["registry.example.com/web:v2"] },
    sizes: { full: 6, source: 6, target: 3 },
    weight: 50,
    weightSince: time,
    mirrored: false,
    iterations: 0,
    failedChecks: 1,
    metrics: [{ name: "404s percentage", verdict: "Good", value: "0.12", count: 3, since: time, at: time }],
    gates: [
      { type: "confirm-promotion", name: "load test", round: 0, state: "Waiting", since: time, attempts: 4 },
      {
        type: "approval",
        name: "Rollout",
        round: 0,
        state: "Passed",
        since: time,
        at: time,
        attempts: 0,
        approvedBy: "system:serviceaccount:ci:Ann@example.com",
        reason: "Approved",
      },
    ],
    reason: "GateWaiting",
    message: "the hook load test answers 403",
  },
  history: [
    {
      id: "g2",
      source: { hash: "4d3c", images: [] },
      target: { hash: "5f4e", images: [] },
      result: "RolledBack",
      reason: "AnalysisFailed",
      startedAt: time,
      endedAt: time,
    },
  ],
}

test("a status is kept as it is reported", () => {
  expect(problemsOf(full)).toEqual([])
  expect(validate(Canary, { ...smallest, status: full }).object?.status).toEqual(full)
})

test("every word of the vocabulary fits the status", () => {
  const { run, history, conditions: given } = full
  for (const reason of Object.keys(reasons))
    for (const type of Object.keys(conditions))
      expect(
        problemsOf({
          conditions: [{ ...given[0]!, type, reason }],
          run: { ...run!, reason, gates: [{ ...run!.gates[0]!, reason }] },
          history: [{ ...history[0]!, reason }],
        }),
      ).toEqual([])
  for (const phase of Object.keys(phases)) expect(problemsOf({ phase })).toEqual([])
  for (const rollingState of Object.keys(rollingStates)) expect(problemsOf({ rollingState })).toEqual([])
  for (const result of Object.keys(results)) expect(problemsOf({ history: [{ ...history[0]!, result }] })).toEqual([])
  for (const verdict of Object.keys(verdicts))
    expect(problemsOf({ run: { ...run!, metrics: [{ ...run!.metrics[0]!, verdict }] } })).toEqual([])
  for (const state of Object.keys(gateStates))
    expect(problemsOf({ run: { ...run!, gates: [{ ...run!.gates[0]!, state }] } })).toEqual([])
})

test("a tracked object is a ConfigMap or a Secret", () => {
  expect(problemsOf({ trackedConfigs: { "pod/web": "a" } })).toMatchObject([
    { path: "status.trackedConfigs", message: expect.stringContaining("configmap/NAME") },
  ])
})

test("the largest status that is legal stays below 256 kB", () => {
  const status = largest(Canary.schema.properties!.status!) as CanaryStatus
  const names = Object.keys(status.trackedConfigs!).map(name => name.padStart(128, "z"))
  const tracked = Object.fromEntries(names.map(name => [`configmap/${name}`, "z".repeat(16)]))
  status.trackedConfigs = tracked
  status.run!.configs = tracked
  for (const each of status.configs!) each.snapshots = Object.fromEntries(names.map(name => [name, "0123456789abcdef"]))
  expect(problemsOf(status)).toEqual([])
  expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThan(256_000)
})

test("the arithmetic of core/canary takes what is declared", () => {
  expectTypeOf<HookType>().toEqualTypeOf<CoreHookType>()
  expectTypeOf<MetricVerdict>().toEqualTypeOf<Verdict["verdict"]>()
  expectTypeOf<Analysis>().toExtend<Steps>()
  expectTypeOf<Metric>().toExtend<Bounds>()

  const { object } = validate(
    Canary,
    canaryCases["a canary on a gateway, with metrics of another namespace and a load test"]!.manifest,
  )
  const { analysis } = object!.spec
  expect(strategyOf(analysis)).toBe("Weighted")
  expect(rangeOf(analysis.metrics[0]!)).toEqual({ min: 99 })
  expect(nextOf(analysis, { weight: 45, iterations: 0, isMirrored: false })).toMatchObject({ weight: 50 })
  const slow = judge(analysis.metrics[1]!, { ok: true, series: [{ labels: {}, value: 0.6 }] })
  expect(slow).toMatchObject({ verdict: "Bad", why: "0.6 is above 0.5" })
})
