import { builtInGroups } from "#api/v1alpha1/serviceimage/index.ts"
import type { Router } from "#core/canary/router.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { resourceName } from "#runtime/resource.ts"
import { customResourceDefinitions, readKind, type ServedKind } from "../served-kind.ts"

export const servedPermissions: readonly Permission[] = [
  { resource: customResourceDefinitions, verbs: ["list", "watch"] },
]

/** Which kinds of routes the cluster has. */
export type Served = {
  /** Undefined until it is known. */
  isServed(kind: Router["kind"]): boolean | undefined
}

/**
 * The kind of a route may come and go: it is defined by what divides the requests. Its definition is watched from the
 * first Canary with such a route, so that a cluster without it is asked once and not again and again.
 */
export function createServed(wiring: Pick<Wiring, "watch">, onChange: (kind: Router["kind"]) => void): Served {
  const definitions = new Map<string, WatchedCache<ServedKind>>()
  return {
    isServed(kind) {
      if (!kind.group.includes(".") || builtInGroups.includes(kind.group)) return true
      const name = resourceName(kind)
      let cache = definitions.get(name)
      if (!cache) {
        cache = wiring.watch<ServedKind>(customResourceDefinitions, {
          project: readKind,
          fieldSelector: `metadata.name=${name}`,
        })
        definitions.set(name, cache)
        cache.subscribe(() => onChange(kind))
        cache.synced().then(
          () => onChange(kind),
          () => {},
        )
      }
      const definition = cache.get(name)
      if (definition) return definition.isEstablished && definition.versions.includes(kind.version)
      return cache.hasSynced ? false : undefined
    },
  }
}
