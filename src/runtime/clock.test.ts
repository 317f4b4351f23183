import { expect, test } from "vitest"
import { scaledClock, sleep, virtualClock } from "./clock.ts"

test("timers fire in the order of their times, and those of one time in the order they were set", async () => {
  const clock = virtualClock(1000)
  const fired: string[] = []
  for (const [ms, name] of [
    [20, "c"],
    [10, "a"],
    [10, "b"],
  ] as const)
    clock.after(ms, () => fired.push(`${name}@${clock.now()}`))
  for (let index = 0; index < 12; index++) clock.after(30, () => fired.push(String(index)))
  await clock.advance(25)
  expect(fired).toEqual(["a@1010", "b@1010", "c@1020"])
  await clock.advance(5)
  expect(fired.slice(3)).toEqual(Array.from({ length: 12 }, (_, index) => String(index)))
  expect(clock.now()).toBe(1030)
})

test("a cancelled timer does not fire, and a timer set by another one does in the same advance", async () => {
  const clock = virtualClock()
  const fired: number[] = []
  const cancel = clock.after(5, () => fired.push(-1))
  cancel()
  clock.after(1, () => clock.after(1, () => fired.push(clock.now())))
  expect(clock.nextAt()).toBe(1)
  await clock.advance(10)
  expect(fired).toEqual([2])
})

test("sleeping ends with the time, or with the signal", async () => {
  const clock = virtualClock()
  const abort = new AbortController()
  const slept = sleep(clock, 10).then(() => "slept")
  const aborted = sleep(clock, 10, abort.signal).catch(() => "aborted")
  abort.abort(new Error("stop"))
  await clock.advance(10)
  expect(await Promise.all([slept, aborted])).toEqual(["slept", "aborted"])
})

test("a scaled clock is that much faster, in what it says and in what it waits", async () => {
  const clock = virtualClock(1000)
  const fast = scaledClock(clock, 10)
  let firedAt = 0
  fast.after(500, () => {
    firedAt = fast.now()
  })
  await clock.advance(49)
  expect(firedAt).toBe(0)
  await clock.advance(1)
  expect(firedAt).toBe(1500)
  expect(fast.monotonic()).toBe(500)
})
