import { describe, expect, test } from "vitest"
import { retryAnnotation, rollbackAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Decision } from "./decision.ts"
import { decide } from "./run.ts"
import { answerKey, type HookAnswer, type Sight } from "./sight.ts"
import {
  aRun,
  calm,
  canaryOf,
  minute,
  newSet,
  oldSet,
  running,
  second,
  start,
  startedAt,
  trial,
  workload,
} from "./test-sight.ts"

type Webhooks = NonNullable<CanarySpecInput["analysis"]["webhooks"]>
const analysis = { interval: "1m", threshold: 2, stepWeight: 20, maxWeight: 40 }
const hook = (type: Webhooks[number]["type"], fields = {}) => ({
  name: "gate",
  type,
  url: "http://gate.shop/",
  ...fields,
})
const withHooks = (...webhooks: Webhooks) => ({ spec: { analysis: { ...analysis, webhooks } } })
const metric = { name: "request-success-rate", thresholdRange: { min: 99 } }
const measured = { spec: { analysis: { ...analysis, metrics: [metric] } } }

/** With the answers to everything that the decision lacks. */
function answered(sight: Sight, yes: boolean, more: Pick<HookAnswer, "isUncalled"> = {}): Sight {
  const answer = { yes, why: "said so", at: sight.now, ...more }
  return { ...sight, answers: new Map(decide(sight).asks.hooks.map(ask => [answerKey(ask), answer])) }
}

const told = ({ phase, act, reason }: Decision) => [phase, act?.do ?? "", reason]
const change = (sight: Sight, fields: Partial<Sight>): Sight => ({ ...sight, ...fields })
const good = { name: "request-success-rate", verdict: "Good", value: 100 } as const
const bad = { name: "request-success-rate", verdict: "Bad", value: 90, why: "90 is below 99" } as const
const noData = { name: "request-success-rate", verdict: "NoData", why: "nothing" } as const
const broken = { name: "request-success-rate", verdict: "Error", why: "no answer" } as const
const heldCalm = () => change(calm(), { workload })

