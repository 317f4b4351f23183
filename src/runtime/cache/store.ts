import { compareVersions, isVersion, noVersion } from "#lib/resource-version.ts"
import { type KubeObject, keyOf } from "../resource.ts"
import type { CacheOptions, Change, Projected } from "./cache.ts"
import { createHistory } from "./history.ts"
import { createIndexes } from "./indexes.ts"
import { createSubscribers } from "./subscribers.ts"
import { createUnreadable } from "./unreadable.ts"
import { createWaiters } from "./waiters.ts"

type Entry<T> = { value: T; version: string; uid: string | undefined; epoch: number }

type StoreOptions<T extends Projected> = Pick<CacheOptions<T>, "project" | "indexes"> & {
  onListenerError: (key: string, error: unknown) => void
  /** Called once while an object stays unreadable. */
  onUnreadable: (key: string, error: unknown) => void
}

export type Store<T extends Projected> = ReturnType<typeof createStore<T>>

/**
 * The objects, their indexes and the subscribers. It receives what the server sends and keeps the newest, in whatever
 * order it arrives:
 *
 *   list     beginList · put … put · endList(version)     what was not put is gone; until endList it is still shown
 *   watch    beginWatch · put | remove | bookmark …        an older or repeated event changes nothing
 */
export function createStore<T extends Projected>(options: StoreOptions<T>) {
  const entries = new Map<string, Entry<T>>()
  const unreadable = createUnreadable(options.onUnreadable)
  const indexes = createIndexes<T>(options.indexes)
  const subscribers = createSubscribers<T>(options.onListenerError)
  const waiters = createWaiters()
  const history = createHistory(waiters.passed)
  const onceSynced = Promise.withResolvers<void>()

  let epoch = 0
  let listing = false
  let historyIsNew = false
  let hasSynced = false

  function drop(key: string, { value }: Entry<T>) {
    entries.delete(key)
    indexes.move(key, indexes.valuesOf(value, key), [])
    subscribers.notify({ key, before: value, initial: false })
  }

  /** The version that orders events, and what is known under that name. Undefined without a name or version. */
  function identify(object: KubeObject) {
    const { name, namespace, uid, resourceVersion: version } = object?.metadata ?? {}
    const key = typeof name === "string" ? keyOf({ name, namespace }) : ""
    if (!key || !isVersion(version)) {
      unreadable.skip(
        key,
        noVersion,
        new Error(`name ${JSON.stringify(name)} with resourceVersion ${JSON.stringify(version)}`),
      )
      return undefined
    }
    const held = entries.get(key)
    const deletion = history.deletions.get(key) ?? noVersion
    return { key, version, uid, held, deletion, unread: unreadable.versions.get(key) ?? noVersion }
  }

  function put(object: KubeObject) {
    const identity = identify(object)
    if (!identity) return
    const { key, version, uid, held, deletion, unread } = identity
    if (listing) {
      unreadable.listed(key)
    } else {
      if (history.isRepeated(version)) return
      history.advance(version)
    }

    if (held) {
      held.epoch = epoch
      if (historyIsNew ? version === held.version : compareVersions(version, held.version) <= 0) return
    }
    if (compareVersions(version, deletion) <= 0 || compareVersions(version, unread) <= 0) return

    const reborn = held !== undefined && held.uid !== uid
    let value: T
    let after: ReturnType<typeof indexes.valuesOf>
    try {
      value = options.project(object, held?.value)
      after = indexes.valuesOf(value, key)
    } catch (error) {
      if (reborn) drop(key, held)
      return unreadable.skip(key, version, error)
    }
    unreadable.versions.delete(key)

    if (reborn) drop(key, held)
    const before = reborn ? undefined : held?.value
    entries.set(key, { value, version, uid, epoch })
    indexes.move(key, before ? indexes.valuesOf(before, key) : [], after)
    subscribers.notify({ key, ...(before && { before }), after: value, initial: !hasSynced })
    waiters.shown(key, version)
  }

  function remove(object: KubeObject) {
    const identity = identify(object)
    if (!identity) return
    const { key, version, uid, held, deletion, unread } = identity
    if (!listing) history.advance(version)

    if (held) {
      // A deletion has a version of its own; some servers repeat the object's last one. The same version under another
      // uid is the deletion of another object.
      const order = compareVersions(version, held.version)
      if (order < 0 || (order === 0 && held.uid !== uid)) return
    }
    if (compareVersions(version, deletion) <= 0 || compareVersions(version, unread) < 0) return
    history.deletions.set(key, version)
    unreadable.versions.delete(key)
    if (held) drop(key, held)
  }

  return {
    entries,
    /** The versions of objects that could not be read. */
    unreadable: unreadable.versions,
    get progress() {
      return history.progress
    },
    get hasSynced() {
      return hasSynced
    },
    /** Resolves when the first list is complete; rejects if the signal is aborted before. */
    synced: (signal?: AbortSignal) => abortable(onceSynced.promise, signal),
    /** How many waiters and deletions are remembered: must not grow with time. */
    get remembered() {
      return { waiters: waiters.size, deletions: history.deletions.size }
    },

    /** With `historyIsNew`, the server was restored to an earlier state, and its answers count however old they are. */
    beginList(how: { historyIsNew: boolean }) {
      epoch++
      listing = true
      historyIsNew = how.historyIsNew
      history.deletions.clear()
      unreadable.beginList(how)
    },
    endList(version: string) {
      for (const [key, entry] of entries) if (entry.epoch !== epoch) drop(key, entry)
      unreadable.endList()
      if (historyIsNew) history.rewind()
      listing = historyIsNew = false
      hasSynced = true
      onceSynced.resolve()
      history.beginAt(version)
      history.advance(version)
    },
    /** A watch that was opened at `progress`. */
    beginWatch() {
      listing = false
      history.beginAt(history.progress)
    },
    put,
    remove,
    bookmark: history.bookmark,

    keysBy: indexes.keysBy,
    subscribe: (listener: (change: Change<T>) => void) => subscribers.add(listener, entries),
    async reached(key: string, version: string, signal?: AbortSignal) {
      if (!isVersion(version)) throw new Error(`resourceVersion ${JSON.stringify(version)} is not an integer`)
      signal?.throwIfAborted()
      const shown = entries.get(key)?.version ?? noVersion
      if (compareVersions(version, history.progress) <= 0 || compareVersions(version, shown) <= 0) return
      await waiters.wait(key, version, signal)
    },
  }
}

function abortable(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return promise
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const onAbort = () => reject(signal.reason)
    signal.addEventListener("abort", onAbort, { once: true })
    promise.then(() => {
      signal.removeEventListener("abort", onAbort)
      resolve()
    })
  })
}
