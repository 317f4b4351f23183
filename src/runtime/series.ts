import { IndexedHeap } from "#lib/indexed-heap.ts"
import type { Instant } from "#lib/instant.ts"
import type { Labels, MetricFactory } from "./metrics.ts"
import { nameOf } from "./resource.ts"

type Declared = Readonly<Record<string, { type: "gauge" | "counter"; help: string; labels: readonly string[] }>>

type NameOf<D extends Declared, Type> = { [K in keyof D]: D[K]["type"] extends Type ? K : never }[keyof D] & string

/** The value of one gauge now. */
export type Sample<Name extends string = string> = { metric: Name; labels: Labels; value: number }

/**
 * Metrics whose series end with their object. Otherwise a scrape would show the last value of every object that ever
 * existed.
 */
export type Series<D extends Declared> = {
  /** Sets the samples that have changed, and removes the gauges of this object that are not among them. */
  publish(key: string, samples: readonly Sample<NameOf<D, "gauge">>[]): void
  /** Adds to a counter of an object. Adding 0 begins the series: a rate needs a first zero. */
  add(key: string, metric: NameOf<D, "counter">, labels: Labels, by?: number): void
  /** Whether anything has been published or counted of this object. */
  has(key: string): boolean
  /** The object is gone, and so are its series. */
  forget(key: string): void
}

export function seriesOf<D extends Declared>(factory: MetricFactory | undefined, declared: D): Series<D> {
  if (!factory) return { publish: () => {}, add: () => {}, has: () => true, forget: () => {} }
  const metrics = new Map(
    Object.entries(declared).map(([name, { type, help, labels }]) => [name, factory[type]({ name, help, labels })]),
  )
  const gauge = (name: string) => metrics.get(name) as ReturnType<MetricFactory["gauge"]>
  const counter = (name: string) => metrics.get(name) as ReturnType<MetricFactory["counter"]>
  const known = new Map<string, { gauges: Map<string, Sample>; counters: Map<string, Omit<Sample, "value">> }>()

  function of(key: string) {
    const series = known.get(key) ?? { gauges: new Map(), counters: new Map() }
    known.set(key, series)
    return series
  }

  return {
    publish(key, samples) {
      const { gauges } = of(key)
      const gone = new Map(gauges)
      for (const sample of samples) {
        const id = idOf(sample)
        gone.delete(id)
        if (gauges.get(id)?.value === sample.value) continue
        gauges.set(id, sample)
        gauge(sample.metric).set(sample.labels, sample.value)
      }
      for (const [id, { metric, labels }] of gone) {
        gauges.delete(id)
        gauge(metric).remove(labels)
      }
    },
    add(key, metric, labels, by = 1) {
      of(key).counters.set(idOf({ metric, labels }), { metric, labels })
      counter(metric).add(labels, by)
    },
    has: key => known.has(key),
    forget(key) {
      const series = known.get(key)
      if (!series) return
      known.delete(key)
      for (const { metric, labels } of series.gauges.values()) gauge(metric).remove(labels)
      for (const { metric, labels } of series.counters.values()) counter(metric).remove(labels)
    },
  }
}

/**
 * Gauges that are a sum over objects, without a series for each object: what one object adds to a sum is replaced at each
 * of its looks. A sum that no object adds to any more ends.
 */
export type Sums<D extends Declared> = {
  publish(key: string, parts: readonly Sample<NameOf<D, "gauge">>[]): void
  forget(key: string): void
}

export function sumsOf<D extends Declared>(factory: MetricFactory | undefined, declared: D): Sums<D> {
  const series = seriesOf(factory, declared)
  const partsOf = new Map<string, readonly Sample<NameOf<D, "gauge">>[]>()
  const sums = new Map<string, { parts: number; value: number }>()

  function add({ metric, labels, value }: Sample<NameOf<D, "gauge">>, sign: 1 | -1): void {
    const id = idOf({ metric, labels })
    const before = sums.get(id) ?? { parts: 0, value: 0 }
    const after = { parts: before.parts + sign, value: before.value + sign * value }
    if (after.parts === 0) {
      sums.delete(id)
      series.forget(id)
    } else {
      sums.set(id, after)
      series.publish(id, [{ metric, labels, value: after.value }])
    }
  }

  function publish(key: string, parts: readonly Sample<NameOf<D, "gauge">>[]): void {
    const before = partsOf.get(key) ?? []
    if (parts.length > 0) partsOf.set(key, parts)
    else partsOf.delete(key)
    // What is new comes first, so that a sum which only changes does not end on the way.
    for (const part of parts) add(part, 1)
    for (const part of before) add(part, -1)
  }

  return { publish, forget: key => publish(key, []) }
}

/** A gauge of a time, for each namespace the earliest of its objects. A series ends with the last of them. */
export type Earliest = { set(key: string, at: Instant): void; forget(key: string): void }

/** `more`: labels that all its series have. */
export function earliestOf(
  factory: MetricFactory | undefined,
  declared: Readonly<Record<string, Declared[string] & { type: "gauge" }>>,
  more: Labels = {},
): Earliest {
  const [metric = ""] = Object.keys(declared)
  const series = seriesOf(factory, declared)
  const heaps = new Map<string, IndexedHeap>()

  function change(key: string, at: Instant | undefined): void {
    const { namespace = "" } = nameOf(key)
    const heap = heaps.get(namespace) ?? new IndexedHeap()
    if (at === undefined) heap.delete(key)
    else heap.set(key, at)
    const first = heap.first()
    if (!first) {
      heaps.delete(namespace)
      series.forget(namespace)
      return
    }
    heaps.set(namespace, heap)
    series.publish(namespace, [{ metric, labels: { namespace, ...more }, value: first.rank / 1000 }])
  }

  return { set: change, forget: key => change(key, undefined) }
}

const idOf = ({ metric, labels }: Omit<Sample, "value">) => `${metric} ${Object.values(labels).join(" ")}`
