import { describe, expect, test } from "vitest"
import type { CanarySpecInput, CanaryStatus, Run } from "#api/v1alpha1/canary/index.ts"
import { decide } from "../run.ts"
import type { BudgetSeen, RevisionSeen, Sight } from "../sight.ts"
import { calm, canaryOf, newSet, oldSet, running } from "../test-sight.ts"

const revision = (name: string, hash: string, size: number, more: Partial<RevisionSeen> = {}): RevisionSeen => ({
  ...{ name, hash, size, ready: size, isTroubled: false },
  ...more,
})
const v1 = (size: number, more: Partial<RevisionSeen> = {}) => revision("web-v1", "old", size, more)
const v2 = (size: number, more: Partial<RevisionSeen> = {}) => revision("web-v2", "new", size, more)

const oam: Partial<CanarySpecInput> = {
  provider: "oam",
  service: { name: "shop", port: 80, gatewayRefs: [{ name: "gateway" }] },
}

type Given = {
  source?: RevisionSeen | undefined
  target?: RevisionSeen
  run?: Partial<Run>
  phase?: CanaryStatus["phase"]
  spec?: Partial<CanarySpecInput>
  sight?: Partial<Sight>
}

function at(weight: number, given: Given = {}): Sight {
  const { source = v1(4), target = v2(1), run = {}, phase = "Progressing", spec = {}, sight = {} } = given
  const seen = running(weight, { spec: { ...oam, ...spec }, status: { phase }, run })
  return {
    ...seen,
    workload: { ...seen.workload!, size: Math.max(source.size, target.size), hold: { isStanding: true } },
    sets: [
      { ...oldSet, workload: "web-v1", size: source.size, ready: source.ready },
      { ...newSet, workload: "web-v2", size: target.size, ready: target.ready },
    ],
    trial: { ...seen.trial!, size: target.size },
    component: { source: "source" in given ? given.source : source, target, isFirst: false },
    ...sight,
  }
}

const resized = (workload: string, size: number) => ({ do: "resize", workload, size })

describe("what the source keeps", () => {
  test.each<[string, Sight, unknown]>([
    ["four of four at a fifth", at(20), undefined],
    ["what a greater share leaves", at(40, { target: v2(2) }), resized("web-v1", 3)],
    ["all, until the route is accepted", at(40, { target: v2(2), sight: { route: notAccepted(40) } }), undefined],
    ["all, until the new pods are ready", at(40, { target: v2(2, { ready: 1 }) }), undefined],
    ["all that an autoscaler gave it", at(40, { source: v1(4, { scaler: { least: 2 } }), target: v2(2) }), undefined],
    ["all, where requests are matched or go at once", at(100, { spec: bluegreen, target: v2(4) }), undefined],
  ])("%s", (_, sight, act) => {
    const found = decide(sight).act
    expect(found?.do === "resize" ? found : undefined).toEqual(act)
  })
})

function notAccepted(weight: number): Sight["route"] {
  return { split: { weight, isMirrored: false }, isAccepted: false, why: "not yet" }
}
const bluegreen: Partial<CanarySpecInput> = { analysis: { interval: "1m", threshold: 2, iterations: 2 } }

test("a size that grew is written before anything shrinks by it", () => {
  const decision = decide(at(40, { source: v1(6), target: v2(2) }))
  expect(decision.act).toBeUndefined()
  expect(decision.run?.sizes.full).toBe(6)
})

describe("on the way back", () => {
  const failed = { reason: "AnalysisFailed", message: "bad" } as const
  test("the source gets its pods first", () => {
    expect(decide(at(40, { source: v1(3), target: v2(2), phase: "Failed", run: failed })).act).toEqual(
      resized("web-v1", 4),
    )
  })
  test("requests leave a bad revision before these are ready", () => {
    const sight = at(40, { source: v1(4, { ready: 3 }), target: v2(2), phase: "Failed", run: failed })
    expect(decide(sight).act).toMatchObject({ do: "route", weight: 0 })
  })
  test("and wait for them where the revision was not bad", () => {
    const run = { reason: "Restarted", message: "changed" } as const
    const sight = at(40, { source: v1(4, { ready: 3 }), target: v2(2), run })
    expect(decide(sight).act).toBeUndefined()
    // Unless they do not come.
    const stuck = at(40, { source: v1(4, { ready: 3, isTroubled: true }), target: v2(2), run })
    expect(decide(stuck).act).toMatchObject({ do: "route", weight: 0 })
  })
  test("and do not wait on a revision without ready pods", () => {
    const run = { reason: "Restarted", message: "changed" } as const
    const sight = at(40, { source: v1(4, { ready: 3 }), target: v2(2, { ready: 0 }), run })
    const services = { ...sight.services, target: { hash: "new", ready: {} } }
    expect(decide({ ...sight, services }).act).toMatchObject({ do: "route", weight: 0 })
  })
  test("then the new revision has no pods", () => {
    expect(decide(at(0, { target: v2(2), phase: "Failed", run: failed })).act).toEqual(resized("web-v2", 0))
  })
})

