import fc from "fast-check"
import { expect, test } from "vitest"
import { decodeMessage, encodeMessage, type MessageTable } from "./protobuf.ts"

const table: MessageTable = {
  All: {
    1: ["text", "string"],
    2: ["small", "int32"],
    3: ["count", "uint32"],
    4: ["long", "int64"],
    5: ["size", "uint64"],
    6: ["flag", "bool"],
    7: ["raw", "bytes"],
    8: ["words", "string", "list"],
    9: ["labels", "string", "map"],
    20: ["inner", "Inner"],
    21: ["inners", "Inner", "list"],
  },
  Inner: { 1: ["name", "string"], 16: ["at", "int64"] },
}

const inner = fc.record({ name: fc.string(), at: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) })
const all = fc.record({
  text: fc.string({ unit: "binary" }),
  small: fc.integer(),
  count: fc.nat(),
  long: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  size: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  flag: fc.boolean(),
  raw: fc.uint8Array().map(bytes => Buffer.from(bytes)),
  words: fc.array(fc.string()),
  labels: fc.dictionary(fc.string(), fc.string(), { noNullPrototype: true }),
  inner: fc.option(inner, { nil: undefined }),
  inners: fc.array(inner),
})

test("what was encoded is decoded", () => {
  fc.assert(
    fc.property(all, message => {
      expect(decodeMessage(table, "All", encodeMessage(table, "All", message))).toEqual(message)
    }),
  )
})

test("the bytes are protobuf's own", () => {
  // The two examples of protobuf's documentation of its encoding.
  expect(encodeMessage(table, "All", { small: 150 }).toString("hex")).toBe("109601")
  expect(encodeMessage(table, "Inner", { name: "testing" }).toString("hex")).toBe("0a0774657374696e67")
  expect(encodeMessage(table, "All", { small: -2 }).toString("hex")).toBe("10feffffffffffffffff01")
})

test("a field that is not in the table is skipped", () => {
  const wider: MessageTable = { Inner: { ...table.Inner, 9: ["more", "string"] } }
  const bytes = encodeMessage(wider, "Inner", { name: "a", more: "b", at: 7n })
  expect(decodeMessage(table, "Inner", bytes)).toEqual({ name: "a", at: 7n })
})

test("bytes that end early are refused", () => {
  const bytes = encodeMessage(table, "Inner", { name: "testing" })
  expect(() => decodeMessage(table, "Inner", bytes.subarray(0, 5))).toThrow("unexpected EOF")
  expect(() => decodeMessage(table, "Inner", Buffer.from([0x0b]))).toThrow("illegal wireType 3")
})
