import type { CanaryStatus, EndedRun, Phase, Reason, Run, RunResult } from "#api/v1alpha1/canary/index.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import type { Arranged, ReadyShares } from "./arrange.ts"
import { plain } from "./plain.ts"
import { deadlineOf } from "./rounds.ts"
import type { Act, Asks, SetSeen, Sight } from "./sight.ts"
import type { Sides } from "./turn.ts"

/** What a look decides: at most one write beside the status, and what is reported. */
export type Decision = {
  readonly phase: Phase | undefined
  readonly run?: Run | undefined
  /** A run that is over with this decision. */
  readonly ended?: EndedRun | undefined
  readonly act?: Act | undefined
  /** It holds for a moment: where it lasts, a later look reports it. */
  readonly isBrief?: boolean | undefined
  /** What it lacks. With the answers, the same look decides further. */
  readonly asks: Asks
  readonly reason: Reason
  readonly message: string
  readonly isReady?: boolean | undefined
  readonly isStalled?: boolean | undefined
  readonly lookAgainAt?: Instant | undefined
  readonly lastApplied?: string | undefined
  readonly lastPromoted?: string | undefined
}

export const noAsks: Asks = { hooks: [] }

export const statusOf = ({ canary }: Sight): Partial<CanaryStatus> => canary.status ?? {}

/** The target as messages name it. */
export const titleOf = ({ spec: { targetRef } }: Sight["canary"]): string => `${targetRef.kind} ${targetRef.name}`

type Said = Partial<Decision> & Pick<Decision, "reason" | "message">

/** A decision about a run. What the run does is also in the run. */
export function say(sight: Sight, run: Run, { message, ...said }: Said): Decision {
  const text = plain(message, 512)
  return {
    phase: statusOf(sight).phase,
    asks: noAsks,
    ...said,
    message: text,
    run: said.run ?? { ...run, reason: said.reason, message: text },
  }
}

/** How a run ends without promotion, by its reason. A run with one of these never goes on. */
const endings = {
  Restarted: "Superseded",
  Reverted: "Cancelled",
  Released: "Cancelled",
  Deleted: "Cancelled",
  AnalysisFailed: "RolledBack",
  RollbackHook: "RolledBack",
  RolledBackByUser: "RolledBack",
  GateExpired: "RolledBack",
  DeadlineExceeded: "RolledBack",
  CrashLoop: "RolledBack",
  ImageUnavailable: "RolledBack",
  Unhealthy: "RolledBack",
  TargetMissing: "RolledBack",
} as const satisfies Partial<Record<Reason, RunResult>>

export type Ending = keyof typeof endings

export const endingOf = ({ reason }: Pick<Run, "reason">): RunResult | undefined => endings[reason as Ending]

/** The run ends. Requests go back in the looks that follow: what was decided is written first. */
export function ending(sight: Sight, run: Run, reason: Ending, message: string): Decision {
  const isFailed = endings[reason] === "RolledBack"
  const { next: _, ...rest } = run
  const text = plain(message, 512)
  return say(sight, run, {
    phase: isFailed ? "Failed" : (statusOf(sight).phase ?? "Initialized"),
    run: { ...rest, reason, message: text },
    reason: isFailed ? reason : "RollingBack",
    message: text,
    isStalled: isFailed,
  })
}

export const endedRun = (run: Run, result: RunResult, reason: Reason, now: Instant): EndedRun => {
  const approvedBy = run.gates.find(({ name }) => name === "Promotion")?.approvedBy
  return {
    id: run.id,
    source: run.source,
    target: run.target,
    result,
    reason,
    message: plain(run.message, 160),
    ...(approvedBy !== undefined && { approvedBy }),
    startedAt: run.startedAt,
    endedAt: formatInstant(now),
  }
}

/** The ReplicaSet that answers: of a run as it is recorded; without one (null) that with the most ready pods. */
export function sourceOf(sight: Sight, run: Run | null = statusOf(sight).run ?? null): SetSeen | undefined {
  const { sets, workload } = sight
  const own = sets.filter(({ owner }) => owner === "user")
  if (run) return own.find(({ hash }) => hash === run.source.hash)
  return mostReady(own, workload)
}

function mostReady(own: readonly SetSeen[], workload: Sight["workload"]): SetSeen | undefined {
  const counts = (set: SetSeen) => [
    Math.min(set.ready, set.size),
    set.size,
    set.checksum === workload?.checksum ? 1 : 0,
    set.revision,
  ]
  return own.toSorted((a, b) => {
    const [left, right] = [counts(a), counts(b)]
    const at = left.findIndex((each, index) => each !== right[index])
    return at < 0 ? 0 : right[at]! - left[at]!
  })[0]
}

/**
 * Nothing holds the workload of a component: where it is restarted during a run, its own controller replaces its pods, and
 * the source is the ReplicaSet that has most of them.
 */
function followed({ component, sets, workload }: Sight, { source }: Run): Run["source"] {
  if (!component?.source || component.source.name === component.target?.name) return source
  const own = sets.filter(set => set.workload === source.workload && set.workload === component.source?.name)
  return { ...source, hash: mostReady(own, workload)?.hash ?? source.hash }
}