/** Each row of Flagger's tick table, and what is different here. */
const rows: Record<string, [Sight, [string, string, string]]> = {
  "1 suspended: nothing goes on": [
    running(20, { spec: { suspend: true }, forMs: minute }),
    ["Progressing", "", "Suspended"],
  ],
  "2 seen for the first time": [change(calm(), { canary: canaryOf() }), ["Initializing", "", "Adopting"]],
  "2 the finalizer comes first": [
    change(calm(), { canary: canaryOf({}, { phase: "Initializing" }), hasFinalizer: false }),
    ["Initializing", "addFinalizer", "Adopting"],
  ],
  "2 the Services are made": [
    change(calm(), { canary: canaryOf({}, { phase: "Initializing" }), services: { areMade: () => false } }),
    ["Initializing", "services", "Adopting"],
  ],
  "3 the route is made, to the source": [
    change(calm(), { canary: canaryOf({}, { phase: "Initializing" }), route: { isAccepted: false, why: "" } }),
    ["Initializing", "route", "Adopting"],
  ],
  "3 it is tried whether a policy holds": [
    change(calm(), { canary: canaryOf({}, { phase: "Initializing" }) }),
    ["Initializing", "tryPolicy", "Adopting"],
  ],
  "3 without a policy the pause stands": [
    change(calm(), { canary: canaryOf({}, { phase: "Initializing" }), policyHolds: false }),
    ["Initializing", "hold", "Adopting"],
  ],
  "3 adopted": [
    change(calm(), { canary: canaryOf({}, { phase: "Initializing" }), policyHolds: true }),
    ["Initialized", "", "Initialized"],
  ],
  "4 nothing has changed": [calm(), ["Initialized", "", "Initialized"]],
  "4 a held change starts a run": [heldCalm(), ["Progressing", "", "Started"]],
  "4 a template that failed waits": [
    change(heldCalm(), { canary: canaryOf({}, { phase: "Failed", lastAppliedSpec: "bbbb" }) }),
    ["Failed", "", "Rejected"],
  ],
  "4 the template of the source: the hold ends": [
    change(heldCalm(), { workload: { ...workload, checksum: "aaaa" } }),
    ["Initialized", "release", "Reverted"],
  ],
  "4 a standing pause stays": [
    change(heldCalm(), { workload: { ...workload, checksum: "aaaa", hold: { isStanding: true } } }),
    ["Initialized", "", "Initialized"],
  ],
  "4 without pods the change waits": [
    change(heldCalm(), { workload: { ...workload, size: 0 }, sets: [{ ...oldSet, size: 0, ready: 0 }] }),
    ["Initialized", "", "Dormant"],
  ],
  "6 a hook before the rollout": [
    change(heldCalm(), { canary: canaryOf(withHooks(hook("confirm-rollout")).spec, { phase: "Initialized" }) }),
    ["Waiting", "", "Started"],
  ],
  "6 it says no": [
    answered(running(0, { ...withHooks(hook("confirm-rollout")), status: { phase: "Waiting" } }), false),
    ["Waiting", "", "GateWaiting"],
  ],
  "6 it says yes": [
    answered(running(0, { ...withHooks(hook("confirm-rollout")), status: { phase: "Waiting" } }), true),
    ["Progressing", "", "Started"],
  ],
  "6 at its deadline": [
    running(0, {
      ...withHooks(hook("confirm-rollout", { deadline: "1m" })),
      status: { phase: "Waiting" },
      forMs: minute,
      run: {
        gates: [{ type: "confirm-rollout", name: "gate", round: 0, state: "Waiting", since: startedAt, attempts: 0 }],
      },
    }),
    ["Failed", "", "GateExpired"],
  ],
  "6 an approval is missing": [
    running(0, { spec: { requireApproval: ["Rollout"] }, status: { phase: "Waiting" } }),
    ["Waiting", "", "AwaitingApproval"],
  ],
  "6 then it gets its pods": [
    change(running(0, { run: { target: { ...aRun.target, hash: "" } } }), { trial: undefined, sets: [oldSet] }),
    ["Progressing", "createTrial", "Scaling"],
  ],
  "7 the template changed: the run ends": [
    change(running(20), { workload: { ...workload, checksum: "cccc" } }),
    ["Progressing", "", "RollingBack"],
  ],
  "7 and requests go back first": [
    running(20, { run: { reason: "Restarted" } }),
    ["Progressing", "route", "RollingBack"],
  ],
  "7 then its pods go": [running(0, { run: { reason: "Restarted" } }), ["Progressing", "deleteTrial", "RollingBack"]],
  "7 then it is over": [
    change(running(0, { run: { reason: "Restarted" } }), { trial: undefined, sets: [oldSet] }),
    ["Initialized", "", "Restarted"],
  ],
  "8 not ready: it waits": [
    change(running(0, { run: { reason: "WaitingForReady" } }), {
      services: { ...running(0).services, target: { hash: "new", ready: {} } },
    }),
    ["Progressing", "", "WaitingForReady"],
  ],
  "8 until the deadline": [
    change(running(0, { run: { reason: "WaitingForReady" }, forMs: 10 * minute }), {
      services: { ...running(0).services, target: { hash: "new", ready: {} } },
    }),
    ["Failed", "", "DeadlineExceeded"],
  ],
  "8 a crash loop fails at once": [
    change(running(20), { trouble: { reason: "CrashLoop", message: "it keeps ending", isFatal: true } }),
    ["Failed", "", "CrashLoop"],
  ],
  "9 skipAnalysis: full size first": [
    running(0, { spec: { skipAnalysis: true } }),
    ["Progressing", "scaleTrial", "Scaling"],
  ],
  "10 a rollback hook says yes": [
    answered(running(20, { ...withHooks(hook("rollback")), forMs: minute }), true),
    ["Failed", "", "RollbackHook"],
  ],
  "10 and no": [
    answered(running(20, { ...withHooks(hook("rollback")), forMs: minute }), false),
    ["Progressing", "scaleTrial", "Scaling"],
  ],
  "11 promotion: full size": [running(40, { status: { phase: "Promoting" } }), ["Promoting", "scaleTrial", "Scaling"]],
  "11 then all requests": [
    change(running(40, { status: { phase: "Promoting" } }), {
      trial: { ...trial, size: 4 },
      services: { ...running(0).services, target: { hash: "new", ready: { new: 4 } } },
    }),
    ["Promoting", "route", "Routing"],
  ],
  "11 then it is finalised": [running(100, { status: { phase: "Promoting" } }), ["Finalising", "", "HandingOver"]],
  "12 the Service of the source turns": [
    running(100, { status: { phase: "Finalising" } }),
    ["Finalising", "services", "Routing"],
  ],
  "12 its endpoints are awaited": [
    change(running(100, { status: { phase: "Finalising" }, forMs: 5 * second }), {
      services: {
        source: { hash: "new", ready: { old: 4 } },
        target: { hash: "new", ready: { new: 4 } },
        areMade: () => true,
      },
    }),
    ["Finalising", "", "WaitingForReady"],
  ],
  "12 then it gets the requests back": [
    change(running(100, { status: { phase: "Finalising" } }), {
      services: {
        source: { hash: "new", ready: { new: 4 } },
        target: { hash: "new", ready: { new: 4 } },
        areMade: () => true,
      },
    }),
    ["Finalising", "route", "Routing"],
  ],
  "12 and the Service of clients is as the others before pods go": [
    change(running(0, { status: { phase: "Finalising" } }), {
      services: {
        source: { hash: "new", ready: { new: 4 } },
        target: { hash: "new", ready: { new: 4 } },
        areMade: () => false,
      },
    }),
    ["Finalising", "services", "Routing"],
  ],
  "11 the template changed before: back": [
    change(running(100, { status: { phase: "Promoting" } }), { workload: { ...workload, checksum: "cccc" } }),
    ["Promoting", "", "RollingBack"],
  ],
  "13 a bad metric counts": [
    change(running(20, { ...measured, forMs: minute }), { checks: [bad] }),
    ["Progressing", "", "MetricFailed"],
  ],
  "13 as often as threshold": [
    change(running(20, { ...measured, run: { failedChecks: 1 }, forMs: minute }), { checks: [bad] }),
    ["Failed", "", "AnalysisFailed"],
  ],
  "13 requests go back": [
    running(20, { status: { phase: "Failed" }, run: { reason: "AnalysisFailed" } }),
    ["Failed", "route", "RollingBack"],
  ],
  "13 not to a source that is not ready": [
    change(running(20, { status: { phase: "Failed" }, run: { reason: "AnalysisFailed" } }), {
      services: { ...running(20).services, source: { hash: "old", ready: {} } },
      trial: { ...trial, size: 1, isEnded: true },
    }),
    ["Failed", "", "SourceNotReady"],
  ],
  "13 while it waits, the Deployment of the run says that its run is over": [
    change(running(20, { status: { phase: "Failed" }, run: { reason: "AnalysisFailed" } }), {
      services: { ...running(20).services, source: { hash: "old", ready: {} } },
    }),
    ["Failed", "endTrial", "RollingBack"],
  ],
  "13 frozen": [
    running(20, { spec: { onFailure: "Freeze" }, status: { phase: "Failed" }, run: { reason: "AnalysisFailed" } }),
    ["Failed", "", "Frozen"],
  ],
  "14 no data holds": [
    change(running(20, { ...measured, forMs: minute }), { checks: [noData] }),
    ["Progressing", "", "NoData"],
  ],
  "14 an error holds": [
    change(running(20, { ...measured, forMs: minute }), { checks: [broken] }),
    ["Progressing", "", "MetricError"],
  ],
  "14 before the interval is over": [
    running(20, { ...measured, forMs: 59 * second }),
    ["Progressing", "", "Measuring"],
  ],
  "14 a hook before the first weight says no": [
    answered(running(0, withHooks(hook("pre-rollout"))), false),
    ["Progressing", "", "HookRefused"],
  ],
  "14 it could not be called, which is no refusal": [
    answered(running(0, withHooks(hook("pre-rollout"))), false, { isUncalled: true }),
    ["Progressing", "", "MetricError"],
  ],
  "14 nor in a round": [
    answered(running(20, { ...withHooks(hook("rollout")), forMs: minute }), false, { isUncalled: true }),
    ["Progressing", "", "MetricError"],
  ],
  "14 a hook that was not called in the last round that the threshold allows": [
    answered(running(20, { ...withHooks(hook("rollout")), run: { failedChecks: 1 }, forMs: minute }), false, {
      isUncalled: true,
    }),
    ["Progressing", "", "MetricError"],
  ],
  "14 and yes": [answered(running(0, withHooks(hook("pre-rollout"))), true), ["Progressing", "", "Measuring"]],
  "15 the first weight": [running(0), ["Progressing", "route", "Measuring"]],
  "15 the next weight: pods first": [
    change(running(20, { ...measured, forMs: minute }), { checks: [good] }),
    ["Progressing", "scaleTrial", "Scaling"],
  ],
  "15 a source that is not ready does not keep a ready target from more": [
    change(running(20, { run: { next: { weight: 40, mirrored: false } } }), {
      trial: { ...trial, size: 2 },
      services: {
        source: { hash: "old", ready: {} },
        target: { hash: "new", ready: { new: 2 } },
        areMade: () => true,
      },
    }),
    ["Progressing", "route", "Measuring"],
  ],
  "15 a route that is not accepted holds everything": [
    change(running(20, { ...measured, forMs: minute }), {
      checks: [good],
      route: { split: { weight: 20, isMirrored: false }, isAccepted: false, why: "no listener" },
    }),
    ["Progressing", "", "NotAccepted"],
  ],
  "15 a hook before the weight rises says no": [
    answered(
      running(20, { ...withHooks(hook("confirm-traffic-increase")), run: { next: { weight: 40, mirrored: false } } }),
      false,
    ),
    ["Progressing", "", "GateWaiting"],
  ],
  "16 the last weight: promoted": [
    change(running(40, { ...measured, forMs: minute }), { checks: [good] }),
    ["Promoting", "", "Advanced"],
  ],
  "16 a hook before promotion": [
    change(running(40, { ...withHooks(hook("confirm-promotion")), forMs: minute }), { checks: [good] }),
    ["WaitingPromotion", "", "Advanced"],
  ],
  "16 it says no, and checks go on": [
    answered(running(40, { ...withHooks(hook("confirm-promotion")), status: { phase: "WaitingPromotion" } }), false),
    ["WaitingPromotion", "", "GateWaiting"],
  ],
  "16 it says yes": [
    answered(running(40, { ...withHooks(hook("confirm-promotion")), status: { phase: "WaitingPromotion" } }), true),
    ["Promoting", "", "Advanced"],
  ],
  ...Object.fromEntries(
    (["NoData", "Bad", "Error"] as const).map(verdict => [
      `16 it says yes, and the last round said ${verdict}: not yet`,
      [
        answered(
          running(40, {
            spec: { analysis: { ...analysis, metrics: [metric], webhooks: [hook("confirm-promotion")] } },
            status: { phase: "WaitingPromotion" },
            run: { metrics: [{ name: metric.name, verdict, count: 1, since: startedAt, at: startedAt }] },
          }),
          true,
        ),
        ["WaitingPromotion", "", "Measuring"],
      ] as [Sight, [string, string, string]],
    ]),
  ),
  "a rollback by a person": [
    running(20, { annotations: { [rollbackAnnotation]: "r2_bbbb" } }),
    ["Failed", "", "RolledBackByUser"],
  ],
  "the new revision's Deployment is gone": [
    change(running(20), { trial: undefined, sets: [oldSet] }),
    ["Failed", "", "TargetMissing"],
  ],
  "the hold was ended by its owner": [
    change(running(20), { workload: { ...workload, isPaused: false } }),
    ["Progressing", "", "RollingBack"],
  ],
  "another's Deployment has the name": [
    change(running(0), { trial: { ...trial, isOurs: false } }),
    ["Progressing", "", "NameTaken"],
  ],
}

