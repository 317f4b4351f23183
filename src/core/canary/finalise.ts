import type { Run } from "#api/v1alpha1/canary/index.ts"
import { parseInstant } from "#lib/instant.ts"
import { briefly, type Decision, endedRun, ending, say, sourceOf, statusOf, testedOf } from "./decision.ts"
import { hooksOf } from "./gates.ts"
import { type HandOver, type HandOverStep, nextOfHandOver } from "./hand-over.ts"
import { turned } from "./promote.ts"
import { type Act, type Asks, answerKey, type Sight } from "./sight.ts"
import { targetOf } from "./targets/index.ts"
import type { Impossible, Step } from "./targets/target.ts"

/**
 * Finalising: the Services turn, the tested ReplicaSet becomes the workload's own, and the pods of the revision before
 * go.
 */
export function finalise(sight: Sight, run: Run): Decision {
  const { canary, now } = sight
  const tested = testedOf(sight, run)
  const since = parseInstant(statusOf(sight).lastTransitionTime) ?? now
  const drainedAt = since + canary.spec.scaleDownDelaySeconds * 1000
  const turning = turned(sight, run)
  if (turning) return turning
  if (tested?.owner !== "user" && now < drainedAt)
    return say(sight, run, {
      act: ready(sight, run),
      reason: "Draining",
      message: `the pods of the revision before stay for ${canary.spec.scaleDownDelaySeconds} s`,
      lookAgainAt: drainedAt,
    })
  const step = handOverStep(sight, run)
  if (step !== "done") {
    if ("act" in step) return say(sight, run, { act: step.act, reason: "HandingOver", message: step.message })
    if ("wait" in step) return say(sight, run, { reason: "HandingOver", message: step.wait, ...briefly(sight) })
    if (tested?.owner === "user")
      return say(sight, run, { reason: "Conflict", message: step.impossible, isStalled: true })
    return ending(sight, run, step.reason, step.impossible)
  }
  const asks = lastAsks(sight, "Succeeded")
  if (asks.hooks.some(ask => !sight.answers.has(answerKey(ask))))
    return say(sight, run, { reason: "HandingOver", message: "hooks after the rollout are called", asks })
  const reason = canary.spec.skipAnalysis ? "AnalysisSkipped" : "Promoted"
  const message = `revision ${run.target.hash} has all requests, and its pods are the workload's`
  return {
    phase: "Succeeded",
    ended: endedRun({ ...run, message }, "Promoted", reason, now),
    asks,
    reason,
    message,
    isReady: true,
    lastApplied: run.checksum,
    lastPromoted: run.checksum,
  }
}

/**
 * The Service without requests selects the revision before, as long as its pods stay: then a rollback is one write, of the
 * route.
 */
function ready({ services }: Sight, run: Run): Act | undefined {
  const isReady = services.target?.hash === run.source.hash
  return isReady ? undefined : { do: "services", source: run.target.hash, target: run.source.hash }
}

/** Hooks after a run. Their answers change nothing; a call that is under way is awaited. */
export const lastAsks = ({ canary }: Sight, phase: "Succeeded" | "Failed"): Asks => ({
  hooks: hooksOf(canary, "post-rollout").map(hook => ({ hook, round: 0, phase })),
})

export type HandOverMove = Step | Impossible

/** The next step of the hand-over as a write. A workload that stands paused between runs stays so. */
export function handOverStep(sight: Sight, run: Run): HandOverMove {
  const { workload, canary } = sight
  const other = targetOf(canary)
  if (other) return other.handedOver(sight, run)
  const tested = testedOf(sight, run)
  const old = sourceOf(sight, run)
  // Its template changed after the ReplicaSet had moved: the next run follows, and this one ends by hand.
  if (tested?.owner === "user" && workload!.hold && workload!.checksum !== run.checksum) {
    const others = sight.sets.find(set => set.owner === "user" && set !== tested && set.size > 0)
    if (others) return { act: { do: "emptySet", set: others.name }, message: "the pods of the revision before go" }
    return sight.trial ? gone(sight) : "done"
  }
  const seen = handOverOf(sight, run)
  const step = nextOfHandOver(seen)
  if (step === "done") return "done"
  if ("do" in step && step.do === "resumeUser" && workload!.hold?.isStanding) return "done"
  return asMove(sight, step, { tested: tested?.name ?? "", twin: twinOf(sight, run)?.name ?? "", old: old?.name ?? "" })
}

