import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj, Owner } from "../../object.ts"
import { findCondition } from "./conditions.ts"

export const isTerminal = (pod: Obj) => pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed"
export const isActive = (pod: Obj) => !isTerminal(pod) && !pod.metadata.deletionTimestamp
export const isTerminating = (pod: Obj) => !isTerminal(pod) && pod.metadata.deletionTimestamp !== undefined
export const isReady = (pod: Obj) => findCondition(pod.status?.conditions, "Ready")?.status === "True"

/** Since when a pod is ready; undefined if it is not. */
function readySince(pod: Obj): Instant | undefined {
  const condition = findCondition(pod.status?.conditions, "Ready")
  return condition?.status === "True" ? parseInstant(condition.lastTransitionTime) : undefined
}

export function isAvailable(pod: Obj, minReadySeconds: number, now: Instant): boolean {
  if (!isReady(pod)) return false
  if (minReadySeconds === 0) return true
  const since = readySince(pod)
  return since !== undefined && since + minReadySeconds * 1000 <= now
}

/** After how many milliseconds the next ready pod becomes available. */
export function nextAvailableInMs(pods: readonly Obj[], minReadySeconds: number, now: Instant): number | undefined {
  let next: number | undefined
  for (const pod of pods) {
    const since = readySince(pod)
    if (since === undefined || minReadySeconds <= 0) continue
    const ms = since + minReadySeconds * 1000 - now
    if (ms > 0 && (next === undefined || ms < next)) next = ms
  }
  return next
}

export const controllerOf = (object: Obj): Owner | undefined =>
  object.metadata.ownerReferences?.find(owner => owner.controller)

export const ownerReference = (owner: Obj): Owner => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  controller: true,
  blockOwnerDeletion: true,
})

/** A pod as its controller creates it, with a generated name. */
export function podFromTemplate(template: Json, owner: Obj): Json {
  const { labels, annotations, finalizers } = template.metadata ?? {}
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      generateName: `${owner.metadata.name}-`,
      namespace: owner.metadata.namespace,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(finalizers && { finalizers }),
      ownerReferences: [ownerReference(owner)],
    },
    spec: template.spec,
  }
}

const phaseOrder: Record<string, number> = { Pending: 0, Unknown: 1, Running: 2 }

/**
 * The order in which surplus pods are deleted: unassigned, pending, not ready, lower deletion cost, on a node with more
 * related pods, ready for a shorter time, more restarts, younger. Times are compared only by their order of magnitude.
 */
export function byDeletionOrder(related: readonly Obj[], now: Instant): (a: Obj, b: Obj) => number {
  const onNode = new Map<string, number>()
  for (const pod of related)
    if (isActive(pod)) onNode.set(pod.spec.nodeName ?? "", (onNode.get(pod.spec.nodeName ?? "") ?? 0) + 1)
  const rank = (pod: Obj) => onNode.get(pod.spec.nodeName ?? "") ?? 0

  return (a, b) =>
    Number(Boolean(a.spec.nodeName)) - Number(Boolean(b.spec.nodeName)) ||
    phase(a) - phase(b) ||
    Number(isReady(a)) - Number(isReady(b)) ||
    deletionCost(a) - deletionCost(b) ||
    rank(b) - rank(a) ||
    youngerFirst(readySince(a), readySince(b), now, a, b) ||
    restarts(b) - restarts(a) ||
    sidecarRestarts(b) - sidecarRestarts(a) ||
    youngerFirst(createdAt(a), createdAt(b), now, a, b)
}

const phase = (pod: Obj) => phaseOrder[pod.status?.phase ?? "Pending"] ?? 0
const deletionCost = (pod: Obj) => Number(pod.metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] ?? 0)
export const createdAt = (object: Obj) => parseInstant(object.metadata.creationTimestamp)

function youngerFirst(a: Instant | undefined, b: Instant | undefined, now: Instant, podA: Obj, podB: Obj): number {
  if (a === undefined || b === undefined || a === b) return 0
  const magnitude = (at: Instant) => (now > at ? Math.trunc(Math.log2((now - at) * 1e6)) : -1)
  return magnitude(a) - magnitude(b) || (podA.metadata.uid < podB.metadata.uid ? -1 : 1)
}

const highest = (statuses: Json, counts: (status: Json) => boolean): number =>
  (statuses ?? []).filter(counts).reduce((most: number, status: Json) => Math.max(most, status.restartCount ?? 0), 0)

const restarts = (pod: Obj) => highest(pod.status?.containerStatuses, () => true)

function sidecarRestarts(pod: Obj): number {
  const isSidecar = (name: string) =>
    pod.spec.initContainers?.some((init: Json) => init.name === name && init.restartPolicy === "Always") ?? false
  return highest(pod.status?.initContainerStatuses, status => isSidecar(status.name))
}
