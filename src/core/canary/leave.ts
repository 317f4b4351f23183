import { parseInstant } from "#lib/instant.ts"
import { leftSnapshots } from "./configs.ts"
import { type Decision, isMoved, noAsks, refreshed, sourceOf, statusOf, weightOf } from "./decision.ts"
import { back } from "./end.ts"
import { handOverStep } from "./finalise.ts"
import { deadlineOf } from "./rounds.ts"
import type { Act, Sight } from "./sight.ts"
import { isRoutedOnly, targetOf } from "./targets/index.ts"

/**
 * Terminating: the Canary goes, at whatever point. Requests go to the healthy side first; then the pods of a revision that
 * was not promoted go, the workload gets the template that runs and is released, and Services and route are left in order.
 */
export function leave(sight: Sight): Decision {
  const { canary, hasFinalizer, now } = sight
  const status = statusOf(sight)
  const run = status.run && refreshed(sight, status.run)
  const say = (message: string, said: Partial<Decision> = {}): Decision => ({
    phase: "Terminating",
    run: run && { ...run, reason: "Deleted", message },
    asks: noAsks,
    reason: "Terminating",
    message,
    ...said,
  })
  if (!hasFinalizer) return say("nothing is left to do")
  if (status.phase !== "Terminating") return say("the Canary is being deleted")
  const since = parseInstant(canary.metadata.deletionTimestamp) ?? now
  const overAt = since + deadlineOf(canary)
  const step = nextStep(sight, now >= overAt)
  return "message" in step
    ? say(step.message, { lookAgainAt: overAt })
    : say(status.run?.message || "leaving", { act: step })
}

type Step = Act | { readonly message: string }

function nextStep(sight: Sight, isOver: boolean): Step {
  const { workload, trial } = sight
  const other = targetOf(sight.canary)
  const run = statusOf(sight).run && refreshed(sight, statusOf(sight).run!)
  // Once the workload is released, only Services and route are left: they no longer tell the revisions apart.
  const isRouted = weightOf(sight) > 0 || sight.route.split?.isMirrored
  const isUnderWay =
    isRoutedOnly(sight.canary) || sight.component
      ? isRouted || (sight.component?.target?.size ?? 0) > 0
      : trial || workload?.hold
  if (run && workload && isUnderWay) {
    const step = isMoved(sight, run) ? handOver(sight) : goBack(sight, isOver)
    if (step) return step
  }
  if (!other && trial?.isOurs && !trial.isGoing) return { do: "deleteTrial" }
  const source = (run && !isMoved(sight, run) ? sourceOf(sight, run) : undefined) ?? sourceOf(sight, null)
  if (other) {
    const release = other.released(sight, source)
    if (release) return release
  } else if (workload?.hold) {
    const isBack = !source || workload.checksum === source.checksum || !workload.isPaused
    return isBack ? { do: "release" } : { do: "writeBack", set: source.name }
  }
  // Until then it sends requests to Services that may be about to go.
  if (sight.isRouteGoing && !isOver) return { message: `the route is not accepted as it is left: ${sight.route.why}` }
  const snapshots = isOver ? undefined : leftSnapshots(sight, source)
  if (snapshots) return snapshots
  return sight.isLeft ? { do: "removeFinalizer" } : { do: "leave" }
}

/** The tested pods are the workload's already: the hand-over is finished first. */
function handOver(sight: Sight): Step | undefined {
  const step = handOverStep(sight, refreshed(sight, statusOf(sight).run!))
  if (step === "done" || "impossible" in step) return undefined
  return "act" in step ? step.act : { message: step.wait }
}

/** Not for ever: a side that never becomes ready must not keep the Canary. */
function goBack(sight: Sight, isOver: boolean): Step | undefined {
  const step = back(sight, refreshed(sight, statusOf(sight).run!))
  if (step === "done") return undefined
  if ("act" in step) return step.act
  return isOver ? undefined : { message: step.message }
}
