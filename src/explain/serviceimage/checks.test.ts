import { describe, expect, test } from "vitest"
import type { Reason } from "#api/v1alpha1/serviceimage/index.ts"
import { checkOn, checks, type Facts, gateOf, type StoppingName } from "#controllers/serviceimage/checks.ts"
import { isStopped } from "#core/fleet/checks.ts"
import { type Moment, moments } from "./test-rollouts.ts"
import { factsOf, whyStanding } from "./why-standing.ts"
import type { Known } from "./why-words.ts"

// One list decides about an object and explains it. Rollouts at random show that both agree, for every check.

const halts = [
  "AllFailed",
  "FailureHaltsUpdate",
  "FailureBudgetSpent",
  "WrongTarget",
  "PreCacheIncomplete",
  "BadMetric",
  "NoData",
] as const
const turns = ["RollingOut", "WaitingForPace", "StampedNew"] as const
const failures = ["ImagePullFailed", "CrashLoop", "Unhealthy", "CanaryFailed", "Timeout"] as const
/** The reasons that stand for each check, in a rollout that goes forward. */
const reasons: Record<StoppingName | "next", readonly Reason[]> = {
  unmanaged: ["Unmanaged"],
  upToDate: ["UpToDate"],
  settling: ["Settling"],
  waiting: ["WaitingForHealth", "Regressed", "FailureHaltsUpdate", "IgnoredFailure", ...failures],
  unwritable: ["InvalidTarget"],
  refused: ["Forbidden", "AdmissionDenied", "WriteFailed"],
  takenBack: ["UpdateFailed"],
  rejected: ["CanaryFailed"],
  kept: ["NotInPlace"],
  contested: ["Contested"],
  paused: ["Paused"],
  halted: halts,
  priority: ["WaitingForPriority"],
  heldBack: ["WaitingForHealth"],
  approval: ["AwaitingApproval"],
  preCaching: ["PreCaching"],
  judging: ["Analysing", "BadMetric", "NoData", "MetricError"],
  soaking: ["Soaking"],
  step: [
    "RollingOut",
    "WaitingForHealth",
    "WaitingForConcurrency",
    "Settling",
    "Forbidden",
    "Contested",
    "WriteFailed",
    "NotInPlace",
    "CanaryFailed",
  ],
  concurrency: ["WaitingForConcurrency"],
  pace: ["WaitingForPace", "RollingOut"],
  fence: turns,
  namespace: turns,
  batch: turns,
  next: ["RollingOut", "TierReopened", "StampedNew"],
}

type Row = {
  seed: number
  key: string
  isBack: boolean
  isStamped: boolean
  /** What stopped it, as each part of the controller has it. */
  stopped: { by: "fleet" | "tier" | "queue" | "nothing"; check: StoppingName | undefined }
  /** It was refused or contested, and is tried again: that is named, and does not stop it. */
  isTriedAgain: boolean
  own: string | undefined
  named: StoppingName | undefined
  reason: Reason
  /** What would be named with neighbours of the list the other way round, for each pair. */
  swapped: (StoppingName | undefined)[]
}

const stopping = checks.filter(check => check.of === "Object" || "stops" in check)
const turnChecks = checks.filter(check => check.of === "Turn")
const swaps = stopping.slice(1).map((check, index) => ({
  pair: `${stopping[index]!.name} ${check.name}`,
  list: stopping.with(index, check).with(index + 1, stopping[index]!),
}))

/** Looks at every object of a moment: the fleet moves on after it. */
function rowsOf({ rollout, now, seed }: Moment): Row[] {
  const { fleet, plan, snapshot } = rollout
  return [...fleet.keys()].map((key): Row => {
    const standing = fleet.standing(key)!
    const object = { kind: "Dicom", metadata: { name: key } }
    const tier = plan.tiers.find(each => each.name === standing.tier)!
    const member = fleet.get(key)!
    const known: Known = { title: key, asked: { key, object }, member, rollout, fleet, standing, tier, now }
    const facts = factsOf(known)
    return {
      seed,
      key,
      isBack: ["RollingBack", "RolledBack"].includes(snapshot.operation.phase),
      isStamped: plan.stamps.some(stamp => stamp.key === key),
      stopped: stoppedBy(known, facts),
      isTriedAgain: standing.check?.obstacle !== undefined && !standing.isHeld,
      own: standing.check?.name,
      named: checkOn(facts),
      reason: whyStanding(known).reason,
      swapped: swaps.map(({ list }) => checkOn(facts, list)),
    }
  })
}

function stoppedBy({ standing, tier, rollout, asked }: Known, facts: Facts): Row["stopped"] {
  const { snapshot, plan } = rollout
  if (isStopped(standing)) return { by: "fleet", check: standing.check!.name as StoppingName }
  const gate = gateOf(tier, { seen: snapshot, active: plan.active }, standing.state === "Blank")
  if (gate) return { by: "tier", check: gate }
  if (plan.stamps.some(({ key }) => key === asked.key)) return { by: "nothing", check: undefined }
  const intent = plan.queue.intents.find(({ key }) => key === asked.key)
  // An object that the plan did not come to has to wait in the queue.
  return { by: "queue", check: intent ? intent.waitsFor : checkOn({ ...facts, intent: undefined }, turnChecks) }
}

const rows: Row[] = []
for (const moment of moments(320)) rows.push(...rowsOf(moment))

describe("what stops an object is what is explained", () => {
  const placeOf = ({ seed, key }: Row) => `${key} of seed ${seed}`

  test("for every object of rollouts at random", () => {
    const expected = ({ isTriedAgain, own, stopped }: Row) => (isTriedAgain ? own : stopped.check)
    expect(rows.filter(row => row.named !== expected(row)).map(row => ({ at: placeOf(row), ...row }))).toEqual([])
  })

  test("an object is stamped if and only if nothing stops it", () => {
    expect(rows.filter(({ isStamped, stopped }) => isStamped !== (stopped.check === undefined))).toEqual([])
  })

  test("the reason is one of the check that is named", () => {
    const forward = rows.filter(({ isBack }) => !isBack)
    expect(forward.filter(({ named, reason }) => !reasons[named ?? "next"].includes(reason))).toEqual([])
  })

  test("every check that stops objects has stopped one", () => {
    const named = new Set(rows.map(row => row.named))
    expect(stopping.map(({ name }) => name).filter(name => !named.has(name))).toEqual([])
  })

  test("with two neighbours of the list the other way round, another check would be named", () => {
    const isSame = (index: number) => rows.every(({ named, swapped }) => swapped[index] === named)
    const free = swaps.flatMap(({ pair }, index) => (isSame(index) ? [pair] : []))
    // An object has one state, and a step after the first has been approved.
    const states = ["unmanaged upToDate", "upToDate settling", "settling waiting"]
    expect(free).toEqual([...states, "heldBack approval"])
  })
})
