import { describe, expect, test } from "vitest"
import { ClusterGroupUpgrade } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { ClusterFacts } from "./cluster-step.ts"
import { decideRun, type RunGiven } from "./run.ts"

const now = Date.parse("2026-01-01T12:00:00Z")
const minute = 60_000
const spec = (fields: object = {}, strategy: object = {}) =>
  ClusterGroupUpgrade.spec.parse({
    clusters: ["a"],
    upgrades: [
      {
        name: "u",
        manifests: [
          { apiVersion: "autoimagemanager.io/v1alpha1", kind: "ServiceImage", metadata: { name: "x" }, spec: {} },
        ],
      },
    ],
    remediationStrategy: { maxConcurrency: 2, ...strategy },
    ...fields,
  }) as RunGiven["spec"]

const states = {
  n: "NotStarted",
  p: "InProgress",
  c: "Completed",
  f: "Failed",
  t: "TimedOut",
  r: "RolledBack",
} as const
const facts = (letter: string, rest: Partial<ClusterFacts> = {}): ClusterFacts => ({
  state: states[letter as keyof typeof states],
  attempt: letter === "n" ? 0 : 1,
  upgradeIndex: 0,
  ...("pcft".includes(letter) && { appliedAt: "2026-01-01T11:00:00Z" }),
  ...rest,
})

/** `a!|bc|d` with the states `c|pn|n`: batches and where their clusters are. */
function world(batches: string, letters: string, rest: Partial<RunGiven> = {}): RunGiven {
  const each = letters.split("|")
  const planned = batches
    .split("|")
    .map(text => ({ clusters: [...text.replace("!", "")], isCanary: text.endsWith("!") }))
  const clusters = new Map<string, ClusterFacts>()
  for (const [index, { clusters: names }] of planned.entries())
    for (const [at, name] of names.entries()) clusters.set(name, facts(each[index]![at]!))
  return {
    spec: spec(),
    phase: "InProgress",
    batches: planned,
    clusters,
    blocked: { is: "Free" },
    opening: { isOpen: true, closesAt: undefined },
    graceMs: 30 * minute,
    approved: new Set(),
    workedMs: 0,
    batch: { number: 1, workedBeforeMs: 0 },
    fits: true,
    now,
    ...rest,
  }
}
const plan = "a!|bc|d"
const shut = (closedMinutesAgo: number) => ({
  opening: { isOpen: false as const, opensAt: now + 60 * minute, closedAt: now - closedMinutesAgo * minute },
})

const cases: Record<
  string,
  { given: RunGiven; gives: string; begins?: string; timedOut?: string; rollsBack?: string }
> = {
  "the canary alone begins": { given: world(plan, "n|nn|n"), gives: "InProgress InProgress 1", begins: "a" },
  "nothing else while the canary works": { given: world(plan, "p|nn|n"), gives: "InProgress InProgress 1" },
  "the next batch as soon as it is complete": {
    given: world(plan, "c|nn|n"),
    gives: "InProgress InProgress 2",
    begins: "bc",
  },
  "a failed cluster does not hold up its batch": {
    given: world(plan, "c|cf|n"),
    gives: "InProgress InProgress 3",
    begins: "d",
  },
  complete: { given: world(plan, "c|cc|c"), gives: "Complete Completed 1" },
  "ended with failures": { given: world(plan, "c|cf|c"), gives: "Partial CompletedWithFailures 1" },
  "ended with time-outs": { given: world(plan, "c|ct|c"), gives: "Partial TimedOut 1" },
  "a canary that fails ends the run": { given: world(plan, "f|nn|n"), gives: "Failed CanaryFailed 1" },
  "a canary that times out ends the run, whatever batchTimeoutAction says": {
    given: world(plan, "t|nn|n"),
    gives: "Failed TimedOut 1",
  },
  "onFailure: Rollback": {
    given: world(plan, "f|nn|n", { spec: spec({ onFailure: "Rollback" }) }),
    gives: "RollingBack CanaryFailed 1",
  },
  "the last batch goes back first": {
    given: world(plan, "c|cf|c", { phase: "RollingBack" }),
    gives: "RollingBack RollingBack 1",
    rollsBack: "d",
  },
  "then the one before": {
    given: world(plan, "c|cf|r", { phase: "RollingBack" }),
    gives: "RollingBack RollingBack 1",
    rollsBack: "bc",
  },
  "clusters that got nothing stay": {
    given: world(plan, "r|nn|n", { phase: "RollingBack" }),
    gives: "RolledBack RolledBack 1",
  },
  "within the budget": {
    given: world(plan, "c|cf|n", { spec: spec({}, { failureBudget: 1 }) }),
    gives: "InProgress InProgress 3",
    begins: "d",
  },
  "over the budget": {
    given: world(plan, "c|ft|n", { spec: spec({}, { failureBudget: 1 }) }),
    gives: "Failed FailureBudgetSpent 1",
  },
  "a time-out with Abort": {
    given: world(plan, "c|ct|n", { spec: spec({ batchTimeoutAction: "Abort" }) }),
    gives: "Failed BatchTimedOut 1",
  },
  "a time-out with Continue": { given: world(plan, "c|ct|n"), gives: "InProgress InProgress 3", begins: "d" },
  "the time of a batch is over": {
    given: world(plan, "c|pc|n", { workedMs: 140 * minute, batch: { number: 2, workedBeforeMs: 40 * minute } }),
    gives: "InProgress InProgress 2",
    timedOut: "b",
  },
  "a moment before it is": {
    given: world(plan, "c|pc|n", { workedMs: 140 * minute - 1, batch: { number: 2, workedBeforeMs: 40 * minute } }),
    gives: "InProgress InProgress 2",
  },
  "the last batch has all that is left": {
    given: world(plan, "c|cc|p", { workedMs: 239 * minute, batch: { number: 3, workedBeforeMs: 60 * minute } }),
    gives: "InProgress InProgress 3",
  },
  "the time of the run is over before a batch begins": {
    given: world(plan, "c|cc|n", { workedMs: 240 * minute }),
    gives: "Failed TimedOut 1",
  },
  "not enabled": {
    given: world(plan, "n|nn|n", { spec: spec({ enable: false }), phase: "Pending" }),
    gives: "Pending NotEnabled 1",
  },
  paused: { given: world(plan, "c|nn|n", { spec: spec({ paused: true }) }), gives: "InProgress Paused 2" },
  blocked: {
    given: world(plan, "n|nn|n", {
      blocked: { is: "Blocked", reason: "MissingBlockingCR", message: "x" },
      phase: "Pending",
    }),
    gives: "Pending MissingBlockingCR 1",
  },
  "outside the window": {
    given: world(plan, "n|nn|n", { ...shut(99), phase: "Pending" }),
    gives: "Pending OutsideWindow 1",
  },
  "what does not fit does not begin": {
    given: world(plan, "c|nn|n", { fits: false }),
    gives: "InProgress DoesNotFit 2",
  },
  "what has begun goes on although it does not fit": {
    given: world(plan, "c|pn|n", { fits: false }),
    gives: "InProgress InProgress 2",
    begins: "c",
  },
  "a canary needs no approval after canaries": {
    given: world(plan, "n|nn|n", { spec: spec({}, { requireApproval: "AfterCanaries" }) }),
    gives: "InProgress InProgress 1",
    begins: "a",
  },
  "after the canaries it does": {
    given: world(plan, "c|nn|n", { spec: spec({}, { requireApproval: "AfterCanaries" }) }),
    gives: "InProgress AwaitingApproval 2",
  },
  "one approval is for all batches after the canaries": {
    given: world(plan, "c|cc|n", { spec: spec({}, { requireApproval: "AfterCanaries" }), approved: new Set([2]) }),
    gives: "InProgress InProgress 3",
    begins: "d",
  },
  "each batch needs its own": {
    given: world(plan, "c|cc|n", { spec: spec({}, { requireApproval: "EachBatch" }), approved: new Set([1, 2]) }),
    gives: "InProgress AwaitingApproval 3",
  },
  "clusters that were not cached wait": {
    given: world(plan, "n|nn|n", { spec: spec({ preCaching: true }), phase: "Pending" }),
    gives: "Pending PreCaching 1",
  },
}

