import { type Instant, parseInstant } from "#lib/instant.ts"
import type { StorageChange } from "../../apiserver/storage.ts"
import type { Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { findCondition } from "./conditions.ts"
import { managedBy, managedByLabel, plan, serviceLabel } from "./endpoint-slice-plan.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { manager, ownedIndex, tolerateAbsence } from "./owned.ts"
import { isReady, isTerminal } from "./pods.ts"
import { isNamespaceTerminating } from "./refusals.ts"

/** Writes the EndpointSlices of Services with a selector. Reads Services, Pods and Nodes; writes EndpointSlices. */
export function endpointSliceController(world: PhysicsWorld): Part {
  const { storage } = world
  const services = servedKind(storage, "v1", "Service")
  const podKind = servedKind(storage, "v1", "Pod")
  const nodeKind = servedKind(storage, "v1", "Node")
  const slices = servedKind(storage, "discovery.k8s.io/v1", "EndpointSlice")
  const owned = ownedIndex(storage, "discovery.k8s.io/v1", "EndpointSlice", "Service")
  const triggers = new Map<string, Triggers>()

  const selecting = (pod: Obj) =>
    storage
      .list(services, { namespace: pod.metadata.namespace })
      .items.filter(({ spec }) => isChosen(spec.selector, pod))
      .map(keyOf)
  /** By Service: its selected pods, updated with each change, so that a reconcile costs only these pods. */
  const chosen = new Map<string, { selector: string; pods: Map<string, Obj> }>()

  /** The Services that select the pod now or did before, if the pod changed in a way that a slice shows. */
  function hearPod({ type, object: pod, before }: StorageChange): Iterable<string> {
    const isMoved = before !== undefined && before.metadata.labels !== pod.metadata.labels
    if (type === "MODIFIED" && before && !isMoved && shownOf(before) === shownOf(pod)) return []
    const now = selecting(pod)
    const then = isMoved ? selecting(before) : []
    for (const key of then) chosen.get(key)?.pods.delete(pod.metadata.uid)
    for (const key of now)
      if (type === "DELETED") chosen.get(key)?.pods.delete(pod.metadata.uid)
      else chosen.get(key)?.pods.set(pod.metadata.uid, pod)
    return [...then, ...now]
  }

  /** The pods that a Service selects. For a new selector, all pods of its namespace are checked. */
  function podsOf(key: string, { spec, metadata: { namespace } }: Obj): Obj[] {
    const selector = JSON.stringify(spec.selector)
    let known = chosen.get(key)
    if (known?.selector !== selector) {
      const all = storage.list(podKind, { namespace }).items.filter(pod => isChosen(spec.selector, pod))
      known = { selector, pods: new Map(all.map(pod => [pod.metadata.uid, pod])) }
      chosen.set(key, known)
    }
    return [...known.pods.values()]
  }

  function forget(key: string) {
    triggers.delete(key)
    chosen.delete(key)
  }

  const isOurs = ({ metadata }: Obj) => metadata.labels?.[managedByLabel] === managedBy

  return loop(world, {
    name: "endpointslice-controller",
    begin() {
      triggers.clear()
      chosen.clear()
      return owned.begin()
    },
    watches: [
      { apiVersion: "v1", kind: "Service", keys: ({ object }) => [keyOf(object)] },
      { apiVersion: "v1", kind: "Pod", keys: hearPod },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        keys: ({ object: { metadata } }) =>
          metadata.labels?.[serviceLabel] ? [`${metadata.namespace}/${metadata.labels[serviceLabel]}`] : [],
      },
    ],
    reconcile(key) {
      const service = storage.find(services, nameOf(key))
      if (!service) forget(key)
      // The garbage collector removes the slices of a Service that is gone.
      if (!service || service.metadata.deletionTimestamp) return undefined
      const { selector, type } = service.spec
      if (type === "ExternalName" || !selector) return undefined
      const pods = podsOf(key, service)
      const seen = triggersOf(service, pods)
      const triggeredAt = earliestNews(triggers.get(key), seen)
      triggers.set(key, seen)
      const existing = owned.of(service).filter(slice => isOurs(slice) && !slice.metadata.deletionTimestamp)
      const nodeOf = (name: string) => storage.find(nodeKind, { name })
      const { create, update, remove } = plan({ service, pods, slices: existing, nodeOf, triggeredAt })
      try {
        for (const slice of create) storage.create(slices, slice, manager)
        for (const slice of update) storage.update(slices, slice, manager)
        for (const { metadata } of remove) tolerateAbsence(() => storage.delete(slices, metadata))
      } catch (error) {
        if (error instanceof StatusError && isNamespaceTerminating(error)) return undefined
        throw error
      }
      return undefined
    },
  })
}

function isChosen(selector: Record<string, string> | undefined, { metadata: { labels = {} } }: Obj): boolean {
  return selector !== undefined && Object.entries(selector).every(([key, value]) => labels[key] === value)
}

/** The part of a pod that a slice shows, as one text. */
const shownOf = (pod: Obj) =>
  [
    pod.status?.podIP,
    isReady(pod),
    isTerminal(pod),
    pod.metadata.deletionTimestamp !== undefined,
    pod.spec.nodeName,
    pod.spec.hostname,
    pod.spec.subdomain,
  ].join(" ")

/** When the Service was created, and the last readiness change of each of its pods. */
type Triggers = { service: Instant; pods: Map<string, Instant> }

function triggersOf(service: Obj, pods: readonly Obj[]): Triggers {
  const times = pods.flatMap(pod => {
    const at = parseInstant(findCondition(pod.status?.conditions, "Ready")?.lastTransitionTime)
    return at === undefined ? [] : [[pod.metadata.name, at] as const]
  })
  return { service: parseInstant(service.metadata.creationTimestamp) ?? 0, pods: new Map(times) }
}

/** The earliest of the new times. */
function earliestNews(before: Triggers | undefined, now: Triggers): string | undefined {
  const news = [...now.pods].filter(([name, at]) => at > (before?.pods.get(name) ?? 0)).map(([, at]) => at)
  if (now.service > (before?.service ?? 0)) news.push(now.service)
  return news.length > 0 ? new Date(Math.min(...news)).toISOString().replace(/\.000Z$/, "Z") : undefined
}
