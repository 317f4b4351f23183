import { expect, test } from "vitest"
import { roundOf } from "./rounds.ts"
import { aRun, canaryOf, minute, second, start } from "./test-sight.ts"

const analysis = { interval: "1m", threshold: 2, stepWeight: 20, maxWeight: 40 }
const at = (forMs: number) => new Date(start + forMs).toISOString().replace(".000Z", "Z")

test("a cold start: the first round waits for initialDelay, the others for the interval", () => {
  const slow = canaryOf({ analysis: { ...analysis, initialDelay: "5m" } })
  expect(roundOf(slow, aRun, start).dueAt).toBe(start + 5 * minute)
  expect(roundOf(slow, { ...aRun, checkedAt: at(5 * minute) }, start).dueAt).toBe(start + 6 * minute)
  expect(roundOf(canaryOf({ analysis }), aRun, start).dueAt).toBe(start + minute)
})

test("the time at a weight is counted from what the status says, whichever process looks", () => {
  const run = { ...aRun, weightSince: at(90 * second), checkedAt: at(80 * second) }
  expect(roundOf(canaryOf({ analysis }), run, start + 2 * minute)).toMatchObject({
    dueAt: start + 150 * second,
    atThisWeightMs: 30 * second,
  })
})

test("a clock that is behind the one that wrote the status waits longer, and never judges requests of before", () => {
  const run = { ...aRun, weightSince: at(10 * minute) }
  const round = roundOf(canaryOf({ analysis }), run, start)
  expect(round.dueAt).toBe(start + 11 * minute)
  expect(round.atThisWeightMs).toBe(0)
})
