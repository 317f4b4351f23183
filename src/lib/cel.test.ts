import { expect, test } from "vitest"
import {
  celValue,
  chainsIn,
  compile,
  isMissingField,
  loopsIn,
  matches,
  mismatchIn,
  optional,
  syntaxErrorIn,
  typeOf,
} from "./cel.ts"

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
  "self.min() == 1 && self.max() == 3": { self: celValue([2, 1, 3], integers), is: true },
  "self.indexOf(2) == 1 && self.lastIndexOf(2) == 2 && self.indexOf(9) == -1": {
    self: celValue([1, 2, 2], integers),
    is: true,
  },
  "self.find('[0-9]+') == '12' && self.findAll('[0-9]+') == ['12', '3']": { self: "a12b3", is: true },
  "has(self[0].a) && !has(self[1].a) && self.all(x, has(x.b))": {
    self: celValue([{ a: 1, b: 1 }, { b: 2 }], undefined),
    is: true,
  },
  "quantity(self).isLessThan(quantity('1Gi')) && quantity(self).isGreaterThan(quantity('1M'))": {
    self: "1Mi",
    is: true,
  },
  "isQuantity(self) && quantity(self).add(quantity('1Gi')).compareTo(quantity('3Gi')) == 0": { self: "2Gi", is: true },
  "isQuantity(self)": { self: "two", is: false },
  "self.matches('a$')": { self: "a\n", is: false },
}
for (const [expression, { self, is }] of Object.entries(expressions))
  test(expression, () => expect(compile(expression, ["self"])({ self })).toBe(is))

const schema = {
  type: "object",
  properties: { i: { type: "integer" }, s: { type: "string" }, t: { type: "string", format: "date-time" } },
}
const mismatches: Record<string, ReturnType<typeof mismatchIn>> = {
  "self.i == 'x'": { operator: "==", at: 7, types: ["int", "string"] },
  "has(self.i) && (self.i) != self.s": { operator: "!=", at: 24, types: ["int", "string"] },
  "self.i == 1.0": { operator: "==", at: 7, types: ["int", "double"] },
  "self.i < 1.5": undefined,
  "self.i == 1 && self.s == 'x' && self.t < timestamp(self.s)": undefined,
  "self.i == self.unknown || self.i == null || self.t == 'x'": undefined,
  "['x'].exists(self, self == 1)": undefined,
}
for (const [expression, mismatch] of Object.entries(mismatches))
  test(`what is compared in ${expression}`, () => expect(mismatchIn(expression, schema)).toEqual(mismatch))

test("where an expression is broken", () => {
  expect(syntaxErrorIn("self.i >")).toEqual({ at: 8, summary: "Unexpected token: EOF" })
  expect(syntaxErrorIn("self.i > 1")).toBeUndefined()
})

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

test("the chains of fields an expression reads", () => {
  const chains = chainsIn("has(self.a.b) && self.list.all(x, x.key == oldSelf.c)")
  expect(chains.find(([first]) => first?.name === "oldSelf")).toEqual([
    { name: "oldSelf", at: 43 },
    { name: "c", at: 51 },
  ])
  expect(chains.map(chain => chain.map(({ name }) => name))).toEqual(
    expect.arrayContaining([
      ["self", "a", "b"],
      ["self", "list"],
      ["x", "key"],
      ["oldSelf", "c"],
    ]),
  )
})

test("what an expression gives, where it can be told", () => {
  expect(typeOf("1 + 1", [])).toBe("int")
  expect(typeOf("self.a == 'x'", ["self"])).toBe("bool")
  expect(typeOf("self.a", ["self"])).toBe("dyn")
})

const loops: Record<string, number> = {
  "self.a == 1 && has(self.b)": 0,
  "self.a.all(x, x > 1) && self.b.exists(x, x > 1)": 1,
  "self.a.filter(x, x > 1).map(x, x * 2).all(x, x < 9)": 1,
  "self.a in self.b": 1,
  "self.a.all(x, x.b.exists(y, y in self.c))": 3,
}
for (const [expression, count] of Object.entries(loops))
  test(`${count} loops inside one another in ${expression}`, () => expect(loopsIn(expression)).toBe(count))

test("what is missing is told from what is wrong", () => {
  const errorOf = (expression: string, self: unknown) => {
    try {
      return compile(expression, ["self"])({ self: celValue(self, undefined) })
    } catch (error) {
      return isMissingField(error) ? "missing" : "wrong"
    }
  }
  expect(errorOf("self.a.b == 1", {})).toBe("missing")
  expect(errorOf("self.a[0] == 1", { a: [] })).toBe("missing")
  expect(errorOf("self.a > 1", { a: "x" })).toBe("wrong")
  expect(errorOf("1 / self.a == 1", { a: 0 })).toBe("wrong")
})

test("a variable that may be absent", () => {
  const expression = compile("old.orValue(5) == 5", ["old"])
  expect(expression({ old: optional(undefined) })).toBe(true)
  expect(expression({ old: optional(6n) })).toBe(false)
})

test("fields with names that CEL cannot write", () => {
  const schema = { properties: { "a-b": { type: "integer" }, in: {}, "x.y/z": {} } }
  const self = celValue({ "a-b": 1, in: "i", "x.y/z": "s" }, schema)
  expect(
    compile("self.a__dash__b == 1 && self.__in__ == 'i' && self.x__dot__y__slash__z == 's'", ["self"])({ self }),
  ).toBe(true)
})