describe("a run", () => {
  for (const [name, { given, gives, begins = "", timedOut = "", rollsBack = "" }] of Object.entries(cases))
    test(name, () => {
      const found = decideRun(given)
      expect(`${found.phase} ${found.reason} ${found.currentBatch}`).toBe(gives)
      expect([...found.begin].join("")).toBe(begins)
      expect([...found.timedOut].join("")).toBe(timedOut)
      expect([...found.rollBack].join("")).toBe(rollsBack)
    })

  test("a closed window counts no time, and what runs has its grace", () => {
    const inGrace = decideRun(world(plan, "c|pn|n", shut(10)))
    expect([inGrace.isWorking, inGrace.mayGoOn, inGrace.lookAgainAt]).toEqual([true, true, now + 20 * minute])
    const after = decideRun(world(plan, "c|pn|n", shut(31)))
    expect([after.isWorking, after.mayGoOn, after.lookAgainAt]).toEqual([false, false, now + 60 * minute])
  })

  test("paused, blocked and unapproved time does not count", () => {
    expect(decideRun(world(plan, "c|nn|n", { spec: spec({ paused: true }) })).isWorking).toBe(false)
    expect(decideRun(world(plan, "c|pn|n", { spec: spec({ paused: true }) })).isWorking).toBe(false)
    expect(decideRun(world(plan, "c|nn|n", { spec: spec({}, { requireApproval: "EachBatch" }) })).isWorking).toBe(false)
  })

  test("clusters that came back late form a batch at the end", () => {
    const given = world(plan, "c|ct|c")
    const clusters = new Map(given.clusters).set("c", facts("n", { attempt: 1 }))
    const found = decideRun({ ...given, clusters })
    expect([found.currentBatch, [...found.begin]]).toEqual([4, ["c"]])
  })

  test("with the gate Fleet none starts before pre-caching has ended on all", () => {
    const precached = (state: "Succeeded" | "Active" | "PrecacheTimeout") => ({
      precache: { state, since: "", attempt: 1, specHash: "", deadlineSeconds: 0 },
    })
    const given = world("ab", "nn", { spec: spec({ preCaching: true, preCachingGate: "Fleet" }) })
    const withStates = (a: "Succeeded", b: "Active" | "PrecacheTimeout") =>
      new Map([
        ["a", facts("n", precached(a))],
        ["b", facts("n", precached(b))],
      ])
    expect([...decideRun({ ...given, clusters: withStates("Succeeded", "Active") }).begin]).toEqual([])
    expect([...decideRun({ ...given, clusters: withStates("Succeeded", "PrecacheTimeout") }).begin]).toEqual(["a"])
  })
})
