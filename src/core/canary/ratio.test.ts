import { expect, test } from "vitest"
import { ratioFor } from "./ratio.ts"

const pods = (...[weight, size, mayAddOne]: Parameters<typeof ratioFor>) => {
  const ratio = ratioFor(weight, size, mayAddOne)
  return ratio && `${ratio.target}+${ratio.source}`
}

test("the nearest ratio is taken, with one pod more only where that is nearer", () => {
  expect(pods(20, 5, false)).toBe("1+4")
  expect(pods(20, 4, false)).toBe("1+3")
  expect(pods(20, 4, true)).toBe("1+4")
  expect(pods(50, 4, true)).toBe("2+2")
  expect(pods(34, 3, true)).toBe("1+2")
})

test("between 0 and 100 both revisions have a pod", () => {
  expect(pods(1, 3, false)).toBe("1+2")
  expect(pods(99, 3, false)).toBe("2+1")
  expect(pods(1, 3, true)).toBe("1+3")
})

test("at 0 and 100 one revision has them all", () => {
  expect([0, 100].map(weight => pods(weight, 3, true))).toEqual(["0+3", "3+0"])
})

test("a single pod expresses a weight only beside another one", () => {
  expect(pods(50, 1, false)).toBeUndefined()
  expect(pods(50, 1, true)).toBe("1+1")
})

test("no other ratio of so many pods is nearer", () => {
  for (let size = 2; size <= 12; size++)
    for (let weight = 1; weight < 100; weight++) {
      const found = ratioFor(weight, size, false)!
      expect(found.target + found.source).toBe(size)
      for (let target = 1; target < size; target++)
        expect(Math.abs(found.weight - weight)).toBeLessThanOrEqual(Math.abs((100 * target) / size - weight))
    }
})
