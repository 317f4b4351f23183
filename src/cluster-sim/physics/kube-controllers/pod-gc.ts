import { formatInstant } from "#lib/instant.ts"
import type { Obj } from "../../object.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { manager } from "./owned.ts"
import { isTerminal } from "./pods.ts"

const quarantineMs = 40_000 // a missing node may be back in a moment
const periodMs = 20_000

/** Removes pods that no kubelet will remove: pods of missing nodes, and deleted pods without a node. Writes Pods. */
export function podCollector(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const podKind = servedKind(storage, "v1", "Pod")
  const nodeKind = servedKind(storage, "v1", "Node")
  const hasNode = ({ spec }: Obj) => storage.find(nodeKind, { name: spec.nodeName }) !== undefined

  function remove(pod: Obj, isOrphaned: boolean) {
    let current = pod
    if (!isTerminal(pod)) {
      const condition = {
        type: "DisruptionTarget",
        status: "True",
        lastProbeTime: null,
        lastTransitionTime: formatInstant(clock.now()),
        reason: "DeletionByPodGC",
        message: "PodGC: node no longer exists",
      }
      const conditions = [...(pod.status?.conditions ?? []), ...(isOrphaned ? [condition] : [])]
      const status = { ...pod.status, phase: "Failed", ...(conditions.length > 0 && { conditions }) }
      current = storage.update(podKind, { ...pod, status }, { ...manager, subresource: "status" })
    }
    storage.delete(podKind, current.metadata, { gracePeriodSeconds: 0 })
  }

  return loop(world, {
    name: "pod-garbage-collector",
    watches: [
      {
        apiVersion: "v1",
        kind: "Pod",
        delayMs: periodMs / 2,
        keys: ({ type, object }) =>
          type !== "DELETED" && object.metadata.deletionTimestamp && !object.spec.nodeName ? [keyOf(object)] : [],
      },
      {
        apiVersion: "v1",
        kind: "Pod",
        delayMs: quarantineMs + periodMs / 2,
        keys: ({ type, object }) =>
          type === "ADDED" && object.spec.nodeName && !hasNode(object) ? [keyOf(object)] : [],
      },
      {
        apiVersion: "v1",
        kind: "Node",
        delayMs: quarantineMs + periodMs / 2,
        keys: ({ type, object }) =>
          type === "DELETED"
            ? storage.list(podKind, { fieldSelector: `spec.nodeName=${object.metadata.name}` }).items.map(keyOf)
            : [],
      },
    ],
    reconcile(key) {
      const pod = storage.find(podKind, nameOf(key))
      if (!pod) return undefined
      const isOrphaned = Boolean(pod.spec.nodeName) && !hasNode(pod)
      const isUnscheduled = !pod.spec.nodeName && pod.metadata.deletionTimestamp !== undefined
      if (isOrphaned || isUnscheduled) remove(pod, isOrphaned)
      return undefined
    },
  })
}
