import type { Clock } from "#runtime/clock.ts"

/** Many timers on one of the clock's. Those due at the same instant fire in the order they were set. */
export type Timers = {
  after(ms: number, callback: () => void): () => void
  /** Forgets all of them. */
  clear(): void
}

type Timer = { at: number; order: number; callback: (() => void) | undefined }

/**
 * A cluster has ten thousand pods, each waiting for something. In a heap a timer costs O(log n), and the clock, which
 * lets every promise settle between two of its timers, is asked once for all that fall due together.
 */
export function createTimers(clock: Clock): Timers {
  const heap: Timer[] = []
  let order = 0
  let armed: { at: number; cancel: () => void } | undefined
  let isFiring = false

  function arm() {
    while (heap[0] && !heap[0].callback) pop(heap)
    const first = heap[0]
    if (armed && armed.at === first?.at) return
    armed?.cancel()
    armed = first && { at: first.at, cancel: clock.after(first.at - clock.now(), fire) }
  }

  function fire() {
    armed = undefined
    isFiring = true
    try {
      for (let first = heap[0]; first && (!first.callback || first.at <= clock.now()); first = heap[0]) {
        pop(heap)
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
      const timer: Timer = { at: clock.now() + Math.max(0, ms), order: order++, callback }
      push(heap, timer)
      if (!isFiring) arm()
      return () => {
        timer.callback = undefined
      }
    },
    clear() {
      heap.length = 0
      armed?.cancel()
      armed = undefined
    },
  }
}

const isBefore = (a: Timer, b: Timer) => (a.at === b.at ? a.order < b.order : a.at < b.at)

function push(heap: Timer[], timer: Timer) {
  let at = heap.length
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (!isBefore(timer, heap[parent]!)) break
    heap[at] = heap[parent]!
    at = parent
  }
  heap[at] = timer
}

function pop(heap: Timer[]) {
  const last = heap.pop()
  if (!last || heap.length === 0) return
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
    if (!isBefore(heap[child]!, last)) break
    heap[at] = heap[child]!
    at = child
  }
  heap[at] = last
}

/** What a process waits for: so many milliseconds, or until somebody calls `resume`. */
export type Wait = number | ((resume: () => void) => void)

/** Work that takes time, written as if it did not: it yields what it waits for. */
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
