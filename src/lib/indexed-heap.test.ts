import fc from "fast-check"
import { expect, test } from "vitest"
import { IndexedHeap } from "./indexed-heap.ts"

const key = fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h")
const step = fc.oneof(
  fc.record({ do: fc.constant("set" as const), key, rank: fc.integer({ min: 0, max: 5 }) }),
  fc.record({ do: fc.constant("delete" as const), key }),
)

test("a heap that is set and deleted at random equals a sorted list", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const heap = new IndexedHeap()
      const model = new Map<string, number>()
      for (const step of steps) {
        if (step.do === "set") {
          heap.set(step.key, step.rank)
          model.set(step.key, step.rank)
        } else expect(heap.delete(step.key)).toBe(model.delete(step.key))
        const sorted = [...model].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([name]) => name)
        expect(heap.firstKeys(100)).toEqual(sorted)
        expect(heap.firstKeys(2)).toEqual(sorted.slice(0, 2))
        expect(heap.first()?.key).toBe(sorted[0])
        expect(heap.size).toBe(model.size)
      }
    }),
  )
})
