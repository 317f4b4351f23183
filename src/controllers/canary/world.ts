import type { Canary } from "#api/v1alpha1/canary/index.ts"
import type { RouteObject, RouteProblem, Router } from "#core/canary/router.ts"
import { serviceNamesOf } from "#core/canary/services.ts"
import type { HookAnswer } from "#core/canary/sight.ts"
import type { Check } from "#core/canary/tally.ts"
import { MultiMap } from "#lib/multi-map.ts"
import { noVersion } from "#lib/resource-version.ts"
import type { Cache, Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type Held, holdPlain } from "#runtime/kind-controller.ts"
import {
  apiVersionOf,
  controllerRevisions,
  endpointSlices,
  type KubeObject,
  keyOf,
  nameOf,
  podDisruptionBudgets,
  type Resource,
} from "#runtime/resource.ts"
import { watchGrants } from "../grants.ts"
import type { HookCall } from "../hooks.ts"
import type { Round } from "../measure.ts"
import type { Alerts } from "./alerts.ts"
import { type Configs, configMaps, createConfigs } from "./configs.ts"
import { ownerUid, type PodSeen, podReader, readSlice, type SliceSeen } from "./facts.ts"
import { type KeptWorkload, keepRevision, keepWorkload, type WithTemplate } from "./kept.ts"
import {
  autoscalers,
  canaries,
  deployments,
  pods,
  replicaSets,
  scaledObjects,
  services,
  setResources,
} from "./resources.ts"
import { concernedBy, scalerIndexes } from "./scaled.ts"
import { createServed } from "./served.ts"
import { deploymentIndexes, namesAround } from "./targets/component.ts"

/** What a Canary is carried out with, beside the cluster. */
export type Parts = {
  routerOf(canary: Canary): Router | RouteProblem
  measuring?: ((wiring: Wiring) => { checksOf(round: Round): readonly Check[] | undefined }) | undefined
  hooks?: ((wiring: Wiring) => { answerOf(call: HookCall): HookAnswer | undefined }) | undefined
  alerts?: ((wiring: Wiring) => Pick<Alerts, "send">) | undefined
}

type Kept = Held<KubeObject>

/** What is watched of a namespace that has a Canary. */
export type Near = {
  readonly deployments: WatchedCache<Held<KeptWorkload>>
  readonly sets: WatchedCache<Held<KeptWorkload>>
  readonly pods: WatchedCache<PodSeen>
  readonly services: WatchedCache<Kept>
  readonly slices: WatchedCache<SliceSeen>
  readonly autoscalers: WatchedCache<Kept>
  readonly budgets: WatchedCache<Kept>
  /** StatefulSets, DaemonSets and ControllerRevisions, where a Canary has such a target. */
  readonly workloads: Map<string, WatchedCache<Held<WithTemplate>>>
  /** By the kind that divides the requests, where that is not a Service; and of KEDA. */
  readonly routes: Map<string, WatchedCache<Kept>>
}

export type World = Pick<Wiring, "client" | "clock" | "events"> & {
  readonly parts: Parts
  readonly measuring: ReturnType<NonNullable<Parts["measuring"]>> | undefined
  readonly hooks: ReturnType<NonNullable<Parts["hooks"]>> | undefined
  readonly alerts: ReturnType<NonNullable<Parts["alerts"]>> | undefined
  readonly configs: Configs
  near(
    key: string,
    router: Router | undefined,
    kind: string,
  ): {
    readonly near: Near
    readonly isCurrent: boolean
    /** False: the cluster has no such kind of route. */
    readonly isServed: boolean
  }
  /** Those of KEDA, which are watched only where one scales a target. */
  scaledObjects(key: string): { readonly cache?: WatchedCache<Kept>; readonly isCurrent: boolean }
  podOf(key: string): PodSeen | undefined
  /** Canaries with the same target. */
  rivals(canary: Canary): readonly Canary[]
  leave(key: string): void
  /** Resolves when the cache shows what was written, or after a few seconds. */
  shown(key: string, resource: Resource, written: KubeObject): Promise<void>
}

export const canaryIndexes = {
  target: ({ object }: Held<Canary>) => [
    keyOf({ namespace: object.metadata.namespace, name: object.spec.targetRef.name }),
  ],
  /** Of a component: the workload that answers at first. */
  source: ({ object: { metadata, spec } }: Held<Canary>) =>
    spec.sourceRef ? [keyOf({ namespace: metadata.namespace, name: spec.sourceRef.name })] : [],
  service: ({ object }: Held<Canary>) =>
    Object.values(serviceNamesOf(object)).map(name => keyOf({ namespace: object.metadata.namespace, name })),
}

const isSetKind = (kind: string): kind is keyof typeof setResources => Object.hasOwn(setResources, kind)

const setIndexes = {
  owner: ({ object }: Kept) => [ownerUid(object)],
  uid: ({ object }: Kept) => [object.metadata.uid ?? ""],
}

const keeperOf = (resource: Resource) => (resource === controllerRevisions ? keepRevision : keepWorkload)

