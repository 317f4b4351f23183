import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type Pace, readyAt, refill, spend } from "./pace.ts"

/** A worker that always has another object of so many pods, and looks as soon as one more is allowed. */
function disturb(perSecond: number, ms: number, pods: (n: number) => number = () => 1) {
  const done: { at: number; pods: number }[] = []
  let pace: Pace | undefined
  for (let now = 0; now < ms; now = Math.max(now + 1, readyAt(pace, perSecond))) {
    pace = refill(pace, perSecond, now)
    while (pace.pods >= 1 && done.length < 10_000) {
      const next = pods(done.length)
      pace = spend(pace, next)
      done.push({ at: now, pods: next })
    }
  }
  return done
}
const inSecondFrom = (done: ReturnType<typeof disturb>, from: number) =>
  done.filter(({ at }) => at >= from && at < from + 1000).reduce((sum, { pods }) => sum + pods, 0)

describe("a pace", () => {
  test("of ten: in five seconds no second sees more than ten pods, and fifty are done", () => {
    const done = disturb(10, 5000)
    for (const { at } of done) expect(inSecondFrom(done, at)).toBeLessThanOrEqual(10)
    expect(done).toHaveLength(50)
  })

  test("of any number lets no second see more, wherever it begins and whatever was before", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), perSecond => {
        const done = disturb(perSecond, 3000)
        for (const { at } of done) expect(inSecondFrom(done, at)).toBeLessThanOrEqual(perSecond)
        // Nearly all of it is used: what is kept back is what may come at once.
        expect(done.length).toBeGreaterThan(2.6 * perSecond)
      }),
      { numRuns: 30 },
    )
  })

  test("an object of fifty pods goes when its turn is, and the next one waits until they are paid for", () => {
    const done = disturb(10, 6000, n => (n === 0 ? 50 : 1))
    expect(done.slice(0, 3).map(({ at }) => at)).toEqual([0, 5000, 5100])
  })

  test("0 is no limit", () => {
    const pace = refill(undefined, 0, 0)
    expect(spend(pace, 1e9).pods).toBe(Number.POSITIVE_INFINITY)
    expect(readyAt(pace, 0)).toBe(0)
  })

  test("a clock that goes back earns nothing", () => {
    expect(refill({ pods: 0, at: 1000 }, 10, 500).pods).toBe(0)
  })
})
