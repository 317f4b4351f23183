import {
  type ClusterGroupUpgrade,
  type ClusterGroupUpgradeStatus,
  type Condition,
  type ConditionType,
  maxCause,
  maxHistory,
  maxListed,
  maxListedImages,
  type Operation,
  type Reason,
} from "#api/v1alpha1/clustergroupupgrade/index.ts"
import { batchSize } from "#core/cluster-fleet/batches.ts"
import { isFinal } from "#core/cluster-fleet/precache-machine.ts"
import { isOver } from "#core/cluster-fleet/run.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { clip, counted } from "#lib/text.ts"
import { conditionOf, conditionWriter } from "#runtime/conditions.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { ClusterPlan } from "./cluster-plan.ts"
import { type Plan, type Planned, plain } from "./plan.ts"
import type { Snapshot } from "./snapshot.ts"

type Status = ClusterGroupUpgradeStatus
type Said = { reason: Reason; message: string }
const fine = (reason: Reason, message = ""): Said => ({ reason, message })

/** Counts alone are reported at most this often. */
const quietMs = 2000

/** The status of a run, if it differs from the last one, and when it may be written. */
export function dueReport(snapshot: Snapshot, plan: Plan, now: Instant): { status: Status; at: Instant } | undefined {
  const { run, identity, doubts, reportedAt } = snapshot
  const before = run.status
  const inflight = [...new Set([...doubts, ...plan.sends.map(({ cluster }) => cluster)])].sort()
  const status: Status = {
    ...rollUp(snapshot, plan, now),
    electionID: identity,
    inflight: plan.takesOver ? [...new Set([...(before?.inflight ?? []), ...inflight])].sort() : inflight,
  }
  if (plan.sends.length > 0 || !before) return { status, at: now }
  if (isSame(before, status)) return undefined
  const isUrgent = reportedAt === undefined || !isSame(turningPoints(before), turningPoints(status))
  return { status, at: isUrgent ? now : Math.max(now, reportedAt + quietMs) }
}

/** The report that is due now. */
export function report(
  snapshot: Snapshot,
  plan: Plan,
  now: Instant,
): Report<ClusterGroupUpgrade["status"]> | undefined {
  const due = dueReport(snapshot, plan, now)
  if (!due || due.at > now) return undefined
  return { status: due.status, episodes: episodesOf(snapshot.run.status, due.status) }
}

/** What is reported at once. */
const turningPoints = ({ conditions, operation, status, electionID, workedAt }: Status) => [
  conditions.map(({ type, status, reason }) => [type, status, reason]),
  operation && [operation.id, operation.phase, operation.revision],
  status.currentBatch,
  electionID,
  workedAt,
]

function rollUp(snapshot: Snapshot, plan: Plan, now: Instant): Omit<Status, "electionID" | "inflight"> {
  const { run } = snapshot
  const before = run.status
  // A process that begins to lead has concluded nothing yet: what was said stays.
  if (plan.takesOver && before) return { ...before, ...takenOver(snapshot, now) }
  const conditions = conditionsOf(snapshot, plan, now)
  const operation = plan.planned?.operation ?? plan.freezes?.operation ?? before?.operation
  const base = {
    observedGeneration: run.metadata.generation ?? 0,
    conditions,
    history: historyOf(before, operation, now),
    ...(operation && { operation }),
  }
  const { planned } = plan
  if (!planned) return { ...empty, ...kept(before), ...base }
  const { decision, clusters, frozen, workedMs } = planned
  const total = clusters.length + frozen.skipped.length
  const isSameBatch = before?.status.currentBatch === decision.currentBatch
  const startedAt = operation?.enabledAt
  return {
    ...base,
    state: decision.reason,
    progress: `${operation?.completed ?? 0}/${total}`,
    computedMaxConcurrency: batchSize(run.spec.remediationStrategy.maxConcurrency, Math.max(1, total)),
    batches: frozen.batches.length,
    remediationPlan: planOf(planned),
    status: {
      ...(startedAt && { startedAt }),
      ...(operation?.endedAt && { completedAt: operation.endedAt }),
      currentBatch: decision.currentBatch,
      ...(decision.currentBatch > 0 && {
        currentBatchStartedAt: (isSameBatch ? before?.status.currentBatchStartedAt : undefined) ?? formatInstant(now),
      }),
      workedBeforeBatchSeconds: Math.floor(decision.workedBeforeBatchMs / 1000),
      currentBatchRemediationProgress: progressOf(planned),
    },
    ...troubledOf(clusters),
    counts: countsOf(clusters, frozen.skipped.length),
    ...precachingOf(planned),
    ...worked(before, decision.isWorking, workedMs, now),
    ...(planned.nextWindow !== undefined && { nextWindow: formatInstant(planned.nextWindow) }),
    ...(!isOver(decision.phase) && {
      forecast: { ...planned.forecast, message: clip(planned.forecast.message, 256) },
    }),
  }
}

