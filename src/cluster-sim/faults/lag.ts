import type { Clock } from "#runtime/clock.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { notFound } from "../apiserver/refusals.ts"
import { selector } from "../apiserver/selectors.ts"
import type { KindStorage, Name, Selection, StorageChange } from "../apiserver/storage.ts"
import type { Obj } from "../object.ts"
import type { Part, PhysicsWorld } from "../physics/world.ts"

/**
 * A process of the control plane that is behind or stopped. It reads from a cache that its watches fill, one for each
 * kind. It writes to the API server, which answers a write from an old version with a conflict. It always sees its own
 * writes, as controllers with expectations do.
 */
export type Lag = {
  /** The world as this process sees it: its parts read and write through the fault. */
  world(world: PhysicsWorld): PhysicsWorld
  /** Delays the watch events of these kinds (default: every kind). 0 ends the delay. */
  behind(ms: number, kinds?: readonly string[]): void
  /** SIGSTOP: nothing is read and nothing is done. */
  stop(): void
  /** SIGCONT: overdue timers fire at once, with the view from the time of the stop. Then the watches go on. */
  resume(): void
}

/** Wraps the named parts with their faults. Other parts are unchanged and cost nothing more. */
export const lagging =
  (make: (world: PhysicsWorld) => Part, lags: Readonly<Record<string, Lag>>) =>
  (world: PhysicsWorld): Part => {
    const part = make(world)
    const lag = Object.hasOwn(lags, part.name) ? lags[part.name] : undefined
    return lag ? make(lag.world(world)) : part
  }

export function createLag(): Lag {
  const views = new Set<View>()
  let isStopped = false
  let waiting: (() => void)[] = []
  let delayOf: (kind: string) => number = () => 0

  const pausable = (clock: Clock): Clock => ({
    ...clock,
    after(ms, callback) {
      let isCancelled = false
      const run = () => {
        if (isCancelled) return
        if (isStopped) waiting.push(run)
        else callback()
      }
      const cancel = clock.after(ms, run)
      return () => {
        isCancelled = true
        cancel()
      }
    },
  })

  return {
    world(world) {
      const view = createView(world, { delayOf: kind => delayOf(kind), isStopped: () => isStopped })
      views.add(view)
      return { ...world, clock: pausable(world.clock), storage: view.storage }
    },
    behind(ms, kinds) {
      delayOf = kind => (!kinds || kinds.includes(kind) ? ms : 0)
      for (const view of views) view.deliver()
    },
    stop() {
      isStopped = true
    },
    resume() {
      isStopped = false
      const due = waiting
      waiting = []
      for (const run of due) run()
      for (const view of views) view.deliver()
    },
  }
}

type View = { storage: KindStorage; deliver(): void }
type Cached = {
  kind: ServedKind
  objects: Map<string, Obj>
  /** The versions that this process wrote and its watch has not delivered yet. */
  written: Map<string, number>
  listeners: Set<(change: StorageChange) => void>
  queue: { change: StorageChange; at: number }[]
  /** Set while a timer waits for the first of the queue. */
  cancel: (() => void) | undefined
}

const keyOf = ({ namespace, name }: Name) => `${namespace ?? ""}/${name}`
const versionOf = ({ metadata }: Obj) => Number(metadata.resourceVersion)

/** The storage as one process sees it. */
function createView(
  { storage, clock }: PhysicsWorld,
  { delayOf, isStopped }: { delayOf(kind: string): number; isStopped(): boolean },
): View {
  const caches = new Map<string, Cached>()

  function cacheOf(kind: ServedKind): Cached {
    const id = `${kind.group}/${kind.version}/${kind.kind}`
    const known = caches.get(id)
    if (known) return known
    const objects = new Map(storage.list(kind).items.map(object => [keyOf(object.metadata), object]))
    const cached: Cached = { kind, objects, written: new Map(), listeners: new Set(), queue: [], cancel: undefined }
    caches.set(id, cached)
    storage.subscribe(kind, change => {
      cached.queue.push({ change, at: clock.monotonic() })
      deliver(cached)
    })
    return cached
  }

  /** Delivers the changes that are due, in order, and waits for the rest. */
  function deliver(cached: Cached) {
    cached.cancel?.()
    cached.cancel = undefined
    const { queue, kind } = cached
    while (queue[0] && !isStopped()) {
      const waitMs = queue[0].at + delayOf(kind.kind) - clock.monotonic()
      if (waitMs > 0) {
        cached.cancel = clock.after(waitMs, () => deliver(cached))
        return
      }
      hear(cached, queue.shift()!.change)
    }
  }

  /** A change delivered by a watch. Ignored if this process wrote it or wrote a later version: its view is newer. */
  function hear(cached: Cached, change: StorageChange) {
    const key = keyOf(change.object.metadata)
    const written = cached.written.get(key)
    if (written !== undefined && versionOf(change.object) >= written) cached.written.delete(key)
    if (written === undefined || versionOf(change.object) > written) see(cached, change)
  }

  function see(cached: Cached, { type, object }: StorageChange) {
    const key = keyOf(object.metadata)
    const before = cached.objects.get(key)
    if (type === "DELETED" && !before) return
    if (type === "DELETED") cached.objects.delete(key)
    else cached.objects.set(key, object)
    const seen = type === "DELETED" ? type : before ? "MODIFIED" : "ADDED"
    for (const listener of [...cached.listeners]) listener({ type: seen, object, ...(before && { before }) })
  }

  /** The outcome of this process's own write, visible at once. */
  function own(kind: ServedKind, object: Obj): Obj {
    const { name, namespace, uid } = object.metadata
    const cached = cacheOf(kind)
    const isThere = storage.find(kind, { name, namespace })?.metadata.uid === uid
    cached.written.set(keyOf(object.metadata), versionOf(object))
    see(cached, { type: isThere ? "MODIFIED" : "DELETED", object })
    return object
  }

  const find = (kind: ServedKind, name: Name) =>
    cacheOf(kind).objects.get(keyOf(kind.namespaced ? name : { name: name.name }))

  return {
    deliver() {
      for (const cached of caches.values()) deliver(cached)
    },
    storage: {
      ...storage,
      find,
      get(kind, name) {
        const found = find(kind, name)
        if (!found) throw notFound(kind, name.name)
        return found
      },
      list(kind, selection: Selection = {}) {
        const matches = selector(kind, selection)
        const items = [...cacheOf(kind).objects]
          .filter(([, object]) => !selection.namespace || object.metadata.namespace === selection.namespace)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([, object]) => object)
        return { resourceVersion: "", items: matches ? items.filter(matches) : items }
      },
      create: (kind, object, options) => own(kind, storage.create(kind, object, options)),
      update: (kind, object, options) => own(kind, storage.update(kind, object, options)),
      patch: (kind, name, patch, options) => own(kind, storage.patch(kind, name, patch, options)),
      delete: (kind, name, options) => own(kind, storage.delete(kind, name, options)),
      subscribe(kind, listener) {
        const { listeners } = cacheOf(kind)
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    },
  }
}
