import { jitter } from "#runtime/random.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { StorageChange } from "../../apiserver/storage.ts"
import type { Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import type { Part, PhysicsWorld } from "../world.ts"

/** Which kind a controller watches, and which keys a change of it wakes. At the start every object counts as added. */
export type Watch = {
  apiVersion: string
  kind: string
  keys(change: StorageChange): Iterable<string>
  /** Changes are gathered for this long before their keys are looked at. */
  delayMs?: number
}

export type LoopOptions = {
  name: string
  watches: readonly Watch[]
  /** Looks at one key and acts; says in how many milliseconds to look again, if time alone would change the answer. */
  reconcile(key: string): number | undefined
  /** Called before the watches begin (to build an index, which must hear of a change before the keys it wakes). */
  begin?(): () => void
}

/** Between the change and the look at it: an informer, a queue and a round trip. */
const latencyMs = 4
const backoffMsBase = 5
const backoffMsMax = 1_000_000

/**
 * The shell of every controller: changes wake keys, a key is looked at a few milliseconds later, once however often it
 * was woken. The jitter comes from the world's seed, so that another seed is another interleaving.
 *
 * Controllers read the storage itself, not a cache that lags: what they wrote they see, so they need no expectations
 * and never do a thing twice. What they miss while stopped they find in the list at the next start.
 */
export function loop({ storage, clock, random }: PhysicsWorld, options: LoopOptions): Part {
  const { name, watches, reconcile, begin } = options
  return {
    name,
    start() {
      const dueAt = new Map<string, number>()
      const failures = new Map<string, number>()
      const timers = createTimers(clock)
      const stops: (() => void)[] = []

      function wake(key: string, ms: number) {
        // In eighths, which a sum with the time of day keeps exactly: a timer is never a rounding error early.
        const at = clock.monotonic() + Math.ceil(ms * 8) / 8
        const known = dueAt.get(key)
        if (known !== undefined && known <= at) return
        dueAt.set(key, at)
        timers.at(at, () => {
          if (dueAt.get(key) !== at) return // replaced by an earlier one, which has run
          dueAt.delete(key)
          work(key)
        })
      }

      function work(key: string) {
        try {
          const again = reconcile(key)
          failures.delete(key)
          if (again !== undefined) wake(key, Math.max(1, again))
        } catch (error) {
          // A refusal is part of the world and is tried again; anything else is a bug of ours and stops the run.
          if (!(error instanceof StatusError)) throw error
          const failed = failures.get(key) ?? 0
          failures.set(key, failed + 1)
          wake(key, jitter(random, Math.min(backoffMsMax, backoffMsBase * 2 ** failed)))
        }
      }

      if (begin) stops.push(begin())
      for (const { apiVersion, kind, keys, delayMs = 0 } of watches) {
        const served = servedKind(storage, apiVersion, kind)
        const hear = (change: StorageChange) => {
          for (const key of keys(change)) wake(key, delayMs + jitter(random, latencyMs, 0.75))
        }
        for (const object of storage.list(served).items) hear({ type: "ADDED", object })
        stops.push(storage.subscribe(served, hear))
      }
      return () => {
        for (const stop of stops.splice(0)) stop()
        timers.clear()
        dueAt.clear()
      }
    },
  }
}

/** Many times, one timer of the clock: the due ones run in the order of their times, and of their asking. */
function createTimers(clock: PhysicsWorld["clock"]) {
  type Entry = { at: number; order: number; callback: () => void }
  const heap: Entry[] = []
  let order = 0
  let armed: { at: number; cancel: () => void } | undefined

  const before = (a: Entry, b: Entry) => a.at < b.at || (a.at === b.at && a.order < b.order)
  function push(entry: Entry) {
    let index = heap.push(entry) - 1
    for (let up = (index - 1) >> 1; index > 0 && before(entry, heap[up]!); up = (index - 1) >> 1) {
      heap[index] = heap[up]!
      index = up
    }
    heap[index] = entry
  }
  function pop(): Entry {
    const top = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return top
    let index = 0
    for (let child = 1; child < heap.length; child = 2 * index + 1) {
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (before(last, heap[child]!)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
    return top
  }
  function arm() {
    const at = heap[0]?.at
    if (armed && at !== undefined && armed.at <= at) return
    armed?.cancel()
    armed = at === undefined ? undefined : { at, cancel: clock.after(at - clock.monotonic(), fire) }
  }
  function fire() {
    armed = undefined
    const now = clock.monotonic()
    try {
      while (heap[0] && heap[0].at <= now) pop().callback()
    } finally {
      arm()
    }
  }
  return {
    at(at: number, callback: () => void) {
      push({ at, order: order++, callback })
      arm()
    },
    clear() {
      heap.length = 0
      armed?.cancel()
      armed = undefined
    },
  }
}

/** The kind as it is served; asking for one that is not is a bug. */
export function servedKind(storage: PhysicsWorld["storage"], apiVersion: string, kind: string): ServedKind {
  const served = storage.kind(apiVersion, kind)
  if (!served) throw new Error(`${apiVersion} ${kind} is not served`)
  return served
}

export const keyOf = ({ metadata: { namespace, name } }: Obj) => (namespace ? `${namespace}/${name}` : name)

export function nameOf(key: string): { namespace?: string; name: string } {
  const slash = key.indexOf("/")
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}
