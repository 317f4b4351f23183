import { expect, test } from "vitest"
import type { Labels } from "../traffic/index.ts"
import { evaluate, type StoredSeries } from "./evaluate.ts"
import { extrapolated, quantileOf } from "./functions.ts"
import { parse } from "./parse.ts"

/** A counter scraped every ten seconds, from 0 on. */
const counter = (labels: Labels, ...values: number[]): StoredSeries => ({
  labels,
  samples: values.map((value, index) => ({ at: index * 10_000, value })),
})
const rq = (code: string, cluster: string, ...values: number[]) => counter({ __name__: "rq", code, cluster }, ...values)
const bucket = (le: string, ...values: number[]) => counter({ __name__: "time_bucket", le, cluster: "web" }, ...values)

const series = [
  rq("200", "web", 0, 90, 180, 270, 360, 450, 540),
  rq("500", "web", 0, 10, 20, 30, 40, 50, 60),
  rq("200", "shop", 5, 15, 25, 35, 45, 55, 65),
  bucket("0.1", 0, 50, 100, 150, 200, 250, 300),
  bucket("0.5", 0, 100, 200, 300, 400, 500, 600),
  bucket("+Inf", 0, 100, 200, 300, 400, 500, 600),
  counter({ __name__: "restarted" }, 100, 110, 5, 15, 25, 35, 45),
]

/** The one value at 60 s; a list where there are several. */
function value(query: string, now = 60_000): unknown {
  const result = evaluate(parse(query), { series, now })
  if (result.is === "scalar") return result.value
  const values = result.elements.map(each => each.value)
  return values.length === 1 ? values[0] : values
}

const queries: Record<string, unknown> = {
  'sum(rate(rq{cluster="web"}[1m]))': 10,
  'sum(rate(rq{cluster="web",code!~"5.*"}[1m])) / sum(rate(rq{cluster="web"}[1m])) * 100': 90,
  '100 - sum(increase(rq{code=~"5..",cluster="web"}[30s]))': 70,
  "sum(rq) by (cluster)": [600, 65],
  "sum without (code, cluster) (rq)": 665,
  "histogram_quantile(0.99, sum(rate(time_bucket[1m])) by (le))": 0.492,
  "histogram_quantile(0.5, sum(rate(time_bucket[1m])) by (le)) * 1000": 100,
  'sum(rate(rq{cluster="gone"}[1m])) or vector(0)': 0,
  'sum(rq{cluster="gone"})': [],
  'rq{code="500"} > 50': 60,
  'rq{code="500"} > 100': [],
  'rq{code="500"} > bool 100': 0,
  'rq{code="500"} offset 30s': 30,
  'rq{code="500"} / ignoring(code) rq{cluster="web",code="200"}': 60 / 540,
  'sum(rq{cluster!="web"})': 65,
  "-(2 ^ 3 + 4) / 2": -6,
  "scalar(sum(rq)) + 1": 666,
  "count(rq) and vector(1)": 3,
  "increase(restarted[1m])": 55 + 0, // 10 before the restart, then 5 and 40
  'max_over_time(rq{code="500"}[20s])': 60,
  '{__name__="rq",code="500"}': 60,
}
for (const [query, wanted] of Object.entries(queries))
  test(query, () => {
    const found = value(query)
    if (typeof wanted === "number") expect(found).toBeCloseTo(wanted, 9)
    else expect(found).toEqual(wanted)
  })

const refused = ["sum(", "rate(rq)", "rq[1m]", "no_such_function(rq)", "1 > 2", "rq / on(cluster) rq", 'rq{a=~"("}']
for (const query of refused) test(`${query} is refused`, () => expect(() => value(query)).toThrow())

test("an instant vector has no samples older than five minutes, and none of a series that is over", () => {
  expect(value('rq{code="500"}', 355_000)).toBe(60)
  expect(value('rq{code="500"}', 365_000)).toEqual([])
  const samples = [
    { at: 0, value: 1 },
    { at: 10_000, value: Number.NaN, isStale: true },
  ]
  const over = [{ labels: { __name__: "m" }, samples }]
  expect(evaluate(parse("m"), { series: over, now: 5000 })).toMatchObject({ elements: [{ value: 1 }] })
  expect(evaluate(parse("m"), { series: over, now: 15_000 })).toMatchObject({ elements: [] })
})

test("an increase reaches to an edge that is near, by half an interval otherwise, and never below zero", () => {
  const samples = [20, 30, 40].map(seconds => ({ at: seconds * 1000, value: seconds * 10 }))
  expect(extrapolated(samples, 15_000, 45_000)).toBeCloseTo(300)
  expect(extrapolated(samples, 0, 60_000)).toBeCloseTo(300)
  expect(
    extrapolated(
      [
        { at: 5000, value: 0 },
        { at: 10_000, value: 10 },
      ],
      0,
      10_000,
    ),
  ).toBeCloseTo(10)
  expect(extrapolated(samples.slice(0, 1), 0, 60_000)).toBeUndefined()
})

test("a quantile above the last bound is that bound, and nothing counted has none", () => {
  const buckets = [
    { upper: 1, count: 5 },
    { upper: Number.POSITIVE_INFINITY, count: 10 },
  ]
  expect(quantileOf(0.99, buckets)).toBe(1)
  expect(quantileOf(0.25, buckets)).toBe(0.5)
  expect(
    quantileOf(
      0.5,
      buckets.map(each => ({ ...each, count: 0 })),
    ),
  ).toBeNaN()
  expect(quantileOf(0.5, buckets.slice(0, 1))).toBeNaN()
})