/** The workload of a component that answered is gone. */
export const isSourceLost = ({ component }: Sight): boolean => component !== undefined && !component.source

/** The ReplicaSet of the revision that is judged: of the run's Deployment, or handed over. */
export function testedOf({ sets }: Sight, run: Run): SetSeen | undefined {
  const isNamed = ({ name }: SetSeen) => name.startsWith(`${run.target.workload}-`)
  return (
    sets.find(({ owner, size }) => owner === "trial" && size > 0) ??
    sets.find(({ owner }) => owner === "trial") ??
    sets.find(set => set.owner === "user" && isNamed(set) && set.hash === run.target.hash)
  )
}

export const isMoved = (sight: Sight, run: Run): boolean => testedOf(sight, run)?.owner === "user"

export const sharesOf = ({ canary }: Sight): ReadyShares => ({
  source: canary.spec.analysis.primaryReadyThreshold,
  target: canary.spec.analysis.canaryReadyThreshold,
})

/** So many pods of this size must be ready before a revision may answer. */
export const leastOf = (size: number, share: number): number => Math.max(1, Math.floor((size * share) / 100))

/** How both sides stand, each by the ready endpoints behind its Service. */
export function arrangedOf(sight: Sight, run: Run): Arranged {
  const { services, route, trial } = sight
  const source = sourceOf(sight, run)
  return {
    source: {
      size: sight.component?.source?.size ?? source?.size ?? 0,
      ready: services.source?.ready[run.source.hash] ?? 0,
    },
    target: {
      size: trial && !trial.isGoing ? trial.size : 0,
      ready: run.target.hash === "" ? 0 : (services.target?.ready[run.target.hash] ?? 0),
    },
    route: {
      weight: weightOf(sight),
      isMirrored: route.split?.isMirrored ?? false,
      isAccepted: route.isAccepted,
      isUnderWay: route.isUnderWay,
    },
  }
}

/** Where the selector of a Service divides the requests, two sides with the same pods are one. */
export function weightOf({ route, services, routesBySelector }: Sight): number {
  const isOne = routesBySelector && services.source?.hash === services.target?.hash
  return isOne ? 0 : (route.split?.weight ?? 0)
}

const none = { hash: "", ready: {} }

export const sidesOf = (sight: Sight): Sides => ({
  source: sight.services.source ?? none,
  target: sight.services.target ?? none,
  weight: weightOf(sight),
  isAccepted: sight.route.isAccepted,
})

/** The run with what is seen now: its weight is the one that is routed. */
export function refreshed(sight: Sight, recorded: Run): Run {
  const { now, workload, route, trial } = sight
  const run = { ...recorded, source: followed(sight, recorded) }
  const tested = testedOf(sight, run)
  const weight = route.split ? weightOf(sight) : run.weight
  const mirrored = route.split ? route.split.isMirrored : run.mirrored
  const hasMoved = weight !== run.weight || mirrored !== run.mirrored
  const { next, ...rest } = run
  const isThere = next !== undefined && next.weight === weight && next.mirrored === mirrored
  return {
    ...rest,
    ...(next && !isThere && !isSourceLost(sight) && { next }),
    target: { ...run.target, ...(tested && { hash: tested.hash }) },
    sizes: {
      full: Math.max(run.sizes.full, workload?.size ?? 0),
      source: sourceOf(sight, run)?.size ?? 0,
      target: tested?.owner === "user" ? tested.size : trial && !trial.isGoing ? trial.size : 0,
    },
    weight,
    mirrored,
    ...(hasMoved && { weightSince: formatInstant(now), progressAt: formatInstant(now) }),
  }
}

/** What usually takes a moment is worth a report when it takes longer. */
const briefMs = 5000

/** A wait that has just begun, by the last progress that was reported. */
export function briefly(sight: Sight): Pick<Decision, "isBrief" | "lookAgainAt"> | undefined {
  const since = parseInstant(statusOf(sight).run?.progressAt)
  const lookAgainAt = since === undefined ? sight.now : since + briefMs
  return sight.now < lookAgainAt ? { isBrief: true, lookAgainAt } : undefined
}

/** When waiting has lasted for the deadline. It counts from the last progress, or from when the waiting began. */
export function waited(sight: Sight, run: Run, before: Run): { run: Run; isOver: boolean; lookAgainAt: Instant } {
  const hasBegun = waits.has(before.reason)
  const progressAt = hasBegun ? run.progressAt : formatInstant(sight.now)
  const overAt = (parseInstant(progressAt) ?? sight.now) + deadlineOf(sight.canary)
  return {
    run: progressAt === undefined ? run : { ...run, progressAt },
    isOver: sight.now >= overAt,
    lookAgainAt: overAt,
  }
}

const waits: ReadonlySet<Reason> = new Set<Reason>([
  "WaitingForReady",
  "SourceNotReady",
  "NotAccepted",
  "Unschedulable",
  "QuotaExceeded",
  "PullingImage",
  "BudgetSpent",
  "Scaling",
  "Started",
])
