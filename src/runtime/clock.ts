import { IndexedHeap } from "#lib/indexed-heap.ts"
import type { Instant } from "#lib/instant.ts"

export type { Instant }

/**
 * The only access to time. Production uses `systemClock`; tests and the in-process cluster use a `virtualClock`, so
 * that an hour of soaking takes a millisecond and a run is a function of its seed.
 */
export type Clock = {
  now(): Instant
  /**
   * For deadlines. Never goes back, and goes on while the process is stopped (SIGSTOP), but not while the machine is
   * suspended (docs/decisions/0024-suspended-machines.md).
   */
  monotonic(): number
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    // Node fires a longer timer at once (it wraps at 2^31 ms), so longer waits are split.
    const longest = 2 ** 31 - 1
    let timer: NodeJS.Timeout
    const arm = (left: number) => {
      timer = setTimeout(() => (left > longest ? arm(left - longest) : callback()), Math.min(left, longest))
    }
    arm(Math.max(0, ms))
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as it is aborted. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort)
      resolve()
    })
    signal?.addEventListener("abort", onAbort, { once: true })
  })
}

/** Runs `speed` times as fast as `clock`: for an in-process cluster that people watch. */
export function scaledClock(clock: Clock, speed: number): Clock {
  const start = clock.now()
  return {
    now: () => start + (clock.now() - start) * speed,
    monotonic: () => clock.monotonic() * speed,
    after: (ms, callback) => clock.after(ms / speed, callback),
  }
}

export type VirtualClock = Clock & {
  /** Moves time on, fires due timers in order, and lets promises settle after each timer. */
  advance(ms: number): Promise<void>
  /** When the next timer is due, if any. */
  nextAt(): Instant | undefined
}

/** For tests. @public */
export function virtualClock(start: Instant = 0): VirtualClock {
  let now = start
  let sequence = 0
  const due = new IndexedHeap()
  const callbacks = new Map<string, () => void>()
  return {
    now: () => now,
    monotonic: () => now - start,
    after(ms, callback) {
      // Padded, because equal times are ordered by key and must fire in the order in which they were set.
      const key = String(sequence++).padStart(16, "0")
      due.set(key, now + Math.max(0, ms))
      callbacks.set(key, callback)
      return () => {
        due.delete(key)
        callbacks.delete(key)
      }
    },
    nextAt: () => due.first()?.rank,
    async advance(ms) {
      const end = now + ms
      await settle()
      for (let next = due.first(); next && next.rank <= end; next = due.first()) {
        const { item: key, rank } = next
        const callback = callbacks.get(key)!
        due.delete(key)
        callbacks.delete(key)
        now = Math.max(now, rank)
        callback()
        await settle()
      }
      now = end
    },
  }
}

/** Lets every promise that can go on without time passing do so. One macrotask drains all microtasks. */
const settle = () => new Promise<void>(resolve => setImmediate(resolve))
