import type { Instant } from "#lib/instant.ts"
import type { ImageRecord } from "../image/record.ts"
import { sameImage } from "../image/reference.ts"
import type { InPlaceFacts } from "../in-place/own-hold.ts"

/** One object of the fleet, reduced to what a rollout decides by. A hundred thousand of them are held at once. */
export type Member = {
  readonly resourceVersion: string
  readonly uid: string
  readonly namespace: string // "" if cluster-scoped
  readonly labels: Readonly<Record<string, string>>
  readonly createdAt: Instant
  readonly isDeleting: boolean
  /** As it stands in the spec; "" if none was ever given. Where paths differ, the first one given: ask `hasImage`. */
  readonly image: string
  /** The image at each path, in their order, only where they are not all the same. */
  readonly images?: readonly string[] | undefined
  /** `manuallySpecifiedImage`: its owner keeps the image, and we never write it. */
  readonly isUnmanaged: boolean
  /** `failureHaltsUpdate`: if it fails, no object after it is touched. */
  readonly haltsOnFailure: boolean
  /** Every pod runs the spec, according to a status of this very generation. */
  readonly isUpToDate: boolean
  /** Since when it is not up to date: as it reports, or since a spec change that its status does not cover yet. */
  readonly unwellSince?: Instant | undefined
  /** Since when it is up to date, where it reports that. */
  readonly wellSince?: Instant | undefined
  /** How long its own controller waits before it calls a pod available. */
  readonly minReadyMs?: number | undefined
  /** Was available at least once. */
  readonly isDeployed: boolean
  readonly decision: ImageRecord | undefined
  /** Pods a stamp disturbs, where the object itself has the number: Deployment, StatefulSet and DaemonSet. */
  readonly replicas?: number | undefined
  /** The container to stamp is an init container. */
  readonly isInitContainer?: boolean | undefined
  /** Its image cannot be read or written: never stamped. */
  readonly problem?: string | undefined
  /** Why its health could not be determined; it is not up to date then. */
  readonly healthProblem?: string | undefined
  /** The field manager that gave it another image than our last decision did. */
  readonly contestedBy?: string | undefined
  /** A workload that can be updated in place: what its next stamp has to know. */
  readonly inPlace?: InPlaceFacts | undefined
  /** Made by a Canary for one of its runs: no ServiceImage has it. */
  readonly isOfRun?: boolean
}

/** Does the object have this image in every place? */
export function hasImage({ image, images }: Pick<Member, "image" | "images">, wanted: string): boolean {
  return images ? images.every(each => sameImage(each, wanted)) : sameImage(image, wanted)
}
