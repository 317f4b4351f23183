import type { Cache, CacheOptions, Projected, WatchedCache } from "./cache/cache.ts"
import type { ControllerDeps } from "./controller.ts"
import type { Resource } from "./resource.ts"

/** The caches of one controller: each runs until it is closed, all until the controller ends. */
export function createOpenCaches({ openCache, observer, lead }: ControllerDeps) {
  const closers = new Set<() => void>()
  const open = new Set<Cache<Projected>>()
  let duringSetup: Cache<Projected>[] | undefined = []
  let awaited: readonly Pick<Cache<Projected>, "hasSynced" | "failure">[] = []
  const death = Promise.withResolvers<never>()
  death.promise.catch(() => {}) // its races report it
  let leads = lead === undefined
  lead?.then(() => {
    leads = true
  })

  return {
    open<T extends Projected>(resource: Resource, options: CacheOptions<T>): WatchedCache<T> {
      const cache = openCache(resource, options)
      const known = cache as unknown as Cache<Projected>
      const lifetime = new AbortController()
      const forget = observer?.cacheOpened(resource, cache)
      const close = () => {
        if (!closers.delete(close)) return
        open.delete(known)
        forget?.()
        lifetime.abort(new Error(`the cache of ${resource.plural} was closed`))
      }
      closers.add(close)
      open.add(known)
      duringSetup?.push(known)
      cache.run(lifetime.signal).catch(cause => {
        if (!lifetime.signal.aborted) death.reject(new Error(`the cache of ${resource.plural} died`, { cause }))
      })
      const currency = leads ? listed(cache) : proven(cache, lead!, lifetime.signal)
      return Object.defineProperties(cache, {
        close: { value: close },
        isCurrent: { get: currency.isCurrent },
        current: { value: currency.current },
      }) as WatchedCache<T>
    },
    /** Resolves when the caches opened so far are in sync; a cache opened later has its own `synced`. */
    synced(signal: AbortSignal) {
      awaited = duringSetup ?? []
      const all = Promise.all((duringSetup ?? []).map(cache => cache.synced(signal)))
      duringSetup = undefined
      return all
    },
    /** A cache that the server refuses counts as in sync: the process is useful without it. */
    areInSync: () => [...open].every(({ hasSynced, failure }) => hasSynced || failure !== undefined),
    lackKind() {
      const missing = awaited.filter(cache => !cache.hasSynced)
      return missing.length > 0 && missing.every(({ failure }) => failure?.kind === "NotFound")
    },
    broken: death.promise,
    closeAll() {
      for (const close of [...closers]) close()
    },
  }
}

type Currency = { isCurrent: () => boolean; current: () => Promise<void> }

/** For a cache opened by a leader: its list was made after the lead began. */
const listed = (cache: Pick<Cache<Projected>, "hasSynced" | "synced">): Currency => ({
  isCurrent: () => cache.hasSynced,
  current: () => cache.synced(),
})

/** For a cache opened earlier: it is current once it shows what the server had when this process began to lead. */
function proven(
  cache: Pick<Cache<Projected>, "synced" | "catchUp">,
  lead: Promise<void>,
  lifetime: AbortSignal,
): Currency {
  let isCurrent = false
  const { promise, resolve } = Promise.withResolvers<void>()
  const prove = async () => {
    await Promise.all([cache.synced(lifetime), lead])
    await cache.catchUp(lifetime)
    isCurrent = true
    resolve()
  }
  prove().catch(() => {}) // it was closed
  return { isCurrent: () => isCurrent, current: () => promise }
}
