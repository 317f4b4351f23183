import { expect, test } from "vitest"
import { celValue, compile, matches } from "./cel.ts"

const integers = { type: "array", items: { type: "integer" } } as const

test("whole numbers are integers where the schema says so, and doubles where it says number", () => {
  expect(celValue([1, 2], integers)).toEqual([1n, 2n])
  expect(celValue({ a: 1 }, { properties: { a: { type: "number" } } })).toEqual({ a: 1 })
  expect(celValue({ a: 1 }, undefined)).toEqual({ a: 1n })
  expect(celValue({ a: 1 }, { additionalProperties: { type: "integer" } })).toEqual({ a: 1n })
})

test("nothing is inherited", () => {
  const self = celValue(JSON.parse('{"__proto__": {"a": 1}}'), undefined)
  expect(compile("has(self.a) || has(self.constructor)", ["self"])({ self })).toBe(false)
})

const expressions: Record<string, { self: unknown; is: unknown }> = {
  "self.isSorted()": { self: celValue([1, 5, 5, 9], integers), is: true },
  "self.map(x, x).isSorted()": { self: celValue([10, 9], integers), is: false },
  "self.sum() == 6": { self: celValue([1, 2, 3], integers), is: true },
  "self.filter(x, x > 5).sum() == 0": { self: celValue([1, 2, 3], integers), is: true },
  "self.matches('^[[][]]$')": { self: "[]", is: true }, // an empty class and an error in JavaScript's syntax
  "self.all(x, x.matches('(?i)^A+$'))": { self: ["aa", "AA"], is: true },
  "self.matches('a$')": { self: "a\n", is: false },
}
for (const [expression, { self, is }] of Object.entries(expressions))
  test(expression, () => expect(compile(expression, ["self"])({ self })).toBe(is))

test("a pattern that JavaScript would try for ever takes no time", () => {
  const started = performance.now()
  expect(compile("self.matches('^(a+)+$')", ["self"])({ self: `${"a".repeat(50_000)}!` })).toBe(false)
  expect(matches(`${"a".repeat(50_000)}!`, "(a|aa)+$")).toBe(false)
  expect(performance.now() - started).toBeLessThan(2000)
})

test("what is not CEL, or names what is not there, is refused when compiled", () => {
  expect(() => compile("self.size( >", ["self"])).toThrow()
  expect(() => compile("other == 1", ["self"])).toThrow("other")
  expect(() => compile("self.unheardOf()", ["self"])).toThrow("unheardOf")
})
