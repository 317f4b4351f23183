import type { ClusterGroupUpgradeSpec, Phase, Reason } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { Instant } from "#lib/instant.ts"
import { counted, nameSome } from "#lib/text.ts"
import { batchLimitMs, failuresAllowed, type PlannedBatch } from "./batches.ts"
import type { Blocked } from "./blockers.ts"
import type { ClusterFacts } from "./cluster-step.ts"
import { isFinal } from "./precache-machine.ts"
import { mayGoOn, type Opening } from "./windows.ts"

export type RunGiven = {
  spec: Pick<
    ClusterGroupUpgradeSpec,
    "enable" | "paused" | "remediationStrategy" | "batchTimeoutAction" | "onFailure" | "preCaching" | "preCachingGate"
  >
  phase: Phase
  /** Why it goes back or was stopped, as it was recorded. */
  cause?: string | undefined
  batches: readonly PlannedBatch[]
  clusters: ReadonlyMap<string, ClusterFacts>
  blocked: Blocked
  opening: Opening
  graceMs: number
  /** Numbers of batches that a person has approved for this operation. */
  approved: ReadonlySet<number>
  workedMs: number
  /** How long the run had worked when the batch began that was current so far, and its number. */
  batch: { number: number; workedBeforeMs: number }
  /** What is left of the window is long enough for a batch and its rollback. */
  fits: boolean
  now: Instant
}

export type RunDecision = {
  phase: Phase
  reason: Reason
  message: string
  /** 1 for the first; one more than there are for clusters that came back late. 0: none. */
  currentBatch: number
  workedBeforeBatchMs: number
  /** Clusters that may begin. */
  begin: ReadonlySet<string>
  /** Clusters that were begun may get further objects. */
  mayGoOn: boolean
  /** Clusters whose time is over. */
  timedOut: ReadonlySet<string>
  /** Clusters that go back now. */
  rollBack: ReadonlySet<string>
  /** This time counts as worked. */
  isWorking: boolean
  lookAgainAt?: Instant
}

const over: readonly Phase[] = ["Complete", "Partial", "Failed", "RolledBack", "Superseded"]
export const isOver = (phase: Phase) => over.includes(phase)

const nothing: ReadonlySet<string> = new Set()

/** Decides where a run stands, and which of its clusters may do what. */
export function decideRun(given: RunGiven): RunDecision {
  const { phase, batch } = given
  const still = {
    currentBatch: batch.number,
    workedBeforeBatchMs: batch.workedBeforeMs,
    begin: nothing,
    mayGoOn: false,
    timedOut: nothing,
    rollBack: nothing,
    isWorking: false,
  }
  if (phase === "RollingBack") return rollingBack(given, still)
  if (phase === "Failed") {
    const failed = { reason: "Failed" as const, message: given.cause ?? "it was stopped" }
    return { ...still, phase, ...(stopOf(given) ?? failed) }
  }
  if (isOver(phase)) return { ...still, phase, ...endOf(given) }
  const stop = stopOf(given)
  if (stop) {
    const isTakenBack = given.spec.onFailure === "Rollback"
    return { ...still, phase: isTakenBack ? "RollingBack" : "Failed", ...stop }
  }
  const current = currentBatch(given)
  if (current === undefined) {
    const end = endOf({ ...given, phase: "Complete" })
    return { ...still, phase: end.reason === "Completed" ? "Complete" : "Partial", ...end }
  }
  return inBatch(given, still, current)
}

type Still = Omit<RunDecision, "phase" | "reason" | "message">
type Current = { number: number; clusters: readonly string[]; isCanary: boolean; isLate: boolean }

/** The first batch with a cluster that has not ended. Clusters that came back late form one at the end. */
function currentBatch({ batches, clusters }: RunGiven): Current | undefined {
  const stateOf = (name: string) => clusters.get(name)
  for (const [index, { clusters: names, isCanary }] of batches.entries()) {
    const isOpen = names.some(name => {
      const facts = stateOf(name)
      return facts?.state === "InProgress" ? facts.attempt <= 1 : facts?.state === "NotStarted" && facts.attempt === 0
    })
    if (isOpen) return { number: index + 1, clusters: names, isCanary, isLate: false }
  }
  const late = [...clusters].filter(
    ([, { state, attempt }]) => (state === "NotStarted" && attempt > 0) || (state === "InProgress" && attempt > 1),
  )
  if (late.length === 0) return undefined
  return { number: batches.length + 1, clusters: late.map(([name]) => name), isCanary: false, isLate: true }
}

