/** How many pods of each revision express a weight where no router divides the requests. */
export type Ratio = {
  readonly target: number
  readonly source: number
  /** The share of the target's pods, in percent. */
  readonly weight: number
}

const ratioOf = (target: number, source: number): Ratio => ({
  target,
  source,
  weight: target + source === 0 ? 0 : (100 * target) / (target + source),
})

/**
 * The ratio nearest to a weight with `size` pods, or with one pod more where that may be. Between 0 and 100 both
 * revisions have a pod, so a single pod without another expresses no weight: undefined.
 */
export function ratioFor(weight: number, size: number, mayAddOne: boolean): Ratio | undefined {
  if (weight <= 0) return ratioOf(0, size)
  if (weight >= 100) return ratioOf(size, 0)
  const ratios = (mayAddOne ? [size, size + 1] : [size]).flatMap(total => {
    const share = (total * weight) / 100
    return [Math.floor(share), Math.ceil(share)]
      .map(target => Math.min(total - 1, Math.max(1, target)))
      .filter(target => target >= 1)
      .map(target => ratioOf(target, total - target))
  })
  // The first of equals has the fewest pods.
  return ratios.toSorted((a, b) => Math.abs(a.weight - weight) - Math.abs(b.weight - weight))[0]
}
