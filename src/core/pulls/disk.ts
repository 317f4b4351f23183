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
  const percent = Math.ceil(((sizeBytes - freeBytes + moreBytes) / sizeBytes) * 100)
  if (percent <= thresholdPercent) return undefined
  const more = moreBytes > 0 ? ` and ${inUnits(moreBytes)} more to come` : ""
  return `${inUnits(freeBytes)} of ${inUnits(sizeBytes)} are free${more}: ${percent} % used, and the kubelet removes images above ${thresholdPercent} %`
}

const inUnits = (bytes: number) =>
  bytes < 2 ** 30 ? `${Math.round(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`
