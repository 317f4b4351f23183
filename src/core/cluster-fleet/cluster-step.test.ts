import { describe, expect, test } from "vitest"
import { type ClusterFacts, type ClusterGiven, stepCluster } from "./cluster-step.ts"

const now = Date.parse("2026-01-01T12:00:00Z")
const begun: ClusterFacts = {
  state: "InProgress",
  attempt: 1,
  upgradeIndex: 0,
  startedAt: "2026-01-01T11:00:00Z",
  appliedAt: "2026-01-01T11:00:00Z",
}
const calm: ClusterGiven = {
  facts: begun,
  judgement: { is: "Working", message: "1 of 2" },
  now,
  mayBegin: false,
  mayGoOn: true,
  isTimeUp: false,
  mayRejoin: false,
  soakMs: [0],
}
const fresh: ClusterFacts = { state: "NotStarted", attempt: 0, upgradeIndex: 0 }
const settled = { is: "Settled", proof: "2 objects" } as const
const away = { is: "Unknown", cause: "Unreachable", message: "no route" } as const
const timedOut: ClusterFacts = { ...begun, state: "TimedOut" }
const { appliedAt: _, ...neverReached } = timedOut

const cases: Record<string, { given: Partial<ClusterGiven>; gives: string }> = {
  "waits for its batch": { given: { facts: fresh }, gives: "NotStarted Waiting" },
  begins: { given: { facts: fresh, mayBegin: true, judgement: undefined }, gives: "InProgress Upgrading, delivers" },
  works: { given: {}, gives: "InProgress Upgrading" },
  "is complete": { given: { judgement: settled }, gives: "Completed UpToDate" },
  "is complete in the last moment of its batch": {
    given: { judgement: settled, isTimeUp: true },
    gives: "Completed UpToDate",
  },
  soaks: { given: { judgement: settled, soakMs: [60_000] }, gives: "InProgress Soaking" },
  "has soaked": {
    given: { judgement: settled, soakMs: [60_000], facts: { ...begun, firstReadyAt: "2026-01-01T11:59:00Z" } },
    gives: "Completed UpToDate",
  },
  "soaks a moment less": {
    given: { judgement: settled, soakMs: [60_000], facts: { ...begun, firstReadyAt: "2026-01-01T11:59:01Z" } },
    gives: "InProgress Soaking",
  },
  "gets the next upgrade": { given: { judgement: settled, soakMs: [0, 0] }, gives: "InProgress Upgrading, delivers" },
  "gets no further upgrade while nothing may be sent": {
    given: { judgement: settled, soakMs: [0, 0], mayGoOn: false },
    gives: "InProgress Upgrading",
  },
  fails: { given: { judgement: { is: "Failed", cause: "Stalled", message: "" } }, gives: "Failed Stalled" },
  "is away, and has not failed": { given: { judgement: away }, gives: "InProgress Unreachable" },
  "is away when its time is over": { given: { judgement: away, isTimeUp: true }, gives: "TimedOut Unreachable" },
  "works when its time is over": { given: { isTimeUp: true }, gives: "TimedOut TimedOut" },
  "lost an object": { given: { judgement: { is: "Absent" } }, gives: "InProgress Upgrading, delivers" },
  "was edited": { given: { judgement: { is: "Differs", message: "" } }, gives: "InProgress Upgrading, delivers" },
  "differs because it was sent a moment ago": {
    given: { judgement: { is: "Differs", message: "" }, facts: { ...begun, appliedAt: "2026-01-01T11:59:30Z" } },
    gives: "InProgress Upgrading",
  },
  "was never reached, and comes back": { given: { facts: neverReached, mayRejoin: true }, gives: "NotStarted Waiting" },
  "was never reached, and the run is over": { given: { facts: neverReached }, gives: "TimedOut UpToDate" },
  "timed out at work, and does not come back": {
    given: { facts: timedOut, mayRejoin: true },
    gives: "TimedOut UpToDate",
  },
  "comes back once": { given: { facts: { ...neverReached, attempt: 2 }, mayRejoin: true }, gives: "TimedOut UpToDate" },
}

describe("one cluster", () => {
  for (const [name, { given, gives }] of Object.entries(cases))
    test(name, () => {
      const { facts, reason, delivers } = stepCluster({ ...calm, ...given })
      expect(`${facts.state} ${reason}${delivers ? ", delivers" : ""}`).toBe(gives)
    })

  test("a look that shows it at work ends the soak", () => {
    const facts = { ...begun, firstReadyAt: "2026-01-01T11:59:00Z" }
    expect(stepCluster({ ...calm, facts, soakMs: [600_000] }).facts.firstReadyAt).toBeUndefined()
  })

  test("a look that did not come about does not", () => {
    const facts = { ...begun, firstReadyAt: "2026-01-01T11:59:00Z" }
    expect(stepCluster({ ...calm, facts, judgement: away, soakMs: [600_000] }).facts.firstReadyAt).toBeDefined()
  })
})
