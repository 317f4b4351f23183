import type { NodeImage, NodeImageStatus } from "#api/v1alpha1/nodeimage/index.ts"
import type { Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { dueAt } from "./report.ts"
import { type Attempt, afterAttempt, freshState, idOf, type TagState, type Wanted } from "./state.ts"

/**
 * How it stands with each image of the node. A process that starts anew reads it from the status; a NodeImage that was
 * made anew begins without any.
 */
export class Book {
  #uid: string | undefined
  #states = new Map<string, TagState>()
  #reportedAt: Instant = Number.NEGATIVE_INFINITY
  /** Since when the status is not what it would be now. */
  #changedAt: Instant | undefined

  statesOf({ metadata: { uid = "" }, status }: NodeImage): ReadonlyMap<string, TagState> {
    if (this.#uid !== uid) {
      this.#uid = uid
      this.#changedAt = undefined
      this.#states = new Map(
        Object.entries(status?.imageStatuses ?? {}).flatMap(([name, { tags }]) =>
          tags.map(state => [idOf(name, state.tag), state]),
        ),
      )
    }
    return this.#states
  }

  set(states: ReadonlyMap<string, TagState>): void {
    this.#states = new Map(states)
  }

  /** A pull has ended. */
  ended(wanted: Wanted, attempt: Attempt, now: Instant): void {
    const before = this.#states.get(wanted.id) ?? freshState(wanted)
    this.#states.set(wanted.id, afterAttempt(before, wanted, attempt, now))
  }

  /** When this status is to be written, if it differs from the last one. */
  dueAt(before: NodeImageStatus | undefined, after: NodeImageStatus, now: Instant): Instant | undefined {
    if (isSame(before, after)) {
      this.#changedAt = undefined
      return undefined
    }
    this.#changedAt ??= now
    return dueAt(before, after, { reportedAt: this.#reportedAt, changedAt: this.#changedAt })
  }

  reported(now: Instant): void {
    this.#reportedAt = now
    this.#changedAt = undefined
  }
}
