import { expect, test } from "vitest"
import { BackOff } from "./back-off.ts"
import { goDuration } from "./go-duration.ts"

test("waits double from ten seconds to five minutes and reset after ten quiet minutes", () => {
  const backOff = new BackOff()
  const waits: string[] = []
  let now = 0
  for (let i = 0; i < 7; i++) {
    backOff.next("a", now, now)
    waits.push(goDuration(backOff.get("a")))
    expect(backOff.isWaiting("a", now + backOff.get("a") - 1)).toBe(true)
    now += backOff.get("a")
    expect(backOff.isWaiting("a", now)).toBe(false)
  }
  expect(waits).toEqual(["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"])
  now += 600_001
  backOff.next("a", now, now)
  expect(backOff.get("a")).toBe(10_000)
})

test("a restart waits from the end of the container, not from the last failure", () => {
  const backOff = new BackOff()
  expect(backOff.isWaitingSince("a", 0, 1)).toBe(false)
  backOff.next("a", 0, 500)
  expect(backOff.isWaitingSince("a", 5_000, 14_999)).toBe(true)
  expect(backOff.isWaitingSince("a", 5_000, 15_000)).toBe(false)
})

test("durations are written as Go writes them", () => {
  const written = [0, 324, 1000, 1250, 61_500, 3_600_000].map(goDuration)
  expect(written).toEqual(["0s", "324ms", "1s", "1.25s", "1m1.5s", "1h0m0s"])
})
