import { earliest, type Instant } from "#lib/instant.ts"
import { tryAgainSoonMs } from "../holds.ts"

/** The API server gives up a request after a minute; an object we may not touch is safe when that is over. */
const requestMsMost = 90_000

type Doubt = { dueAt: Instant; refusedAt: Instant | undefined }

/**
 * Objects that a write may still be on its way to: nothing is concluded from them before they were touched. An object
 * whose writes stay without an answer is tried again later and later, whichever of its writes that was.
 */
export class Doubts {
  readonly #doubts = new Map<string, Doubt>()
  /** Writes in a row without an answer. A touch that is answered does not end the row, a stamp does. */
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

  /** Another leader had declared it: it is to be touched. */
  inherit(key: string): void {
    if (!this.#doubts.has(key)) this.#doubts.set(key, { dueAt: 0, refusedAt: undefined })
  }

  /** A write was not answered. Returns how long to wait before the next one: nothing after the first. */
  unanswered(key: string, now: Instant): number {
    const row = (this.#unanswered.get(key) ?? 0) + 1
    this.#unanswered.set(key, row)
    const waitMs = row === 1 ? 0 : tryAgainSoonMs(row - 1)
    this.#doubts.set(key, { dueAt: now + waitMs, refusedAt: undefined })
    return waitMs
  }

  /** The server refuses to let us touch it: only time helps. */
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

  /** Lets go of the objects to which no earlier write can arrive any more. */
  expire(now: Instant): void {
    for (const [key, { refusedAt }] of this.#doubts)
      if (refusedAt !== undefined && now - refusedAt >= requestMsMost) this.#doubts.delete(key)
  }

  /** When the passing of time alone changes what is to be done about those that are not being touched. */
  nextAt(busy: ReadonlySet<string>): Instant | undefined {
    const idle = [...this.#doubts].filter(([key]) => !busy.has(key))
    return earliest(
      ...idle.map(([, { dueAt, refusedAt }]) => (refusedAt === undefined ? dueAt : refusedAt + requestMsMost)),
    )
  }
}
