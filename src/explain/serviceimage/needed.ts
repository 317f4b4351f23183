import {
  approvedAnnotation,
  failureHaltsUpdateAnnotation,
  fenceAnnotation,
  manuallySpecifiedImageAnnotation,
  retryAnnotation,
  rollbackAnnotation,
  supersedeAnnotation,
  type Target,
} from "#api/v1alpha1/serviceimage/index.ts"
import { decisionAnnotation } from "#core/image/record.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { fieldsRead } from "#core/workloads/health.ts"
import { isWorkload } from "#core/workloads/workload-target.ts"
import { along, both, type Shape, shaped } from "#lib/shape.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { containerStatuses, images, metadata } from "../shapes.ts"

/**
 * Everything the planner reads from a cluster, kind by kind. A dump holds only this: a field that the planner reads in
 * addition must be added here. A story compares the plan from a dump with the decision of the controller.
 */

const ourAnnotations = [
  approvedAnnotation,
  rollbackAnnotation,
  retryAnnotation,
  supersedeAnnotation,
  decisionAnnotation,
  fenceAnnotation,
  failureHaltsUpdateAnnotation,
  manuallySpecifiedImageAnnotation,
  strategyAnnotation,
  heldMark,
  inPlaceAnnotation,
]
const labelled = both(metadata, {
  labels: "all",
  annotations: Object.fromEntries(ourAnnotations.map(name => [name, "value"])),
})

const conditions: Shape = [
  { type: "value", status: "value", reason: "value", message: "value", lastTransitionTime: "value" },
]
export const neededOfServiceImage: Shape = {
  metadata: both(labelled, { managedFields: [{ subresource: "value", time: "value" }] }),
  spec: "all",
  status: "all",
}

export const neededOfDefinition: Shape = {
  metadata,
  spec: {
    group: "value",
    scope: "value",
    names: { kind: "value", plural: "value", singular: "value", shortNames: ["value"] },
    versions: [{ name: "value", served: "value" }],
  },
  status: { conditions: [{ type: "value", status: "value" }] },
}

export const neededOfNamespace: Shape = { metadata: both(metadata, { labels: "all" }) }
/** Owner references, for every object between a target and its pods; and the existence of a grant. */
export const neededOfOwner: Shape = { metadata }
export const neededOfNode: Shape = {
  metadata: both(metadata, { labels: { "kubernetes.io/os": "value" } }),
  status: { conditions: [{ type: "value", status: "value" }] },
}
export const neededOfEvent: Shape = {
  metadata,
  involvedObject: { uid: "value", kind: "value" },
  message: "value",
  lastTimestamp: "value",
  eventTime: "value",
  series: { lastObservedTime: "value" },
}
export const neededOfReplicaSet: Shape = {
  metadata,
  spec: { template: { spec: { containers: images, initContainers: images } } },
  status: { conditions },
}
export const neededOfPod: Shape = {
  metadata: both(metadata, { annotations: { [decisionAnnotation]: "value", [inPlaceAnnotation]: "value" } }),
  spec: {
    nodeName: "value",
    containers: images,
    initContainers: images,
    imagePullSecrets: [{ name: "value" }],
  },
  status: {
    phase: "value",
    reason: "value",
    message: "value",
    conditions,
    containerStatuses,
    initContainerStatuses: containerStatuses,
  },
}

/** Of jobs that belong to a ServiceImage: where they bring which image, and how far they are. */
export const neededOfJob: Shape = {
  metadata: both(metadata, { ownerReferences: [{ kind: "value", name: "value" }] }),
  spec: "all",
  status: {
    observedGeneration: "value",
    succeeded: "value",
    failedNodes: [{ name: "value", reason: "value" }],
    conditions: [{ type: "value", status: "value", reason: "value", message: "value" }],
  },
}

/** Which containers it has stopped. */
export const neededOfRequest: Shape = {
  metadata,
  spec: { podName: "value" },
  status: { podUID: "value", containerRecreateStates: [{ name: "value", containerID: "value", stopTime: "value" }] },
}

const provenRevision: Shape = { images: ["value"] }

/** Which workload a Canary proves, and how its run stands or ended. */
export const neededOfCanary: Shape = {
  metadata,
  spec: { targetRef: { kind: "value", name: "value" } },
  status: {
    phase: "value",
    conditions: [{ type: "value", status: "value", reason: "value", message: "value" }],
    run: {
      id: "value",
      weight: "value",
      reason: "value",
      message: "value",
      progressAt: "value",
      source: provenRevision,
      target: provenRevision,
    },
    history: [
      { id: "value", result: "value", reason: "value", message: "value", endedAt: "value", target: provenRevision },
    ],
  },
}

