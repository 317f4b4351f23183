import type { Instant } from "#lib/instant.ts"

export type { Instant }

/**
 * The only way to time. Production uses `systemClock`, tests and the in-process cluster a `virtualClock`, so that an
 * hour of soaking takes a millisecond and a run is a function of its seed.
 */
export type Clock = {
  now(): Instant
  /** Never goes back, and goes on while the process is stopped (SIGSTOP): what deadlines are measured with. */
  monotonic(): number
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    // Node fires a longer timer at once (it wraps at 2^31 ms): wait in pieces instead.
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

export type VirtualClock = Clock & {
  /** Moves time on, firing what falls due in order, and lets promises settle after each timer. */
  advance(ms: number): Promise<void>
  /** When the next timer is due, if any. */
  nextAt(): Instant | undefined
}

export function virtualClock(start: Instant = 0): VirtualClock {
  let now = start
  let sequence = 0
  const timers = new Map<number, { at: Instant; callback: () => void }>()
  const next = () => {
    let found: [number, { at: Instant; callback: () => void }] | undefined
    for (const timer of timers) if (!found || timer[1].at < found[1].at) found = timer
    return found
  }
  return {
    now: () => now,
    monotonic: () => now - start,
    after(ms, callback) {
      const id = sequence++
      timers.set(id, { at: now + Math.max(0, ms), callback })
      return () => timers.delete(id)
    },
    nextAt: () => next()?.[1].at,
    async advance(ms) {
      const end = now + ms
      await settle()
      for (let due = next(); due && due[1].at <= end; due = next()) {
        timers.delete(due[0])
        now = Math.max(now, due[1].at)
        due[1].callback()
        await settle()
      }
      now = end
    },
  }
}

/** Lets every promise that can go on without time passing do so. One macrotask drains all microtasks. */
const settle = () => new Promise<void>(resolve => setImmediate(resolve))
