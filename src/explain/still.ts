import type { Instant } from "#lib/instant.ts"
import type { CacheOptions, Projected } from "#runtime/cache/cache.ts"
import { stillCache } from "#runtime/cache/still.ts"
import type { Client } from "#runtime/client/client.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { Wiring } from "#runtime/controller.ts"
import { seededRandom } from "#runtime/random.ts"
import type { Resource } from "#runtime/resource.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { type Inventory, kindOf } from "./inventory.ts"

/**
 * The wiring of a controller where nothing moves: its caches show an inventory, its clock stands still, enqueued keys
 * are dropped, and there is no server to ask. So a controller's own index can explain what was read. With a namespace,
 * only the objects of that one. Selectors are not applied: an inventory may hold more objects of a kind than the
 * controller watches.
 */
export function stillWiring(inventory: Inventory, now: Instant, namespace?: string): Wiring {
  return {
    clock: virtualClock(now),
    watch<T extends Projected>(resource: Resource, options: CacheOptions<T>) {
      const kind = kindOf(resource)
      const isWhole = namespace === undefined || !resource.namespaced
      return stillCache<T>(isWhole ? inventory.of(kind).values() : inventory.in(namespace, kind), options)
    },
    enqueue: () => {},
    enqueueAfter: () => {},
    client: noServer,
    random: seededRandom(0),
    log: silentLogger,
    events: { record: () => {}, flush: async () => {} },
    identity: "",
    signal: new AbortController().signal,
  }
}

const noServer = new Proxy({} as Client, {
  get: (_, call) => () => {
    throw new Error(`an explanation reads an inventory, and asked the server to ${String(call)}`)
  },
})
