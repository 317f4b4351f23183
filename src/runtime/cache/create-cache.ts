import { keyOf, type Resource, resourceName } from "../resource.ts"
import type { Cache, CacheOptions, Projected } from "./cache.ts"
import { createFeed, type Feed, type FeedDeps, type FeedObserver, type Selection } from "./feed.ts"
import { createStore } from "./store.ts"

export type CacheObserver = FeedObserver & { onUnreadable?(key: string): void }
export type CacheDeps = Omit<FeedDeps, "observer"> & { observer?: CacheObserver | undefined }

/** A cache of one resource with its own list and watch. */
export function createCache<T extends Projected>(
  deps: CacheDeps,
  resource: Resource,
  options: CacheOptions<T>,
): Cache<T> {
  return cacheOn(
    createFeed({ ...deps, log: logFor(deps, resource) }, resource, selectionOf(options)),
    deps,
    resource,
    options,
  )
}

/** Opens caches that share list and watch when they select the same objects, each with its own projection. */
export function sharedCaches(deps: CacheDeps) {
  const feeds = new Map<string, Feed>()
  return <T extends Projected>(resource: Resource, options: CacheOptions<T>): Cache<T> => {
    const selection = selectionOf(options)
    const id = `${resourceName(resource)}/${resource.version} ${JSON.stringify(selection)}`
    const feed = feeds.get(id) ?? createFeed({ ...deps, log: logFor(deps, resource) }, resource, selection)
    feeds.set(id, feed)
    return cacheOn(feed, deps, resource, options)
  }
}

function cacheOn<T extends Projected>(
  feed: Feed,
  deps: CacheDeps,
  resource: Resource,
  options: CacheOptions<T>,
): Cache<T> {
  const log = logFor(deps, resource)
  const store = createStore<T>({
    project: options.project,
    ...(options.indexes && { indexes: options.indexes }),
    onListenerError: (key, error) => log?.error("a listener of the cache failed", { key, error: String(error) }),
    onUnreadable(key, error) {
      log?.error("an object cannot be read and is skipped", { key, error: String(error) })
      deps.observer?.onUnreadable?.(key)
    },
  })
  let isRunning = false
  return {
    get: key => store.entries.get(key)?.value,
    *entries() {
      for (const [key, { value }] of store.entries) yield [key, value]
    },
    get size() {
      return store.entries.size
    },
    keysBy: store.keysBy,
    subscribe: store.subscribe,
    get hasSynced() {
      return store.hasSynced
    },
    synced: store.synced,
    reached: (name, version, signal) => store.reached(keyOf(name), version, signal),
    catchUp: (signal, some) => feed.catchUp(store, signal, some),
    get failure() {
      return feed.failure
    },
    unreadable: store.unreadable,
    stalenessMs: feed.stalenessMs,
    async run(signal) {
      if (isRunning) throw new Error(`the cache of ${resourceName(resource)} is running already`)
      isRunning = true
      try {
        await feed.follow(store, signal)
      } finally {
        isRunning = false
      }
    },
  }
}

const logFor = ({ log }: CacheDeps, resource: Resource) => log?.with({ resource: resourceName(resource) })

const selectionOf = ({ namespace, labelSelector, fieldSelector, metadataOnly }: Selection): Selection => ({
  ...(namespace !== undefined && { namespace }),
  ...(labelSelector !== undefined && { labelSelector }),
  ...(fieldSelector !== undefined && { fieldSelector }),
  ...(metadataOnly && { metadataOnly: true }),
})
