import { expect, test } from "vitest"
import { type Answer, type Bounds, judge, windowOf } from "./verdict.ts"

const range = (thresholdRange: NonNullable<Bounds["thresholdRange"]>): Bounds => ({ name: "latency", thresholdRange })
const one = (value: number): Answer => ({ ok: true, series: [{ labels: {}, value }] })

test("a value within its range is good, one outside is bad, and the bounds belong to it", () => {
  const metric = range({ min: 99, max: 100 })
  expect([99, 99.5, 100].map(value => judge(metric, one(value)).verdict)).toEqual(["Good", "Good", "Good"])
  expect(judge(metric, one(98.76543))).toEqual({ verdict: "Bad", value: 98.76543, why: "98.77 is below 99" })
  expect(judge(range({ max: 500 }), one(501))).toMatchObject({ verdict: "Bad", why: "501 is above 500" })
})

test("the deprecated threshold is the least success rate, and the most of anything else", () => {
  expect(judge({ name: "request-success-rate", threshold: 99 }, one(98)).verdict).toBe("Bad")
  expect(judge({ name: "request-success-rate", threshold: 99 }, one(100)).verdict).toBe("Good")
  expect(judge({ name: "request-duration", threshold: 500 }, one(501)).verdict).toBe("Bad")
  expect(judge({ name: "request-duration", threshold: 500, thresholdRange: { max: 600 } }, one(501)).verdict).toBe(
    "Good",
  )
})

test("without a range and a threshold the threshold is 0, as in Flagger", () => {
  expect(judge({ name: "errors" }, one(0)).verdict).toBe("Good")
  expect(judge({ name: "errors" }, one(0.01))).toMatchObject({ verdict: "Bad", why: "0.01 is above 0" })
  expect(judge({ name: "request-success-rate" }, one(50)).verdict).toBe("Good")
})

test("no series and NaN are no data, never a pass", () => {
  const metric = range({ max: 1 })
  expect(judge(metric, { ok: true, series: [] }).verdict).toBe("NoData")
  expect(judge(metric, one(Number.NaN)).verdict).toBe("NoData")
  expect(judge(range({}), one(Number.NaN)).verdict).toBe("NoData")
})

test("an infinite value, several series and a service that does not answer are errors", () => {
  const metric = range({ max: 1 })
  expect(judge(metric, one(Number.POSITIVE_INFINITY))).toEqual({ verdict: "Error", why: "the query gave +Inf" })
  expect(judge(metric, { ok: false, message: "no connection" })).toEqual({ verdict: "Error", why: "no connection" })
  const series = ["a", "b", "c"].map(pod => ({ labels: { job: "web", pod }, value: 0 }))
  expect(judge(metric, { ok: true, series })).toEqual({
    verdict: "Error",
    why: "the query found 3 series, which differ in pod: it must give one, as with sum()",
  })
})

test("no window reaches back before the present weight", () => {
  expect(windowOf(60_000, 15_900)).toBe(15_000)
  expect(windowOf(60_000, 300_000)).toBe(60_000)
  expect(windowOf(60_000, 0)).toBe(1000)
})
