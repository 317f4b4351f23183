import { inUnits } from "#lib/bytes.ts"

/** The file system that holds the images of a node. */
export type Disk = { readonly sizeBytes: number; readonly freeBytes: number }

/**
 * Why so many more bytes do not fit, undefined where they do: above the kubelet's high threshold, images are removed
 * again, also the one that was just pulled.
 */
export function diskProblem(
  { sizeBytes, freeBytes }: Disk,
  moreBytes: number,
  thresholdPercent: number,
): string | undefined {
  if (sizeBytes <= 0) return undefined
  const percent = percentOf(sizeBytes - freeBytes + moreBytes, sizeBytes)
  if (percent <= thresholdPercent) return undefined
  const more = moreBytes > 0 ? ` and ${inUnits(moreBytes)} more to come` : ""
  return `${inUnits(freeBytes)} of ${inUnits(sizeBytes)} are free${more}: ${percent} % used, and the kubelet removes images above ${thresholdPercent} %`
}

/** The distance between the kubelet's two thresholds, unless they are set. */
const marginPercent = 5

/**
 * Why the kubelet may soon remove an image that no container uses; undefined where the disk has room. It begins above
 * its high threshold, and from 100 % on it never does.
 */
export function collectionRisk({ sizeBytes, freeBytes }: Disk, thresholdPercent: number): string | undefined {
  if (sizeBytes <= 0 || thresholdPercent >= 100) return undefined
  const percent = percentOf(sizeBytes - freeBytes, sizeBytes)
  if (percent <= thresholdPercent - marginPercent) return undefined
  return `no container uses it, and ${percent} % of the disk are used: above ${thresholdPercent} % the kubelet removes such images`
}

const percentOf = (bytes: number, sizeBytes: number) => Math.ceil((bytes / sizeBytes) * 100)
