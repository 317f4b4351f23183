import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createExpiring } from "./expiring.ts"

test("what is kept ends with its time", async () => {
  const clock = virtualClock()
  const kept = createExpiring<string>(clock, 10)
  kept.set("a", "value", 100)
  await clock.advance(99)
  expect(kept.get("a")).toEqual({ value: "value", leftMs: 1 })
  await clock.advance(1)
  expect(kept.get("a")).toBeUndefined()
})

test("no more is kept than there is room for, and the newest stay", () => {
  const kept = createExpiring<number>(virtualClock(), 2)
  for (const [value, key] of ["a", "b", "a", "c"].entries()) kept.set(key, value, 100)
  expect(["a", "b", "c"].map(key => kept.get(key)?.value)).toEqual([2, undefined, 3])
})
