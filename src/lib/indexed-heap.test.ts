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
        expect(heap.firstItems(100)).toEqual(sorted)
        expect(heap.firstItems(2)).toEqual(sorted.slice(0, 2))
        expect(heap.first()?.item).toBe(sorted[0])
        expect(heap.size).toBe(model.size)
      }
    }),
  )
})

test("items that keep their position themselves may be in one of several heaps at a time", () => {
  type Item = { name: string; at: number }
  const positions = { get: (item: Item) => item.at, set: (item: Item, at: number) => (item.at = at), delete() {} }
  const moves = fc.record({ key, rank: fc.integer({ min: 0, max: 5 }), to: fc.constantFrom(0, 1, undefined) })
  fc.assert(
    fc.property(fc.array(moves, { maxLength: 60 }), moves => {
      const items = new Map<string, Item>()
      const heaps = [0, 1].map(() => new IndexedHeap<Item>({ nameOf: item => item.name, positions }))
      const model = new Map<string, { heap: number; rank: number }>()
      for (const { key, rank, to } of moves) {
        const item = items.get(key) ?? { name: key, at: -1 }
        items.set(key, item)
        expect(heaps.map(heap => heap.delete(item))).toEqual([0, 1].map(heap => model.get(key)?.heap === heap))
        model.delete(key)
        if (to !== undefined) {
          heaps[to]!.set(item, rank)
          model.set(key, { heap: to, rank })
        }
        for (const [index, heap] of heaps.entries()) {
          const sorted = [...model]
            .filter(([, at]) => at.heap === index)
            .sort(([a, x], [b, y]) => x.rank - y.rank || (a < b ? -1 : 1))
          expect(heap.firstItems(100).map(({ name }) => name)).toEqual(sorted.map(([name]) => name))
          expect(heap.has(item)).toBe(to === index)
        }
      }
    }),
  )
})
