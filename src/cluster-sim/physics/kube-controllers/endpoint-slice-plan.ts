import type { Json, Obj } from "../../object.ts"
import { isReady, isTerminal, ownerReference } from "./pods.ts"
import { same } from "./same.ts"

export type Snapshot = {
  service: Obj
  /** The pods that its selector matches. */
  pods: readonly Obj[]
  /** The slices that this controller created for it. */
  slices: readonly Obj[]
  nodeOf(name: string): Obj | undefined
  /** The time of the change that causes this write; undefined if unknown. */
  triggeredAt: string | undefined
}

export type Plan = { create: Json[]; update: Json[]; remove: Obj[] }

const endpointsPerSlice = 100
const triggerKey = "endpoints.kubernetes.io/last-change-trigger-time"
const headlessLabel = "service.kubernetes.io/headless"
export const serviceLabel = "kubernetes.io/service-name"
export const managedByLabel = "endpointslice.kubernetes.io/managed-by"
export const managedBy = "endpointslice-controller.k8s.io"

/** Decides the EndpointSlices of one Service: one group of slices for each list of ports that its pods have. */
export function plan(snapshot: Snapshot): Plan {
  const { service, slices } = snapshot
  const groups = groupsOf(snapshot)
  const made: Plan = { create: [], update: [], remove: [] }
  const left = new Set(slices.filter(({ addressType }) => addressType === "IPv4"))
  for (const { ports, endpoints } of groups) {
    const own = [...left].filter(slice => same(portsOf(slice.ports), ports))
    for (const slice of own) left.delete(slice)
    fill(snapshot, made, { ports, endpoints, slices: own })
  }
  const isNothingKept = groups.length === 0
  const placeholder =
    [...left].find(slice => isNothingKept && isEmpty(slice)) ?? (isNothingKept ? [...left][0] : undefined)
  for (const slice of left)
    if (slice === placeholder) keep(snapshot, made, { ...slice, endpoints: null, ports: null }, slice)
    else made.remove.push(slice)
  if (isNothingKept && !placeholder) made.create.push(newSlice(snapshot, service, null, null))
  return made
}

const isEmpty = ({ endpoints }: Obj) => (endpoints ?? []).length === 0
const portsOf = (ports: Json) => (ports ?? []) as Json[]

type Group = { ports: Json[]; endpoints: Json[] }

function groupsOf(snapshot: Snapshot): Group[] {
  const groups = new Map<string, Group>()
  for (const pod of snapshot.pods) {
    if (isTerminal(pod) || !pod.status?.podIP) continue
    const node = pod.spec.nodeName ? snapshot.nodeOf(pod.spec.nodeName) : undefined
    if (pod.spec.nodeName && !node) continue
    const ports = endpointPorts(snapshot.service, pod)
    const key = JSON.stringify(ports)
    const group = groups.get(key) ?? { ports, endpoints: [] }
    groups.set(key, group)
    group.endpoints.push(endpointOf(snapshot.service, pod, node))
  }
  return [...groups.values()]
}

/** Endpoints stay in their slices. New ones go to slices with room, then to new slices. */
function fill(snapshot: Snapshot, made: Plan, { ports, endpoints, slices }: Group & { slices: Obj[] }): void {
  const wanted = new Map(endpoints.map(endpoint => [keyOf(endpoint), endpoint]))
  const kept = slices.map(slice => {
    const stays: Json[] = []
    for (const endpoint of slice.endpoints ?? []) {
      const next = wanted.get(keyOf(endpoint))
      if (!next) continue
      wanted.delete(keyOf(endpoint))
      stays.push(next)
    }
    return { slice, stays }
  })
  const added = [...wanted.values()]
  // The fullest slice first, so that few slices change.
  for (const each of kept.toSorted((a, b) => b.stays.length - a.stays.length))
    each.stays.push(...added.splice(0, Math.max(0, endpointsPerSlice - each.stays.length)))
  for (const { slice, stays } of kept)
    if (stays.length === 0) made.remove.push(slice)
    else keep(snapshot, made, { ...slice, endpoints: stays }, slice)
  while (added.length > 0)
    made.create.push(
      newSlice(snapshot, snapshot.service, added.splice(0, endpointsPerSlice), ports.length > 0 ? ports : null),
    )
}

