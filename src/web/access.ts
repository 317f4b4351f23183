import type { Clock } from "#runtime/clock.ts"
import { type Resource, resourceName } from "#runtime/resource.ts"
import { isSameScope, type Scope, scopeOf } from "./rights.ts"
import type { Viewer } from "./viewer.ts"

/** How often the server is asked again whether a viewer may still see what it sees. */
const reviewMs = 30_000

type Watched = { resource: Resource; scope: Scope | undefined; listeners: Set<(scope: Scope) => void> }

/** What one viewer may see, asked with the viewer's own credentials when it is needed and every 30 s after that. */
export class Access {
  readonly viewer: Viewer
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  readonly #watched = new Map<string, Watched>()
  readonly #others = new Set<() => void>()
  #cancel: (() => void) | undefined

  constructor(viewer: Viewer, clock: Clock, onError: (error: unknown) => void) {
    this.viewer = viewer
    this.#clock = clock
    this.#onError = onError
  }

  /** Calls back with the scope, and again whenever it changes. */
  watch(resource: Resource, listener: (scope: Scope) => void): () => void {
    const id = resourceName(resource)
    const known = this.#watched.get(id)
    const watched = known ?? { resource, scope: undefined, listeners: new Set() }
    this.#watched.set(id, watched)
    watched.listeners.add(listener)
    if (watched.scope) listener(watched.scope)
    else if (!known) this.#review(watched)
    this.#arm()
    return () => {
      watched.listeners.delete(listener)
      if (watched.listeners.size === 0) this.#watched.delete(id)
    }
  }

  /** Calls back every 30 s, to ask again for a right that is not about what a feed lists. */
  eachReview(listener: () => void): () => void {
    this.#others.add(listener)
    this.#arm()
    return () => this.#others.delete(listener)
  }

  close(): void {
    this.#cancel?.()
    this.#watched.clear()
    this.#others.clear()
  }

  #arm(): void {
    this.#cancel ??= this.#clock.after(reviewMs, () => this.#reviewAll())
  }

  async #reviewAll(): Promise<void> {
    this.#cancel = undefined
    if (this.#watched.size + this.#others.size === 0) return
    this.#arm()
    for (const listener of [...this.#others]) listener()
    for (const watched of [...this.#watched.values()]) await this.#review(watched)
  }

  async #review(watched: Watched): Promise<void> {
    try {
      const scope = await scopeOf(this.viewer, watched.resource)
      if (watched.scope && isSameScope(watched.scope, scope)) return
      watched.scope = scope
      for (const listener of [...watched.listeners]) listener(scope)
    } catch (error) {
      this.#onError(error)
    }
  }
}
