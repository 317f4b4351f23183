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
import { type Crash, isLooping } from "#core/pods/steady.ts"
import type { Instant } from "#lib/instant.ts"

/** A workload as far as it matters where its images come from. */
export type Workload = {
  readonly type: { readonly group: string; readonly kind: string } // in lower case
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  /** Its template may be changed at all: a Job's may not, and a pod has none. */
  readonly hasTemplate: boolean
  /** Changing the template makes new pods by itself; else the pods that are there stay as they are. */
  readonly replacesPods: boolean
  /** Its controller replaces pods of an older template once they run: those that were repaired must be of the new one. */
  readonly hasRevisions?: boolean | undefined
  /** What its pods are made from now; undefined until its controller has seen it. */
  readonly revision?: string | undefined
  readonly isGitOps: boolean
  /** Belongs to an object that would change it back. */
  readonly isOwned: boolean
  /** By which its pods are known at creation. */
  readonly matchLabels?: Readonly<Record<string, string>> | undefined
}

/** One container of a workload, and those of its pods that cannot pull it. */
export type Group = {
  readonly workload: Workload
  readonly container: string
  readonly isInit: boolean
  /** As the workload says it. */
  readonly image: string
  /** Those that hold the same images, in the order of the spec. */
  readonly repositories: readonly string[]
  /** What was last seen running under this image. */
  readonly digest: string | undefined
  /** Asked only where a template may be changed, or an incident may be over. */
  readonly pods: () => number
  readonly failing: readonly FailingPod[]
  /** Pods whose node holds the pull back (registryPullQPS): what they would pull is known, and no registry was asked. */
  readonly held: readonly WaitingPod[]
  /** Pods that we repaired, by what they say themselves; the last one. */
  readonly repaired?: Repaired | undefined
  /** Of the pods that we repaired: those that keep crashing with what they were sent, and what one of them says. */
  readonly crashes?: { readonly pods: number; readonly worst: Crash } | undefined
  /** The workload's own template, if it was us who wrote the image it has now. */
  readonly retargeted?: Repaired | undefined
  /** The server did not let us, and when to ask again. */
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
  /** What it was made from, where its workload names that. */
  readonly revision?: string | undefined
}
export type FailingPod = WaitingPod & { readonly failure: PullFailure }

/** What a repaired object tells of its repair: a process that died before it wrote the status left this behind. */
export type Repaired = {
  readonly from: string
  readonly to: string
  readonly reason: PullFailure
  readonly at: Instant
  readonly pods: number
  /** Of a workload: what its pods had been made from. */
  readonly revision?: string | undefined
}

/** What a registry said about an image, and when. */
export type Probe = { readonly at: Instant; readonly said: Resolution }

export type Repair = {
  do: "repair"
  pod: WaitingPod
  container: string
  isInit: boolean
  to: string
  reason: PullFailure
  /** It is then as if it had been made from this. */
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
  /** How the incident goes on; undefined: there is none, or it is over. */
  incident: Incident | undefined
  /** In a word and a sentence what is done or waited for. */
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
  /** What stands in the status about this container. */
  before: TargetAvailable | undefined
  probe(image: string): Probe | undefined
  now: Instant
}

export function digestIn(image: string): string | undefined {
  const parsed = parseImageReference(image)
  return parsed.ok ? parsed.reference.digest : undefined
}

export const isAt = ({ image }: WaitingPod, place: string) => sameSource(image, place)

/** However they are spelt. */
export const distinct = (repositories: readonly string[]) =>
  repositories.filter((each, index) => repositories.findIndex(other => sameSource(other, each)) === index)

/** What most of them fail with; of equally many, what comes first in this order. */
export function dominant(pods: readonly FailingPod[]): PullFailure {
  const counts = new Map<PullFailure, number>()
  for (const { failure } of pods) counts.set(failure, (counts.get(failure) ?? 0) + 1)
  const most = Math.max(...counts.values())
  return order.find(failure => counts.get(failure) === most) ?? "UnknownFailure"
}

/** What forbids a switch comes first. */
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

/** As long as anywhere else: a container that runs again has to go on for as long before it counts as well. */
const settleMs = 10_000

export const isCrashing = ({ crashes }: Pick<Group, "crashes">, now: Instant) =>
  crashes !== undefined && isLooping(crashes.worst, settleMs, now)

/** When time alone ends what is said of a crash. */
export const crashEndsAt = ({ crashes }: Pick<Group, "crashes">, now: Instant): Instant | undefined =>
  crashes?.worst.isOver && crashes.worst.at + settleMs > now ? crashes.worst.at + settleMs : undefined
