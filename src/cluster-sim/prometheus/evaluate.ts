import type { Labels } from "../traffic/index.ts"
import { extrapolated, quantileOf, type Sample } from "./functions.ts"
import { type Expr, type Matching, QueryError, type Selector } from "./parse.ts"

export type StoredSeries = { readonly labels: Labels; readonly samples: readonly Sample[] }
export type Element = { readonly labels: Labels; readonly value: number }
export type Value = { readonly is: "scalar"; readonly value: number } | Vector
type Vector = { readonly is: "vector"; readonly elements: readonly Element[] }

/** As Prometheus' default: an instant vector has the newest sample of this time. */
const lookbackMs = 300_000

export type Data = { readonly series: readonly StoredSeries[]; readonly now: number }

/** The value of a query at an instant. Throws a `QueryError` for what is not understood here. */
export function evaluate(expr: Expr, data: Data): Value {
  switch (expr.is) {
    case "number":
      return { is: "scalar", value: expr.value }
    case "selector":
      return instant(expr.selector, data)
    case "negative":
      return mapped(evaluate(expr.of, data), value => -value)
    case "aggregate":
      return aggregate(expr, vectorOf(evaluate(expr.of, data)))
    case "call":
      return call(expr, data)
    case "binary":
      return binary(expr, evaluate(expr.left, data), evaluate(expr.right, data))
  }
}

const vector = (elements: readonly Element[]): Vector => ({ is: "vector", elements })

function vectorOf(value: Value): readonly Element[] {
  if (value.is === "scalar") throw new QueryError("expected a vector, got a scalar")
  return value.elements
}

function numberIn(value: Value): number {
  if (value.is === "vector") throw new QueryError("expected a scalar, got a vector")
  return value.value
}

const mapped = (value: Value, change: (value: number) => number): Value =>
  value.is === "scalar"
    ? { ...value, value: change(value.value) }
    : vector(value.elements.map(each => ({ labels: unnamed(each.labels), value: change(each.value) })))

function unnamed({ __name__: _, ...labels }: Labels): Labels {
  return labels
}

function* selected({ matchers }: Selector, { series }: Data): Generator<StoredSeries> {
  for (const each of series)
    if (matchers.every(({ label, is }) => is(Object.hasOwn(each.labels, label) ? each.labels[label]! : ""))) yield each
}

function instant(selector: Selector, data: Data): Value {
  if (selector.rangeMs !== undefined) throw new QueryError("a range vector stands in a function here")
  const now = data.now - selector.offsetMs
  const elements: Element[] = []
  for (const { labels, samples } of selected(selector, data)) {
    const newest = samples.findLast(({ at }) => at <= now)
    if (newest && !newest.isStale && newest.at > now - lookbackMs) elements.push({ labels, value: newest.value })
  }
  return vector(elements)
}

/** By series: what a function makes of the samples in the range. */
function overRange(
  expr: Expr | undefined,
  data: Data,
  of: (samples: readonly Sample[], start: number, end: number) => number | undefined,
): Value {
  if (expr?.is !== "selector" || expr.selector.rangeMs === undefined) throw new QueryError("expected a range vector")
  const { selector } = expr
  const end = data.now - selector.offsetMs
  const start = end - expr.selector.rangeMs
  const elements: Element[] = []
  for (const { labels, samples } of selected(selector, data)) {
    const inside = samples.filter(({ at, isStale }) => at >= start && at <= end && !isStale)
    const value = inside.length > 0 ? of(inside, start, end) : undefined
    if (value !== undefined) elements.push({ labels: unnamed(labels), value })
  }
  return vector(elements)
}

const overTime: Record<string, (values: readonly number[]) => number> = {
  sum_over_time: sum,
  avg_over_time: values => sum(values) / values.length,
  min_over_time: values => Math.min(...values),
  max_over_time: values => Math.max(...values),
  count_over_time: values => values.length,
}

function call({ name, args }: Expr & { is: "call" }, data: Data): Value {
  const [first, second] = args
  const need = (expr: Expr | undefined): Value => {
    if (!expr) throw new QueryError(`${name} needs another argument`)
    return evaluate(expr, data)
  }
  const made = Object.hasOwn(overTime, name) ? overTime[name] : undefined
  if (made) return overRange(first, data, samples => made(samples.map(({ value }) => value)))
  switch (name) {
    case "rate":
      return overRange(first, data, (samples, start, end) => {
        const increase = extrapolated(samples, start, end)
        return increase === undefined ? undefined : (increase * 1000) / (end - start)
      })
    case "increase":
      return overRange(first, data, extrapolated)
    case "vector":
      return vector([{ labels: {}, value: numberIn(need(first)) }])
    case "scalar": {
      const elements = vectorOf(need(first))
      return { is: "scalar", value: elements.length === 1 ? elements[0]!.value : Number.NaN }
    }
    case "time":
      return { is: "scalar", value: data.now / 1000 }
    case "abs":
      return mapped(need(first), Math.abs)
    case "histogram_quantile":
      return quantiles(numberIn(need(first)), vectorOf(need(second)))
    default:
      throw new QueryError(`the function ${name} is not understood here`)
  }
}

