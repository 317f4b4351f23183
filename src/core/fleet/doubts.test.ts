import { expect, test } from "vitest"
import { Doubts } from "./doubts.ts"

const second = 1000
const none = new Set<string>()

test("an object without an answer is touched at once, then after 1, 2, 4 seconds, and in the end every five minutes", () => {
  const doubts = new Doubts()
  const waits = Array.from({ length: 12 }, () => doubts.unanswered("a/1", 0) / second)
  expect(waits).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
})

test("an answered touch ends the doubt, and only an answered stamp the back-off", () => {
  const doubts = new Doubts()
  doubts.unanswered("a/1", 0)
  doubts.unanswered("a/1", 0)
  doubts.answered("a/1")
  expect([doubts.size, doubts.areIn("a")]).toEqual([0, false])
  expect(doubts.unanswered("a/1", 0)).toBe(2 * second)
  doubts.settled("a/1")
  expect(doubts.unanswered("a/1", 0)).toBe(0)
})

test("an object that may not be touched is released when no request can be on its way any more", () => {
  const doubts = new Doubts()
  doubts.inherit("a/1")
  expect(doubts.isDue("a/1", 0)).toBe(true)
  doubts.refused("a/1", 0)
  expect(doubts.isDue("a/1", 80 * second)).toBe(false)
  doubts.expire(doubts.nextAt(none)! - 1)
  expect([...doubts.keys()]).toEqual(["a/1"])
  doubts.expire(doubts.nextAt(none)!)
  expect([...doubts.keys()]).toEqual([])
})

test("what is being touched wakes nothing by itself", () => {
  const doubts = new Doubts()
  doubts.inherit("a/1")
  expect([doubts.nextAt(none), doubts.nextAt(new Set(["a/1"]))]).toEqual([0, undefined])
})
