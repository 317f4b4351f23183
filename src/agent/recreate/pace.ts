import type { Instant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"

const minuteMs = 60_000

/** How many containers may be stopped on this node in any minute. */
export class StopPace {
  readonly perMinute: number
  readonly #clock: Pick<Clock, "monotonic">
  /** When each of the last stops began, by the monotonic clock: a change of the time of day must not lift the limit. */
  #begun: number[] = []

  constructor(clock: Pick<Clock, "monotonic">, perMinute: number) {
    this.#clock = clock
    this.perMinute = perMinute
  }

  /** From when on one more may be stopped: at the time of the look, or later. */
  freeAt(now: Instant): Instant {
    const at = this.#clock.monotonic()
    this.#begun = this.#begun.filter(begun => at - begun < minuteMs)
    const first = this.#begun[this.#begun.length - this.perMinute]
    return now + (first === undefined ? 0 : minuteMs - (at - first))
  }

  take(): void {
    this.#begun.push(this.#clock.monotonic())
  }
}