function quantiles(quantile: number, elements: readonly Element[]): Value {
  const groups = grouped(elements, ({ labels }) => without(labels, ["le"]))
  return vector(
    groups.map(({ labels, members }) => {
      const buckets = members.flatMap(({ labels: { le }, value }) =>
        le === undefined ? [] : [{ upper: le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le), count: value }],
      )
      return { labels, value: quantileOf(quantile, buckets) }
    }),
  )
}

const without = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(Object.entries(unnamed(labels)).filter(([name]) => !names.includes(name)))
const only = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => names.includes(name)))

export const keyOf = (labels: Labels): string =>
  JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))

function grouped(elements: readonly Element[], labelsOf: (element: Element) => Labels) {
  const groups = new Map<string, { labels: Labels; members: Element[] }>()
  for (const element of elements) {
    const labels = labelsOf(element)
    const group = groups.get(keyOf(labels)) ?? { labels, members: [] }
    groups.set(keyOf(labels), group)
    group.members.push(element)
  }
  return [...groups.values()]
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

const aggregations: Record<string, (values: readonly number[]) => number> = {
  sum,
  avg: values => sum(values) / values.length,
  min: values => Math.min(...values),
  max: values => Math.max(...values),
  count: values => values.length,
}

function aggregate({ op, by, labels: names }: Expr & { is: "aggregate" }, elements: readonly Element[]): Value {
  const over = Object.hasOwn(aggregations, op) ? aggregations[op] : undefined
  if (!over) throw new QueryError(`the aggregation ${op} is not understood here`)
  const groups = grouped(elements, ({ labels }) => (by ? only(labels, names) : without(labels, names)))
  return vector(groups.map(({ labels, members }) => ({ labels, value: over(members.map(({ value }) => value)) })))
}

const arithmetic: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "%": (a, b) => a % b,
  "^": (a, b) => a ** b,
}
const comparisons: Record<string, (a: number, b: number) => boolean> = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
}

type Binary = Expr & { is: "binary" }

function binary(expr: Binary, left: Value, right: Value): Value {
  const { op, matching } = expr
  if (["or", "and", "unless"].includes(op)) return sets(op, matching, vectorOf(left), vectorOf(right))
  if (left.is === "scalar" && right.is === "scalar") {
    const compare = comparisons[op]
    if (compare && !expr.isBool) throw new QueryError("comparisons between scalars must use bool")
    const value = compare ? Number(compare(left.value, right.value)) : arithmetic[op]!(left.value, right.value)
    return { is: "scalar", value }
  }
  if (left.is === "scalar")
    return vector(vectorOf(right).flatMap(each => combined(expr, each, left.value, each.value, each.value)))
  if (right.is === "scalar")
    return vector(left.elements.flatMap(each => combined(expr, each, each.value, right.value, each.value)))
  const others = new Map(right.elements.map(each => [matchKey(each, matching), each]))
  if (others.size < right.elements.length) throw new QueryError("many-to-many matching is not allowed")
  return vector(
    left.elements.flatMap(each => {
      const other = others.get(matchKey(each, matching))
      return other ? combined(expr, each, each.value, other.value, each.value) : []
    }),
  )
}

/** One element of the result: computed, compared with `bool`, or kept where the comparison holds. */
function combined({ op, isBool, matching }: Binary, { labels }: Element, a: number, b: number, own: number): Element[] {
  const kept = matching.on ? only(labels, matching.labels) : without(labels, matching.labels)
  const compare = comparisons[op]
  if (!compare) return [{ labels: kept, value: arithmetic[op]!(a, b) }]
  if (isBool) return [{ labels: kept, value: Number(compare(a, b)) }]
  return compare(a, b) ? [{ labels, value: own }] : []
}

const matchKey = ({ labels }: Element, { on, labels: names }: Matching): string =>
  keyOf(on ? only(labels, names) : without(labels, names))

function sets(op: string, matching: Matching, left: readonly Element[], right: readonly Element[]): Value {
  const keys = (elements: readonly Element[]) => new Set(elements.map(each => matchKey(each, matching)))
  if (op === "or") {
    const known = keys(left)
    return vector([...left, ...right.filter(each => !known.has(matchKey(each, matching)))])
  }
  const known = keys(right)
  return vector(left.filter(each => known.has(matchKey(each, matching)) === (op === "and")))
}
