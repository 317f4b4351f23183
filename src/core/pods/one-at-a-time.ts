import type { Instant } from "#lib/instant.ts"
import { isSameVersion } from "../image/equivalent.ts"
import type { ImageRecord } from "../image/record.ts"
import type { PodMark } from "../in-place/marks.ts"

/**
 * Two parts of aim change the image of a running pod: updates in place, and the failover of a failed pull. Each leaves
 * its record on the pod in the write that changes the image, and each write is conditional on the pod that was seen. So
 * the record is enough for one to leave a pod to the other (decision 72).
 */

type Container = { readonly name: string; readonly image: string }

/** How long a failover has a pod to itself. After that a pull that fails again must not keep an update. */
const repairMs = 60_000

/**
 * Has an update in place given this container its image? If it has not started, and its workload is held, the update
 * works on it, and its image is not failed over. A copy of the workload that names the image shows the hold as well: both
 * are one write.
 */
export const isOfUpdate = (mark: PodMark | undefined, { name, image }: Container): boolean =>
  mark !== undefined && mark.failed === undefined && mark.to[name] === image

/** Until when an update in place leaves a pod to the failover that has just changed it; undefined where it need not. */
export function repairedUntil(
  failover: ImageRecord | undefined,
  containers: ReadonlyMap<string, { readonly image: string; readonly id: string }>,
  now: Instant,
): Instant | undefined {
  // A time in the future is not ours: the annotation belongs to the owner of the pod.
  if (!failover || failover.at > now + skewMs || failover.at + repairMs <= now) return undefined
  const isWaiting = [...containers.values()].some(({ image, id }) => image === failover.to && id === "")
  return isWaiting ? failover.at + repairMs : undefined
}

const skewMs = 60_000

export type Failover = Pick<ImageRecord, "was" | "to">

/**
 * The image that a container stands for. A record about an image that the container no longer has is an old one, and
 * does not count.
 */
export function standsFor(failover: Failover | undefined, { name, image }: Container): string {
  const was = failover?.was && Object.hasOwn(failover.was, name) ? failover.was[name] : undefined
  return was !== undefined && isSentTo(failover!, image) && isSameVersion(image, was) ? was : image
}

/** `to` is where the last container was sent. Where several were, the places of the others are not recorded. */
const isSentTo = ({ was = {}, to }: Failover, image: string) => image === to || Object.keys(was).length > 1
