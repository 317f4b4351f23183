import { expect, test } from "vitest"
import { beginning, leastIntervals, nextOf, type Position, promotionAfter, type Steps, weightsOf } from "./steps.ts"

/** Every position from the beginning to promotion, as `weight/iterations`, with `m` where requests are mirrored. */
function wayOf(steps: Steps, from: Position = beginning): string[] {
  const way: string[] = []
  for (let at: Position | "promote" = from; at !== "promote"; at = nextOf(steps, at)) {
    way.push(`${at.weight}/${at.iterations}${at.isMirrored ? "m" : ""}`)
    if (way.length > 200) throw new Error("it does not end")
  }
  return way.slice(1)
}
const weightsOfWay = (steps: Steps, weight = 0) =>
  wayOf(steps, { ...beginning, weight }).map(at => Number.parseInt(at, 10))

test("weights rise by the step, and the last step ends at the maximum", () => {
  expect(weightsOfWay({ stepWeight: 10, maxWeight: 50 })).toEqual([10, 20, 30, 40, 50])
  expect(weightsOfWay({ stepWeight: 20, maxWeight: 50 })).toEqual([20, 40, 50])
  expect(weightsOfWay({ stepWeight: 40 })).toEqual([40, 80, 100])
  expect(weightsOfWay({ stepWeight: 60, maxWeight: 50 })).toEqual([50])
})

test("a list of weights is followed, and one that was edited is not jumped over", () => {
  expect(weightsOfWay({ stepWeights: [1, 5, 80] })).toEqual([1, 5, 80])
  expect(weightsOfWay({ stepWeights: [10, 20, 60, 80] }, 25)).toEqual([60, 80])
  expect(nextOf({ stepWeights: [10, 20] }, { ...beginning, weight: 50 })).toBe("promote")
})

test("mirrored requests come before the first weight", () => {
  expect(wayOf({ stepWeight: 50, mirror: true })).toEqual(["0/0m", "50/0", "100/0"])
})

test("matched requests go to the new revision for every iteration", () => {
  expect(wayOf({ iterations: 3, match: [{}] })).toEqual(["100/1", "100/2", "100/3"])
})

test("blue and green: iterations without traffic, or with mirrored traffic, then one with all of it", () => {
  expect(wayOf({ iterations: 2 })).toEqual(["0/1", "0/2", "100/3"])
  expect(wayOf({ iterations: 2, mirror: true })).toEqual(["0/1m", "0/2m", "100/3"])
  expect(wayOf({ iterations: 1, stepWeight: 10 })).toEqual(["0/1", "100/2"])
})

test("the least number of intervals is the number of positions, whatever the strategy", () => {
  const ways: Steps[] = [
    { stepWeight: 20, maxWeight: 50 },
    { stepWeights: [1, 50], mirror: true },
    { iterations: 4 },
    { iterations: 4, mirror: true },
    { iterations: 4, match: [{}] },
  ]
  for (const steps of ways) expect(leastIntervals(steps), JSON.stringify(steps)).toBe(wayOf(steps).length)
})

test("weights never fall, never pass the maximum, and end there", () => {
  for (let stepWeight = 1; stepWeight <= 100; stepWeight++)
    for (const maxWeight of [1, 33, 50, 99, 100]) {
      const weights = weightsOf({ stepWeight, maxWeight })
      expect(weights.at(-1)).toBe(maxWeight)
      expect(weights.every((weight, index) => weight > (weights[index - 1] ?? 0))).toBe(true)
    }
})

test("a promotion is one jump, or goes on in steps to 100", () => {
  expect(promotionAfter({}, 50)).toBe(100)
  expect([50, 80].map(weight => promotionAfter({ stepWeightPromotion: 30 }, weight))).toEqual([80, 100])
})
