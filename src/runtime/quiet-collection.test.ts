import { expect, test } from "vitest"
import { virtualClock } from "./clock.ts"
import { startQuietCollection } from "./quiet-collection.ts"

const MiB = 1024 * 1024

/** A heap whose garbage a collection takes away. */
function heap({ kept, garbage, busy = 0 }: { kept: number; garbage: number; busy?: number }) {
  const now = { kept, garbage, busy, collections: 0 }
  return {
    now,
    used: () => (now.kept + now.garbage) * MiB,
    busy: () => now.busy,
    collect() {
      now.garbage = 0
      now.collections++
    },
  }
}

test("what the start left behind is collected once the process is quiet, and not again", async () => {
  const clock = virtualClock(0)
  const it = heap({ kept: 50, garbage: 20, busy: 0.5 })
  const stop = startQuietCollection({ clock, heap: it })
  await clock.advance(120_000)
  expect(it.now).toMatchObject({ collections: 0, garbage: 20 })
  it.now.busy = 0.01
  await clock.advance(600_000)
  expect(it.now).toMatchObject({ collections: 1, garbage: 0 })
  stop()
})

test("a few bytes of a Lease that is renewed are left alone, and more of them are collected", async () => {
  const clock = virtualClock(0)
  const it = heap({ kept: 50, garbage: 0 })
  const stop = startQuietCollection({ clock, heap: it })
  await clock.advance(30_000)
  it.now.garbage = 3
  await clock.advance(300_000)
  expect(it.now).toMatchObject({ collections: 1, garbage: 3 })
  it.now.garbage = 4
  await clock.advance(30_000)
  expect(it.now).toMatchObject({ collections: 2, garbage: 0 })
  stop()
  it.now.garbage = 100
  await clock.advance(300_000)
  expect(it.now.garbage).toBe(100)
})

test("the heap of this process shrinks by what is no longer used", async () => {
  const clock = virtualClock(0)
  let garbage: unknown[] | undefined = Array.from({ length: 200_000 }, (_, index) => ({ index, text: `${index}` }))
  const before = process.memoryUsage().heapUsed
  expect(garbage).toHaveLength(200_000)
  garbage = undefined
  const stop = startQuietCollection({ clock })
  // The event loop of a test is busy or not, as it comes: quiet comes with the second look.
  for (let looks = 0; looks < 50 && process.memoryUsage().heapUsed > before - 10 * MiB; looks++) {
    await new Promise(resolve => setTimeout(resolve, 50))
    await clock.advance(30_000)
  }
  stop()
  expect(process.memoryUsage().heapUsed).toBeLessThan(before - 10 * MiB)
})
