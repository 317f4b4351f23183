import { expect, test } from "vitest"
import { type Check, isStalled, type Limits, nothingCounted, outcomeOf, type Tally } from "./tally.ts"

const limits: Limits = { threshold: 2, errorLimit: 3, noData: "Hold", deadlineMs: 600_000 }
const good: Check = { name: "rate", verdict: "Good", value: 100 }
const bad: Check = { name: "rate", verdict: "Bad", value: 90, why: "90 is below 99" }
const none: Check = { name: "rate", verdict: "NoData", why: "no series" }
const error: Check = { name: "rate", verdict: "Error", why: "no connection" }
const yes: Check = { name: "load", verdict: "Yes" }
const no: Check = { name: "load", verdict: "No", why: "503" }

/** Plays rounds, ten seconds apart, and returns what each one led to. */
function played(rounds: Check[][], with_: Partial<Limits> = {}): string[] {
  let tally: Tally = nothingCounted
  return rounds.map((checks, index) => {
    const outcome = outcomeOf(checks, { ...limits, ...with_ }, tally, index * 10_000)
    tally = outcome.tally
    return [outcome.next, outcome.reason].filter(Boolean).join(" ")
  })
}

test("everything good goes on", () => {
  expect(played([[good, yes], []])).toEqual(["goOn", "goOn"])
})

test("bad rounds count, a good one between them takes none back, and the last one fails", () => {
  expect(played([[bad], [good], [bad]])).toEqual(["hold BadMetric", "goOn", "fail BadMetric"])
  expect(played([[no], [no]])).toEqual(["hold HookSaidNo", "fail HookSaidNo"])
})

test("a round counts once, however many of its checks are bad", () => {
  expect(outcomeOf([bad, bad, no], limits, nothingCounted, 0).tally.failedChecks).toBe(1)
})

test("no data holds until the deadline, from the first round without", () => {
  const deadline = { deadlineMs: 20_000 }
  expect(played([[none], [none], [none]], deadline)).toEqual(["hold NoData", "hold NoData", "fail NoData"])
  expect(played([[none], [good], [none]], deadline)).toEqual(["hold NoData", "goOn", "hold NoData"])
})

test("no data is bad or good only where the user says so", () => {
  expect(played([[none], [none]], { noData: "Fail" })).toEqual(["hold BadMetric", "fail BadMetric"])
  expect(played([[none]], { noData: "Pass" })).toEqual(["goOn"])
})

test("errors hold for as long as they last, and a person is called after some", () => {
  expect(played(Array.from({ length: 50 }, () => [error]))).toEqual(Array(50).fill("hold MetricError"))
  expect(isStalled({ ...nothingCounted, errors: 2 }, limits)).toBe(false)
  expect(isStalled({ ...nothingCounted, errors: 3 }, limits)).toBe(true)
  expect(outcomeOf([good], limits, { ...nothingCounted, errors: 3 }, 0).tally.errors).toBe(0)
})

test("what is bad weighs more than what could not be asked", () => {
  expect(outcomeOf([error, none, bad], limits, nothingCounted, 0)).toMatchObject({
    reason: "BadMetric",
    why: "rate: 90 is below 99",
  })
})