/** The workloads of a kind with their revisions, watched from the first Canary on that has one for its target. */
const workloadsOf = (
  near: Near,
  kind: keyof typeof setResources,
  openSet: (resource: Resource) => WatchedCache<Held<WithTemplate>>,
) =>
  [setResources[kind], controllerRevisions].map(resource => {
    const cache = near.workloads.get(resource.kind) ?? openSet(resource)
    near.workloads.set(resource.kind, cache)
    return cache
  })

type Open = <T extends Projected>(
  resource: Resource,
  project: (object: KubeObject, before?: T) => T,
  indexes?: object,
) => WatchedCache<T>

const nearOf = (open: Open): Near => ({
  deployments: open(deployments, keepWorkload, deploymentIndexes),
  sets: open(replicaSets, keepWorkload, setIndexes),
  pods: open(pods, podReader(), {
    owner: ({ owner }: PodSeen) => [owner],
    uid: ({ uid }: PodSeen) => [uid],
    snapshot: ({ snapshots }: PodSeen) => snapshots,
  }),
  services: open(services, holdPlain<KubeObject>),
  slices: open(endpointSlices, readSlice, { service: ({ service }: SliceSeen) => [service] }),
  autoscalers: open(autoscalers, holdPlain<KubeObject>, scalerIndexes),
  budgets: open(podDisruptionBudgets, holdPlain<KubeObject>),
  workloads: new Map(),
  routes: new Map(),
})

/** What shows the objects of a kind. */
const cacheOf = (near: Near, kind: string): Pick<Cache<Projected>, "reached"> | undefined =>
  ({
    Deployment: near.deployments,
    ReplicaSet: near.sets,
    Service: near.services,
    HorizontalPodAutoscaler: near.autoscalers,
  })[kind] ??
  near.workloads.get(kind) ??
  near.routes.get(kind)

/** A Deployment is the target of a Canary, or a revision of the component that is the target: keys of both. */
const targetsAround = (near: Near | undefined, key: string, object = near?.deployments.get(key)?.object) => [
  key,
  ...(near && object ? namesAround(near, object).map(name => keyOf({ ...nameOf(key), name })) : []),
]

/** The Canaries that name this workload. */
const namedBy = (objects: Cache<Held<Canary>>, key: string): readonly string[] => [
  ...objects.keysBy("target", key),
  ...objects.keysBy("source", key),
]

const ownerName = ({ metadata }: KubeObject): string =>
  metadata.ownerReferences?.find(({ controller }) => controller)?.name ?? ""

/** Resolves when the cache shows this version, or after a few seconds. */
async function reached(clock: Wiring["clock"], cache: Pick<Cache<Projected>, "reached">, { metadata }: KubeObject) {
  const waiting = new AbortController()
  const cancel = clock.after(shownMs, () => waiting.abort())
  await cache.reached(metadata, metadata.resourceVersion ?? noVersion, waiting.signal).catch(() => {})
  cancel()
}

const shownMs = 5000