describe("the workload before is gone", () => {
  const alone = (weight: number, given: Given = {}): Sight => {
    const sight = at(weight, { target: v2(2), ...given, source: undefined })
    return { ...sight, sets: sight.sets.filter(({ owner }) => owner === "trial") }
  }
  const changed = { reason: "Restarted", message: "changed" } as const
  test("the run ends where a later revision is there, and the route stays", () => {
    const sight = alone(100, { run: changed })
    const later = { ...sight, workload: { ...sight.workload!, name: "web-v3", checksum: "cccc" } }
    expect(decide(later)).toMatchObject({ ended: { result: "Superseded" } })
    expect(decide(later).act).toBeUndefined()
  })
  test("what failed stays, and a person is told", () => {
    const sight = alone(100, { phase: "Failed", run: { reason: "AnalysisFailed", message: "bad" } })
    expect(decide(sight)).toMatchObject({ reason: "SourceMissing", isStalled: true })
    const later = { ...sight, workload: { ...sight.workload!, name: "web-v3", checksum: "cccc" } }
    expect(decide(later)).toMatchObject({ ended: { result: "RolledBack" } })
  })
  test("a weight that was next is not given any more", () => {
    const run = { next: { weight: 40, mirrored: false } }
    expect(decide(alone(20, { run })).act).toMatchObject({ do: "route", weight: 100 })
    expect(decide(alone(100, { run, target: v2(4) })).act).toBeUndefined()
  })
})

describe("the template of the revision that answers changed where it is", () => {
  const twice = (old: number, fresh: number): Sight["sets"] => [
    { ...oldSet, workload: "web-v1", size: old, ready: old },
    {
      ...oldSet,
      name: "web-again",
      hash: "again",
      checksum: "bbbb",
      revision: 2,
      workload: "web-v1",
      size: fresh,
      ready: fresh,
    },
  ]
  test("between runs, none starts", () => {
    const sight: Sight = {
      ...calm(),
      canary: canaryOf(oam, { phase: "Succeeded" }),
      workload: { ...at(0).workload!, name: "web-v1" },
      sets: twice(3, 1),
      component: { target: v1(4, { hash: "again" }), isFirst: false },
    }
    const { run, act, reason } = decide(sight)
    expect([run, act, reason]).toEqual([undefined, undefined, "Released"])
  })
  test("in a run, the Services follow its pods", () => {
    const sight = at(20, { run: { source: { hash: "old", workload: "web-v1", images: [] } } })
    const tested = sight.sets.filter(({ owner }) => owner === "trial")
    expect(decide({ ...sight, sets: [...twice(3, 1), ...tested] }).act).toBeUndefined()
    const decision = decide({ ...sight, sets: [...twice(1, 3), ...tested] })
    expect(decision.act).toEqual({ do: "services", source: "again", target: "new" })
    expect(decision.run?.source.hash).toBe("again")
  })
  test("a run from a workload to itself takes no pod of it", () => {
    for (const phase of ["Progressing", "Finalising", "Failed"] as const) {
      const run = phase === "Failed" ? ({ reason: "AnalysisFailed", message: "bad" } as const) : {}
      const { act } = decide(at(0, { source: v1(4), target: v1(4), phase, run }))
      expect(act?.do).not.toBe("resize")
    }
  })
})

describe("a promotion", () => {
  const turned = (given: Given = {}): Sight => {
    const sight = at(0, { target: v2(4), phase: "Finalising", ...given })
    return { ...sight, services: { ...sight.services, source: { hash: "new", ready: { new: 4 } } } }
  }
  test("takes the pods of the revision before", () => {
    expect(decide(turned()).act).toEqual(resized("web-v1", 0))
  })
  test("takes none while the new ones are not ready", () => {
    const { act, reason } = decide(turned({ target: v2(4, { ready: 3 }) }))
    expect([act, reason]).toEqual([undefined, "HandingOver"])
  })
  test("moves the autoscaler first", () => {
    const scaler = {
      kind: "HorizontalPodAutoscaler",
      name: "web",
      isOfTarget: true,
      isNoted: true,
      mayShrink: false,
    } as const
    expect(decide(turned({ sight: { scalers: [scaler] } })).act).toMatchObject({
      ...{ do: "scaler", name: "web", isHeld: false, to: "web-v2" },
    })
  })
  test("waits for a budget that would be broken", () => {
    const budget: BudgetSeen = {
      ...{ name: "shop", minAvailable: 5, expected: 10 },
      all: { there: 10, ready: 8 },
      own: { old: { there: 4, ready: 4 }, new: { there: 4, ready: 4 } },
    }
    const { act, reason } = decide(turned({ sight: { budgets: () => [budget] } }))
    expect([act, reason]).toEqual([undefined, "BudgetSpent"])
  })
})

describe("a revision that is not judged", () => {
  const idle = (source: RevisionSeen | undefined, target: RevisionSeen, isFirst: boolean): Sight => ({
    ...calm(),
    canary: canaryOf(oam, { phase: isFirst ? "Initializing" : "Succeeded" }),
    component: { source, target, isFirst },
  })
  test.each<[string, Sight, unknown]>([
    ["the first gets one pod", idle(undefined, v1(0), true), resized("web-v1", 1)],
    [
      "or as many as its autoscaler wants",
      idle(undefined, v1(0, { scaler: { least: 3 } }), true),
      resized("web-v1", 3),
    ],
    ["the same template gets the size of before", idle(v1(4), v2(0, { hash: "old" }), false), resized("web-v2", 4)],
    ["and then the one before has none", idle(v1(4), v2(4, { hash: "old" }), false), resized("web-v1", 0)],
    ["one that its owner scaled to zero stays so", idle(undefined, v1(0), false), undefined],
  ])("%s", (_, sight, act) => {
    expect(decide(sight).act).toEqual(act)
  })
})
