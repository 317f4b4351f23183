import { retryAnnotation, rollbackAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { Run } from "#api/v1alpha1/canary/index.ts"
import { type Arranged, type Move, nextMove } from "./arrange.ts"
import { changedSince } from "./configs.ts"
import {
  arrangedOf,
  type Decision,
  endedRun,
  endingOf,
  isSourceLost,
  leastOf,
  noAsks,
  sharesOf,
  sidesOf,
  sourceOf,
  statusOf,
} from "./decision.ts"
import { lastAsks } from "./finalise.ts"
import { type Act, answerKey, type Sight } from "./sight.ts"
import { followedBy } from "./targets/component.ts"
import { targetOf } from "./targets/index.ts"
import type { Step, Target } from "./targets/target.ts"
import { nextTurn, type Turn } from "./turn.ts"

/** A run that is over: requests go back to the source, then the pods of the new revision go. */
export function end(sight: Sight, run: Run): Decision {
  const { workload, now } = sight
  const result = endingOf(run)!
  const isFailed = result === "RolledBack"
  const phase = isFailed ? "Failed" : statusOf(sight).phase
  const said = { phase, run, asks: noAsks, message: run.message, isStalled: isFailed } as const
  if (isFailed && isFrozen(sight, run))
    return { ...said, reason: "Frozen", message: `${run.message}; onFailure is Freeze` }
  const step = back(sight, run)
  if (step !== "done") {
    if ("act" in step) return { ...said, act: step.act, reason: "RollingBack" }
    return {
      ...said,
      reason: step.wait,
      message: `${run.message}; ${step.message}`,
      isStalled: step.wait === "SourceMissing",
    }
  }
  const asks = isFailed ? lastAsks(sight, "Failed") : noAsks
  if (asks.hooks.some(ask => !sight.answers.has(answerKey(ask)))) return { ...said, reason: "RollingBack", asks }
  const ended = endedRun(run, result, run.reason, now)
  if (isFailed)
    return { phase, ended, asks, reason: run.reason, message: run.message, isStalled: true, lastApplied: run.checksum }
  const idle = statusOf(sight).lastPromotedSpec === undefined ? "Initialized" : "Succeeded"
  return {
    phase: idle,
    ended,
    asks,
    reason: run.reason,
    message: run.message,
    isReady: workload?.checksum === sourceOf(sight, run)?.checksum,
  }
}

/** Weight and pods stay for a person to look at, until template or configuration change or the run is taken back. */
function isFrozen(sight: Sight, run: Run): boolean {
  const { canary, workload } = sight
  const { annotations = {} } = canary.metadata
  const isOver =
    run.reason === "RolledBackByUser" ||
    [annotations[retryAnnotation], annotations[rollbackAnnotation]].includes(run.id)
  const isSame = workload?.checksum === run.checksum && changedSince(sight, run).length === 0
  return canary.spec.onFailure === "Freeze" && isSame && !isOver
}

export type Back =
  | { readonly act: Act }
  | { readonly wait: "SourceNotReady" | "NotAccepted" | "SourceMissing" | "RollingBack"; readonly message: string }
  | "done"

/**
 * The next step back to the source, whatever had been reached. Where it has to wait, the Deployment of the run says that its
 * run is over, so that no other part of aim repairs pods that are about to go.
 */
export function back(sight: Sight, run: Run): Back {
  const { trial } = sight
  const step = backwards(sight, run)
  const isToSay = trial?.isOurs && !trial.isGoing && !trial.isEnded && !targetOf(sight.canary)
  return isToSay && step !== "done" && "wait" in step ? { act: { do: "endTrial" } } : step
}

function backwards(sight: Sight, run: Run): Back {
  const { services, trial } = sight
  const follow = followedBy(sight, run)
  if (follow) return { act: follow }
  if (isSourceLost(sight) && !isAwaited(sight, run)) return "done"
  const source = sourceOf(sight, run)
  const other = targetOf(sight.canary)
  const arranged = asGrown(arrangedOf(sight, run), other, run)
  const isServed = source !== undefined && (source.size > 0 || sight.workload?.size === 0)
  const grown = other?.grown?.(sight, run) ?? "done"
  if (grown !== "done") return ofStep(grown)
  if (!isServed && arranged.target.ready > 0)
    return { wait: "SourceMissing", message: "the pods of the running revision are gone, and the new one's stay" }
  const shares = sharesOf(sight)
  if (services.source && services.source.hash !== run.source.hash) {
    const turn = nextTurn(sidesOf(sight), run.source.hash, leastOf(arranged.source.size, shares.source))
    if (turn !== "done") return ofTurn(sight, run, turn)
  }
  const move = nextMove(arranged, { weight: 0, isMirrored: false, targetSize: 0 }, shares)
  if (other && (move === "done" || ("do" in move && move.do === "scale"))) return ofStep(other.emptied(sight, run))
  if (move !== "done") return ofMove(sight, move)
  return trial ? { wait: "RollingBack", message: "the Deployment of the run is being deleted" } : "done"
}

/** What is left answers and proved bad: it stays so, and a person is told, until there is another revision. */
const isAwaited = ({ canary, workload }: Sight, run: Run): boolean =>
  endingOf(run) === "RolledBack" && workload?.checksum === run.checksum && !canary.metadata.deletionTimestamp

/** Requests leave a revision that proved bad at once, while pods of the source come back that it had given up. */
const asGrown = (arranged: Arranged, other: Target | undefined, run: Run): Arranged =>
  other?.grown && endingOf(run) === "RolledBack"
    ? { ...arranged, source: { ...arranged.source, size: arranged.source.ready } }
    : arranged

const ofStep = (step: Step): Back => {
  if (step === "done") return "done"
  return "act" in step ? { act: step.act } : { wait: "RollingBack", message: step.wait }
}

function ofTurn({ services }: Sight, run: Run, turn: Exclude<Turn, "done">): Back {
  if ("wait" in turn)
    return turn.wait === "NotReady"
      ? { wait: "SourceNotReady", message: "pods of the running revision are not ready" }
      : { wait: "NotAccepted", message: "the route is not accepted" }
  if (turn.do === "route") return { act: { ...turn } }
  const [source, target] = [services.source?.hash ?? run.source.hash, services.target?.hash ?? run.target.hash]
  return {
    act: {
      do: "services",
      ...(turn.side === "source" ? { source: turn.hash, target } : { source, target: turn.hash }),
    },
  }
}

function ofMove({ route, trial }: Sight, move: Exclude<Move, "done">): Back {
  if ("wait" in move)
    return move.wait === "RouteNotAccepted"
      ? { wait: "NotAccepted", message: `the route is not accepted: ${route.why}` }
      : { wait: "SourceNotReady", message: "pods of the running revision are not ready" }
  if (move.do === "route") return { act: { ...move } }
  return trial?.isOurs && !trial.isGoing
    ? { act: { do: "deleteTrial" } }
    : { wait: "RollingBack", message: "the Deployment of the run is being deleted" }
}
