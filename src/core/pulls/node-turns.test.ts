import fc from "fast-check"
import { expect, test } from "vitest"
import { type Candidate, nextPulls } from "./node-turns.ts"

const image = (id: string, fields: Partial<Candidate> = {}): Candidate => ({
  id,
  namespace: "a",
  priority: 0,
  askedAt: 0,
  ...fields,
})
const ids = (list: readonly Candidate[]) => list.map(({ id }) => id)

test("the highest priority goes first, then the oldest", () => {
  const list = [image("new", { askedAt: 2 }), image("old", { askedAt: 1 }), image("high", { priority: 1, askedAt: 3 })]
  expect(ids(nextPulls(list, [], 2))).toEqual(["high", "old"])
})

test("a namespace that pulls already lets another go first, whatever its priority", () => {
  const list = [image("a2", { priority: 1000 }), image("b1", { namespace: "b" })]
  expect(ids(nextPulls(list, [{ namespace: "a" }], 2))).toEqual(["b1"])
})

test("S16: a node never pulls more than it may, and no turn is left over while an image waits", () => {
  const candidates = fc.array(fc.record({ namespace: fc.constantFrom("a", "b", "c"), priority: fc.nat(3) }))
  fc.assert(
    fc.property(candidates, fc.nat(4), fc.nat(4), (some, busy, most) => {
      const list = some.map((each, index) => image(`${index}`, each))
      const inFlight = Array.from({ length: busy }, () => ({ namespace: "a" }))
      const chosen = nextPulls(list, inFlight, most)
      expect(chosen.length).toBe(Math.min(list.length, Math.max(0, most - busy)))
      expect(new Set(ids(chosen)).size).toBe(chosen.length)
    }),
  )
})
