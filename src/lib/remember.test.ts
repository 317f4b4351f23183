import { expect, test } from "vitest"
import { remember } from "./remember.ts"

test("the same text gives the same answer, made once, also when there is none", () => {
  const asked: string[] = []
  const lengthOf = remember(10, text => {
    asked.push(text)
    return text === "none" ? undefined : { length: text.length }
  })
  expect(lengthOf("a")).toBe(lengthOf("a"))
  expect([lengthOf("none"), lengthOf("none")]).toEqual([undefined, undefined])
  expect(asked).toEqual(["a", "none"])
})

test("it never remembers more than it may", () => {
  let made = 0
  const count = remember(3, () => ++made)
  for (const text of ["a", "b", "c", "c"]) count(text)
  expect(made).toBe(3)
  count("d")
  expect(count("a")).toBe(5)
})