describe("each row of the table", () => {
  for (const [name, [sight, expected]] of Object.entries(rows))
    test(name, () => expect(told(decide(sight))).toEqual(expected))
})

test("a decision is the same for the same sight", () => {
  for (const [sight] of Object.values(rows)) expect(decide(sight)).toEqual(decide(sight))
})

test("a run of its own for each try: a template that failed is tried again when a person asks", () => {
  const history = [
    {
      id: "r2_bbbb",
      source: aRun.source,
      target: aRun.target,
      result: "RolledBack" as const,
      reason: "AnalysisFailed" as const,
      startedAt,
      endedAt: startedAt,
    },
  ]
  const status = { phase: "Failed" as const, lastAppliedSpec: "bbbb", history }
  const again = decide(change(heldCalm(), { canary: canaryOf({}, status, { [retryAnnotation]: "r2_bbbb" }) }))
  expect([again.phase, again.run?.id]).toEqual(["Progressing", "r2_bbbb_2"])
})

test("the weight that is reported is the one that is routed, and is judged from then on", () => {
  const sight = change(
    running(20, { run: { weight: 0, next: { weight: 20, mirrored: false } }, forMs: 5 * second }),
    {},
  )
  const { run } = decide(sight)
  expect(run).toMatchObject({ weight: 20, weightSince: "2026-01-01T00:00:05Z" })
  expect(run?.next).toBeUndefined()
})

