import type {
  Incident,
  Policy,
  PullFailure,
  Reason,
  TargetAvailable,
} from "#api/v1alpha1/alternateimagesource/index.ts"
import { sameSource } from "#core/image/equivalent.ts"
import { parseImageReference } from "#core/image/reference.ts"
import type { Resolution } from "#core/image/resolution.ts"
import type { PodMark } from "#core/in-place/marks.ts"
import type { HoldFacts } from "#core/in-place/own-hold.ts"
import { type Crash, isLooping } from "#core/pods/steady.ts"
import type { Instant } from "#lib/instant.ts"

/** The parts of a workload that matter for the sources of its images. */
export type Workload = {
  readonly type: { readonly group: string; readonly kind: string } // in lower case
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  /** Its template may be changed at all: a Job's may not, and a pod has none. */
  readonly hasTemplate: boolean
  /** A change of the template replaces the pods; otherwise existing pods stay as they are. */
  readonly replacesPods: boolean
  /** Its controller replaces pods of an older template once they run: repaired pods must belong to the new one. */
  readonly hasRevisions?: boolean | undefined
  /** The revision from which its pods are made now; undefined until its controller has seen the template. */
  readonly revision?: string | undefined
  readonly isGitOps: boolean
  /** Belongs to an object that would change it back. */
  readonly isOwned: boolean
  /** An update in place works on it. */
  readonly isUpdated?: boolean | undefined
  /** It asks for updates in place. */
  readonly inPlace?: HoldFacts | undefined
  /** The labels by which its pods are known at creation. */
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
}

/** One container of a workload, and those of its pods that cannot pull it. */
export type Group = {
  readonly workload: Workload
  readonly container: string
  readonly isInit: boolean
  /** As the workload names it. */
  readonly image: string
  /** Those that hold the same images, in the order of the spec. */
  readonly repositories: readonly string[]
  /** The digest that was last seen running under this image. */
  readonly digest: string | undefined
  /** Called only where a template may be changed, or an incident may be over. */
  readonly pods: () => number
  readonly failing: readonly FailingPod[]
  /** Pods whose node holds the pull back (registryPullQPS): their image is known, and no registry was asked. */
  readonly held: readonly WaitingPod[]
  /** The last repair, as the repaired pods record it. */
  readonly repaired?: Repaired | undefined
  /** Repaired pods that keep crashing with their new image: how many, and the worst crash. */
  readonly crashes?: { readonly pods: number; readonly worst: Crash } | undefined
  /** The change of the workload's template, if we wrote the image that it has now. */
  readonly retargeted?: Repaired | undefined
  /** The server refused the write, and when to try again. */
  readonly refusal?: { readonly reason: "Forbidden" | "Refused"; readonly retryAt: Instant } | undefined
}

/** A pod whose container has never started. */
export type WaitingPod = {
  readonly key: string
  readonly uid: string
  readonly resourceVersion: string
  readonly image: string
  readonly since: Instant
  readonly node: string
  /** It pulls even where its node has the image. */
  readonly pullsAlways: boolean
  /** The revision that it was made from, where its workload has revisions. */
  readonly revision?: string | undefined
  /** The last update in place of it. */
  readonly updated?: PodMark | undefined
}
export type FailingPod = WaitingPod & { readonly failure: PullFailure }

/** The record of a repair on its object: a process that died before it wrote the status left it behind. */
export type Repaired = {
  /** What most of the pods had before. */
  readonly from: string
  /** For pods: everything they had before, and how many had it. */
  readonly left?: ReadonlyMap<string, number>
  readonly to: string
  readonly reason: PullFailure
  readonly at: Instant
  readonly pods: number
  /** For a workload: the revision from which its pods had been made. */
  readonly revision?: string | undefined
}

/** What a registry answered about an image, and when. */
export type Probe = { readonly at: Instant; readonly said: Resolution }

export type Repair = {
  do: "repair"
  pod: WaitingPod
  container: string
  isInit: boolean
  to: string
  reason: PullFailure
  /** The pod then counts as made from this revision. */
  revision?: string | undefined
}
export type Retarget = {
  do: "retarget"
  workload: Workload
  container: string
  isInit: boolean
  from: string
  to: string
  reason: PullFailure
}

export type Decision = {
  group: Group
  /** The incident after this decision; undefined if there is none, or it is over. */
  incident: Incident | undefined
  /** What is done or waited for, in a word and a sentence. */
  reason: Reason
  message: string
  repairs: readonly Repair[]
  retarget?: Retarget | undefined
  /** To be recorded if at least one of these writes is accepted. */
  step?: { oldImage: string; newImage: string; reason: PullFailure | "SwitchedBack"; repository: string } | undefined
  /** Images that a registry is to be asked about. */
  asks: readonly string[]
  lookAgainAt?: Instant | undefined
}

export type Circumstances = {
  policy: Policy
  /** The status of this container so far. */
  before: TargetAvailable | undefined
  probe(image: string): Probe | undefined
  now: Instant
}

export function digestIn(image: string): string | undefined {
  const parsed = parseImageReference(image)
  return parsed.ok ? parsed.reference.digest : undefined
}

export const isAt = ({ image }: WaitingPod, place: string) => sameSource(image, place)

/** Without repositories that are the same in another spelling. */
export const distinct = (repositories: readonly string[]) =>
  repositories.filter((each, index) => repositories.findIndex(other => sameSource(other, each)) === index)

/** The failure that most of the pods have; of equally many, the first in this order. */
export function dominant(pods: readonly FailingPod[]): PullFailure {
  const counts = countsOf(pods.map(({ failure }) => failure))
  const most = Math.max(...counts.values())
  return order.find(failure => counts.get(failure) === most) ?? "UnknownFailure"
}

/** The image that most of the pods have. Of two it is the first. */
export function commonImage(pods: readonly Pick<FailingPod, "image">[]): string {
  const counts = countsOf(pods.map(({ image }) => image))
  const most = Math.max(...counts.values())
  return [...counts.keys()].find(image => counts.get(image) === most)!
}

function countsOf<Word>(words: readonly Word[]): Map<Word, number> {
  const counts = new Map<Word, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** Failures that forbid a switch come first. */
const order: readonly PullFailure[] = [
  "SignatureRejected",
  "Denied",
  "RateLimited",
  "NotFound",
  "NoPlatform",
  "TLS",
  "Unreachable",
  "Timeout",
  "DiskFull",
  "UnknownFailure",
]

/** The same time as elsewhere: a container that runs again must run for this long before it counts as healthy. */
const settleMs = 10_000

export const isCrashing = ({ crashes }: Pick<Group, "crashes">, now: Instant) =>
  crashes !== undefined && isLooping(crashes.worst, settleMs, now)

/** When a reported crash ends by the passing of time alone. */
export const crashEndsAt = ({ crashes }: Pick<Group, "crashes">, now: Instant): Instant | undefined =>
  crashes?.worst.isOver && crashes.worst.at + settleMs > now ? crashes.worst.at + settleMs : undefined