/** Updates a slice if it differs in more than the time of the change. */
function keep(snapshot: Snapshot, made: Plan, next: Json, old: Obj): void {
  const labels = labelsOf(snapshot.service)
  const isSame =
    same(next.endpoints ?? [], old.endpoints ?? []) &&
    same(portsOf(next.ports), portsOf(old.ports)) &&
    same(labels, old.metadata.labels)
  if (isSame) return
  const annotations = annotationsOf(snapshot, old.metadata.annotations)
  made.update.push({ ...next, metadata: { ...old.metadata, labels, annotations } })
}

function annotationsOf({ triggeredAt }: Snapshot, own: Readonly<Record<string, string>> = {}) {
  const { [triggerKey]: _, ...rest } = own
  return triggeredAt === undefined ? rest : { ...rest, [triggerKey]: triggeredAt }
}

function newSlice(snapshot: Snapshot, service: Obj, endpoints: Json, ports: Json): Json {
  const annotations = annotationsOf(snapshot)
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      generateName: `${service.metadata.name}-`,
      namespace: service.metadata.namespace,
      labels: labelsOf(service),
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ownerReferences: [ownerReference(service)],
    },
    addressType: "IPv4",
    endpoints,
    ports,
  }
}

/** The labels of the Service, and those that mark a slice of it. */
function labelsOf({ metadata, spec }: Obj): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [key, value] of Object.entries(metadata.labels ?? {}))
    if (key !== serviceLabel && key !== managedByLabel && key !== headlessLabel) labels[key] = value
  if (spec.clusterIP === "None") labels[headlessLabel] = ""
  labels[serviceLabel] = metadata.name
  labels[managedByLabel] = managedBy
  return labels
}

function endpointOf({ metadata, spec }: Obj, pod: Obj, node: Obj | undefined): Json {
  const serving = isReady(pod)
  const terminating = pod.metadata.deletionTimestamp !== undefined
  const zone = node?.metadata.labels?.["topology.kubernetes.io/zone"]
  const { hostname, subdomain, nodeName } = pod.spec
  return {
    addresses: [pod.status.podIP],
    conditions: { ready: Boolean(spec.publishNotReadyAddresses) || (serving && !terminating), serving, terminating },
    ...(hostname && subdomain === metadata.name && { hostname }),
    ...(nodeName && { nodeName }),
    targetRef: { kind: "Pod", name: pod.metadata.name, namespace: pod.metadata.namespace, uid: pod.metadata.uid },
    ...(zone && { zone }),
  }
}

const keyOf = ({ addresses, targetRef, hostname = "" }: Json) => `${addresses} ${targetRef?.uid} ${hostname}`

/** The Service's ports, resolved for this pod. A port name that no container has is left out. */
function endpointPorts({ spec }: Obj, pod: Obj): Json[] {
  return (spec.ports ?? []).flatMap((port: Json) => {
    const number = portOf(port, pod)
    if (number === undefined) return []
    const { name = "", protocol = "TCP", appProtocol } = port
    return [{ name, port: number, protocol, ...(appProtocol && { appProtocol }) }]
  })
}

function portOf({ targetPort, port, protocol = "TCP" }: Json, pod: Obj): number | undefined {
  if (typeof targetPort !== "string") return targetPort || port
  const sidecars = (pod.spec.initContainers ?? []).filter(({ restartPolicy }: Json) => restartPolicy === "Always")
  for (const { ports = [] } of [...pod.spec.containers, ...sidecars])
    for (const each of ports)
      if (each.name === targetPort && (each.protocol ?? "TCP") === protocol) return each.containerPort
  return undefined
}
