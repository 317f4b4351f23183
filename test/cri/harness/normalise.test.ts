import { expect, test } from "vitest"
import { Names } from "./normalise.ts"

const id = "ab".repeat(32)
const other = "cd".repeat(32)

test("the same ID is the same word, another is another", () => {
  const names = new Names([])
  expect(names.lines("a", [id, other, id])).toEqual(["a[0]: ID1", "a[1]: ID2", "a[2]: ID1"])
  expect(names.lines("b", `sha256:${id}`)).toEqual(["b: DIGEST1"])
})

test("names of the run are replaced, also where they are part of a URL", () => {
  const names = new Names([["127.0.0.1:5000", "REGISTRY"]])
  expect(names.lines("of 127.0.0.1:5000", "http://127.0.0.1:5000/token?service=127.0.0.1%3A5000")).toEqual([
    "of REGISTRY: http://REGISTRY/token?service=REGISTRY",
  ])
})

test("one line for each field, in the order of the names; what is undefined is left out", () => {
  const names = new Names([])
  expect(names.lines("x", { b: "two\nlines\n", a: { c: 1 }, d: undefined, e: {}, f: [] })).toEqual([
    ...["x.a.c: 1", "x.b: two\\nlines\\n", "x.e: {}", "x.f: []"],
  ])
})
