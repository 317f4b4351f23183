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
  /** Noted since the last look, with what was known of each before. */
  readonly #undated = new Map<string, { before: Contest | undefined; times: number }>()

  get size(): number {
    return this.#contests.size
  }

  get(key: string): Contest | undefined {
    return this.#contests.get(key)
  }

  delete(key: string): void {
    this.#contests.delete(key)
    this.#undated.delete(key)
  }

  clear(): void {
    this.#contests.clear()
    this.#undated.clear()
  }

  /**
   * The first time, the image is corrected at once: the other change may have crossed ours. A change within our own
   * write crossed nothing, so it is reported and held from the first time on.
   */
  note(key: string, now: Instant, isInSameWrite: boolean): void {
    const known = this.#contests.get(key)
    if (!isInSameWrite) {
      const { before, times } = this.#undated.get(key) ?? { before: known, times: 0 }
      this.#undated.set(key, { before, times: times + 1 })
    }
    this.#count(key, known, now, isInSameWrite)
  }

  /**
   * Dates what was noted since the last look, and tells which. An event has no time of its own, and the last look may
   * be hours ago: a contest that began then would be past its deadline at once.
   */
  date(now: Instant): string[] {
    const keys = [...this.#undated.keys()]
    for (const [key, { before, times }] of this.#undated) {
      let known = before
      for (let each = 0; each < times; each++) known = this.#count(key, known, now, false)
    }
    this.#undated.clear()
    return keys
  }

  #count(key: string, known: Contest | undefined, now: Instant, isInSameWrite: boolean): Contest {
    const before = known && now - known.at <= memoryMs + tryAgainMs(known.count) ? known : undefined
    const count = Math.max((before?.count ?? 0) + 1, isInSameWrite ? untilTold : 0)
    const waits = isInSameWrite ? count - untilTold + 1 : count - 1
    const retryAt = waits < 1 ? now : now + tryAgainMs(waits)
    const contest = { count, since: before?.since ?? now, at: now, retryAt, isInSameWrite }
    this.#contests.set(key, contest)
    return contest
  }
}

export const isHolding = ({ count }: Contest) => count >= 2
export const isTold = ({ count }: Contest) => count >= untilTold

const untilTold = 3
const memoryMs = 600_000
