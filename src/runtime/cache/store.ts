import { compareVersions, isVersion, noVersion } from "#lib/resource-version.ts"
import { type KubeObject, keyOf } from "../resource.ts"
import type { CacheOptions, Change, Projected } from "./cache.ts"
import { createWaiters } from "./waiters.ts"

type Entry<T> = { value: T; version: string; uid: string | undefined; epoch: number }
type Subscriber<T> = { listener: (change: Change<T>) => void; active: boolean }
type Indexes<T> = Map<
  string,
  { valuesOf: (object: T, key: string) => readonly string[]; keys: Map<string, Set<string>> }
>

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
  /** Versions of objects that could not be read. */
  const unreadable = new Map<string, string>()
  const indexes: Indexes<T> = new Map()
  for (const [name, valuesOf] of Object.entries(options.indexes ?? {})) indexes.set(name, { valuesOf, keys: new Map() })
  const waiters = createWaiters()
  const onceSynced = Promise.withResolvers<void>()
  let subscribers: readonly Subscriber<T>[] = []

  let epoch = 0
  let listing = false
  let historyIsNew = false
  let unreadableInList = new Set<string>()
  let hasSynced = false

  /** Everything up to this version has been shown. */
  let progress = noVersion
  /** The server promised to send nothing older on this watch: an older event is a repetition. */
  let floor = noVersion
  let lastBookmark = noVersion
  /** Versions of deletions that are newer than `floor`: without them a late event would restore a deleted object. */
  const deletions = new Map<string, string>()

  /** Every index's values for one object, computed before anything is changed: an index may throw. */
  const indexValues = (value: T, key: string) => [...indexes.values()].map(({ valuesOf }) => [...valuesOf(value, key)])

  function reindex(key: string, before: readonly (readonly string[])[], after: readonly (readonly string[])[]) {
    let position = 0
    for (const { keys } of indexes.values()) {
      const old = before[position] ?? []
      const now = after[position++] ?? []
      for (const value of old) {
        if (now.includes(value)) continue
        const found = keys.get(value)
        found?.delete(key)
        if (found?.size === 0) keys.delete(value)
      }
      for (const value of now) {
        const found = keys.get(value)
        if (found) found.add(key)
        else keys.set(value, new Set([key]))
      }
    }
  }

  function call(subscriber: Subscriber<T>, change: Change<T>) {
    try {
      const returned: unknown = subscriber.listener(change)
      // The type system allows an async listener, whose rejection would end the process.
      if (returned instanceof Promise) returned.catch(error => options.onListenerError(change.key, error))
    } catch (error) {
      options.onListenerError(change.key, error)
    }
  }

  function notify(change: Change<T>) {
    for (const subscriber of subscribers) if (subscriber.active) call(subscriber, change)
  }

  function drop(key: string, { value }: Entry<T>) {
    entries.delete(key)
    reindex(key, indexValues(value, key), [])
    notify({ key, before: value, initial: false })
  }

  /** Skips an unreadable object, and reports it only once: one hostile object must not stop the others. */
  function skip(key: string, version: string, error: unknown) {
    unreadableInList.add(key)
    const isNews = !unreadable.has(key)
    unreadable.set(key, version)
    if (isNews) options.onUnreadable(key, error)
  }

  /** The version that orders events, and what is known under that name. Undefined without a name or version. */
  function identify(object: KubeObject) {
    const { name, namespace, uid, resourceVersion: version } = object?.metadata ?? {}
    const key = typeof name === "string" ? keyOf({ name, namespace }) : ""
    if (!key || !isVersion(version)) {
      skip(key, noVersion, new Error(`name ${JSON.stringify(name)} with resourceVersion ${JSON.stringify(version)}`))
      return undefined
    }
    const held = entries.get(key)
    const deletion = deletions.get(key) ?? noVersion
    return { key, version, uid, held, deletion, unread: unreadable.get(key) ?? noVersion }
  }

  function put(object: KubeObject) {
    const identity = identify(object)
    if (!identity) return
    const { key, version, uid, held, deletion, unread } = identity
    if (listing) {
      if (unreadable.has(key)) unreadableInList.add(key)
    } else {
      if (compareVersions(version, floor) <= 0) return
      advance(version)
    }

    if (held) {
      held.epoch = epoch
      if (historyIsNew ? version === held.version : compareVersions(version, held.version) <= 0) return
    }
    if (compareVersions(version, deletion) <= 0 || compareVersions(version, unread) <= 0) return

    const reborn = held !== undefined && held.uid !== uid
    let value: T
    let after: string[][]
    try {
      value = options.project(object)
      after = indexValues(value, key)
    } catch (error) {
      if (reborn) drop(key, held)
      return skip(key, version, error)
    }
    unreadable.delete(key)

    if (reborn) drop(key, held)
    const before = reborn ? undefined : held?.value
    entries.set(key, { value, version, uid, epoch })
    reindex(key, before ? indexValues(before, key) : [], after)
    notify({ key, ...(before && { before }), after: value, initial: !hasSynced })
    waiters.shown(key, version)
  }

  function remove(object: KubeObject) {
    const identity = identify(object)
    if (!identity) return
    const { key, version, uid, held, deletion, unread } = identity
    if (!listing) advance(version)

    if (held) {
      // A deletion has a version of its own; some servers repeat the object's last one. The same version under another
      // uid is the deletion of another object.
      const order = compareVersions(version, held.version)
      if (order < 0 || (order === 0 && held.uid !== uid)) return
    }
    if (compareVersions(version, deletion) <= 0 || compareVersions(version, unread) < 0) return
    deletions.set(key, version)
    unreadable.delete(key)
    if (held) drop(key, held)
  }

  function advance(version: string) {
    if (compareVersions(version, progress) <= 0) return
    progress = version
    waiters.passed(version)
  }

  return {
    entries,
    unreadable,
    get progress() {
      return progress
    },
    get hasSynced() {
      return hasSynced
    },
    /** Resolves when the first list is complete; rejects if the signal is aborted before. */
    synced: (signal?: AbortSignal) => abortable(onceSynced.promise, signal),
    /** How many waiters and deletions are remembered: must not grow with time. */
    get remembered() {
      return { waiters: waiters.size, deletions: deletions.size }
    },

    /** With `historyIsNew`, the server was restored to an earlier state, and its answers count however old they are. */
    beginList(how: { historyIsNew: boolean }) {
      epoch++
      listing = true
      historyIsNew = how.historyIsNew
      unreadableInList = new Set()
      deletions.clear()
      if (historyIsNew) unreadable.clear()
    },
    endList(version: string) {
      for (const [key, entry] of entries) if (entry.epoch !== epoch) drop(key, entry)
      for (const key of unreadable.keys()) if (!unreadableInList.has(key)) unreadable.delete(key)
      if (historyIsNew) progress = noVersion
      listing = historyIsNew = false
      hasSynced = true
      onceSynced.resolve()
      floor = lastBookmark = version
      deletions.clear()
      advance(version)
    },
    /** A watch that was opened at `progress`. */
    beginWatch() {
      listing = false
      floor = lastBookmark = progress
      deletions.clear()
    },
    put,
    remove,
    bookmark(version: string) {
      if (compareVersions(version, lastBookmark) <= 0) return
      advance(version)
      // One bookmark behind, so that an event that a bookmark overtook does not count as a repetition.
      floor = lastBookmark
      lastBookmark = version
      for (const [key, deletion] of deletions) if (compareVersions(deletion, floor) <= 0) deletions.delete(key)
    },

    keysBy(name: string, value: string): ReadonlySet<string> {
      const index = indexes.get(name)
      if (!index) throw new Error(`there is no index named ${name}`)
      return index.keys.get(value) ?? noKeys
    },
    subscribe(listener: (change: Change<T>) => void) {
      const subscriber = { listener, active: true }
      for (const [key, { value }] of entries) call(subscriber, { key, after: value, initial: true })
      subscribers = [...subscribers, subscriber]
      return () => {
        subscriber.active = false
        subscribers = subscribers.filter(other => other !== subscriber)
      }
    },
    async reached(key: string, version: string, signal?: AbortSignal) {
      if (!isVersion(version)) throw new Error(`resourceVersion ${JSON.stringify(version)} is not an integer`)
      signal?.throwIfAborted()
      const shown = entries.get(key)?.version ?? noVersion
      if (compareVersions(version, progress) <= 0 || compareVersions(version, shown) <= 0) return
      await waiters.wait(key, version, signal)
    },
  }
}

const noKeys: ReadonlySet<string> = new Set()

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
