import { createCache } from "#runtime/cache/create-cache.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeError } from "#runtime/client/errors.ts"
import type { Clock } from "#runtime/clock.ts"
import { type Held, holdPlain } from "#runtime/kind-controller.ts"
import type { Random } from "#runtime/random.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { nameOf } from "#runtime/resource.ts"
import { baseOf, type KindPage } from "./kinds/kind.ts"
import type { Followed } from "./shared.ts"
import type { Details, Row, RowBase } from "./wire.ts"

/** The objects of one kind in one scope, cut to rows once for all viewers. */
export type FollowedList = Followed & {
  readonly hasSynced: boolean
  readonly failure: KubeError | undefined
  keys(): Iterable<string>
  object(key: string): KubeObject | undefined
  row(key: string): Row | undefined
  details(key: string): Partial<Details>
  /** Called with the key of each object that changes; with none when the connection does. */
  subscribe(listener: (key: string | undefined) => void): () => void
}

export type Around = { clock: Clock; random: Random; clusterNow: () => number }

/** How often a rate is computed anew although nothing has changed, and the state of the connection is read. */
const refreshMs = 5000

export function followList(
  page: KindPage,
  namespace: string | undefined,
  client: Client,
  { clock, random, clusterNow }: Around,
): FollowedList {
  const cutter = page.open({ now: clusterNow })
  const listeners = new Set<(key: string | undefined) => void>()
  const rows = new Map<string, Row>()
  const cache = createCache<Held<KubeObject>>({ client, clock, random }, page.resource, {
    project: holdPlain,
    ...(namespace !== undefined && { namespace }),
    ...(page.labelSelector !== undefined && { labelSelector: page.labelSelector }),
  })
  const tell = (key: string | undefined) => {
    for (const listener of listeners) listener(key)
  }
  cache.subscribe(({ key, after }) => {
    if (after) rows.set(key, cut(key, after.object))
    else {
      rows.delete(key)
      cutter.forget?.(key)
    }
    tell(key)
  })
  // An object that cannot be read is one marked line.
  function cut(key: string, object: KubeObject): Row {
    try {
      return cutter.row(object)
    } catch (error) {
      return unreadable(key, page, error)
    }
  }

  let life = new AbortController()
  let running: Promise<void> = Promise.resolve()
  const run = () => {
    const { signal } = life
    running = cache.run(signal).catch(() => {})
    cache.synced(signal).then(
      () => tell(undefined),
      () => {},
    )
  }
  run()
  let wasFailing = false
  let cancel = clock.after(refreshMs, function refresh() {
    cancel = clock.after(refreshMs, refresh)
    for (const [key, row] of rows) {
      if (!("progress" in row) || !row.progress.rate) continue
      rows.set(key, cut(key, cache.get(key)!.object))
      tell(key)
    }
    const isFailing = cache.failure !== undefined
    if (isFailing || wasFailing) tell(undefined)
    wasFailing = isFailing
  })

  return {
    get hasSynced() {
      return cache.hasSynced
    },
    get failure() {
      return cache.failure
    },
    keys: () => rows.keys(),
    object: key => cache.get(key)?.object,
    row: key => rows.get(key),
    details(key) {
      const held = cache.get(key)
      try {
        return held ? cutter.details(held.object) : {}
      } catch {
        return {}
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    restart() {
      life.abort()
      life = new AbortController()
      // It lists again with the other credentials, and shows what is different.
      running.then(run)
    },
    close() {
      cancel()
      life.abort()
    },
  }
}

/** A line that says why the object cannot be shown. */
function unreadable(key: string, page: KindPage, error: unknown): Row {
  const { name, namespace } = nameOf(key)
  const base: RowBase = {
    ...baseOf({ metadata: { name, ...(namespace && { namespace }) } }, page.resource),
    attention: "Look",
    state: "Unreadable",
    reason: "Unreadable",
    message: "",
    unreadable: `this object cannot be read: ${String(error).slice(0, 200)}`,
  }
  return { ...base, view: "plain", state: "NotSeenYet", cells: [] }
}
