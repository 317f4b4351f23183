import { short } from "#core/in-place/operation.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { staysDrained } from "#core/in-place/standing.ts"
import { untouched, withoutHash } from "#core/in-place/template.ts"
import { earliest } from "#lib/instant.ts"
import type { Job } from "./facts.ts"
import { makeNote } from "./note.ts"
import type { Action, Plan, Reason, Snapshot } from "./plan.ts"
import { takingBack } from "./take-back.ts"

/** A budget without room: a pod of another workload that counts as down is so for a while, and no event ends that. */
export const roomMs = 30_000

/** `kubectl rollout resume`, or another write that took the hold away: the owner's own release. */
export function resumed(seen: Snapshot): Plan {
  const { workload, native } = seen
  if (workload.hold?.isStanding) {
    const words = `its standing hold was taken away; aim hold ${native.title} holds it again`
    return released(seen, "FellBackToRollingUpdate", words)
  }
  return native.isFollowed
    ? released(seen, "Completed", "resumed by its owner")
    : released(seen, "FellBackToRollingUpdate", "it was resumed in between")
}

/** A standing hold between two updates: what the last one needed goes, and no pod stays drained. */
export const atRest = (seen: Snapshot): Plan => ({
  actions: [...serving(seen), ...ended(seen.jobs)],
  lookAgainAt: seen.pods.some(pod => isToRestart(seen, pod)) ? seen.now + restartMs : undefined,
  rest: "Standing",
})

/** Its own controller does a rolling update. The hold stands again when every pod is of the template. */
export function lent(seen: Snapshot, isOptedOut: boolean): Plan {
  const { original } = seen.workload
  if (isOptedOut) return released(seen, "OptedOut", "it asks for no updates in place any more")
  if (!seen.native.isRolledOut) return { ...cleanedUp(seen, []), rest: "Lent" }
  // A stop of the owner's is never touched.
  if (original === undefined) return released(seen, "OptedOut", "its owner has stopped it: the hold stands no more")
  return { ...cleanedUp(seen, [{ do: "stand", original }]), rest: "Lent" }
}

/** First what was changed and stays, then the label. */
export function cleanedUp(seen: Snapshot, last: readonly Action[] = [{ do: "unmark" }]): Plan {
  const { template } = seen.workload
  const back = takingBack(seen, `back-${short(withoutHash(template))}`)
  const rest = [...serving(seen), ...ended(seen.jobs)]
  // Without the label a pod that still has to restart would stay drained.
  if (!back && seen.pods.some(pod => isToRestart(seen, pod)))
    return { actions: rest, lookAgainAt: seen.now + restartMs }
  // Its controller is about to report that it has seen the release: the label would meet that write, and its event wakes us.
  if (!back) return { actions: seen.workload.isObserved ? [...rest, ...last] : rest }
  const { next, note } = back
  const taken = new Set(next.judged.map(({ pod }) => pod))
  // One that is drained and was not changed would count as down for as long as the others wait.
  const others = serving({ ...seen, pods: seen.pods.filter(pod => !taken.has(pod)) })
  const writes = next.writes.map((write): Action => ({ do: "pod", write, template, touched: note.touched }))
  const isShort = next.waiting > 0 && seen.disruptions?.allowed === 0
  return {
    actions: [...others, ...ended(seen.jobs), ...writes],
    lookAgainAt: earliest(next.lookAgainAt, isShort ? seen.now + roomMs : undefined),
    budgets: isShort ? [seen.disruptions!.budget] : [],
    judged: next.judged,
  }
}

const ended = (jobs: readonly Job[]) => jobs.map((job): Action => ({ do: "deleteJob", job }))

/** No pod stays drained; one that is about to restart serves again afterwards. */
export function serving(seen: Snapshot): Action[] {
  const { template } = seen.workload
  const drained = seen.pods.filter(pod => pod.gate?.isDrained && !isToRestart(seen, pod))
  return drained.map(pod => ({ do: "pod", write: { do: "undrain", pod }, template, touched: untouched }))
}

export const isToRestart = ({ now }: Snapshot, pod: PodFacts) =>
  pod.gate?.isDrained === true && staysDrained(pod, now) !== undefined
/** Its report wakes us earlier. */
export const restartMs = 5000

/** Gives everything back: pods serve, and the workload is its own controller's again. */
export const released = (seen: Snapshot, reason: Reason, message: string): Plan => ({
  actions: [...serving(seen), { do: "release", note: noteFor(seen, reason, message) }],
})

/** The update is done, and its own controller knows it. */
export function completed(seen: Snapshot, reason: Reason, message: string, fence: number): Plan {
  const note = { ...noteFor(seen, reason, message), fence }
  const how = seen.workload.hold?.isStanding ? "settle" : "release"
  return { actions: [...serving(seen), { do: how, note, looksAgain: true }] }
}

/** What cannot go in place is its own controller's. A standing hold stands again afterwards. */
export function leftToNative(seen: Snapshot, reason: Reason, message: string): Plan {
  const how = seen.workload.hold?.isStanding ? "lend" : "release"
  return { actions: [...serving(seen), { do: how, note: noteFor(seen, reason, message), looksAgain: true }] }
}

export const noteFor = ({ workload, native }: Snapshot, reason: Reason, message: string) =>
  makeNote(workload, native.before, reason, message)
