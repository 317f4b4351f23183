/** One scrape of a series. A stale marker says that the series was gone then. */
export type Sample = { readonly at: number; readonly value: number; readonly isStale?: boolean }

/**
 * The increase of a counter over a range, extrapolated to its edges as Prometheus does: to an edge that is nearer than
 * 1.1 intervals between samples, otherwise by half an interval, and never back beyond the time when it was zero.
 */
export function extrapolated(samples: readonly Sample[], start: number, end: number): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || samples.length < 2) return undefined
  let increase = last.value - first.value
  for (const [at, { value }] of samples.entries()) {
    const before = samples[at - 1]
    if (before && value < before.value) increase += before.value // the counter began again
  }
  const sampledMs = last.at - first.at
  const betweenMs = sampledMs / (samples.length - 1)
  const zeroMs = increase > 0 && first.value >= 0 ? sampledMs * (first.value / increase) : Number.POSITIVE_INFINITY
  const toStartMs = Math.min(first.at - start, zeroMs)
  const toEndMs = end - last.at
  const reach = (ms: number) => (ms < betweenMs * 1.1 ? ms : betweenMs / 2)
  return (increase * (sampledMs + reach(toStartMs) + reach(toEndMs))) / sampledMs
}

export type Bucket = { readonly upper: number; readonly count: number }

/** The quantile of a histogram, with a straight line within a bucket. */
export function quantileOf(quantile: number, given: readonly Bucket[]): number {
  if (Number.isNaN(quantile)) return Number.NaN
  if (quantile < 0) return Number.NEGATIVE_INFINITY
  if (quantile > 1) return Number.POSITIVE_INFINITY
  const buckets = monotonic(given.toSorted((a, b) => a.upper - b.upper))
  const last = buckets.at(-1)
  if (!last || last.upper !== Number.POSITIVE_INFINITY || buckets.length < 2 || last.count === 0) return Number.NaN
  const rank = quantile * last.count
  const at = buckets.findIndex(({ count }, index) => count >= rank || index === buckets.length - 1)
  const { upper, count } = buckets[at]!
  if (at === buckets.length - 1) return buckets.at(-2)!.upper
  if (at === 0 && upper <= 0) return upper
  const below = at === 0 ? { upper: 0, count: 0 } : buckets[at - 1]!
  return below.upper + (upper - below.upper) * ((rank - below.count) / (count - below.count))
}

/** Buckets with one bound are added up; a count that falls is raised, as scrapes at different times can make it. */
function monotonic(buckets: readonly Bucket[]): Bucket[] {
  const merged: Bucket[] = []
  for (const { upper, count } of buckets) {
    const last = merged.at(-1)
    if (last?.upper === upper) merged[merged.length - 1] = { upper, count: last.count + count }
    else merged.push({ upper, count })
  }
  let most = 0
  return merged.map(({ upper, count }) => {
    most = Math.max(most, count)
    return { upper, count: most }
  })
}
