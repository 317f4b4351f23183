import type { Canary, CanaryStatus, Condition, Phase, Run } from "#api/v1alpha1/canary/index.ts"
import { configStatusOf } from "#core/canary/configs.ts"
import { cookieFields } from "#core/canary/cookies.ts"
import { plain } from "#core/canary/plain.ts"
import { rollingOf } from "#core/canary/rolling.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { conditionOf, type Stated, setConditions } from "#runtime/conditions.ts"
import type { Report } from "#runtime/kind-controller.ts"
import type { Episode } from "#runtime/status.ts"
import type { Seen } from "./observe.ts"
import type { Plan } from "./plan.ts"
import type { Done } from "./write.ts"

const historyMost = 10

/**
 * The status after a look: the weight in it is the one that was read, or that the server has confirmed. A look that has
 * written something is followed by another, so what holds for a moment is not reported, unless the next process needs it.
 */
export function report(
  { sight, isListed }: Seen,
  plan: Plan,
  done: Done | undefined,
  now: Instant,
): Report<Canary["status"]> | undefined {
  const { canary } = sight
  if (!isListed || done?.isWritten || plan.phase === undefined) return undefined
  const before = canary.status
  const run = plan.run && routed(plan.run, done, now)
  const isNew = before?.phase !== plan.phase
  const history = plan.ended ? [plan.ended, ...(before?.history ?? [])].slice(0, historyMost) : (before?.history ?? [])
  const {
    run: _,
    lastAppliedSpec,
    lastPromotedSpec,
    sessionAffinityCookie: _target,
    primarySessionAffinityCookie: _source,
    previousSessionAffinityCookie: _previous,
    trackedConfigs: _tracked,
    configs: _configs,
    untrackedConfigs: _untracked,
    rollingState: _state,
    currentBatch: _batch,
    ...rest
  } = before ?? ({} as Partial<CanaryStatus>)
  const applied = plan.lastApplied ?? lastAppliedSpec
  const promoted = plan.lastPromoted ?? lastPromotedSpec
  const failed = done?.refusal
  const told = failed ? { ...plan, ...failed, isStalled: failed.reason !== "BudgetSpent", isReady: false } : plan
  const status: CanaryStatus = {
    ...rest,
    phase: plan.phase,
    canaryWeight: run?.weight ?? 0,
    failedChecks: run?.failedChecks ?? rest.failedChecks ?? 0,
    iterations: run?.iterations ?? rest.iterations ?? 0,
    ...(applied !== undefined && { lastAppliedSpec: applied }),
    ...(promoted !== undefined && { lastPromotedSpec: promoted }),
    lastTransitionTime: isNew ? formatInstant(now) : (before?.lastTransitionTime ?? formatInstant(now)),
    observedGeneration: canary.metadata.generation ?? 0,
    conditions: conditionsOf(canary, told, now),
    ...cookieFields(canary, run, plan.ended),
    ...rollingOf(canary, plan.phase, run),
    ...configStatusOf(sight, { run, ended: plan.ended }),
    ...(run && { run }),
    history,
  }
  const isPassing = plan.isBrief || (plan.act !== undefined && !done?.split)
  if (isPassing && !failed && before && isSame(keptOf(before), keptOf(status))) return undefined
  return { status, episodes: episodesOf(before, status) }
}

/** What a process needs that goes on from a status, or what a person has to know at once. Objects show the rest. */
function keptOf({ run, conditions, canaryWeight: _, ...rest }: CanaryStatus) {
  const stalled = conditionOf(conditions, "Stalled")
  return { ...rest, stalled: [stalled?.status, stalled?.reason], run: run && recordOf(run) }
}

function recordOf(run: Run) {
  const { reason: _, message: _message, sizes: _sizes, target, ...rest } = run
  const { weight: _weight, mirrored: _mirrored, weightSince: _since, progressAt: _at, ...record } = rest
  return { ...record, target: target.workload }
}

/** A route that was written has the weight from then on. */
function routed(run: Run, done: Done | undefined, now: Instant): Run {
  if (!done?.split) return run
  const { weight, isMirrored: mirrored } = done.split
  const { next, ...rest } = run
  const isThere = next?.weight === weight && next.mirrored === mirrored
  const hasMoved = weight !== run.weight || mirrored !== run.mirrored
  const at = formatInstant(now)
  return {
    ...rest,
    ...(next && !isThere && { next }),
    weight,
    mirrored,
    ...(hasMoved && { weightSince: at, progressAt: at }),
  }
}

const inFlight: ReadonlySet<Phase> = new Set<Phase>([
  "Initializing",
  "Waiting",
  "Progressing",
  "WaitingPromotion",
  "Promoting",
  "Finalising",
  "Terminating",
])

function conditionsOf({ metadata, status }: Canary, plan: Plan, now: Instant): Condition[] {
  const { phase, reason, isReady = false, isStalled = false } = plan
  const message = plain(plan.message, 512)
  const observedGeneration = metadata.generation ?? 0
  const promoted = inFlight.has(phase!) ? "Unknown" : phase === "Failed" ? "False" : "True"
  const stated: readonly Stated[] = [
    { type: "Promoted", status: promoted, reason: phase!, message, observedGeneration },
    { type: "Ready", status: isReady ? "True" : "False", reason, message, observedGeneration },
    isStalled
      ? { type: "Stalled", status: "True", reason, message, observedGeneration }
      : { type: "Stalled", status: "False", reason: "NotStalled", message: "", observedGeneration },
  ]
  return setConditions(status?.conditions, stated, now) as Condition[]
}

/** A new phase, and a new reason to stall. */
export function episodesOf(before: CanaryStatus | undefined, after: CanaryStatus): Episode[] {
  const episodes: Episode[] = []
  const ready = conditionOf(after.conditions, "Ready")!
  if (before?.phase !== after.phase) {
    const type = after.phase === "Failed" ? "Warning" : "Normal"
    episodes.push({ type, reason: after.phase!, message: ready.message || after.phase! })
  } else if (before && before.canaryWeight !== after.canaryWeight && after.run)
    episodes.push({ type: "Normal", reason: "Advanced", message: `the new revision has weight ${after.canaryWeight}` })
  const [was, is] = [conditionOf(before?.conditions, "Stalled"), conditionOf(after.conditions, "Stalled")!]
  if (is.status === "True" && was?.reason !== is.reason && after.phase !== "Failed")
    episodes.push({ type: "Warning", reason: is.reason, message: is.message })
  return episodes
}
