import { pausedAnnotation, rollbackAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { Phase, Run } from "#api/v1alpha1/canary/index.ts"
import { formatInstant, parseInstant } from "#lib/instant.ts"
import type { Wanted } from "./arrange.ts"
import { withBudgets } from "./budgets.ts"
import { changedSince } from "./configs.ts"
import {
  type Decision,
  ending,
  endingOf,
  isMoved,
  refreshed,
  say,
  sourceOf,
  statusOf,
  testedOf,
  titleOf,
} from "./decision.ts"
import { end } from "./end.ts"
import { finalise } from "./finalise.ts"
import { hasGate, hooksOf, pass } from "./gates.ts"
import { idle } from "./idle.ts"
import { leave } from "./leave.ts"
import { failedBy, measuring, moved, pacedMove, targetService } from "./moves.ts"
import { promote } from "./promote.ts"
import { partitionHold } from "./rollout-plan.ts"
import { checksOfHooks, intervalOf, judged, roundOf } from "./rounds.ts"
import { withScalers } from "./scalers.ts"
import { answerKey, type Sight } from "./sight.ts"
import { targetSizeAt } from "./size-at.ts"
import { nextOf, type Position, strategyOf } from "./steps.ts"
import type { Check } from "./tally.ts"
import { followedBy } from "./targets/component.ts"
import { firstSize, sharesPods } from "./targets/shared.ts"

/**
 * The state machine of a Canary: from what is seen to the phase, the next status of the run and the next single write. The
 * same sight always gives the same decision, and every look begins from the objects alone, so that any process goes on
 * where another ended.
 *
 *   Initializing → Initialized → [Waiting] → Progressing → [WaitingPromotion] → Promoting → Finalising → Succeeded
 *                                    └──────────────┴───── any of them ─────────────┴──→ Failed
 *
 * A new phase is reported before the first write that belongs to it.
 */
export const decide = (sight: Sight): Decision => withScalers(sight, withBudgets(sight, decideRun(sight)))

function decideRun(sight: Sight): Decision {
  const { canary, workload, problem } = sight
  if (canary.metadata.deletionTimestamp) return leave(sight)
  const { phase, run } = statusOf(sight)
  if (problem) return stuck(sight, problem.reason, problem.message)
  if (!workload) return stuck(sight, "WorkloadMissing", `${titleOf(canary)} does not exist in this namespace`)
  if (workload.otherHolder !== undefined)
    return stuck(sight, "Conflict", `${titleOf(canary)} has one hold at a time, and ${workload.otherHolder}`)
  if (canary.spec.suspend)
    return held(
      sight,
      "Suspended",
      `spec.${canary.spec.rolloutPlan?.paused ? "rolloutPlan.paused" : "suspend"} is true`,
    )
  if (!run) return idle(sight)
  const now = refreshed(sight, run)
  const follow = endingOf(run) ? undefined : followedBy(sight, now)
  if (follow)
    return say(sight, now, { act: follow, reason: run.reason, message: "the Services follow the pods of the source" })
  const isTakenBack = canary.metadata.annotations?.[rollbackAnnotation] === run.id
  if (canary.metadata.annotations?.[pausedAnnotation] === run.id && !isTakenBack)
    return held(sight, "Paused", `aim pause holds run ${run.id}: run aim resume canary/${canary.metadata.name}`)
  if (endingOf(run) && !isMoved(sight, now)) return end(sight, now)
  return changed(sight, now) ?? (byPhase[phase ?? "Progressing"] ?? progress)(sight, now)
}

const byPhase: Partial<Record<Phase, (sight: Sight, run: Run) => Decision>> = {
  Waiting: wait,
  Progressing: progress,
  WaitingPromotion: progress,
  Promoting: promote,
  Finalising: finalise,
}

function stuck(sight: Sight, reason: Decision["reason"], message: string): Decision {
  const { phase = "Initializing", run } = statusOf(sight)
  return { phase, run, asks: { hooks: [] }, reason, message, isStalled: true }
}

function held(sight: Sight, reason: "Suspended" | "Paused", message: string): Decision {
  const { phase = "Initializing", run } = statusOf(sight)
  // The weight that is reported is the one that is routed, here too. The reason of an end stays: it says how to go on.
  const now = run && refreshed(sight, run)
  const said = now && !endingOf(now) ? { ...now, reason, message } : now
  return { phase, run: said, asks: { hooks: [] }, reason, message }
}

/** What ends a run from outside. Once the tested pods are the workload's own, a change waits for the next run. */
function changed(sight: Sight, run: Run): Decision | undefined {
  const { canary, workload, trial } = sight
  if (isMoved(sight, run)) return undefined
  if (canary.metadata.annotations?.[rollbackAnnotation] === run.id)
    return ending(sight, run, "RolledBackByUser", `aim rollback ended run ${run.id}`)
  if (!workload!.isPaused || !workload!.hold)
    return ending(sight, run, "Released", `${titleOf(canary)} was resumed: its own controller rolls it out`)
  if (workload!.checksum !== run.checksum)
    return workload!.checksum === sourceOf(sight, run)?.checksum
      ? ending(sight, run, "Reverted", "the template went back to the revision that runs")
      : ending(sight, run, "Restarted", "the template changed during the run")
  const [config] = changedSince(sight, run)
  if (config !== undefined) return ending(sight, run, "Restarted", `${config} changed during the run`)
  if (run.target.hash !== "" && !trial && !testedOf(sight, run))
    return ending(sight, run, "TargetMissing", `Deployment ${run.target.workload} was deleted during the run`)
  return undefined
}

/** Waiting: nothing of the new revision runs yet. */
function wait(sight: Sight, run: Run): Decision {
  const place = { type: "confirm-rollout", approval: "Rollout", round: 0, phase: "Waiting" } as const
  const passage = pass(sight, run, place, intervalOf(sight.canary))
  if (passage.is === "Expired") return ending(sight, passage.run, "GateExpired", passage.message)
  const { asks, reason, message, lookAgainAt } = passage
  if (passage.is === "Waiting") return say(sight, passage.run, { asks: { hooks: asks }, reason, message, lookAgainAt })
  return say(
    sight,
    { ...passage.run, progressAt: formatInstant(sight.now) },
    {
      phase: "Progressing",
      reason: "Started",
      message: "the rollout was confirmed",
    },
  )
}

/** Progressing and WaitingPromotion: the new revision is judged at each weight. */
function progress(sight: Sight, before: Run): Decision {
  let run = before
  const { canary, trouble, trial } = sight
  if (trial && !trial.isOurs)
    return { ...stuck(sight, "NameTaken", `Deployment ${trial.name} exists and is not of this Canary: delete it`), run }
  if (trouble?.isFatal) return failedBy(sight, run)
  const position: Position = { weight: run.weight, iterations: run.iterations, isMirrored: run.mirrored }
  const isFirst = position.weight === 0 && position.iterations === 0 && !position.isMirrored
  const { next } = run

  if (next && strategyOf(canary.spec.analysis) === "Weighted" && !position.isMirrored) {
    const place = {
      type: "confirm-traffic-increase",
      approval: "TrafficIncrease",
      round: next.weight,
      phase: "",
    } as const
    const passage = pass(sight, run, place, intervalOf(canary))
    if (passage.is === "Expired") return ending(sight, passage.run, "GateExpired", passage.message)
    const { asks, reason, message, lookAgainAt } = passage
    if (passage.is === "Waiting")
      return say(sight, passage.run, { asks: { hooks: asks }, reason, message, lookAgainAt })
    run = passage.run
  }

  const wanted = wantedAt(sight, run, position, isFirst)
  const turned = targetService(sight, run)
  if (turned) return turned
  const { move } = pacedMove(sight, run, wanted)
  if (move !== "done") return moved(sight, run, move)
  if (canary.spec.skipAnalysis) return skipped(sight, run)
  if (isFirst) return prepare(sight, run, position)
  return statusOf(sight).phase === "WaitingPromotion" ? proven(sight, run) : round(sight, run, position)
}

/** Without checks. Flagger asks no hook before such a promotion either, but an approval that the spec asks for is awaited. */
function skipped(sight: Sight, run: Run): Decision {
  const promoting = (after: Run) =>
    say(
      sight,
      { ...after, progressAt: formatInstant(sight.now) },
      {
        phase: "Promoting",
        reason: "AnalysisSkipped",
        message: "the new revision is ready, and skipAnalysis is true",
      },
    )
  if (!sight.canary.spec.requireApproval.includes("Promotion")) return promoting(run)
  const passage = pass(sight, run, promotionPlace, intervalOf(sight.canary))
  if (passage.is === "Open") return promoting(passage.run)
  if (passage.is === "Expired") return ending(sight, passage.run, "GateExpired", passage.message)
  const { asks, reason, message, lookAgainAt } = passage
  return say(sight, passage.run, { phase: "WaitingPromotion", asks: { hooks: asks }, reason, message, lookAgainAt })
}

const promotionPlace = {
  type: "confirm-promotion",
  approval: "Promotion",
  round: 0,
  phase: "WaitingPromotion",
} as const

/** How requests and pods are to be at this point of the run. */
function wantedAt({ canary }: Sight, run: Run, position: Position, isFirst: boolean): Wanted {
  const { analysis, skipAnalysis } = canary.spec
  const { full } = run.sizes
  const isShared = sharesPods(canary)
  const sizeAt = (weight: number) => targetSizeAt(canary, weight, full)
  if (skipAnalysis)
    return { weight: run.weight, isMirrored: false, targetSize: isShared ? firstSize(full, full) : full }
  if (run.next) return { weight: run.next.weight, isMirrored: run.next.mirrored, targetSize: sizeAt(run.next.weight) }
  const here = { weight: run.weight, isMirrored: run.mirrored }
  if (!isFirst) return { ...here, targetSize: sizeAt(run.weight) }
  // It has the size of the first weight from the start.
  const first = nextOf(analysis, position)
  const size = sizeAt(first === "promote" ? 100 : first.weight)
  return { ...here, targetSize: isShared ? firstSize(size, full) : size }
}

/** Before the first weight: hooks that prepare. */
function prepare(sight: Sight, run: Run, position: Position): Decision {
  const { canary, now } = sight
  const dueAt = run.checkedAt === undefined ? 0 : instantOf(run.checkedAt) + intervalOf(canary)
  const { checks, asks } = checksOfHooks(sight, "pre-rollout", attemptOf(run))
  if (asks.length === 0) return advance(sight, run, position)
  if (now < dueAt) return measuring(sight, run, { ...kept(sight), lookAgainAt: dueAt })
  if (!checks) return measuring(sight, run, { asks: { hooks: asks } })
  const { run: after, outcome, isStalled } = judged(sight, run, checks)
  const message = outcome.why ?? ""
  if (outcome.next === "fail") return ending(sight, after, "AnalysisFailed", message)
  if (outcome.next === "hold") {
    const reason = holdReasons[outcome.reason!]
    return say(sight, after, { reason, message, isStalled, lookAgainAt: now + intervalOf(canary) })
  }
  // Written before requests come: the next process does not call them again.
  const { checkedAt: _, ...fresh } = after
  const { act: _act, ...said } = advance(sight, fresh, position)
  return said
}

/** Each attempt is a call of its own, and the same for every look until it is judged. */
const attemptOf = ({ startedAt, checkedAt }: Run): number =>
  checkedAt === undefined ? 0 : Math.max(1, Math.round((instantOf(checkedAt) - instantOf(startedAt)) / 1000))

const instantOf = (time: string | undefined): number => parseInstant(time) ?? 0

/** A round at the present weight. `goOn`: what follows when it is good. */
function judgeRound(sight: Sight, run: Run, goOn: (run: Run) => Decision): Decision {
  const { canary, now } = sight
  const due = roundOf(canary, run, now)
  const { metrics } = canary.spec.analysis
  if (now < due.dueAt) return measuring(sight, run, { ...kept(sight), lookAgainAt: due.dueAt })
  const rollout = checksOfHooks(sight, "rollout", due.number)
  const rollbacks = hooksOf(canary, "rollback").map(hook => ({ hook, round: due.number, phase: "Progressing" }))
  const answers = rollbacks.map(ask => sight.answers.get(answerKey(ask)))
  const measured = metrics.length === 0 ? [] : sight.checks
  const asks = {
    ...(metrics.length > 0 && { round: { number: due.number, atThisWeightMs: due.atThisWeightMs } }),
    hooks: [...rollout.asks, ...rollbacks],
  }
  const back = rollbacks.find((_, index) => answers[index]?.yes)
  if (back) return ending(sight, run, "RollbackHook", `hook ${back.hook.name} asked for a rollback`)
  if (!rollout.checks || !measured || answers.includes(undefined))
    return measuring(sight, run, { ...kept(sight), asks })
  const checks: readonly Check[] = [...rollout.checks, ...measured]
  const { run: after, outcome, isStalled } = judged(sight, run, checks)
  const why = outcome.why ?? ""
  if (outcome.next === "goOn") return goOn({ ...after, progressAt: formatInstant(now) })
  if (outcome.next === "fail")
    return ending(sight, after, outcome.reason === "NoData" ? "DeadlineExceeded" : "AnalysisFailed", why)
  const reason = holdReasons[outcome.reason!]
  return say(sight, after, { reason, message: why, isStalled, lookAgainAt: now + intervalOf(canary) })
}

const holdReasons = {
  BadMetric: "MetricFailed",
  HookSaidNo: "HookRefused",
  NoData: "NoData",
  MetricError: "MetricError",
} as const

/** What the last round said stands until the next one. */
function kept(sight: Sight): Pick<Decision, "reason" | "message"> | undefined {
  const run = statusOf(sight).run
  const waits = run?.reason === "GateWaiting" ? heldBatch(sight, run) : undefined
  if (waits) return { reason: "GateWaiting", message: waits }
  const reason = run && Object.values(holdReasons).find(each => each === run.reason)
  return reason && { reason, message: run.message }
}

/** Why the batch after the present one may not begin. */
function heldBatch({ canary }: Sight, { weight, iterations, mirrored: isMirrored }: Run): string | undefined {
  const next = nextOf(canary.spec.analysis, { weight, iterations, isMirrored })
  return next === "promote" ? undefined : partitionHold(canary, next.weight)
}

const round = (sight: Sight, run: Run, position: Position): Decision =>
  judgeRound(sight, run, after => advance(sight, after, position))

/** The checks of this position have passed. */
function advance(sight: Sight, run: Run, position: Position): Decision {
  const { canary, now } = sight
  const next = nextOf(canary.spec.analysis, position)
  const progressAt = formatInstant(now)
  if (next === "promote") {
    const isGated = hasGate(canary, { type: "confirm-promotion", approval: "Promotion" })
    return say(
      sight,
      { ...run, progressAt },
      {
        phase: isGated ? "WaitingPromotion" : "Promoting",
        reason: "Advanced",
        message: "the new revision proved good",
      },
    )
  }
  const waits = heldBatch(sight, run)
  if (waits)
    return say(
      sight,
      { ...run, progressAt },
      { reason: "GateWaiting", message: waits, lookAgainAt: now + intervalOf(canary) },
    )
  const after = { ...run, iterations: next.iterations, progressAt }
  const isHere = next.weight === position.weight && next.isMirrored === position.isMirrored
  // The first iteration is judged after an interval from now on.
  if (isHere)
    return measuring(sight, { ...after, checkedAt: formatInstant(now) }, { lookAgainAt: now + intervalOf(canary) })
  return progress(sight, { ...after, next: { weight: next.weight, mirrored: next.isMirrored } })
}

const isGoodAtLast = ({ canary }: Sight, { metrics }: Run): boolean =>
  metrics.every(({ verdict }) => verdict === "Good" || (verdict === "NoData" && canary.spec.analysis.noData === "Pass"))

/** WaitingPromotion: the gates, while the new revision is judged as before. */
function proven(sight: Sight, run: Run): Decision {
  const passage = pass(sight, run, promotionPlace, intervalOf(sight.canary))
  if (passage.is === "Expired") return ending(sight, passage.run, "GateExpired", passage.message)
  const confirmed = (after: Run) =>
    say(
      sight,
      { ...after, progressAt: formatInstant(sight.now) },
      {
        phase: "Promoting",
        reason: "Advanced",
        message: "the promotion was confirmed",
      },
    )
  // Whatever a gate says: what the last round did not find good waits for a better one.
  if (passage.is === "Open")
    return isGoodAtLast(sight, passage.run) ? confirmed(passage.run) : judgeRound(sight, passage.run, confirmed)
  const waiting = (after: Run, said: Partial<Decision> = {}) =>
    say(sight, after, { reason: passage.reason, message: passage.message, ...said })
  const judgement = judgeRound(sight, passage.run, after => waiting(after))
  if (judgement.phase === "Failed") return judgement
  const times = [passage.lookAgainAt, judgement.lookAgainAt].filter(time => time !== undefined)
  return waiting(judgement.run ?? passage.run, {
    asks: { ...judgement.asks, hooks: [...judgement.asks.hooks, ...passage.asks] },
    ...(times.length > 0 && { lookAgainAt: Math.min(...times) }),
  })
}
