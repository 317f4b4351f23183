import { Heap } from "#lib/heap.ts"
import type { Clock } from "#runtime/clock.ts"

/** Many timers on one timer of the clock. Those due at the same instant fire in the order they were set. */
export type Timers = {
  after(ms: number, callback: () => void): () => void
  /** Cancels all timers. */
  clear(): void
}

type Timer = { at: number; order: number; callback: (() => void) | undefined }

const isBefore = (a: Timer, b: Timer) => (a.at === b.at ? a.order < b.order : a.at < b.at)

/**
 * A cluster may have ten thousand pods that each wait for something. In a heap a timer costs O(log n). The clock lets
 * all promises settle between two of its timers, so timers that are due together share one of them.
 */
export function createTimers(clock: Clock): Timers {
  const heap = new Heap<Timer>(isBefore)
  let order = 0
  let armed: { at: number; cancel: () => void } | undefined
  let isFiring = false

  function arm() {
    for (let first = heap.first(); first && !first.callback; first = heap.first()) heap.pop()
    const first = heap.first()
    if (armed && armed.at === first?.at) return
    armed?.cancel()
    armed = first && { at: first.at, cancel: clock.after(first.at - clock.monotonic(), fire) }
  }

  function fire() {
    armed = undefined
    isFiring = true
    try {
      for (
        let first = heap.first();
        first && (!first.callback || first.at <= clock.monotonic());
        first = heap.first()
      ) {
        heap.pop()
        const { callback } = first
        first.callback = undefined
        callback?.()
      }
    } finally {
      isFiring = false
      arm()
    }
  }

  return {
    after(ms, callback) {
      // Rounded up to eighths, which stay exact when added to the time: a timer never fires early by a rounding error.
      const at = clock.monotonic() + Math.ceil(Math.max(0, ms) * 8) / 8
      const timer: Timer = { at, order: order++, callback }
      heap.push(timer)
      if (!isFiring) arm()
      return () => {
        timer.callback = undefined
      }
    },
    clear() {
      heap.clear()
      armed?.cancel()
      armed = undefined
    },
  }
}

/** What a process waits for: a number of milliseconds, or a call of `resume`. */
export type Wait = number | ((resume: () => void) => void)

/** Work that takes time, as a generator that yields what it waits for. */
export type Process = Generator<Wait, void, void>

export function run(timers: Timers, process: Process, done: () => void): void {
  const next = () => {
    const { value, done: isDone } = process.next()
    if (isDone) return done()
    if (typeof value === "number") timers.after(value, next)
    else value(next)
  }
  next()
}