function inBatch(given: RunGiven, still: Still, current: Current): RunDecision {
  const { spec, batches, clusters, workedMs, opening, graceMs, now, batch } = given
  const workedBeforeBatchMs = batch.number === current.number ? batch.workedBeforeMs : workedMs
  const timeoutMs = spec.remediationStrategy.timeout * 60_000
  const batchesLeft = Math.max(1, batches.length - current.number + 1)
  const limitMs = batchLimitMs({ timeoutMs, workedBeforeMs: workedBeforeBatchMs, batchesLeft })
  const leftMs = limitMs - (workedMs - workedBeforeBatchMs)
  const inProgress = current.clusters.filter(name => clusters.get(name)?.state === "InProgress")
  const open = current.clusters.filter(name => clusters.get(name)?.state === "NotStarted")
  const here = { ...still, currentBatch: current.number, workedBeforeBatchMs }
  const hasBegun = inProgress.length > 0 || open.length < current.clusters.length
  const phase: Phase = hasBegun || current.number > 1 ? "InProgress" : "Pending"
  const isWithin = mayGoOn(opening, graceMs, now)
  if (hasBegun && leftMs <= 0 && inProgress.length > 0) {
    const message = `the time of batch ${current.number} is over`
    return { ...here, phase, reason: "InProgress", message, timedOut: new Set(inProgress), isWorking: true }
  }
  const wait = waitOf(given, current, hasBegun)
  const goesOn = { ...here, phase: "InProgress" as const, mayGoOn: isWithin && !spec.paused }
  if (wait) {
    const isWorking = inProgress.length > 0 && goesOn.mayGoOn
    const soon = isWorking ? now + leftMs : undefined
    const opensAt = opening.isOpen ? opening.closesAt : opening.opensAt
    const lookAgainAt = [soon, opensAt, ...graceEnd(opening, graceMs, now)].filter(at => at !== undefined)
    return {
      ...(inProgress.length > 0 ? goesOn : { ...here, phase }),
      ...wait,
      isWorking,
      ...(lookAgainAt.length > 0 && { lookAgainAt: Math.min(...lookAgainAt) }),
    }
  }
  const begin = new Set(open.filter(name => isCached(given, name)))
  const isCaching = begin.size < open.length
  const total = [...clusters.values()].length
  const done = [...clusters.values()].filter(({ state }) => state === "Completed").length
  const message = `batch ${current.number} of ${Math.max(batches.length, current.number)}, ${done} of ${counted(total, "cluster")} complete`
  const isWorking = inProgress.length > 0 || begin.size > 0
  const closesAt = opening.isOpen ? opening.closesAt : undefined
  const lookAgainAt = [isWorking ? now + leftMs : undefined, closesAt].filter(at => at !== undefined)
  return {
    ...goesOn,
    ...(!hasBegun && begin.size === 0 && { phase }),
    reason: isCaching && inProgress.length === 0 && begin.size === 0 ? "PreCaching" : "InProgress",
    message: isCaching ? `${message}; ${counted(open.length - begin.size, "cluster")} waits for images` : message,
    begin,
    isWorking,
    ...(lookAgainAt.length > 0 && { lookAgainAt: Math.min(...lookAgainAt) }),
  }
}

const graceEnd = (opening: Opening, graceMs: number, now: Instant) =>
  !opening.isOpen && opening.closedAt !== undefined && opening.closedAt + graceMs > now
    ? [opening.closedAt + graceMs]
    : []

/** Why no further cluster of the batch may begin. The order is the order in which people are told. */
function waitOf(
  { spec, blocked, opening, approved, fits }: RunGiven,
  { number, isCanary, isLate }: Current,
  hasBegun: boolean,
): { reason: Reason; message: string } | undefined {
  if (!spec.enable) return { reason: "NotEnabled", message: "spec.enable is false: write true to start" }
  if (blocked.is === "Blocked") return { reason: blocked.reason, message: blocked.message }
  if (spec.paused) return { reason: "Paused", message: "spec.paused is true: write false to go on" }
  const { requireApproval } = spec.remediationStrategy
  const isAsked = requireApproval === "EachBatch" || (requireApproval === "AfterCanaries" && !isCanary)
  if (isAsked && !isLate && !isApproved(approved, number, requireApproval))
    return { reason: "AwaitingApproval", message: `batch ${number} needs approval: run \`aim approve\`` }
  if (!opening.isOpen) {
    const next =
      opening.opensAt === undefined
        ? "none opens"
        : `the next one opens at ${new Date(opening.opensAt).toISOString().slice(0, 16)}Z`
    return { reason: "OutsideWindow", message: `no window is open; ${next}` }
  }
  if (!fits && !hasBegun)
    return { reason: "DoesNotFit", message: "what is left of the window is too short for a batch and its rollback" }
  return undefined
}

