import type { ClusterUpgradeStatus, Reason } from "#api/v1alpha1/clusterupgrade/index.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import type { Judgement } from "./judge.ts"

/** What is known of one cluster of a run, as its ClusterUpgrade keeps it. */
export type ClusterFacts = Omit<ClusterUpgradeStatus, "conditions" | "observedGeneration">

export type ClusterGiven = {
  facts: ClusterFacts
  /** What the last look showed; undefined where none was made since the last delivery. */
  judgement: Judgement | undefined
  now: Instant
  /** The run lets it begin: its batch is open, and nothing holds it back. */
  mayBegin: boolean
  /** The run lets what was begun get further objects. */
  mayGoOn: boolean
  /** The time of its batch is over. */
  isTimeUp: boolean
  /** It may be given another batch, at the end of the run. */
  mayRejoin: boolean
  /** How long each upgrade must have been ready. */
  soakMs: readonly number[]
}

export type ClusterStep = {
  facts: ClusterFacts
  reason: Reason
  message: string
  /** The objects of the upgrades up to `facts.upgradeIndex` are sent. */
  delivers?: true
  lookAgainAt?: Instant
}

/** A change on the cluster is undone after this long: what was just sent may be on its way. */
const againMs = 60_000
/** How often a cluster may get a batch: its own, and one at the end after it could not be reached. */
const attemptsMost = 2

/** Decides where one cluster goes next. It depends on no other cluster. */
export function stepCluster(given: ClusterGiven): ClusterStep {
  const { facts } = given
  if (facts.state === "NotStarted") return begin(given)
  if (facts.state === "InProgress") return goOn(given)
  if (facts.state === "TimedOut" && given.mayRejoin && facts.appliedAt === undefined && facts.attempt < attemptsMost) {
    const { endedAt: _, cause: __, unreachableSince: ___, ...rest } = facts
    return { facts: { ...rest, state: "NotStarted" }, reason: "Waiting", message: "it gets another batch at the end" }
  }
  return { facts, reason: facts.cause ?? "UpToDate", message: facts.proof ?? "" }
}

function begin({ facts, mayBegin, now }: ClusterGiven): ClusterStep {
  if (!mayBegin) return { facts, reason: "Waiting", message: "its batch has not begun" }
  const at = formatInstant(now)
  const begun: ClusterFacts = {
    ...facts,
    state: "InProgress",
    attempt: facts.attempt + 1,
    upgradeIndex: 0,
    startedAt: at,
  }
  return { facts: begun, reason: "Upgrading", message: "its objects are being sent", delivers: true }
}

function goOn(given: ClusterGiven): ClusterStep {
  const { facts, judgement, now, mayGoOn, isTimeUp } = given
  const step = judgement ? judged(given, judgement) : waits(facts, "Upgrading", "its objects were sent")
  if (step.facts.state !== "InProgress") return step
  if (isTimeUp) {
    const cause = step.facts.unreachableSince !== undefined ? "Unreachable" : "TimedOut"
    const { firstReadyAt: _, ...rest } = step.facts
    const message = `the time of its batch was over: ${step.message}`
    return { facts: { ...rest, state: "TimedOut", cause, endedAt: formatInstant(now) }, reason: cause, message }
  }
  if (!step.delivers || mayGoOn) return step
  const { delivers: _, ...held } = step
  // What it was sent last stays true: nothing is recorded that did not happen.
  return { ...held, facts: { ...held.facts, upgradeIndex: facts.upgradeIndex } }
}

function judged(given: ClusterGiven, judgement: Judgement): ClusterStep {
  const { facts, now, soakMs } = given
  const at = formatInstant(now)
  if (judgement.is === "Unknown") {
    const isAway = judgement.cause !== "Upgrading"
    const since = facts.unreachableSince ?? at
    return {
      facts: isAway ? { ...facts, unreachableSince: since, cause: judgement.cause } : facts,
      reason: judgement.cause,
      message: isAway ? `not reached since ${facts.lastContact ?? since}: ${judgement.message}` : judgement.message,
    }
  }
  const { unreachableSince: _, cause: __, firstReadyAt, ...rest } = facts
  // What is seen there was sent, also where the process ended before it could say so.
  const reached: ClusterFacts = judgement.is === "Absent" ? rest : { ...rest, appliedAt: facts.appliedAt ?? at }
  if (judgement.is === "Failed")
    return {
      facts: { ...reached, state: "Failed", cause: judgement.cause, endedAt: at },
      reason: judgement.cause,
      message: judgement.message,
    }
  if (judgement.is === "Absent")
    return { facts: reached, reason: "Upgrading", message: "its objects are being sent", delivers: true }
  if (judgement.is === "Differs") {
    const sentAt = parseInstant(facts.appliedAt) ?? 0
    const dueAt = sentAt + againMs
    if (now < dueAt) return { ...waits(reached, "Upgrading", judgement.message), lookAgainAt: dueAt }
    return { facts: reached, reason: "Upgrading", message: judgement.message, delivers: true }
  }
  if (judgement.is === "Working") return waits(reached, "Upgrading", judgement.message)

  const readyAt = firstReadyAt ?? at
  const doneAt = (parseInstant(readyAt) ?? now) + (soakMs[facts.upgradeIndex] ?? 0)
  if (now < doneAt) {
    const message = `ready since ${readyAt}, and soaking until ${formatInstant(doneAt)}`
    return { facts: { ...reached, firstReadyAt: readyAt }, reason: "Soaking", message, lookAgainAt: doneAt }
  }
  const next = facts.upgradeIndex + 1
  if (next < soakMs.length)
    return {
      facts: { ...reached, upgradeIndex: next },
      reason: "Upgrading",
      message: `upgrade ${next + 1} of ${soakMs.length} is being sent`,
      delivers: true,
    }
  return {
    facts: { ...reached, state: "Completed", endedAt: at, proof: judgement.proof },
    reason: "UpToDate",
    message: judgement.proof,
  }
}

const waits = (facts: ClusterFacts, reason: Reason, message: string): ClusterStep => ({ facts, reason, message })
