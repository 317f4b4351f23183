import fc from "fast-check"
import { expect, test } from "vitest"
import { isSame } from "./same.ts"

const cases: [unknown, unknown, boolean][] = [
  [{ a: 1, b: [1, { c: "x" }] }, { b: [1, { c: "x" }], a: 1 }, true],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: 1 }, { a: 1, b: null }, false],
  [{ a: [1, 2] }, { a: [2, 1] }, false],
  [[], {}, false],
  [null, undefined, false],
  [{ a: { b: 1 } }, { a: { b: 2 } }, false],
]
for (const [a, b, want] of cases)
  test(`${JSON.stringify(a)} and ${JSON.stringify(b)}: ${want}`, () => {
    expect(isSame(a, b)).toBe(want)
    expect(isSame(b, a)).toBe(want)
  })

test("agrees with JSON of sorted fields", () => {
  const sorted = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(sorted)
      : typeof value === "object" && value !== null
        ? Object.fromEntries(
            Object.entries(value)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([key, each]) => [key, sorted(each)]),
          )
        : value
  const small = fc.jsonValue({ maxDepth: 2, noUnicodeString: true })
  fc.assert(
    fc.property(small, small, (a, b) => {
      expect(isSame(a, b)).toBe(JSON.stringify(sorted(a)) === JSON.stringify(sorted(b)))
      expect(isSame(a, structuredClone(a))).toBe(true)
    }),
  )
})
