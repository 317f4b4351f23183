import { expect, test } from "vitest"
import { PullPace } from "./pull-pace.ts"

test("a node is sent five pods at once, then one for each pull that its kubelet starts", () => {
  let now = 1_000_000
  const pace = new PullPace({ now: () => now })
  const sent = (node: string, count: number) =>
    Array.from({ length: count }, () => pace.waitFor(node)).filter(wait => wait === undefined).length
  expect(sent("a", 20)).toBe(5)
  expect(sent("b", 20)).toBe(5)
  expect(pace.waitFor("a")).toBe(now + 200)
  now += 200
  expect(sent("a", 20)).toBe(1)
  now += 1000
  expect(sent("a", 20)).toBe(5)
  now += 60_000
  expect(sent("a", 20)).toBe(5)
})
