import { retryAnnotation, rollbackAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { Run } from "#api/v1alpha1/canary/index.ts"
import { type Move, nextMove } from "./arrange.ts"
import {
  arrangedOf,
  type Decision,
  endedRun,
  endingOf,
  leastOf,
  noAsks,
  sharesOf,
  sidesOf,
  sourceOf,
  statusOf,
} from "./decision.ts"
import { lastAsks } from "./finalise.ts"
import { type Act, answerKey, type Sight } from "./sight.ts"
import { targetOf } from "./targets/index.ts"
import type { Step } from "./targets/target.ts"
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

/** Weight and pods stay for a person to look at, until the template changes or the run is taken back. */
function isFrozen({ canary, workload }: Sight, run: Run): boolean {
  const { annotations = {} } = canary.metadata
  const isOver =
    run.reason === "RolledBackByUser" ||
    [annotations[retryAnnotation], annotations[rollbackAnnotation]].includes(run.id)
  return canary.spec.onFailure === "Freeze" && workload?.checksum === run.checksum && !isOver
}

export type Back =
  | { readonly act: Act }
  | { readonly wait: "SourceNotReady" | "NotAccepted" | "SourceMissing" | "RollingBack"; readonly message: string }
  | "done"

/** The next step back to the source, whatever had been reached. */
export function back(sight: Sight, run: Run): Back {
  const { services, trial } = sight
  const source = sourceOf(sight, run)
  const arranged = arrangedOf(sight, run)
  const isServed = source !== undefined && (source.size > 0 || sight.workload?.size === 0)
  if (!isServed && arranged.target.ready > 0)
    return { wait: "SourceMissing", message: "the pods of the running revision are gone, and the new one's stay" }
  const shares = sharesOf(sight)
  if (services.source && services.source.hash !== run.source.hash) {
    const turn = nextTurn(sidesOf(sight), run.source.hash, leastOf(source?.size ?? 0, shares.source))
    if (turn !== "done") return ofTurn(sight, run, turn)
  }
  const other = targetOf(sight.canary)
  const move = nextMove(arranged, { weight: 0, isMirrored: false, targetSize: 0 }, shares)
  if (other && (move === "done" || ("do" in move && move.do === "scale"))) return ofStep(other.emptied(sight, run))
  if (move !== "done") return ofMove(sight, move)
  return trial ? { wait: "RollingBack", message: "the Deployment of the run is being deleted" } : "done"
}

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
