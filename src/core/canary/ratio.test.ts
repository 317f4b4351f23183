import { expect, test } from "vitest"
import { isStandaloneRatio, ratioFor, ratioMost, ratioProblem } from "./ratio.ts"
import { canaryOf } from "./test-canary.ts"

const pods = (weight: number, source: number) => ratioFor(weight, source).target

test("the target gets the pods that give its share beside a source that keeps its own", () => {
  expect([10, 20, 30, 40, 50].map(weight => pods(weight, 9))).toEqual([1, 2, 4, 6, 9])
  expect([25, 40, 50].map(weight => pods(weight, 3))).toEqual([1, 2, 3])
  expect(ratioFor(25, 3).weight).toBe(25)
})

test("a weight has at least a pod, and never more pods than the source", () => {
  expect(pods(1, 3)).toBe(1)
  expect([60, 80, 99].map(weight => pods(weight, 4))).toEqual([4, 4, 4])
  expect(ratioFor(99, 4).weight).toBe(ratioMost)
})

test("at 0 there is none, and at 100 the target has its full size", () => {
  expect([0, 100].map(weight => ratioFor(weight, 3))).toEqual([
    { target: 0, weight: 0 },
    { target: 3, weight: 100 },
  ])
  expect(ratioFor(50, 0)).toEqual({ target: 0, weight: 0 })
})

test("no other number of pods is nearer", () => {
  for (let source = 1; source <= 12; source++)
    for (let weight = 1; weight < 100; weight++) {
      const found = ratioFor(weight, source)
      for (let target = 1; target <= source; target++)
        expect(Math.abs(found.weight - weight)).toBeLessThanOrEqual(
          Math.abs((100 * target) / (source + target) - weight) + 1e-9,
        )
    }
})

test("the ratio counts where nothing else divides requests, and weights rise", () => {
  expect(isStandaloneRatio(canaryOf())).toBe(true)
  expect(isStandaloneRatio(canaryOf({ analysis: { iterations: 3 } }))).toBe(false)
  expect(isStandaloneRatio(canaryOf({ service: { gatewayRefs: [{ name: "public" }] } }))).toBe(false)
})

const problem = (stepWeights: number[], source: number) =>
  ratioProblem(canaryOf({ analysis: { stepWeights } }), source)?.message

test("a weight that so few pods cannot express is told, with the nearest", () => {
  expect(problem([10, 20, 30, 40, 50], 9)).toBeUndefined()
  expect(problem([25, 40, 50, 100], 3)).toBeUndefined()
  expect(problem([50], 1)).toBeUndefined()
  expect(problem([10, 50], 3)).toContain("the nearest is 25 % with 1 pod: write that in stepWeights, or 6 pods")
  expect(problem([10, 50], 6)).toBeUndefined()
  expect(problem([20], 1)).toContain("the nearest is 50 % with 1 pod")
  expect(problem([10], 0)).toBeUndefined()
})

test("a weight above 50 is told before promotion, and 100 is the promotion's own", () => {
  expect(problem([50, 60], 100)).toContain("above 50 is not possible")
  expect(problem([50, 60], 100)).toContain("the nearest is 50 % with 100 pods")
  expect(problem([50, 100], 100)).toBeUndefined()
  expect(ratioProblem(canaryOf({ analysis: { stepWeight: 20, maxWeight: 60 } }), 100)).toMatchObject({
    reason: "WeightNotPossible",
    field: "analysis.stepWeight",
  })
})
