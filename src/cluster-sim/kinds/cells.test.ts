import { expect, test } from "vitest"
import { formatLabels, humanDuration, selectorText, since } from "./cells.ts"

const seconds: Record<number, string> = {
  [-5]: "<invalid>", [-1]: "0s", 0: "0s", 119: "119s", 120: "2m", 190: "3m10s", 599: "9m59s", 600: "10m", 10799: "179m",
  10800: "3h", 11160: "3h6m", 28800: "8h", 172799: "47h", 172800: "2d", 180000: "2d2h", 691200: "8d",
  63072000: "2y", 63158400: "2y1d", 315360000: "10y",
} // biome-ignore format: a table
for (const [length, text] of Object.entries(seconds))
  test(`${length} s is ${text}`, () => expect(humanDuration(Number(length) * 1000)).toBe(text))

test("a missing time is unknown", () => expect(since(undefined, 0)).toBe("<unknown>"))

test("labels and selectors are sorted by key", () => {
  expect(formatLabels({ b: "2", a: "1" })).toBe("a=1,b=2")
  expect(formatLabels(undefined)).toBe("<none>")
  expect(selectorText({ matchLabels: { b: "1" }, matchExpressions: [{ key: "a", operator: "DoesNotExist" }] })).toBe(
    "!a,b=1",
  )
})
