import type { Instant } from "#lib/instant.ts"
import type { CacheOptions, Projected } from "#runtime/cache/cache.ts"
import { stillCache } from "#runtime/cache/still.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Resource } from "#runtime/resource.ts"
import { type Inventory, kindOf } from "./inventory.ts"

/**
 * The wiring of a controller where nothing moves: its caches show an inventory, its clock stands still, and enqueued
 * keys are dropped. So a controller's own index can explain what was read. With a namespace, only the objects of that
 * one.
 */
export function stillWiring(
  inventory: Inventory,
  now: Instant,
  namespace?: string,
): Pick<Wiring, "clock" | "watch" | "enqueue" | "enqueueAfter"> {
  return {
    clock: virtualClock(now),
    watch<T extends Projected>(resource: Resource, options: CacheOptions<T>) {
      const kind = kindOf(resource)
      const isWhole = namespace === undefined || !resource.namespaced
      return stillCache<T>(isWhole ? inventory.of(kind).values() : inventory.in(namespace, kind), options)
    },
    enqueue: () => {},
    enqueueAfter: () => {},
  }
}
