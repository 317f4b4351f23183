import type { Obj } from "../object.ts"
import { type Change, Shelf } from "./shelf.ts"

/**
 * A change on its way to the listeners. Bytes that one listener derives from it (an encoded event) are shared with the
 * others. They are released after the last listener has read them: the log keeps only objects.
 */
export type Delivery = { readonly change: Change; readonly shared: Map<string, Uint8Array> }

export type Commit = {
  place: string
  before: Obj | undefined
  /** The object to store, without its new resourceVersion; undefined: the object is removed. */
  after: Obj | undefined
  /** The field manager of the write, for the history. */
  manager: string
}

export type HistoryEntry = Change & { readonly manager: string }

export type StoreOptions = {
  /** Changes kept per place for watches that resume; older ones have expired. */
  keptChanges?: number
  /** Called synchronously with every committed write, so that tests can check invariants. */
  history?: ((entry: HistoryEntry) => void) | undefined
}

/**
 * All objects of a cluster under one revision counter. Objects are immutable: a reader may keep what it was given, so a
 * list is a snapshot and nothing is copied.
 */
export type Store = {
  readonly revision: number
  get(place: string, namespace: string | undefined, name: string): Obj | undefined
  list(place: string, namespace?: string): readonly Obj[]
  /** Undefined if that revision has been compacted. */
  listAt(place: string, revision: number, namespace?: string): readonly Obj[] | undefined
  since(place: string, revision: number): readonly Change[] | undefined
  commit(commit: Commit): Change
  /**
   * Delivers each later change of a place in the order of revisions, also those that a listener makes meanwhile. With a
   * name, only those of objects of that name: of thousands of agents, each watches the one object of its node.
   */
  subscribe(place: string, listener: (delivery: Delivery) => void, name?: string): () => void
  /** Keeps the changes of a place from now on: earlier revisions count as expired. */
  open(place: string): void
  /** Forgets the past up to a revision (default: all of it), as etcd does every five minutes. */
  compact(revision?: number): void
  /** All objects, to be saved. */
  dump(): { revision: number; objects: { place: string; object: Obj }[] }
}

/** No place contains a line break. */
const placeOf = (place: string, name: string) => `${place}\n${name}`

type Subscription = { listener: (delivery: Delivery) => void; since: number }

export function createStore(
  { keptChanges = 10_000, history }: StoreOptions = {},
  saved?: ReturnType<Store["dump"]>,
): Store {
  const shelves = new Map<string, Shelf>()
  const subscriptions = new Map<string, Set<Subscription>>()
  const undelivered: Change[] = []
  let revision = saved?.revision ?? 0
  let isDelivering = false

  const shelf = (place: string): Shelf => {
    const found = shelves.get(place) ?? new Shelf(keptChanges)
    shelves.set(place, found)
    return found
  }

  function* listenersOf({ place, object }: Change): Generator<Subscription> {
    yield* subscriptions.get(place) ?? []
    yield* subscriptions.get(placeOf(place, object.metadata.name)) ?? []
  }

  function deliver() {
    if (isDelivering) return // the loop below delivers it, so that every listener receives changes in order
    isDelivering = true
    try {
      for (let change = undelivered.shift(); change; change = undelivered.shift()) {
        const delivery: Delivery = { change, shared: new Map() }
        for (const subscription of listenersOf(change)) {
          if (change.revision <= subscription.since) continue // already in the state it began with
          try {
            subscription.listener(delivery)
          } catch (error) {
            // An error in a listener must not reach the writer, whose write is committed: it is thrown elsewhere.
            queueMicrotask(() => {
              throw error
            })
          }
        }
      }
    } finally {
      isDelivering = false
    }
  }

  for (const { place, object } of saved?.objects ?? []) shelf(place).restore(object)
  if (saved) for (const each of shelves.values()) each.compact(saved.revision)

  return {
    get revision() {
      return revision
    },
    get: (place, namespace, name) => shelves.get(place)?.get(namespace ?? "", name),
    list: (place, namespace) => shelves.get(place)?.list(namespace) ?? [],
    listAt: (place, at, namespace) => shelf(place).listAt(at, namespace),
    since: (place, at) => shelf(place).since(at),
    commit({ place, before, after, manager }) {
      const subject = after ?? before
      if (!subject) throw new Error("a commit is about an object")
      revision++
      const object = { ...subject, metadata: { ...subject.metadata, resourceVersion: String(revision) } }
      const type = !after ? "DELETED" : before ? "MODIFIED" : "ADDED"
      const change: Change = { revision, place, type, object, before }
      shelf(place).put(change)
      history?.({ ...change, manager })
      undelivered.push(change)
      deliver()
      return change
    },
    subscribe(place, listener, name) {
      const key = name === undefined ? place : placeOf(place, name)
      const listeners = subscriptions.get(key) ?? new Set()
      subscriptions.set(key, listeners)
      const subscription = { listener, since: revision }
      listeners.add(subscription)
      return () => {
        listeners.delete(subscription)
        if (listeners.size === 0 && subscriptions.get(key) === listeners) subscriptions.delete(key)
      }
    },
    open: place => shelf(place).compact(revision),
    compact(to = revision) {
      for (const each of shelves.values()) each.compact(to)
    },
    dump: () => ({
      revision,
      objects: [...shelves].flatMap(([place, each]) => each.list(undefined).map(object => ({ place, object }))),
    }),
  }
}
