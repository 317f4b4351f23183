import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { group } from "#api/v1alpha1/group.ts"
import {
  absent,
  contentChecksum,
  isConfigMap,
  isLeftOut,
  nameIn,
  snapshotName,
  snapshotPolicy,
  snapshotSuffix,
} from "#core/canary/config-refs.ts"
import type { ConfigRead, ConfigsSeen } from "#core/canary/sight.ts"
import { secretsGrantName } from "#core/grant.ts"
import { MultiMap } from "#lib/multi-map.ts"
import type { Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Permission, Wiring } from "#runtime/controller.ts"
import { core, type KubeObject, keyOf, mutatingPolicies, nameOf, type Resource } from "#runtime/resource.ts"
import type { Json } from "./facts.ts"

export const configMaps = core("configmaps", "ConfigMap")
const secrets = core("secrets", "Secret")
const roles: Resource = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "roles",
  kind: "Role",
  namespaced: true,
}

/** On a snapshot: the name of its Canary, which may be too long for a label. */
export const snapshotAnnotation = `${group}/canary-snapshot`

export const configPermissions: readonly Permission[] = [
  { resource: configMaps, verbs: ["get", "list", "watch", "create", "patch", "delete"] },
  // By name, and only where a namespace has granted it: no printed role has this.
  { resource: secrets, verbs: ["list", "watch"] },
  { resource: roles, names: [secretsGrantName], verbs: ["list", "watch"] },
  { resource: mutatingPolicies, names: [snapshotPolicy], verbs: ["list", "watch"] },
]

const unreadMs = 30_000

/** What is kept of a ConfigMap or Secret: never its content. */
type ConfigSeen = Projected & {
  readonly checksum: string
  readonly isLeftOut: boolean
  readonly isImmutable: boolean
  /** Of a snapshot. */
  readonly snapshot?: { readonly of: string; readonly uid: string; readonly owner: string } | undefined
}

function readConfigMap(object: KubeObject): ConfigSeen {
  const { metadata, immutable } = object as Json
  const of = metadata.annotations?.[snapshotAnnotation] as string | undefined
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    checksum: contentChecksum(object as Json),
    isLeftOut: isLeftOut(metadata.annotations),
    isImmutable: immutable === true,
    ...(of !== undefined && {
      snapshot: { of, uid: metadata.uid, owner: metadata.ownerReferences?.[0]?.name ?? "" },
    }),
  }
}

function readSecret(object: KubeObject): ConfigSeen {
  const { metadata, type = "Opaque", immutable } = object as Json
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    checksum: contentChecksum(object as Json, metadata.uid),
    isLeftOut: isLeftOut(metadata.annotations, type),
    isImmutable: immutable === true,
  }
}

type Granted = Projected & { readonly names: readonly string[] }

const readGrant = (object: KubeObject): Granted => {
  const rules: Json[] = (object as Json).rules ?? []
  const names = rules
    .filter(({ resources }) => resources?.includes("secrets"))
    .flatMap(rule => rule.resourceNames ?? [])
  return { resourceVersion: object.metadata.resourceVersion ?? "", names }
}

export type Configs = {
  /** What a Canary sees. Watches what it names from now on, and no longer what it named before. */
  seen(
    key: string,
    canary: Canary,
    names: ReadonlySet<string>,
  ): Pick<ConfigsSeen, "read" | "takesSnapshots" | "snapshot"> & {
    readonly snapshots: readonly { readonly name: string; readonly uid: string; readonly owner: string }[]
  }
  /** Whose snapshots they are, where they are watched. */
  cacheOf(namespace: string): WatchedCache<ConfigSeen> | undefined
  leave(key: string): void
}

/**
 * ConfigMaps are watched by namespace, from the first Canary on whose template names one; a Secret by its name, where the
 * namespace has granted it. What is kept is a checksum of each: an event costs one, and a look costs nothing.
 */
