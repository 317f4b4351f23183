import type { Canary, Run } from "#api/v1alpha1/canary/index.ts"
import type { Arranged, Wanted } from "../arrange.ts"
import type { Act, SetPod, SetSeen, Sight } from "../sight.ts"
import { type Strategy, strategyOf } from "../steps.ts"
import type { Step } from "./target.ts"

/**
 * StatefulSets and DaemonSets: both revisions share the pods of one workload, and each pod of the new one takes the place
 * of a pod of the running one. So the share of requests follows the pods, and one pod of the running revision stays until
 * the new one has all requests.
 */
export const sharesPods = ({ spec }: Canary): boolean =>
  spec.targetRef.kind === "StatefulSet" || spec.targetRef.kind === "DaemonSet"

/** How many pods the new revision may have before it has all requests. */
export const mostBefore = (full: number): number => Math.max(1, full - 1)

/** So many pods at once: a large set gets a dozen steps, and a small one goes pod by pod. */
const strideOf = (full: number): number => Math.max(1, Math.ceil(full / 10))

type Wish = {
  readonly strategy: Strategy
  readonly weight: number
  readonly full: number
  readonly canaryReplicas?: number | undefined
}

/**
 * How many of the workload's pods answer this share of the requests: the nearest number. Where the requests that come are
 * not known by a share, it is half of them.
 */
export function sharedSize({ strategy, weight, full, canaryReplicas }: Wish): number {
  if (weight >= 100 && strategy !== "HeaderOrCookie") return mostBefore(full)
  const share = strategy === "Weighted" ? weight / 100 : 1 / 2
  return Math.min(mostBefore(full), Math.max(1, canaryReplicas ?? Math.round(full * share)))
}

/** The first pod of the new revision, before any request. */
export const firstSize = (size: number, full: number): number => Math.min(size, strideOf(full))

/**
 * The next state on the way to what is wanted. The running revision loses a pod for each that the new one gets. It must
 * not lose the pods of a whole step while it has the requests of before, so pods and weight rise by turns.
 */
export function paced(canary: Canary, { target, route }: Arranged, wanted: Wanted, full: number): Wanted {
  if (!sharesPods(canary)) return wanted
  // A node that joins a DaemonSet gets a pod of the template at once.
  const isMany = canary.spec.targetRef.kind === "DaemonSet" && target.size > wanted.targetSize
  if (isMany) return { ...wanted, targetSize: target.size }
  if (target.size >= wanted.targetSize) return wanted
  const targetSize = Math.min(wanted.targetSize, target.size + strideOf(full))
  if (wanted.weight <= route.weight) return { ...wanted, targetSize }
  const isShare = strategyOf(canary.spec.analysis) !== "HeaderOrCookie"
  const carried = Math.min(wanted.weight, Math.floor((100 * target.size) / full))
  if (isShare && !route.isMirrored && carried > route.weight)
    return { ...wanted, weight: carried, targetSize: target.size }
  return { weight: route.weight, isMirrored: route.isMirrored, targetSize }
}

export const podsOf = ({ set }: Sight, hash: string): readonly SetPod[] =>
  (set?.pods ?? []).filter(pod => pod.hash === hash)

/**
 * The next of these pods that may be deleted. One that is not ready answers nothing and blocks the others, so it goes
 * first and at any time; a ready one goes when no more are down than the workload's own strategy allows.
 */
export function nextToGo(sight: Sight, candidates: readonly SetPod[], message: string): Step {
  const { set, workload } = sight
  const alive = candidates.filter(({ isGoing }) => !isGoing)
  const down = alive.find(({ isReady }) => !isReady)
  const pod = down ?? alive[0]
  if (!pod) return { wait: "pods are being deleted" }
  const ready = set!.pods.filter(({ isReady, isGoing }) => isReady && !isGoing).length
  if (!down && workload!.size - ready >= set!.maxUnavailable)
    return { wait: "a pod is not ready, and no other goes before it is" }
  return { act: { do: "deletePod", pod: pod.name, isReady: pod.isReady }, message }
}

/** The last pods are of the tested revision too, and the workload's own controller has counted that. */
export const isAllNew = ({ set, workload }: Sight, run: Run): boolean =>
  set!.isSettled &&
  set!.pods.length === workload!.size &&
  set!.pods.every(({ hash, isReady, isGoing }) => hash === run.target.hash && isReady && !isGoing)

/** The running template is written back first: without the hold, another one would start a rollout. */
export function releasedSet({ workload }: Sight, source: SetSeen | undefined): Act | undefined {
  if (!workload?.hold) return undefined
  const isBack = !source || workload.checksum === source.checksum || !workload.isPaused
  return isBack ? { do: "release" } : { do: "writeBack", set: source.name }
}
