import type { Instant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"

/**
 * How many pods of a node are sent elsewhere at once. A kubelet starts five pulls a second, with a burst of ten
 * (registryPullQPS, registryBurst). A pull beyond the limit is tried again after ten seconds at the earliest. The other
 * half of the burst is left to pods that are not ours.
 */
const pullsAtOnce = 5
const pullMs = 1000 / 5

/** Shared by all AlternateImageSources of a process: the limit of a node is for all of its pods. */
export class PullPace {
  readonly #clock: Pick<Clock, "now">
  /** When a node will have started all pulls that were sent to it. */
  readonly #busyUntil = new Map<string, Instant>()

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock
  }

  /** Undefined if a pod may go now, which is then counted; otherwise when to ask again. */
  waitFor(node: string): Instant | undefined {
    const now = this.#clock.now()
    const busyUntil = Math.max(this.#busyUntil.get(node) ?? 0, now)
    const freeAt = busyUntil - (pullsAtOnce - 1) * pullMs
    if (freeAt > now) return freeAt
    this.#forget(now)
    this.#busyUntil.set(node, busyUntil + pullMs)
    return undefined
  }

  /** Drops idle nodes, because nodes come and go. */
  #forget(now: Instant): void {
    if (this.#busyUntil.size < 1000) return
    for (const [node, until] of this.#busyUntil) if (until <= now) this.#busyUntil.delete(node)
  }
}