const contract: Shape = {
  metadata: labelled,
  spec: { manuallySpecifiedImage: "value", failureHaltsUpdate: "value" },
  status: {
    observedGeneration: "value",
    conditions: [{ type: "value", status: "value", observedGeneration: "value", lastTransitionTime: "value" }],
  },
}

/** One that a Canary made is told by its owner. */
const workload: Shape = {
  metadata: both(labelled, {
    ownerReferences: [{ apiVersion: "value", kind: "value", name: "value", controller: "value" }],
  }),
  spec: {
    replicas: "value",
    minReadySeconds: "value",
    paused: "value",
    updateStrategy: { type: "value", rollingUpdate: { partition: "value" } },
    template: { spec: { containers: images, initContainers: images } },
  },
  status: Object.fromEntries(
    [
      "observedGeneration",
      "replicas",
      "updatedReplicas",
      "availableReplicas",
      "readyReplicas",
      "currentRevision",
      "updateRevision",
      "desiredNumberScheduled",
      "updatedNumberScheduled",
      "numberAvailable",
      "numberReady",
    ].map(name => [name, "value" as const]),
  ),
}

type Read = Pick<Target, "kind" | "image" | "health">

function neededOfTarget({ kind, image, health }: Read): Shape {
  const { container, paths = ["spec.image"] } = image
  const base = container !== undefined && isWorkload(kind) ? workload : contract
  const fields = health === "" ? [] : (healthFields(health) ?? [[]])
  const held = paths.map(path => along(path.split("."), "value"))
  return [...held, ...fields.map(field => along(field, "all"))].reduce(both, base)
}

/** An invalid expression reads nothing. An expression that takes the object as a whole may read all of it. */
function healthFields(expression: string): string[][] | undefined {
  try {
    return fieldsRead(expression)
  } catch {
    return []
  }
}

/** Cuts the objects of one kind down to the fields that its ServiceImages read, and to what else is needed of them. */
export function cutTarget(targets: readonly Read[], more: Shape = {}): (object: KubeObject) => KubeObject {
  const shape = [...targets.map(neededOfTarget), more].reduce(both)
  const owned = targets.flatMap(ownedFields)
  return object => {
    const kept = shaped(object, both(shape, { apiVersion: "value", kind: "value" })) as KubeObject
    const { managedFields: all, ...meta } = kept.metadata as KubeObject["metadata"] & { managedFields?: unknown }
    const managedFields = ownersOf((object.metadata as { managedFields?: unknown }).managedFields, owned, all)
    return {
      ...kept,
      metadata: { ...meta, ...(managedFields.length > 0 && { managedFields }) } as KubeObject["metadata"],
    }
  }
}

function ownedFields({ kind, image: { container, paths = ["spec.image"] } }: Read): string[][] {
  if (container === undefined || !isWorkload(kind)) return paths.map(path => path.split(".").map(name => `f:${name}`))
  const key = `k:${JSON.stringify({ name: container })}`
  return ["f:containers", "f:initContainers"].map(list => ["f:spec", "f:template", "f:spec", list, key, "f:image"])
}

/**
 * Of `managedFields`, the writer of the image, which may contest it. Of other entries the time, and the name where
 * `needed` has it.
 */
function ownersOf(entries: unknown, owned: readonly string[][], needed: unknown): object[] {
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry, index): object[] => {
    const { manager, time, subresource, fieldsV1 } = (entry ?? {}) as Record<string, unknown>
    const named = Array.isArray(needed) && needed[index]?.manager !== undefined ? { manager } : undefined
    if (subresource) return named ? [{ ...named, subresource }] : []
    const kept = owned.map(path => alongOwned(fieldsV1, path)).filter(each => each !== undefined)
    return kept.length > 0 ? [{ manager, time, fieldsV1: kept.reduce(merged) }] : [{ ...named, time }]
  })
}

type Fields = { [name: string]: Fields }

/** A field with nothing below it means all of it, and must stay so. */
function alongOwned(node: unknown, [name, ...rest]: readonly string[]): Fields | undefined {
  if (typeof node !== "object" || node === null) return undefined
  if (name === undefined || Object.keys(node).length === 0) return {}
  const inner = Object.hasOwn(node, name) ? alongOwned((node as Fields)[name], rest) : undefined
  return inner && { [name]: inner }
}

function merged(a: Fields, b: Fields): Fields {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return Object.fromEntries(
    names.map(name => [name, a[name] && b[name] ? merged(a[name], b[name]) : (a[name] ?? b[name])!]),
  )
}