const zero = { NotStarted: 0, InProgress: 0, Completed: 0, Failed: 0, TimedOut: 0, RolledBack: 0, Unreachable: 0 }
const empty = {
  state: "",
  progress: "",
  computedMaxConcurrency: 0,
  batches: 0,
  remediationPlan: [],
  status: { currentBatch: 0, workedBeforeBatchSeconds: 0, currentBatchRemediationProgress: [] },
  clusters: [],
  moreClusters: 0,
  counts: zero,
  workedSeconds: 0,
}

/** While nothing is planned, the last report about clusters stays. */
function kept(before: Status | undefined) {
  if (!before) return {}
  const { conditions: _, history: __, operation: ___, electionID: ____, inflight: _____, ...rest } = before
  return rest
}

/** The stretch that counts begins when work does, and is added up when it ends. */
function worked(before: Status | undefined, isWorking: boolean, workedMs: number, now: Instant) {
  if (isWorking && before?.workedAt !== undefined)
    return { workedSeconds: before.workedSeconds, workedAt: before.workedAt }
  const workedSeconds = Math.floor(workedMs / 1000)
  return isWorking ? { workedSeconds, workedAt: formatInstant(now) } : { workedSeconds }
}

/** Hours in which no process led do not count: work is known up to the last thing that the process before recorded. */
function takenOver({ run: { status }, upgrades }: Snapshot, now: Instant): Partial<Status> {
  const since = parseInstant(status?.workedAt)
  if (!status || since === undefined) return {}
  const recorded = upgrades.flatMap(({ status: each }) => [each?.startedAt, each?.endedAt, each?.unreachableSince])
  const last = Math.max(since, ...recorded.map(at => parseInstant(at) ?? 0))
  return { workedSeconds: status.workedSeconds + Math.floor((last - since) / 1000), workedAt: formatInstant(now) }
}

function historyOf(before: Status | undefined, operation: Operation | undefined, now: Instant): Operation[] {
  const last = before?.operation
  const history = before?.history ?? []
  if (!last || !operation || last.id === operation.id) return history
  const ended: Operation = isOver(last.phase) ? last : { ...last, phase: "Superseded", endedAt: formatInstant(now) }
  return [ended, ...history].slice(0, maxHistory)
}

const troubled = ({ facts }: ClusterPlan) =>
  facts.state === "Failed" || facts.state === "TimedOut" || facts.unreachableSince !== undefined

function troubledOf(clusters: readonly ClusterPlan[]) {
  const all = clusters.filter(troubled)
  const listed = all.slice(0, maxListed).map(({ cluster, facts, reason, message }) => ({
    name: cluster,
    state: facts.state,
    cause: plain(`${facts.cause ?? reason}: ${message}`).slice(0, maxCause),
  }))
  return { clusters: listed, moreClusters: all.length - listed.length }
}

function progressOf({ clusters, frozen, decision }: Planned) {
  const batch = new Set(frozen.batches[decision.currentBatch - 1]?.clusters ?? [])
  const listed = clusters.filter(({ cluster }) => batch.has(cluster))
  return [...listed.filter(troubled), ...listed.filter(each => !troubled(each))]
    .slice(0, maxListed)
    .map(({ cluster, facts }) => ({
      name: cluster,
      state: facts.state,
      upgradeIndex: facts.upgradeIndex,
      ...(facts.firstReadyAt && { firstReadyAt: facts.firstReadyAt }),
    }))
}

/** The current batch and those that follow, as far as there is room. */
function planOf({ frozen, decision }: Planned): Status["remediationPlan"] {
  let room = maxListed
  const from = Math.max(0, decision.currentBatch - 1)
  return frozen.batches.slice(from, from + 8).map(({ clusters }, index) => {
    const listed = clusters.slice(0, room)
    room -= listed.length
    return { batch: from + index + 1, clusters: [...listed], more: clusters.length - listed.length }
  })
}

function countsOf(clusters: readonly ClusterPlan[], skipped: number) {
  const counts = { ...zero, Completed: skipped }
  for (const { facts } of clusters) {
    counts[facts.state]++
    if (facts.unreachableSince !== undefined) counts.Unreachable++
  }
  return counts
}

