import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import type { Instant } from "#lib/instant.ts"
import { sameImage } from "../image/reference.ts"
import type { PodFacts, PodTrouble } from "./pod-facts.ts"
import { byBadness, type Crash } from "./steady.ts"

/** What is known of the pods behind one object. */
export type Trace = {
  /** Found through owner references and not finished. */
  readonly pods: number
  /** What is wrong, by the images of the pods it is wrong with; few, in a fixed order, the weightiest first. */
  readonly troubles: readonly Trouble[]
  /** Containers that exited badly, by image; few, in a fixed order, the worst first. */
  readonly crashes: readonly Crash[]
  /** Since when the pods are ready without a bad exit: the time of the last one. 0 where nothing dates it. */
  readonly steadyAt: Instant
  /** Pods on nodes that no longer answer, by their images. They may or may not still run. */
  readonly lost: readonly LostPods[]
}

export type Trouble = PodTrouble & {
  /** Undefined: no pod could be made, so it concerns whatever image is wanted. */
  readonly images: readonly string[] | undefined
  /** 0 where no pod could be made. */
  readonly pods: number
}

export type LostPods = {
  readonly images: readonly string[]
  readonly count: number
  readonly examples: readonly LostPod[]
}
export type LostPod = { readonly key: string; readonly node: string }

/** Why an owner has fewer pods than it should. Images: of its template, where that is known. */
export type NoPod = PodTrouble & { readonly images: readonly string[] | undefined }

export type Diagnosis = PodTrouble

/** The worst crash of a container with this very image: the sidecars of its pod are not the image's fault. */
export const crashOf = (trace: Trace | undefined, image: string): Crash | undefined =>
  trace?.crashes.find(crash => sameImage(crash.image, image))

/** What is wrong with pods of this image: the weightiest of it, or undefined if nothing is known to be. */
export function diagnose(trace: Trace | undefined, image: string): Diagnosis | undefined {
  const crash = crashOf(trace, image)
  if (
    crash?.isLoop &&
    !trace?.troubles.some(each => each.reason === "ImagePullFailed" && concerns(each.images ?? [], image))
  )
    return { reason: "CrashLoop", message: crash.message, isTentative: false }
  const found = trace?.troubles.find(({ images }) => images === undefined || concerns(images, image))
  return found && { reason: found.reason, message: found.message, isTentative: found.isTentative }
}

/** Pods on lost nodes that may still run another image than this one. */
export function lostWithOther(trace: Trace | undefined, image: string): { count: number; examples: LostPod[] } {
  const others = trace?.lost.filter(({ images }) => !concerns(images, image)) ?? []
  return {
    count: others.reduce((sum, { count }) => sum + count, 0),
    examples: others.flatMap(({ examples }) => examples).slice(0, maxExamples),
  }
}

/** Adds up what is known of the pods of one object. The order in which they come does not matter. */
export function traceOf(
  pods: Iterable<readonly [key: string, pod: PodFacts]>,
  noPods: Iterable<NoPod>,
  isLostNode: (node: string) => boolean,
): Trace {
  const troubles = new Map<string, Trouble>()
  const lost = new Map<string, LostPods>()
  const crashes = new Map<string, Crash>()
  let unfinished = 0
  let steadySeconds = 0
  for (const [key, pod] of pods) {
    const { images, node, trouble } = pod
    if (!pod.isFinished) unfinished++
    // A terminating pod needs no diagnosis. On a lost node it still counts as lost, since it terminates for ever.
    if (trouble && !pod.isTerminating) add(troubles, { ...trouble, images, pods: 1 })
    if (pod.crash && !pod.isTerminating) addCrash(crashes, pod.crash)
    if (!pod.isFinished && !pod.isTerminating) steadySeconds = Math.max(steadySeconds, pod.steadySeconds)
    if (node !== "" && !pod.isFinished && isLostNode(node)) addLost(lost, images, { key, node })
  }
  for (const noPod of noPods) add(troubles, { ...noPod, pods: 0 })
  return {
    pods: unfinished,
    troubles: [...troubles.values()].sort(byWeight).slice(0, maxTroubles),
    crashes: crashes.size === 0 ? noCrashes : [...crashes.values()].sort(byBadness).slice(0, maxTroubles),
    steadyAt: steadySeconds * 1000,
    lost: [...lost.values()].sort(byImages).slice(0, maxTroubles),
  }
}

const noCrashes: readonly Crash[] = []
const idOf = ({ image, isLoop, isOver, message }: Crash) => `${isLoop} ${isOver} ${image} ${message}`

const maxTroubles = 8
const maxExamples = 10

/**
 * What the image itself does to its pods comes before what prevents the creation of pods: with a crash and a full quota
 * at once, more room would only be room for more crashes.
 */
const weights: readonly FailureReason[] = [
  "ImagePullFailed",
  "Unhealthy",
  "Unschedulable",
  "AdmissionDenied",
  "QuotaExceeded",
  "Forbidden",
]

const weightOf = ({ reason, isTentative }: PodTrouble) => (isTentative ? weights.length : weights.indexOf(reason))
const nameOf = (images: readonly string[] | undefined) => images?.join(" ") ?? ""
const byWeight = (a: Trouble, b: Trouble) => weightOf(a) - weightOf(b) || byImages(a, b)
const byImages = (a: Pick<Trouble, "images">, b: Pick<Trouble, "images">) => compare(nameOf(a.images), nameOf(b.images))
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function add(troubles: Map<string, Trouble>, trouble: Trouble): void {
  const id = `${weightOf(trouble)} ${trouble.images === undefined} ${nameOf(trouble.images)}`
  const before = troubles.get(id)
  const first = !before || compare(trouble.message, before.message) < 0 ? trouble : before
  troubles.set(id, { ...first, pods: (before?.pods ?? 0) + trouble.pods })
}

function addCrash(crashes: Map<string, Crash>, crash: Crash): void {
  const id = idOf(crash)
  if ((crashes.get(id)?.at ?? -1) < crash.at) crashes.set(id, crash)
}

function addLost(lost: Map<string, LostPods>, images: readonly string[], pod: LostPod): void {
  const id = nameOf(images)
  const before = lost.get(id)
  const examples = [...(before?.examples ?? []), pod].sort((a, b) => compare(a.key, b.key)).slice(0, maxExamples)
  lost.set(id, { images, count: (before?.count ?? 0) + 1, examples })
}

const concerns = (images: readonly string[], image: string) => images.some(each => sameImage(each, image))
