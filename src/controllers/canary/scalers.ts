import type { Canary } from "#api/v1alpha1/canary/index.ts"
import {
  freedScaler,
  heldScaler,
  movedScaler,
  notedBy,
  readScaler,
  type ScalerKind,
  type ScalerSeen,
  scales,
} from "#core/canary/scaler.ts"
import type { Act } from "#core/canary/sight.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Held } from "#runtime/kind-controller.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { autoscalers, scaledObjects } from "./resources.ts"
import { asRoute, type Near, type World } from "./world.ts"

const resources: Readonly<Record<ScalerKind, Resource>> = {
  HorizontalPodAutoscaler: autoscalers,
  ScaledObject: scaledObjects,
}

const keyIn = (kind: ScalerKind, name: string) => `${kind}/${name}`

const kedaOwner = ({ metadata }: KubeObject) =>
  metadata.ownerReferences?.find(({ kind, controller }) => controller && kind === scaledObjects.kind)?.name

export type ScalersSeen = {
  readonly scalers: readonly ScalerSeen[]
  readonly scalerMissing?: string | undefined
  readonly objects: ReadonlyMap<string, KubeObject>
  /** Everything that may scale the target was read. */
  readonly isCurrent: boolean
}

/**
 * What scales the target, named by the Canary or not, and what has our note. An autoscaler that KEDA has made is written
 * by KEDA, so its ScaledObject is what counts.
 */
export function observeScalers(
  world: World,
  key: string,
  near: Near,
  canary: Canary,
  targetRef: { readonly kind: string; readonly name: string },
): ScalersSeen {
  const { metadata, spec } = canary
  const { autoscalerRef } = spec
  const objects = new Map<string, KubeObject>()
  const scalers: ScalerSeen[] = []
  const add = (kind: ScalerKind, object: KubeObject) => {
    const route = asRoute(object, resources[kind])!
    const isOfTarget = scales(route, targetRef)
    if (!isOfTarget && notedBy(route) !== metadata.name) return
    objects.set(keyIn(kind, object.metadata.name), object)
    scalers.push(readScaler(kind, route, { canary: metadata.name, isOfTarget }))
  }
  let usesKeda = autoscalerRef?.kind === "ScaledObject"
  const concerned = (cache: WatchedCache<Held<KubeObject>>) => {
    const keys = new Set([...cache.keysBy("target", targetRef.name), ...cache.keysBy("noted", metadata.name)])
    return [...keys].flatMap(each => cache.get(each)?.object ?? [])
  }
  for (const object of concerned(near.autoscalers)) {
    if (kedaOwner(object) === undefined) add("HorizontalPodAutoscaler", object)
    else if (scales(asRoute(object, autoscalers)!, targetRef)) usesKeda = true
  }
  const keda = usesKeda ? world.scaledObjects(key) : { isCurrent: true }
  for (const object of keda.cache ? concerned(keda.cache) : []) add("ScaledObject", object)
  scalers.sort((a, b) => (keyIn(a.kind, a.name) < keyIn(b.kind, b.name) ? -1 : 1))
  const isMissing = autoscalerRef !== undefined && !objects.has(keyIn(autoscalerRef.kind, autoscalerRef.name))
  return {
    scalers,
    ...(isMissing && {
      scalerMissing: `autoscalerRef: no ${autoscalerRef.kind} ${autoscalerRef.name} scales ${targetRef.kind} ${targetRef.name}, so its own size counts`,
    }),
    objects,
    isCurrent: keda.isCurrent,
  }
}

export function scalerWrite(
  client: Client,
  objects: ReadonlyMap<string, KubeObject>,
  canary: Canary,
  { kind, name, isHeld, to }: Extract<Act, { do: "scaler" }>,
) {
  const resource = resources[kind]
  const object = asRoute(objects.get(keyIn(kind, name)), resource)!
  const free = () => (to === undefined ? freedScaler(kind, object) : movedScaler(kind, object, to))
  const next = isHeld ? heldScaler(kind, object, canary.metadata.name) : free()
  return { resource, send: client.replace(resource, next as unknown as KubeObject) }
}
