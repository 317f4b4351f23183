import type { Instant } from "#lib/instant.ts"

/** The wait after so many refusals: longer each time, up to a limit. */
export const tryAgainMs = (attempts: number) => Math.min(15_000 * 2 ** (attempts - 1), longestMs)

/** The same for a cause that may be over in a moment: a webhook that restarts, an answer that was lost. */
export const tryAgainSoonMs = (attempts: number) => Math.min(1000 * 2 ** (attempts - 1), longestMs)

const longestMs = 300_000

export type Scope = { key: string } | { namespace: string }
export type Refusal<R extends string> = { reason: R; message: string }

/** Why a write was refused, for one object or for all of a namespace, and when to try again. */
export type Hold<R extends string> = Refusal<R> & { since: Instant; retryAt: Instant; attempts: number }

/** Objects and namespaces that must not be written for a while, each time for longer. */
export class Holds<R extends string> {
  readonly #holds = new Map<string, Hold<R>>()

  /** What prevents a write to an object: its own hold, and its namespace's while that lasts. */
  on(key: string, namespace: string): Hold<R> | undefined {
    // Holds are rare. Without any, the keys of a whole fleet need not be looked up.
    if (this.#holds.size === 0) return undefined
    const [own, around] = [this.#holds.get(key), this.#holds.get(scopeName({ namespace }))]
    return own && around ? { ...own, retryAt: Math.max(own.retryAt, around.retryAt) } : (own ?? around)
  }

  has(key: string): boolean {
    return this.#holds.has(key)
  }

  /** Holds the scope once more, for `waitMs` if given. Returns when the hold ends. */
  add(scope: Scope, why: Refusal<R>, now: Instant, waitMs?: number): Instant {
    const name = scopeName(scope)
    const before = this.#holds.get(name)
    const attempts = (before?.attempts ?? 0) + 1
    const retryAt = now + (waitMs ?? waitOf(scope, why, attempts))
    this.#holds.set(name, { ...why, since: before?.since ?? now, retryAt, attempts })
    return retryAt
  }

  /** Prolongs the hold of a scope that is held, or was until now. */
  extend(scope: Scope, retryAt: Instant): Instant | undefined {
    const hold = this.#holds.get(scopeName(scope))
    if (hold) hold.retryAt = retryAt
    return hold?.retryAt
  }

  delete(name: string): boolean {
    return this.#holds.delete(name)
  }

  /** A namespace was granted something: refused writes in it may be tried again. Returns the scopes, by name. */
  release(namespace: string | undefined): string[] {
    const isIn = (name: string) =>
      namespace === undefined || name === scopeName({ namespace }) || name.startsWith(`${namespace}/`)
    const released = [...this.#holds.keys()].filter(isIn)
    for (const name of released) this.#holds.delete(name)
    return released
  }

  clear(): void {
    this.#holds.clear()
  }
}

/**
 * A failing webhook may concern one object or all of its namespace. The namespace waits half as long as the object, so
 * that another object is tried first: one that keeps failing must not stop its neighbours.
 */
function waitOf(scope: Scope, { reason }: Refusal<string>, attempts: number): number {
  if (reason !== "WriteFailed") return tryAgainMs(attempts)
  return "key" in scope ? tryAgainSoonMs(attempts) : tryAgainSoonMs(attempts) / 2
}

const namespaceScope = "namespace:"
// A colon cannot stand in a namespace or a name, so the two kinds of scope never collide.
export const scopeName = (scope: Scope) => ("key" in scope ? scope.key : `${namespaceScope}${scope.namespace}`)
export const namespaceOf = (name: string) =>
  name.startsWith(namespaceScope) ? name.slice(namespaceScope.length) : undefined