test("Blue/Green counts iterations, then gives all requests for one of them", () => {
  const blueGreen = { analysis: { interval: "1m", threshold: 2, iterations: 2 } }
  const at = (weight: number, iterations: number, forMs: number) => {
    const sight = running(weight, { spec: blueGreen, run: { iterations }, forMs })
    return decide(
      change(sight, {
        trial: { ...trial, size: 4 },
        services: { ...sight.services, target: { hash: "new", ready: { new: 4 } } },
      }),
    )
  }
  expect([at(0, 0, 0).act, at(0, 0, 0).run?.iterations]).toEqual([undefined, 1])
  expect(at(0, 1, minute).run?.iterations).toBe(2)
  expect(at(0, 2, minute).act).toEqual({ do: "route", weight: 100, isMirrored: false })
  expect(at(100, 3, minute).phase).toBe("Promoting")
})

test("a source at full size again is needed before requests go back, except where the target has none ready", () => {
  const sight = running(20, { status: { phase: "Failed" }, run: { reason: "CrashLoop" } })
  const half = { source: { hash: "old", ready: { old: 2 } }, areMade: () => true }
  expect(decide(change(sight, { services: { ...half, target: { hash: "new", ready: { new: 1 } } } })).act?.do).toBe(
    "endTrial",
  )
  expect(decide(change(sight, { services: { ...half, target: { hash: "new", ready: {} } } })).act?.do).toBe("route")
})

