import fc from "fast-check"
import { expect, test } from "vitest"
import { MultiMap } from "./multi-map.ts"

test("behaves as a map of sets does", () => {
  const step = fc.record({ adds: fc.boolean(), name: fc.constantFrom("a", "b"), value: fc.nat(24).map(String) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const map = new MultiMap()
      const plain = new Map<string, Set<string>>()
      for (const { adds, name, value } of steps) {
        const set = plain.get(name) ?? new Set()
        plain.set(name, set)
        if (adds) {
          map.add(name, value)
          set.add(value)
        } else {
          map.delete(name, value)
          set.delete(value)
        }
        expect([...map.of(name)].sort()).toEqual([...set].sort())
        expect(map.has(name)).toBe(set.size > 0)
      }
      expect([...map.names()].sort()).toEqual(
        [...plain]
          .filter(([, set]) => set.size > 0)
          .map(([name]) => name)
          .sort(),
      )
    }),
  )
})
