import type { KubeError } from "../client/errors.ts"
import type { KubeObject, ObjectName } from "../resource.ts"

/** What a cache keeps of an object: the result of `project`. The rest of the JSON is dropped as it is parsed. */
export type Projected = { readonly resourceVersion: string }

export type Change<T> = {
  key: string
  before?: T
  after?: T
  /** Part of the first list: the object did not change, it is only new to us. Such work can wait. */
  initial: boolean
}

export type CacheOptions<T extends Projected> = {
  /**
   * Parses an object once into the fields that are used; must keep the resourceVersion. `before` is what the cache had
   * under that name: parts that did not change may be kept as they are.
   */
  project: (object: KubeObject, before?: T) => T
  /** Named indexes, updated with each event: the values under which an object is found. */
  indexes?: Record<string, (object: T, key: string) => readonly string[]>
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** The server sends only metadata, so `project` gets nothing else. */
  metadataOnly?: boolean
}

/** Some objects of a cache. */
export type Some = {
  readonly labelSelector: string
  /** Those of them that the cache shows. */
  readonly keys: ReadonlySet<string>
}

/** A live, eventually consistent copy of one resource: a list, then a watch until the signal is aborted. */
export type Cache<T extends Projected> = {
  get(key: string): T | undefined
  entries(): IterableIterator<[string, T]>
  readonly size: number
  /** Keys of the objects that have `value` in the index `name`: a live view, to be read now and not kept. */
  keysBy(name: string, value: string): ReadonlySet<string>
  /**
   * Calls back after each change, in order, once the cache and its indexes show it. A late subscriber first gets the
   * present objects, as `initial`. An object that was deleted and created again under its name is two changes, even if
   * we only saw a list. Returns the function to unsubscribe.
   */
  subscribe(listener: (change: Change<T>) => void): () => void
  /** True once the first list is complete. Before, an absent object means nothing. */
  readonly hasSynced: boolean
  synced(signal?: AbortSignal): Promise<void>
  /**
   * Read-your-writes: resolves when the cache shows this object at this resourceVersion or a later one (or knows it
   * deleted). Rejects on abort. resourceVersions are integers within one resource (KEP-5504).
   */
  reached(name: ObjectName, resourceVersion: string, signal?: AbortSignal): Promise<void>
  /**
   * Resolves when the cache shows everything that the server had committed when this was called, by a version that is
   * read from the server. Where nothing changes, this takes a second: the server has to be asked how far it is. `some`:
   * only these objects have to be shown. A few of them are compared with a list, which takes no longer than that list.
   * Rejects on abort.
   */
  catchUp(signal?: AbortSignal, some?: Some): Promise<void>
  /**
   * The last error while the cache is not connected, undefined while it is. With an error, the objects may be old, and
   * nothing may be concluded from an absent one. A broken watch counts until the server sends something again.
   */
  readonly failure: KubeError | undefined
  /**
   * Objects that exist but that `project` could not read: key and resourceVersion. The cache goes on showing the last
   * readable version, if there was one: an unreadable object is not a deleted one.
   */
  readonly unreadable: ReadonlyMap<string, string>
  /** Milliseconds since the server last sent anything, events and bookmarks alike. */
  stalenessMs(): number
  /** Runs until the signal is aborted. Never rejects for trouble with the server. */
  run(signal: AbortSignal): Promise<void>
}

/** A cache in the hands of a controller, for as long as the controller needs it. */
export type WatchedCache<T extends Projected> = Cache<T> & {
  /**
   * In sync, and shows everything that was committed when this process began to lead. A cache that was opened before (a
   * warm one) may be behind until then: the last writes of another leader may be missing.
   */
  readonly isCurrent: boolean
  /** Resolves when it is; never if it is closed before. */
  current(): Promise<void>
  close(): void
}