/** Nothing but Canaries is watched before there is one. Then it is what surrounds them, in their namespaces. */
export function openWorld(parts: Parts, wiring: Wiring, objects: WatchedCache<Held<Canary>>): World {
  const { client, clock, events, enqueue } = wiring
  const places = new Map<string, Near>()
  const users = new MultiMap()
  const configs = createConfigs(wiring)

  function open<T extends Projected>(
    namespace: string,
    resource: Resource,
    project: (object: KubeObject, before?: T) => T,
    indexes = {},
  ): WatchedCache<T> {
    const cache = wiring.watch<T>(resource, { namespace, project, indexes })
    const wake = () => {
      for (const key of users.of(namespace)) enqueue(key)
    }
    cache.current().then(wake, () => {})
    return cache
  }

  function openNear(namespace: string): Near {
    const near = nearOf((resource, project, indexes) => open(namespace, resource, project, indexes))
    near.autoscalers.subscribe(wakeScaled)
    const wakeDeployment = (key: string, object = near.deployments.get(key)?.object) => {
      for (const each of targetsAround(near, key, object)) wakeTarget(each)
      const canary = object?.metadata.ownerReferences?.find(({ kind }) => kind === canaries.kind)
      if (canary) enqueue(keyOf({ namespace, name: canary.name }))
    }
    const wakeSet = (set: KubeObject | undefined) => {
      const by = set?.metadata.ownerReferences?.find(({ controller }) => controller)
      if (by?.kind === "Deployment") wakeDeployment(keyOf({ namespace, name: by.name }))
    }
    near.deployments.subscribe(({ key, before, after }) => wakeDeployment(key, (after ?? before)!.object))
    near.sets.subscribe(({ before, after }) => {
      wakeSet(before?.object)
      wakeSet(after?.object)
    })
    near.pods.subscribe(({ before, after }) => {
      if (before?.isReady === after?.isReady && before?.trouble?.message === after?.trouble?.message) return
      const { owner } = (after ?? before)!
      for (const key of near.sets.keysBy("uid", owner)) wakeSet(near.sets.get(key)?.object)
      for (const cache of near.workloads.values()) for (const key of cache.keysBy("uid", owner)) wakeTarget(key)
    })
    near.services.subscribe(({ key }) => wakeServices(key))
    near.slices.subscribe(({ before, after }) => wakeServices(keyOf({ namespace, name: (after ?? before)!.service })))
    return near
  }

  const wakeScaled = (change: Parameters<typeof concernedBy>[0]) => {
    const { targets, canaries } = concernedBy(change)
    const around = targets.flatMap(key => targetsAround(places.get(nameOf(key).namespace ?? ""), key))
    for (const key of [...around.flatMap(each => namedBy(objects, each)), ...canaries]) enqueue(key)
  }

  const wakeTarget = (key: string) => {
    for (const each of namedBy(objects, key)) enqueue(each)
  }

  const openSet = (namespace: string) => (resource: Resource) => {
    const cache = open<Held<WithTemplate>>(namespace, resource, keeperOf(resource), setIndexes)
    cache.subscribe(({ key, before, after }) => {
      const name = ownerName((after ?? before)!.object)
      wakeTarget(resource === controllerRevisions ? keyOf({ namespace, name }) : key)
    })
    return cache
  }

  const wakeServices = (key: string) => {
    for (const each of objects.keysBy("service", key)) enqueue(each)
  }

  function routesOf(namespace: string, near: Near, router: Router): WatchedCache<Kept> {
    const known = near.routes.get(router.kind.kind)
    if (known) return known
    const cache = open(namespace, { ...router.kind, namespaced: true }, holdPlain<KubeObject>)
    cache.subscribe(({ key }) => wakeServices(key))
    near.routes.set(router.kind.kind, cache)
    return cache
  }

  const served = createServed(wiring, kind => {
    for (const [namespace, near] of places) {
      if (served.isServed(kind) === false) {
        near.routes.get(kind.kind)?.close()
        near.routes.delete(kind.kind)
      }
      for (const key of users.of(namespace)) enqueue(key)
    }
  })

  watchGrants(wiring, namespace => {
    for (const [place] of places)
      if (namespace === undefined || namespace === place) for (const key of users.of(place)) enqueue(key)
  })

  return {
    client,
    clock,
    events,
    parts,
    measuring: parts.measuring?.(wiring),
    hooks: parts.hooks?.(wiring),
    alerts: parts.alerts?.(wiring),
    configs,
    near(key, router, kind) {
      const { namespace = "" } = nameOf(key)
      users.add(namespace, key)
      const near = places.get(namespace) ?? openNear(namespace)
      places.set(namespace, near)
      const { routes: _, workloads: _workloads, ...own } = near
      const caches: Pick<WatchedCache<Projected>, "isCurrent">[] = Object.values(own)
      if (isSetKind(kind)) caches.push(...workloadsOf(near, kind, openSet(namespace)))
      const isServed = router ? served.isServed(router.kind) : true
      if (router && router.kind.kind !== "Service" && isServed) caches.push(routesOf(namespace, near, router))
      const isCurrent = isServed !== undefined && caches.every(({ isCurrent }) => isCurrent)
      return { near, isCurrent, isServed: isServed ?? true }
    },
    scaledObjects(key) {
      const isServed = served.isServed(scaledObjects)
      if (!isServed) return { isCurrent: isServed === false }
      const { namespace = "" } = nameOf(key)
      const { routes } = places.get(namespace)!
      const known = routes.get(scaledObjects.kind)
      if (known) return { cache: known, isCurrent: known.isCurrent }
      const cache = open(namespace, scaledObjects, holdPlain<KubeObject>, scalerIndexes)
      cache.subscribe(wakeScaled)
      routes.set(scaledObjects.kind, cache)
      return { cache, isCurrent: cache.isCurrent }
    },
    podOf: key => places.get(nameOf(key).namespace ?? "")?.pods.get(key),
    rivals: canary => rivalsOf(objects, canary),
    leave(key) {
      const { namespace = "" } = nameOf(key)
      users.delete(namespace, key)
      configs.leave(key)
      const near = places.get(namespace)
      if (users.has(namespace) || !near) return
      places.delete(namespace)
      const { routes, workloads, ...own } = near
      for (const cache of [...Object.values(own), ...routes.values(), ...workloads.values()]) cache.close()
    },
    async shown(key, resource, written) {
      const { namespace = "" } = nameOf(key)
      const own = resource === canaries ? objects : resource === configMaps ? configs.cacheOf(namespace) : undefined
      const near = places.get(namespace)
      const cache = own ?? (near && cacheOf(near, resource.kind))
      if (cache) await reached(clock, cache, written)
    },
  }
}

function rivalsOf(objects: Cache<Held<Canary>>, { metadata, spec }: Canary): Canary[] {
  const key = keyOf({ namespace: metadata.namespace, name: spec.targetRef.name })
  const named = [...objects.keysBy("target", key)].flatMap(each => objects.get(each)?.object ?? [])
  return named.filter(each => each.spec.targetRef.kind === spec.targetRef.kind)
}

export const asRoute = (object: KubeObject | undefined, resource: { group: string; version: string; kind: string }) =>
  object &&
  ({
    ...object,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
  } as unknown as RouteObject)
