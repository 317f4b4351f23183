import type { Instant } from "#lib/instant.ts"

/**
 * Back-off that doubles per key, as the kubelet counts it. Each failure starts the next, longer wait of the key. A key
 * without failures for twice the longest wait starts anew.
 */
export class BackOff {
  readonly #entries = new Map<string, { ms: number; updated: Instant }>()
  readonly #firstMs: number
  readonly #maxMs: number
  readonly #restMs: number

  constructor({ firstMs = 10_000, maxMs = 300_000 }: { firstMs?: number; maxMs?: number } = {}) {
    this.#firstMs = firstMs
    this.#maxMs = maxMs
    this.#restMs = 2 * maxMs
  }

  get(key: string): number {
    return this.#entries.get(key)?.ms ?? 0
  }

  next(key: string, eventAt: Instant, now: Instant): void {
    const entry = this.#entries.get(key)
    const ms = !entry || this.#isAtRest(entry, eventAt) ? this.#firstMs : Math.min(2 * entry.ms, this.#maxMs)
    this.#entries.set(key, { ms, updated: now })
  }

  /** Counted from the last failure (image pulls). */
  isWaiting(key: string, now: Instant): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && !this.#isAtRest(entry, now) && now - entry.updated < entry.ms
  }

  /** Counted from the end of a container (restarts). */
  isWaitingSince(key: string, eventAt: Instant, now: Instant): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && !this.#isAtRest(entry, eventAt) && now - eventAt < entry.ms
  }

  forget(key: string): void {
    this.#entries.delete(key)
  }

  #isAtRest({ updated }: { updated: Instant }, eventAt: Instant): boolean {
    return eventAt - updated > this.#restMs
  }
}
