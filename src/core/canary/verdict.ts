/** What a metric service answered to a query for one number. */
export type Answer =
  | { readonly ok: true; readonly series: readonly Series[] }
  /** It did not answer, or not with numbers. */
  | { readonly ok: false; readonly message: string }

type Series = { readonly labels: Readonly<Record<string, string>>; readonly value: number }

/**
 * A bad value speaks against the new revision. No data and an error say nothing about it: both wait, each for its own
 * limit, and neither promotes.
 */
export type Verdict =
  | { readonly verdict: "Good"; readonly value: number }
  | { readonly verdict: "Bad"; readonly value?: number; readonly why: string }
  | { readonly verdict: "NoData" | "Error"; readonly why: string }

type Range = { readonly min?: number | undefined; readonly max?: number | undefined }

export type Bounds = {
  readonly name: string
  readonly thresholdRange?: Range | undefined
  /** Deprecated: the least success rate, and the most of every other metric. */
  readonly threshold?: number | undefined
}

export function judge(metric: Bounds, answer: Answer): Verdict {
  if (!answer.ok) return { verdict: "Error", why: answer.message }
  const [first, second] = answer.series
  if (!first) return { verdict: "NoData", why: "the query found no series" }
  if (second) return { verdict: "Error", why: tooMany(answer.series, [first, second]) }
  const { value } = first
  if (Number.isNaN(value)) return { verdict: "NoData", why: "the query gave NaN, as a share of no requests is" }
  if (!Number.isFinite(value)) return { verdict: "Error", why: `the query gave ${value > 0 ? "+Inf" : "-Inf"}` }
  const { min, max } = rangeOf(metric)
  if (min !== undefined && value < min) return { verdict: "Bad", value, why: `${shown(value)} is below ${min}` }
  if (max !== undefined && value > max) return { verdict: "Bad", value, why: `${shown(value)} is above ${max}` }
  return { verdict: "Good", value }
}

/** The one built-in metric whose threshold is the least value. */
const successRate = "request-success-rate"

/** Without a range and a threshold, the threshold is 0, as in Flagger: an error rate must then be 0, and not just any. */
export function rangeOf({ name, thresholdRange, threshold = 0 }: Bounds): Range {
  if (thresholdRange) return thresholdRange
  return name === successRate ? { min: threshold } : { max: threshold }
}

function tooMany(series: readonly Series[], [first, second]: readonly [Series, Series]): string {
  const names = new Set([...Object.keys(first.labels), ...Object.keys(second.labels)])
  const different = [...names].filter(name => first.labels[name] !== second.labels[name]).sort()
  const apart = different.length > 0 ? `, which differ in ${different.slice(0, 3).join(", ")}` : ""
  return `the query found ${series.length} series${apart}: it must give one, as with sum()`
}

const shown = (value: number) => String(Number(value.toPrecision(4)))

/**
 * The window of a query, in milliseconds: what the metric asks for, but never from before the present weight, when
 * other requests were answered. It grows with the time at this weight.
 */
export const windowOf = (askedMs: number, atThisWeightMs: number): number =>
  Math.min(askedMs, Math.max(1000, Math.floor(atThisWeightMs / 1000) * 1000))
