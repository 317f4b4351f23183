import { earliest, type Instant } from "#lib/instant.ts"
import { tryAgainSoonMs } from "../holds.ts"

/** The API server ends a request after a minute, so no earlier write can arrive after this time. */
const requestMsMost = 90_000

type Doubt = { dueAt: Instant; refusedAt: Instant | undefined }

/**
 * Objects that an earlier write may still reach. Nothing is concluded about them before they are touched. An object
 * whose writes stay unanswered is retried after longer and longer waits, whichever kind of write it was.
 */
export class Doubts {
  readonly #doubts = new Map<string, Doubt>()
  /** Unanswered writes in a row. An answered touch does not end the row; an answered stamp does. */
  readonly #unanswered = new Map<string, number>()

  get size(): number {
    return this.#doubts.size
  }

  keys(): IterableIterator<string> {
    return this.#doubts.keys()
  }

  areIn(namespace: string): boolean {
    for (const key of this.#doubts.keys()) if (key.startsWith(`${namespace}/`)) return true
    return false
  }

  /** Another leader declared a write to it, so it must be touched. */
  inherit(key: string): void {
    if (!this.#doubts.has(key)) this.#doubts.set(key, { dueAt: 0, refusedAt: undefined })
  }

  /** A write was not answered. Returns the wait before the next one: 0 after the first. */
  unanswered(key: string, now: Instant): number {
    const row = (this.#unanswered.get(key) ?? 0) + 1
    this.#unanswered.set(key, row)
    const waitMs = row === 1 ? 0 : tryAgainSoonMs(row - 1)
    this.#doubts.set(key, { dueAt: now + waitMs, refusedAt: undefined })
    return waitMs
  }

  /** The server refuses our touch, so only time ends the doubt. */
  refused(key: string, now: Instant): void {
    this.#doubts.set(key, { dueAt: Number.POSITIVE_INFINITY, refusedAt: now })
  }

  answered(key: string): void {
    this.#doubts.delete(key)
  }

  /** A stamp was answered. */
  settled(key: string): void {
    this.#doubts.delete(key)
    this.#unanswered.delete(key)
  }

  isDue(key: string, now: Instant): boolean {
    const doubt = this.#doubts.get(key)
    return doubt !== undefined && doubt.dueAt <= now
  }

  /** Drops the objects that no earlier write can reach any more. */
  expire(now: Instant): void {
    for (const [key, { refusedAt }] of this.#doubts)
      if (refusedAt !== undefined && now - refusedAt >= requestMsMost) this.#doubts.delete(key)
  }

  /** When time alone changes what must be done about objects that are not being touched. */
  nextAt(busy: ReadonlySet<string>): Instant | undefined {
    const idle = [...this.#doubts].filter(([key]) => !busy.has(key))
    return earliest(
      ...idle.map(([, { dueAt, refusedAt }]) => (refusedAt === undefined ? dueAt : refusedAt + requestMsMost)),
    )
  }
}
