import { isSharedBy } from "#core/canary/sharing.ts"
import type { Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { core, type KubeObject } from "#runtime/resource.ts"

/** Which namespaces let others use their MetricTemplates and AlertProviders. */
export type Sharing = { isShared(namespace: string, signal?: AbortSignal): Promise<boolean> }

const namespaces = core("namespaces", "Namespace", false)
export const sharingPermissions: readonly Permission[] = [{ resource: namespaces, verbs: ["list", "watch"] }]

type NamespaceSeen = Projected & { readonly isShared: boolean }

const readNamespace = ({ metadata }: KubeObject): NamespaceSeen => ({
  resourceVersion: metadata.resourceVersion ?? "",
  isShared: isSharedBy(metadata.annotations),
})

/**
 * Namespaces that an administrator named, and those with the annotation. Namespaces are watched from the first question
 * about one that was not named: in most clusters no object names another namespace.
 */
export function createSharing(wiring: Pick<Wiring, "watch">, named: readonly string[] = []): Sharing {
  const always = new Set(named)
  let cache: WatchedCache<NamespaceSeen> | undefined
  return {
    async isShared(namespace, signal) {
      if (always.has(namespace)) return true
      cache ??= wiring.watch<NamespaceSeen>(namespaces, { project: readNamespace })
      await cache.synced(signal)
      return cache.get(namespace)?.isShared ?? false
    },
  }
}
