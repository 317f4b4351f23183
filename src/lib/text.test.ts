import { expect, test } from "vitest"
import { clip, counted, nameSome } from "./text.ts"

test("a number and its noun agree", () => {
  expect([0, 1, 2].map(count => counted(count, "pod"))).toEqual(["0 pods", "1 pod", "2 pods"])
})

test("a few names, and how many are left", () => {
  expect(nameSome(["a", "b"], 2)).toBe("a, b")
  expect(nameSome(["a", "b"], 5)).toBe("a, b and 3 more")
})

test("what is cut ends with an ellipsis and never in half a character", () => {
  expect(clip("four", 4)).toBe("four")
  expect(clip("fourteen", 4)).toBe("fou…")
  expect(clip("ab😀cd", 4)).toBe("ab\ufffd…")
})
