import fc from "fast-check"
import { expect, test } from "vitest"
import { Heap } from "./heap.ts"

test("items come out as sorting would order them, whatever is pushed between", () => {
  const numbers = fc.array(fc.integer({ min: 0, max: 20 }))
  fc.assert(
    fc.property(numbers, numbers, (early, late) => {
      const heap = new Heap<number>((a, b) => a < b)
      for (const number of early) heap.push(number)
      const before = early.length > 0 ? [heap.pop()!] : []
      for (const number of late) heap.push(number)
      const after: number[] = []
      while (heap.size > 0) after.push(heap.pop()!)
      const sorted = early.toSorted((a, b) => a - b)
      expect(before).toEqual(sorted.slice(0, 1))
      expect(after).toEqual([...sorted.slice(1), ...late].toSorted((a, b) => a - b))
    }),
  )
})

test("an empty heap has nothing first and nothing to pop, after a clear as before", () => {
  const heap = new Heap<number>((a, b) => a < b)
  expect([heap.first(), heap.pop(), heap.size]).toEqual([undefined, undefined, 0])
  heap.push(3)
  heap.clear()
  expect([heap.first(), heap.pop(), heap.size]).toEqual([undefined, undefined, 0])
})