function precachingOf({ precache, clusters }: Planned): Pick<Status, "precaching"> {
  if (!precache) return {}
  const known = clusters.flatMap(({ cluster, facts }) =>
    facts.precache ? [{ cluster, precache: facts.precache }] : [],
  )
  const ended = known.filter(({ precache }) => isFinal(precache.state))
  const succeeded = ended.filter(({ precache }) => precache.state === "Succeeded")
  const bad = ended.filter(({ precache }) => precache.state !== "Succeeded")
  const going = known.filter(({ precache }) => !isFinal(precache.state))
  return {
    precaching: {
      spec: {
        hash: precache.hash,
        images: precache.images.slice(0, maxListedImages).map(plainImage),
        count: precache.images.length,
        ...(precache.spaceRequiredGiB !== undefined && { spaceRequired: `${precache.spaceRequiredGiB} GiB` }),
      },
      status: [...bad, ...going].slice(0, maxListed).map(({ cluster, precache }) => ({
        name: cluster,
        state: precache.state,
        ...(precache.cause !== undefined && { cause: plain(`${precache.cause}: ${precache.message ?? ""}`) }),
      })),
      succeeded: succeeded.length,
      ended: ended.length,
      total: clusters.length,
    },
  }
}

const plainImage = (image: string) => image.replaceAll(/[^ !#-%'-;=?-[\]-~]/g, "?")

function conditionsOf({ run }: Snapshot, plan: Plan, now: Instant): Condition[] {
  const before = run.status?.conditions
  const state = conditionWriter<Condition>(run.metadata.generation ?? 0, now)
  const write = (type: ConditionType, isTrue: boolean, { reason, message }: Said) =>
    state(before, type, isTrue, reason, clip(message, 512))
  const { selected, problem, precacheProblem, planned } = plan
  const refused: Said | undefined = (selected.ok ? undefined : selected) ?? problem ?? precacheProblem
  const clusters = selected.ok ? counted(selected.clusters.length, "cluster") : ""
  const main: Said = planned ? planned.decision : (refused ?? fine("NotStarted", "the plan is being made"))
  const phase = planned?.operation.phase
  const isDone = phase === "Complete"
  const isStopped = phase === "Failed"
  const stop: Said | undefined = isStopped ? main : planned ? undefined : refused
  const isGoing = planned !== undefined && !isOver(planned.operation.phase)
  const isBlockedForGood = main.reason === "FailedBlockingCR" || main.reason === "UnresolvableDependency"
  return [
    write("ClustersSelected", selected.ok, selected.ok ? fine("ClusterSelectionCompleted", clusters) : selected),
    write("Validated", selected.ok && !problem, problem ?? fine(selected.ok ? "ValidationCompleted" : "Observing")),
    write(
      "PrecacheSpecValid",
      !precacheProblem,
      precacheProblem ?? fine(run.spec.preCaching ? "PrecacheSpecIsWellFormed" : "NotRequested"),
    ),
    write("PrecachingSucceeded", ...precachingSaid(run.spec.preCaching, planned)),
    write("Progressing", isGoing && main.reason !== "NotEnabled", main),
    write("Succeeded", isDone, main),
    write("Ready", isDone, main),
    stop || isBlockedForGood ? write("Stalled", true, stop ?? main) : write("Stalled", false, fine("NotStalled")),
    isStopped ? write("Halted", true, main) : write("Halted", false, fine("NotHalted")),
    run.spec.paused
      ? write("Paused", true, fine("Paused", "spec.paused is true"))
      : write("Paused", false, fine("NotPaused")),
  ]
}

function precachingSaid(isWanted: boolean, planned: Planned | undefined): [boolean, Said] {
  if (!isWanted) return [false, fine("NotRequested")]
  const { precaching } = planned ? precachingOf(planned) : {}
  if (!precaching || precaching.total === 0) return [false, fine("NotStarted")]
  const { succeeded, ended, total } = precaching
  if (succeeded === total) return [true, fine("PrecachingCompleted", `${counted(total, "cluster")} cached`)]
  if (ended < total) return [false, fine("InProgress", `${succeeded} of ${counted(total, "cluster")} cached`)]
  const message = `${succeeded} of ${counted(total, "cluster")} cached, and pre-caching has ended on the others`
  return succeeded > 0 ? [true, fine("PartiallyDone", message)] : [false, fine("Failed", message)]
}

/** Events per run and batch: never one for each cluster. */
function episodesOf(before: Status | undefined, after: Status) {
  const was = conditionOf(before?.conditions, "Ready")
  const is = conditionOf(after.conditions, "Ready")
  const isNews = is && (was?.reason !== is.reason || before?.status.currentBatch !== after.status.currentBatch)
  if (!isNews) return []
  const isBad = conditionOf(after.conditions, "Stalled")?.status === "True"
  return [{ type: isBad ? ("Warning" as const) : ("Normal" as const), reason: is.reason, message: is.message }]
}
