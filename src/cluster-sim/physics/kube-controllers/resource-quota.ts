import type { ServedKind } from "../../apiserver/kind.ts"
import { countsKind, isInScope, only, plus, type Quantities, quantities, texts, usageOf } from "../../limits/index.ts"
import type { Obj } from "../../object.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { keyOf, loop, nameOf, servedKind, type Watch } from "./loop.ts"
import { manager } from "./owned.ts"
import { isTerminal } from "./pods.ts"
import { same } from "./same.ts"

/** Everything is recounted at this interval, whatever has changed. */
const resyncMs = 5 * 60_000

/**
 * Updates status.hard and status.used of ResourceQuotas. The API server charges creates; this controller recounts when
 * an object is deleted or ends. Reads everything that a quota counts; writes the status of quotas.
 */
export function resourceQuotaController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const quotas = servedKind(storage, "v1", "ResourceQuota")
  const isSpent = (object: Obj) => object.kind === "Pod" && isTerminal(object)

  /** The quotas of the namespace that count objects of this kind. */
  const counting = (kind: ServedKind, { metadata: { namespace } }: Obj) =>
    storage
      .list(quotas, { namespace })
      .items.filter(({ spec }) => Object.keys(spec?.hard ?? {}).some(name => countsKind(name, kind)))
      .map(keyOf)

  const replenishing = (kind: ServedKind): Watch => ({
    apiVersion: kind.group ? `${kind.group}/${kind.version}` : kind.version,
    kind: kind.kind,
    keys: ({ type, object, before }) =>
      type === "DELETED" || (before && isSpent(object) && !isSpent(before)) ? counting(kind, object) : [],
  })

  function usedBy(quota: Obj): Quantities {
    const hard = quantities(quota.spec?.hard)
    let used: Quantities = only(hard, () => true)
    for (const name of Object.keys(used)) used[name] = { nano: 0n, format: "DecimalSI" }
    for (const kind of storage.kinds()) {
      if (!kind.namespaced || !Object.keys(hard).some(name => countsKind(name, kind))) continue
      for (const object of storage.list(kind, { namespace: quota.metadata.namespace }).items)
        if (isInScope(quota, kind, object))
          used = plus(
            used,
            only(usageOf(kind, object, clock.now()), name => Object.hasOwn(hard, name)),
          )
    }
    return used
  }

  const kinds = storage.kinds().filter(kind => kind.namespaced && kind.kind !== "Event" && !kind.isCustom)
  return loop(world, {
    name: "resourcequota-controller",
    watches: [
      {
        apiVersion: "v1",
        kind: "ResourceQuota",
        // The API server writes the status with every charge, which needs no recount.
        keys: ({ object, before }) => (before && same(before.spec, object.spec) ? [] : [keyOf(object)]),
      },
      ...kinds.map(replenishing),
    ],
    reconcile(key) {
      const quota = storage.find(quotas, nameOf(key))
      if (!quota || quota.metadata.deletionTimestamp) return undefined
      const status = { hard: quota.spec?.hard, used: texts(usedBy(quota)) }
      if (quota.spec?.hard && !same(status, quota.status))
        storage.update(quotas, { ...quota, status }, { ...manager, subresource: "status" })
      return resyncMs
    },
  })
}
