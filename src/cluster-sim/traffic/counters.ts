/** Labels of a series. The name is the label `__name__`. */
export type Labels = Readonly<Record<string, string>>

/** What is scraped together. A target that is gone has no series any more. */
export type Target = { readonly labels: Labels }

/** One series: `labels` is the same object at every reading. */
export type Reading = { readonly labels: Labels; readonly value: number }

/** The counters of all targets, as their `/metrics` would show them. */
export type Counters = {
  add(target: Target, name: string, labels: Labels): void
  observe(target: Target, name: string, labels: Labels, value: number, bounds: readonly number[]): void
  /** The target is gone, with its series. */
  drop(target: Target): void
  readings(): IterableIterator<Reading>
}

type Series = { labels: Labels; value: number }
/** Counted by bucket, and added up when it is read: a request costs one step, however many buckets there are. */
type Histogram = { bounds: readonly number[]; counts: number[]; buckets: Labels[]; sum: Series; count: Series }
type Own = { counters: Map<string, Series>; histograms: Map<string, Histogram> }

export function createCounters(): Counters {
  const targets = new Map<Target, Own>()

  function ownOf(target: Target): Own {
    const own = targets.get(target) ?? { counters: new Map(), histograms: new Map() }
    targets.set(target, own)
    return own
  }
  const keyOf = (name: string, labels: Labels) => `${name} ${Object.values(labels).join(" ")}`
  const named = (target: Target, name: string, labels: Labels): Labels => ({
    __name__: name,
    ...labels,
    ...target.labels,
  })

  function histogramOf(target: Target, name: string, labels: Labels, bounds: readonly number[]): Histogram {
    const edges = [...bounds.map(String), "+Inf"]
    return {
      bounds,
      counts: edges.map(() => 0),
      buckets: edges.map(le => named(target, `${name}_bucket`, { ...labels, le })),
      sum: { labels: named(target, `${name}_sum`, labels), value: 0 },
      count: { labels: named(target, `${name}_count`, labels), value: 0 },
    }
  }

  return {
    add(target, name, labels) {
      const { counters } = ownOf(target)
      const key = keyOf(name, labels)
      const series = counters.get(key) ?? { labels: named(target, name, labels), value: 0 }
      counters.set(key, series)
      series.value++
    },
    observe(target, name, labels, value, bounds) {
      const { histograms } = ownOf(target)
      const key = keyOf(name, labels)
      const histogram = histograms.get(key) ?? histogramOf(target, name, labels, bounds)
      histograms.set(key, histogram)
      const at = bounds.findIndex(bound => value <= bound)
      histogram.counts[at < 0 ? bounds.length : at]!++
      histogram.sum.value += value
      histogram.count.value++
    },
    drop: target => void targets.delete(target),
    *readings() {
      for (const { counters, histograms } of targets.values()) {
        yield* counters.values()
        for (const { counts, buckets, sum, count } of histograms.values()) {
          let value = 0
          for (const [at, labels] of buckets.entries()) {
            value += counts[at]!
            yield { labels, value }
          }
          yield sum
          yield count
        }
      }
    },
  }
}
