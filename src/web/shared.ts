import type { Client } from "#runtime/client/client.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Viewer } from "./viewer.ts"

/** Something that follows the server: it can go on with other credentials, and ends. */
export type Followed = { restart(): void; close(): void }

/** How long a feed stays open without a viewer: a page that is left and opened again is cheap. */
const lingerMs = 60_000

/**
 * One thing that is followed for all viewers with the right to it. It runs with the credentials of one of them, and
 * passes to another when that one leaves. Membership is decided by the caller, by each viewer's own rights.
 */
export class Shared<T extends Followed> {
  readonly #open: (client: Client) => T
  readonly #clock: Clock
  readonly #onEmpty: () => void
  /** How often each viewer has joined. */
  readonly #members = new Map<Viewer, number>()
  #runner: Viewer | undefined
  #followed: T | undefined
  #cancel: (() => void) | undefined

  constructor(open: (client: Client) => T, clock: Clock, onEmpty: () => void) {
    this.#open = open
    this.#clock = clock
    this.#onEmpty = onEmpty
  }

  /** What is followed, while it is. */
  get current(): T | undefined {
    return this.#followed
  }

  join(viewer: Viewer): T {
    this.#cancel?.()
    this.#cancel = undefined
    this.#members.set(viewer, (this.#members.get(viewer) ?? 0) + 1)
    this.#runner ??= viewer
    // Credentials that left stay in use until another member comes: without a member nothing is shown.
    if (this.#followed && !this.#members.has(this.#runner)) {
      this.#runner = viewer
      this.#followed.restart()
    }
    this.#followed ??= this.#open(this.#relay())
    return this.#followed
  }

  leave(viewer: Viewer): void {
    const left = (this.#members.get(viewer) ?? 0) - 1
    if (left > 0) this.#members.set(viewer, left)
    else this.#members.delete(viewer)
    if (this.#members.size > 0 && !this.#members.has(this.#runner!)) {
      this.#runner = this.#members.keys().next().value
      this.#followed?.restart()
    }
    if (this.#members.size === 0) this.#cancel ??= this.#clock.after(lingerMs, () => this.end())
  }

  /** The credentials of a viewer no longer work: others go on, and without others it ends. */
  expel(viewer: Viewer): void {
    if (!this.#members.has(viewer) && this.#runner !== viewer) return
    this.#members.set(viewer, 1)
    this.leave(viewer)
    if (this.#members.size === 0) this.end()
  }

  end(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#followed?.close()
    this.#followed = undefined
    this.#runner = undefined
    this.#onEmpty()
  }

  /** Reads with the credentials of the member that runs it now. It writes nothing. */
  #relay(): Client {
    const runner = () => this.#runner!.client
    const refuse = () => {
      throw new Error("a feed of the dashboard only reads")
    }
    return {
      get: (...asked) => runner().get(...asked),
      list: (...asked) => runner().list(...asked),
      watch: (...asked) => runner().watch(...asked),
      discover: (...asked) => runner().discover(...asked),
      raw: (...asked) => runner().raw(...asked),
      serverTime: () => runner().serverTime(),
      create: refuse,
      replace: refuse,
      patch: refuse,
      delete: refuse,
      mayEvict: refuse,
      close: () => {},
    }
  }
}