/** One approval after the canaries is for all batches that follow. */
const isApproved = (approved: ReadonlySet<number>, number: number, when: string) =>
  when === "AfterCanaries" ? [...approved].some(each => each <= number) : approved.has(number)

/** Whether a cluster may start as far as its images are concerned. */
function isCached({ spec, clusters }: RunGiven, name: string): boolean {
  if (!spec.preCaching || spec.preCachingGate === "Never") return true
  if (spec.preCachingGate === "Cluster") return clusters.get(name)?.precache?.state === "Succeeded"
  const all = [...clusters.values()]
  return (
    all.every(({ precache }) => precache !== undefined && isFinal(precache.state)) &&
    clusters.get(name)?.precache?.state === "Succeeded"
  )
}

/** Why the run is stopped, if it is. A canary that fails or times out always stops it. */
function stopOf({ spec, batches, clusters, workedMs }: RunGiven): { reason: Reason; message: string } | undefined {
  const failed = (names: readonly string[], ...states: string[]) =>
    names.filter(name => states.includes(clusters.get(name)?.state ?? ""))
  const canaries = batches.filter(({ isCanary }) => isCanary).flatMap(({ clusters: names }) => names)
  const [badCanary] = failed(canaries, "Failed")
  if (badCanary) return { reason: "CanaryFailed", message: `canary ${badCanary} failed` }
  const [lateCanary] = failed(canaries, "TimedOut")
  if (lateCanary) return { reason: "TimedOut", message: `canary ${lateCanary} was not complete in its time` }
  const all = [...clusters.keys()]
  const bad = failed(all, "Failed", "TimedOut")
  const allowed = failuresAllowed(spec.remediationStrategy.failureBudget, all.length)
  if (allowed !== undefined && bad.length > allowed) {
    const message = `${nameSome(bad.slice(0, 3), bad.length)} failed or timed out, and failureBudget allows ${allowed}`
    return { reason: "FailureBudgetSpent", message }
  }
  const [late] = failed(all, "TimedOut")
  if (late && spec.batchTimeoutAction === "Abort")
    return { reason: "BatchTimedOut", message: `${late} was not complete in the time of its batch` }
  const open = failed(all, "NotStarted")
  const isTimeUp = workedMs >= spec.remediationStrategy.timeout * 60_000
  if (isTimeUp && open.length > 0 && failed(all, "InProgress").length === 0)
    return {
      reason: "TimedOut",
      message: `the time of the run is over, and ${counted(open.length, "cluster")} did not begin`,
    }
  return undefined
}

/** Clusters that the run changed go back, those of the last batch first. */
function rollingBack({ batches, clusters, cause }: RunGiven, still: Still): RunDecision {
  const isChanged = (name: string) => {
    const facts = clusters.get(name)
    return facts?.appliedAt !== undefined && facts.state !== "RolledBack" && facts.cause !== "NotRolledBack"
  }
  const inBatches = new Set(batches.flatMap(({ clusters: names }) => names))
  const late = [...clusters.keys()].filter(name => !inBatches.has(name) && isChanged(name))
  const order = [...batches.map(({ clusters: names }) => names.filter(isChanged)), late].reverse()
  const next = order.find(names => names.length > 0)
  if (!next) {
    const count = [...clusters.values()].filter(({ state }) => state === "RolledBack").length
    return { ...still, phase: "RolledBack", reason: "RolledBack", message: `${counted(count, "cluster")} went back` }
  }
  const message = `${nameSome(next.slice(0, 3), next.length)} go back${cause ? `: ${cause}` : ""}`
  return { ...still, phase: "RollingBack", reason: "RollingBack", message, rollBack: new Set(next), isWorking: true }
}

/** What is said of a run that has ended. */
function endOf({ phase, clusters, cause }: RunGiven): { reason: Reason; message: string } {
  if (phase === "RolledBack") return { reason: "RolledBack", message: cause ?? "what it changed is back" }
  const all = [...clusters.values()]
  const count = (state: string) => all.filter(each => each.state === state).length
  const [done, failed, late] = [count("Completed"), count("Failed"), count("TimedOut")]
  if (all.length === 0) return { reason: "NoEligibleClusters", message: "no cluster is left to upgrade" }
  if (done === all.length) return { reason: "Completed", message: `${counted(done, "cluster")} complete` }
  const message = `${done} of ${counted(all.length, "cluster")} complete, ${failed} failed, ${late} timed out`
  return { reason: late > 0 && failed === 0 ? "TimedOut" : "CompletedWithFailures", message }
}
