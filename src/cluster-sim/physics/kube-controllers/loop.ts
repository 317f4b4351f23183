import { jitter } from "#runtime/random.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { StorageChange } from "../../apiserver/storage.ts"
import type { Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createTimers } from "../timers.ts"
import type { Part, PhysicsWorld } from "../world.ts"

/** A watched kind, and the keys that a change of it queues. At the start every object counts as added. */
export type Watch = {
  apiVersion: string
  kind: string
  keys(change: StorageChange): Iterable<string>
  /** Changes are collected for this long before their keys are reconciled. */
  delayMs?: number
}

export type LoopOptions = {
  name: string
  watches: readonly Watch[]
  /** Reconciles one key. Returns after how many milliseconds to do it again, if time alone changes the outcome. */
  reconcile(key: string): number | undefined
  /** Called before the watches begin, e.g. to build an index, which must be updated before a change queues its keys. */
  begin?(): () => void
}

/** The time from a change to its reconcile: an informer, a queue and a round trip. */
const latencyMs = 4
const backoffMsBase = 5
const backoffMsMax = 1_000_000

/**
 * The shell of every controller. Changes queue keys, and a key is reconciled a few milliseconds later, once however
 * often it was queued. The jitter comes from the world's seed, so that another seed is another interleaving.
 *
 * Controllers read the storage itself, not a cache that lags. They see their own writes, so they need no expectations
 * and never act twice. Changes that they miss while stopped are in the list at the next start.
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
        const at = clock.monotonic() + ms
        const known = dueAt.get(key)
        if (known !== undefined && known <= at) return
        dueAt.set(key, at)
        timers.after(ms, () => {
          if (dueAt.get(key) !== at) return // replaced by an earlier timer, which has run
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
          // A refusal is normal and is retried; any other error is a bug of ours and stops the run.
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

/** The served kind. Asking for a kind that is not served is a bug. */
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
