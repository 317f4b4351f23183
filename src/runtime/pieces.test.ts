import { expect, test } from "vitest"
import { systemClock, virtualClock } from "./clock.ts"
import { createPieces } from "./pieces.ts"

/** A clock on which each step takes a while. */
function slowSteps() {
  const clock = virtualClock()
  let usedMs = 0
  const inPieces = createPieces({ ...clock, monotonic: () => clock.monotonic() + usedMs })
  const log: string[] = []
  function* steps(name: string, count: number) {
    for (let step = 0; step < count; step++) {
      usedMs += 2
      log.push(name)
      yield
    }
  }
  return { clock, inPieces, log, steps }
}

test("works take turns, a piece of each; the first begins at once", async () => {
  const { clock, inPieces, log, steps } = slowSteps()
  const all = Promise.all([inPieces(steps("long", 9)), inPieces(steps("short", 2))])
  await clock.advance(100)
  await all
  expect(log.join(" ")).toBe("long long long long long long short short long long long")
})

test("a piece ends, so that others have their turn in between", async () => {
  const inPieces = createPieces(systemClock)
  let isStopped = false
  setImmediate(() => {
    isStopped = true
  })
  function* untilStopped() {
    while (!isStopped) yield
  }
  await inPieces(untilStopped())
  expect(isStopped).toBe(true)
})

test("a step that throws ends its own work and no other", async () => {
  const { clock, inPieces, log, steps } = slowSteps()
  const broken = inPieces(
    (function* () {
      yield
      throw new Error("broken")
    })(),
  )
  broken.catch(() => {})
  const whole = inPieces(steps("whole", 5))
  await clock.advance(100)
  await expect(broken).rejects.toThrow("broken")
  await whole
  expect(log).toHaveLength(5)
})
