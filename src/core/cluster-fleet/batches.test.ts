import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { batchLimitMs, batchSize, failuresAllowed, planBatches } from "./batches.ts"

const five = ["a", "b", "c", "d", "e"]
const cases: Record<string, { given: Parameters<typeof planBatches>[0]; gives: string[] }> = {
  "canaries alone and first, in their order": {
    given: { clusters: five, canaries: ["d", "b"], maxConcurrency: 2 },
    gives: ["d!", "b!", "a,c", "e"],
  },
  "a share rounds down to at least one": {
    given: { clusters: five, canaries: [], maxConcurrency: "10%" },
    gives: five,
  },
  "a number above all is all": { given: { clusters: five, canaries: [], maxConcurrency: 9 }, gives: [five.join()] },
  "a cluster that has everything is in no batch": {
    given: { clusters: five, canaries: ["a"], maxConcurrency: 3, isUpToDate: name => name === "a" || name === "c" },
    gives: ["b,d,e"],
  },
  "no cluster gives no batch": { given: { clusters: [], canaries: [], maxConcurrency: 1 }, gives: [] },
}

describe("batches", () => {
  for (const [name, { given, gives }] of Object.entries(cases))
    test(name, () =>
      expect(planBatches(given).map(({ clusters, isCanary }) => clusters.join() + (isCanary ? "!" : ""))).toEqual(
        gives,
      ),
    )

  test("every cluster is in one batch, none is larger than allowed, and canaries come first", () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,4}$/), { maxLength: 40 })
    const sizes = fc.oneof(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 100 }).map(n => `${n}%`),
    )
    fc.assert(
      fc.property(names, fc.array(fc.nat(39), { maxLength: 5 }), sizes, (clusters, picks, maxConcurrency) => {
        const canaries = [...new Set(picks.flatMap(at => clusters[at] ?? []))]
        const batches = planBatches({ clusters, canaries, maxConcurrency })
        expect(batches.flatMap(batch => batch.clusters).sort()).toEqual([...clusters].sort())
        const size = batchSize(maxConcurrency, clusters.length)
        for (const { clusters: each, isCanary } of batches) expect(each.length).toBeLessThanOrEqual(isCanary ? 1 : size)
        expect(batches.slice(0, canaries.length).map(({ clusters: each }) => each[0])).toEqual(canaries)
        expect(batches.slice(canaries.length).some(({ isCanary }) => isCanary)).toBe(false)
      }),
    )
  })
})

describe("the time of a batch", () => {
  test("is an equal share of what is left", () =>
    expect(batchLimitMs({ timeoutMs: 240, workedBeforeMs: 40, batchesLeft: 4 })).toBe(50))
  test("of the last one is all that is left", () =>
    expect(batchLimitMs({ timeoutMs: 240, workedBeforeMs: 200, batchesLeft: 1 })).toBe(40))
  test("is none when the run's is over", () =>
    expect(batchLimitMs({ timeoutMs: 240, workedBeforeMs: 300, batchesLeft: 2 })).toBe(0))
})

test("a budget rounds up, and none is no limit", () => {
  expect(failuresAllowed("2%", 40)).toBe(1)
  expect(failuresAllowed(0, 40)).toBe(0)
  expect(failuresAllowed(undefined, 40)).toBeUndefined()
})
