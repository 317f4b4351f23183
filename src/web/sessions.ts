import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import type { Clock } from "#runtime/clock.ts"
import type { Viewer } from "./viewer.ts"

/** How long the key of an address is good. */
const keyMs = 60_000
/** Each session may hold a stream and feeds. */
const sessionsMost = 1000

export type Session = { readonly id: string; viewer: Viewer }

export type KeyAnswer = "Good" | "Used" | "Expired" | "Unknown"

/**
 * Keys that open a session, each good once and for a minute, and sessions, which end with the process. There are no
 * cookies: a cookie of one port of a host is sent to all others.
 */
export class Sessions {
  readonly #clock: Clock
  readonly #keys = new Map<string, { at: number; isUsed: boolean }>()
  readonly #sessions = new Map<string, Session>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  newKey(): string {
    const key = randomBytes(24).toString("base64url")
    this.#keys.set(hashOf(key), { at: this.#clock.monotonic(), isUsed: false })
    return key
  }

  useKey(key: string): KeyAnswer {
    const known = this.#keys.get(hashOf(key))
    if (!known) return "Unknown"
    if (known.isUsed) return "Used"
    if (this.#clock.monotonic() - known.at > keyMs) return "Expired"
    known.isUsed = true
    return "Good"
  }

  open(viewer: Viewer): Session {
    const session = { id: randomBytes(32).toString("base64url"), viewer }
    this.#sessions.set(hashOf(session.id), session)
    const [oldest] = this.#sessions.keys()
    if (this.#sessions.size > sessionsMost) this.#sessions.delete(oldest!)
    return session
  }

  /** Found by its hash, so that the time of a search says nothing about the key. */
  find(id: string | undefined): Session | undefined {
    if (id === undefined || id.length > 100) return undefined
    const found = this.#sessions.get(hashOf(id))
    return found && timingSafeEqual(Buffer.from(hashOf(found.id)), Buffer.from(hashOf(id))) ? found : undefined
  }

  close(session: Session): void {
    this.#sessions.delete(hashOf(session.id))
  }
}

const hashOf = (text: string) => createHash("sha256").update(text).digest("base64url")