const gone = ({ trial }: Sight): HandOverMove =>
  trial?.isGoing ? { wait: "the Deployment of the run is being deleted" } : deletion
const deletion: HandOverMove = { act: { do: "deleteTrial" }, message: "the Deployment of the run is deleted" }

const twinOf = (sight: Sight, run: Run) => {
  const tested = testedOf(sight, run)
  return sight.sets.find(set => set.owner === "user" && set.checksum === run.checksum && set !== tested)
}

function handOverOf(sight: Sight, run: Run): HandOver {
  const { workload, trial, sets } = sight
  const tested = testedOf(sight, run)
  const twin = twinOf(sight, run)
  const others = sets.filter(set => set.owner === "user" && set !== tested)
  return {
    ...(trial && { trial: { isPaused: trial.isPaused, isPauseSeen: trial.isPauseSeen, size: trial.size } }),
    ...(tested && { set: { owner: tested.owner, size: tested.size, ready: tested.ready } }),
    ...(twin && { twin: { size: twin.size } }),
    user: {
      size: workload!.size,
      isHeld: workload!.hold !== undefined && workload!.isPaused,
      hasTestedTemplate: workload!.checksum === run.checksum,
      hasCounted:
        tested?.owner === "user" &&
        workload!.isObserved &&
        tested.revision > 0 &&
        tested.revision === workload!.revision &&
        workload!.updated === workload!.size &&
        others.every(({ revision, size }) => revision < tested.revision && size === 0),
    },
  }
}

function asMove(
  sight: Sight,
  step: Exclude<HandOverStep, "done">,
  names: { tested: string; twin: string; old: string },
): HandOverMove {
  if ("wait" in step) return { wait: waits[step.wait] }
  if ("impossible" in step) return impossible[step.impossible]
  switch (step.do) {
    case "scaleTrial":
      return { act: { do: "scaleTrial", size: step.size }, message: "the new revision gets the size of the workload" }
    case "deleteTwin":
      return {
        act: { do: "deleteTwin", set: names.twin },
        message: "an empty ReplicaSet of the same template is deleted",
      }
    case "pauseTrial":
      return { act: { do: "pauseTrial" }, message: "the Deployment of the run is paused" }
    case "moveSet":
      return { act: { do: "moveSet", set: names.tested }, message: "the tested ReplicaSet becomes the workload's" }
    case "deleteTrial":
      return gone(sight)
    case "resumeUser":
      return { act: { do: "release" }, message: "the workload is given back to its controller" }
  }
}

const waits: Readonly<Record<Extract<HandOverStep, { wait: string }>["wait"], string>> = {
  PodsNotReady: "pods of the new revision are not ready yet",
  PauseNotSeen: "the Deployment controller has not seen the pause yet",
  NotCounted: "the Deployment controller has not counted the tested ReplicaSet yet",
}

const impossible: Readonly<Record<Extract<HandOverStep, { impossible: string }>["impossible"], Impossible>> = {
  TemplateChanged: { impossible: "the template changed during the hand-over", reason: "Restarted" },
  SetMissing: { impossible: "the tested ReplicaSet is gone", reason: "TargetMissing" },
  TwinHasPods: { impossible: "an older ReplicaSet of the same template has pods", reason: "Unhealthy" },
  OwnedByAnother: { impossible: "the tested ReplicaSet belongs to another object", reason: "Unhealthy" },
}