export function createConfigs(wiring: Wiring): Configs {
  const { enqueue } = wiring
  const maps = new Map<string, WatchedCache<ConfigSeen>>()
  const granted = new Map<string, WatchedCache<ConfigSeen>>()
  /** Canaries by what they name (`NAMESPACE/configmap/NAME`), and the reverse. */
  const users = new MultiMap()
  const named = new MultiMap()
  const places = new MultiMap()
  let grants: WatchedCache<Granted> | undefined
  let policy: WatchedCache<Projected> | undefined

  const wake = (keys: Iterable<string>) => {
    for (const key of keys) enqueue(key)
  }
  const wakePlace = (namespace: string) => wake(places.of(namespace))
  const wakeAll = () => {
    for (const namespace of places.names()) wakePlace(namespace)
  }

  /** When it can be read, and once when it could not be read for a while: the status then says so. */
  const whenKnown = (cache: Pick<WatchedCache<Projected>, "current">, then: () => void) => {
    const cancel = wiring.clock.after(unreadMs, then)
    cache.current().then(
      () => {
        cancel()
        then()
      },
      () => {},
    )
  }

  function mapsOf(namespace: string): WatchedCache<ConfigSeen> {
    const known = maps.get(namespace)
    if (known) return known
    const cache = wiring.watch<ConfigSeen>(configMaps, {
      namespace,
      project: readConfigMap,
      indexes: { snapshotOf: ({ snapshot }: ConfigSeen) => (snapshot ? [snapshot.of] : []) },
    })
    maps.set(namespace, cache)
    cache.subscribe(({ key, before, after }) => {
      const { snapshot } = (after ?? before)!
      const isSame = before?.checksum === after?.checksum && before?.isLeftOut === after?.isLeftOut
      if (isSame && before?.snapshot?.owner === after?.snapshot?.owner) return
      if (snapshot) enqueue(keyOf({ namespace, name: snapshot.of }))
      wake(users.of(`${namespace}/configmap/${nameOf(key).name}`))
    })
    whenKnown(cache, () => wakePlace(namespace))
    return cache
  }

  function secretOf(at: string): WatchedCache<ConfigSeen> {
    const known = granted.get(at)
    if (known) return known
    const [namespace = "", , name = ""] = at.split("/")
    const cache = wiring.watch<ConfigSeen>(secrets, {
      namespace,
      project: readSecret,
      fieldSelector: `metadata.name=${name}`,
    })
    granted.set(at, cache)
    const wakeUsers = () => wake(users.of(at))
    cache.subscribe(wakeUsers)
    whenKnown(cache, wakeUsers)
    return cache
  }

  function grantsOf(): WatchedCache<Granted> {
    if (grants) return grants
    grants = wiring.watch<Granted>(roles, { project: readGrant, fieldSelector: `metadata.name=${secretsGrantName}` })
    grants.subscribe(({ key }) => wakePlace(nameOf(key).namespace ?? ""))
    whenKnown(grants, wakeAll)
    return grants
  }

  function takesSnapshots(): boolean | undefined {
    if (!policy) {
      const project = ({ metadata }: KubeObject) => ({ resourceVersion: metadata.resourceVersion ?? "" })
      policy = wiring.watch<Projected>(mutatingPolicies, {
        project,
        fieldSelector: `metadata.name=${snapshotPolicy}`,
      })
      policy.subscribe(wakeAll)
      policy.synced().then(wakeAll, () => {})
    }
    if (policy.hasSynced) return policy.size > 0
    return policy.failure?.kind === "NotFound" ? false : undefined
  }

  function forget(key: string, at: string): void {
    named.delete(key, at)
    users.delete(at, key)
    if (users.has(at)) return
    granted.get(at)?.close()
    granted.delete(at)
  }

  return {
    seen(key, canary, names) {
      const { namespace = "" } = nameOf(key)
      places.add(namespace, key)
      const wanted = new Set([...names].map(name => `${namespace}/${name}`))
      for (const at of [...named.of(key)]) if (!wanted.has(at)) forget(key, at)
      for (const at of wanted) {
        named.add(key, at)
        users.add(at, key)
      }
      const hasMaps = [...names].some(isConfigMap) || (canary.status?.configs ?? []).length > 0
      const cache = hasMaps ? mapsOf(namespace) : maps.get(namespace)
      const { name: canaryName } = canary.metadata
      const own = cache ? [...cache.keysBy("snapshotOf", canaryName)] : []
      return {
        read(config) {
          const object = keyOf({ namespace, name: nameIn(config) })
          if (isConfigMap(config)) return cache ? found(cache, object) : "Unread"
          const all = grantsOf()
          if (!all.isCurrent) return all.failure ? "Unreadable" : "Unread"
          const isGranted = all.get(keyOf({ namespace, name: secretsGrantName }))?.names.includes(nameIn(config))
          return isGranted ? found(secretOf(`${namespace}/${config}`), object) : "NotGranted"
        },
        takesSnapshots: hasMaps ? takesSnapshots() : undefined,
        snapshot(config, checksum) {
          const name = snapshotName(nameIn(config), snapshotSuffix(canaryName, checksum))
          return cache ? snapshotIn(cache, keyOf({ namespace, name }), checksum) : "Unread"
        },
        snapshots: own.flatMap(each => {
          const { snapshot } = cache?.get(each) ?? {}
          return snapshot ? [{ name: nameOf(each).name, ...snapshot }] : []
        }),
      }
    },
    cacheOf: namespace => maps.get(namespace),
    leave(key) {
      const { namespace = "" } = nameOf(key)
      for (const at of [...named.of(key)]) forget(key, at)
      places.delete(namespace, key)
      if (places.has(namespace)) return
      maps.get(namespace)?.close()
      maps.delete(namespace)
    },
  }
}

function found(cache: WatchedCache<ConfigSeen>, key: string): ConfigRead {
  if (!cache.isCurrent) return cache.failure ? "Unreadable" : "Unread"
  const config = cache.get(key)
  if (!config) return cache.unreadable.has(key) ? "Unreadable" : "Missing"
  return config.isLeftOut ? "Ignored" : { checksum: config.checksum }
}

/** An object that has the name of a snapshot and not its content is another writer's. */
function snapshotIn(
  cache: WatchedCache<ConfigSeen>,
  key: string,
  checksum: string,
): ReturnType<ConfigsSeen["snapshot"]> {
  if (!cache.isCurrent) return "Unread"
  const there = cache.get(key)
  if (checksum === absent) return there ? "Taken" : "There"
  if (!there) return "None"
  return there.checksum === checksum && there.isImmutable ? "There" : "Taken"
}
