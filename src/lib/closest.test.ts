import fc from "fast-check"
import { expect, test } from "vitest"
import { closest, editDistance } from "./closest.ts"

const commands = ["get", "status", "wait", "grant", "manifests", "completion", "controller"]
const cases: Record<string, string | undefined> = {
  stauts: "status",
  grnat: "grant",
  manifest: "manifests",
  contoller: "controller",
  comp: "completion",
  GET: "get",
  delete: undefined,
  x: undefined,
}
for (const [word, meant] of Object.entries(cases))
  test(`${word} means ${meant ?? "nothing we know"}`, () => expect(closest(word, commands)).toBe(meant))

test("the distance is symmetric, zero for equal words only, and never above the longer word", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (left, right) => {
      const distance = editDistance(left, right)
      expect(editDistance(right, left)).toBe(distance)
      expect(distance === 0).toBe(left === right)
      expect(distance).toBeLessThanOrEqual(Math.max(left.length, right.length))
    }),
  )
})