describe("the hand-over", () => {
  const finalising = (fields: Partial<Sight> = {}, spec: Partial<CanarySpecInput> = {}): Sight => ({
    ...running(0, { status: { phase: "Finalising" }, spec }),
    trial: { ...trial, size: 4 },
    sets: [oldSet, { ...newSet, size: 4, ready: 4 }],
    services: {
      source: { hash: "new", ready: { new: 4 } },
      target: { hash: "new", ready: { new: 4 } },
      areMade: () => true,
    },
    ...fields,
  })
  const mine = { ...newSet, owner: "user" as const, size: 4, ready: 4, revision: 2 }
  const gone = { ...oldSet, size: 0, ready: 0 }
  const counted = { ...workload, revision: 2, updated: 4 }
  const cases: Record<string, [Sight, [string, string, string]]> = {
    "the pods of before stay for a while": [
      finalising({}, { scaleDownDelaySeconds: 60 }),
      ["Finalising", "services", "Draining"],
    ],
    "the run's Deployment is paused": [finalising(), ["Finalising", "pauseTrial", "HandingOver"]],
    "then the ReplicaSet moves": [
      finalising({ trial: { ...trial, size: 4, isPaused: true, isPauseSeen: true } }),
      ["Finalising", "moveSet", "HandingOver"],
    ],
    "it is counted before anything else": [finalising({ sets: [oldSet, mine] }), ["Finalising", "", "HandingOver"]],
    "then the run's Deployment goes": [
      finalising({ sets: [gone, mine], workload: counted }),
      ["Finalising", "deleteTrial", "HandingOver"],
    ],
    "then the workload is given back": [
      finalising({ sets: [gone, mine], workload: counted, trial: undefined }),
      ["Finalising", "release", "HandingOver"],
    ],
    "a standing pause stays": [
      finalising({ sets: [gone, mine], workload: { ...counted, hold: { isStanding: true } }, trial: undefined }),
      ["Succeeded", "", "Promoted"],
    ],
    done: [
      finalising({ sets: [gone, mine], workload: { ...counted, isPaused: false, hold: undefined }, trial: undefined }),
      ["Succeeded", "", "Promoted"],
    ],
    "the template changed before the ReplicaSet moved: back": [
      finalising({ workload: { ...workload, checksum: "cccc" } }),
      ["Finalising", "", "RollingBack"],
    ],
    "the template changed after it: the old pods go, and the next run follows": [
      finalising({ sets: [oldSet, mine], workload: { ...workload, checksum: "cccc" } }),
      ["Finalising", "emptySet", "HandingOver"],
    ],
    "back from there: the side without requests turns first": [
      finalising({ canary: running(0, { status: { phase: "Finalising" }, run: { reason: "Restarted" } }).canary }),
      ["Finalising", "services", "RollingBack"],
    ],
  }
  for (const [name, [sight, expected]] of Object.entries(cases))
    test(name, () => expect(told(decide(sight))).toEqual(expected))
})

