import { expect, test } from "vitest"
import { memoriesOf } from "./memories.ts"

test("what is remembered stays with its object, and an object made anew under its name starts afresh", () => {
  const memories = memoriesOf(() => ({ count: 0 }))
  memories.of("shop/a", "1").count = 7
  expect(memories.of("shop/a", "1").count).toBe(7)
  expect(memories.of("shop/a", "2").count).toBe(0)
  expect([...memories.entries()]).toEqual([["shop/a", { count: 0 }]])
  expect(memories.drop("shop/a")).toEqual({ count: 0 })
  expect(memories.drop("shop/a")).toBeUndefined()
})
