import type { KubeObject, ObjectName } from "../resource.ts"
import { keyOf } from "../resource.ts"
import type { CacheOptions, Projected, WatchedCache } from "./cache.ts"
import { createStore } from "./store.ts"

/** A cache of these objects at one moment: for a single look that decides as a controller does. */
export function stillCache<T extends Projected>(
  objects: Iterable<KubeObject>,
  { project, indexes }: CacheOptions<T>,
): WatchedCache<T> {
  const quiet = () => {}
  const store = createStore<T>({ project, ...(indexes && { indexes }), onListenerError: quiet, onUnreadable: quiet })
  store.beginList({ historyIsNew: false })
  for (const object of objects) store.put(object)
  store.endList(store.progress)
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
    hasSynced: true,
    synced: async () => {},
    reached: (name: ObjectName, version, signal) => store.reached(keyOf(name), version, signal),
    catchUp: async () => {},
    isCurrent: true,
    current: async () => {},
    failure: undefined,
    unreadable: store.unreadable,
    stalenessMs: () => 0,
    run: async () => {},
    close: quiet,
  }
}