describe("a Canary that is deleted", () => {
  const going = (sight: Sight, fields: Partial<Sight> = {}): Sight => {
    const canary = { ...sight.canary, status: { ...sight.canary.status!, phase: "Terminating" as const } }
    return {
      ...sight,
      ...fields,
      canary: { ...canary, metadata: { ...canary.metadata, deletionTimestamp: startedAt } },
    }
  }
  const cases: Record<string, [Sight, string]> = {
    "requests go back first": [going(running(20)), "route"],
    "then the pods of the new revision go": [going(running(0)), "deleteTrial"],
    "then the running template is written back": [going(running(0), { trial: undefined, sets: [oldSet] }), "writeBack"],
    "then the hold ends": [
      going(running(0), { trial: undefined, sets: [oldSet], workload: { ...workload, checksum: "aaaa" } }),
      "release",
    ],
    "then Services and route are left": [going(calm()), "leave"],
    "then it may go": [going(calm(), { isLeft: true }), "removeFinalizer"],
  }
  for (const [name, [sight, act]] of Object.entries(cases)) test(name, () => expect(decide(sight).act?.do).toBe(act))

  test("a source that never becomes ready keeps it for the deadline, and not for ever", () => {
    const sight = going(running(20), { services: { ...running(20).services, source: { hash: "old", ready: {} } } })
    expect(decide(sight).act?.do).toBe("endTrial")
    const told = { ...sight, trial: { ...sight.trial!, isEnded: true } }
    expect(decide(told).act).toBeUndefined()
    expect(decide({ ...told, now: start + 10 * minute }).act?.do).toBe("deleteTrial")
  })

  test("a route that is not accepted as it is left keeps its Services for the deadline, and not for ever", () => {
    const sight = going(calm(), { isRouteGoing: true })
    expect(decide(sight).act).toBeUndefined()
    expect(decide({ ...sight, now: start + 10 * minute }).act?.do).toBe("leave")
  })
})
