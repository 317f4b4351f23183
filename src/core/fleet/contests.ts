import type { Instant } from "#lib/instant.ts"
import { tryAgainMs } from "../holds.ts"

/** Another writer replaces the image we gave: how often already, and when we try again. */
export type Contest = {
  count: number
  since: Instant
  at: Instant
  retryAt: Instant
  /** Admission changed the image in our own write. */
  isInSameWrite: boolean
}

/** The message about an object whose stamp comes back with another image. */
export const changedInSameWrite = "an admission webhook changes it in the same write"

/** Objects whose image is contested. Each wait before a new stamp is longer than the last. */
export class Contests {
  readonly #contests = new Map<string, Contest>()

  get size(): number {
    return this.#contests.size
  }

  get(key: string): Contest | undefined {
    return this.#contests.get(key)
  }

  delete(key: string): void {
    this.#contests.delete(key)
  }

  clear(): void {
    this.#contests.clear()
  }

  /**
   * The first time, the image is corrected at once: the other change may have crossed ours. A change within our own
   * write crossed nothing, so it is reported and held from the first time on.
   */
  note(key: string, now: Instant, isInSameWrite: boolean): void {
    const known = this.#contests.get(key)
    const before = known && now - known.at <= memoryMs + tryAgainMs(known.count) ? known : undefined
    const count = Math.max((before?.count ?? 0) + 1, isInSameWrite ? untilTold : 0)
    const waits = isInSameWrite ? count - untilTold + 1 : count - 1
    const retryAt = waits < 1 ? now : now + tryAgainMs(waits)
    this.#contests.set(key, { count, since: before?.since ?? now, at: now, retryAt, isInSameWrite })
  }
}

export const isHolding = ({ count }: Contest) => count >= 2
export const isTold = ({ count }: Contest) => count >= untilTold

const untilTold = 3
const memoryMs = 600_000
