import { ServiceImage, type ServiceImageSpecInput, type ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { customResourceDefinitions } from "#controllers/served-kind.ts"
import { betweens, events, nodes, pods, replicaSets } from "#controllers/serviceimage/pods.ts"
import { namespaces, serviceImages } from "#controllers/serviceimage/resources.ts"
import { decisionAnnotation, formatDecision, type ImageRecord } from "#core/image/record.ts"
import { hash32 } from "#lib/hash.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Inventory, kindOf } from "./inventory.ts"
import { grants } from "./serviceimage/granted.ts"

// Plain objects as a dump has them, for the tests of explanations.

export const start = Date.parse("2026-01-01T00:00:00Z")
export const [v1, v2, v3] = ["shop/web:1", "shop/web:2", "shop/web:3"]
export const target = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }

const twoTiers: ServiceImageSpecInput = {
  target,
  defaultImage: v2,
  tiers: [
    { upgradeTier: "early", priority: 1 },
    { upgradeTier: "", priority: 0 },
  ],
}

/** Without settling, so that tests of other things need not wait for it. */
const unsettled = ({ tiers = [], ...spec }: ServiceImageSpecInput): ServiceImageSpecInput => ({
  ...spec,
  tiers: tiers.map(tier => ({ settleSeconds: 0, ...tier })),
})

export type Words = {
  generation?: number
  status?: ServiceImageStatus | undefined
  annotations?: Record<string, string>
  createdAt?: Instant
}

export const serviceImage = (name: string, spec: Partial<ServiceImageSpecInput> = {}, words: Words = {}): KubeObject =>
  ({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: {
      name,
      uid: `uid-${name}`,
      generation: words.generation ?? 1,
      creationTimestamp: formatInstant(words.createdAt ?? start),
      ...(words.annotations && { annotations: words.annotations }),
    },
    spec: ServiceImage.spec.parse(unsettled({ ...twoTiers, ...spec })),
    ...(words.status && { status: words.status }),
  }) as KubeObject

export type DicomWords = {
  tier?: string
  image?: string
  isUpToDate?: boolean
  unwellSince?: Instant
  isDeployed?: boolean
  createdAt?: Instant
  deletedAt?: Instant
  decided?: Partial<ImageRecord>
  spec?: object
  annotations?: Record<string, string>
  labels?: Record<string, string>
  managedFields?: object[]
}

export function dicom(name: string, words: DicomWords = {}): KubeObject {
  const { tier, image = v1, isUpToDate = true, isDeployed = true, createdAt = start - 1000, deletedAt, decided } = words
  const since = words.unwellSince && { lastTransitionTime: formatInstant(words.unwellSince) }
  const condition = (type: string, isTrue: boolean) => ({ type, status: isTrue ? "True" : "False", ...since })
  const decision: ImageRecord = {
    from: v1,
    to: v2,
    reason: "Stamped",
    operation: "g1",
    by: "serviceimage/web",
    at: start + 10_000,
    ...decided,
  }
  return {
    ...target,
    metadata: {
      name,
      namespace: "shop",
      uid: `uid-${name}`,
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: formatInstant(createdAt),
      ...(deletedAt && { deletionTimestamp: formatInstant(deletedAt) }),
      labels: { ...(tier && { "upgrade-tier": tier }), ...words.labels },
      annotations: { ...(decided && { [decisionAnnotation]: formatDecision(decision) }), ...words.annotations },
      ...(words.managedFields && { managedFields: words.managedFields }),
    },
    spec: { ...(image && { image }), ...words.spec },
    status: {
      observedGeneration: 1,
      conditions: [condition("UpToDate", isUpToDate), condition("Deployed", isDeployed)],
    },
  } as KubeObject
}

/** A pod of a Dicom that cannot pull an image. */
export const brokenPod = (of: string, image: string, message: string): KubeObject =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `${of}-0`, namespace: "shop", ownerReferences: [{ uid: `uid-${of}`, controller: true }] },
    spec: { nodeName: "node-1", containers: [{ image }] },
    status: {
      phase: "Pending",
      containerStatuses: [{ name: "web", state: { waiting: { reason: "ErrImagePull", message } } }],
    },
  }) as unknown as KubeObject

/** A pod of a Dicom whose container keeps exiting. */
export const crashingPod = (of: string, image: string, at: Instant): KubeObject => {
  const terminated = { exitCode: 3, reason: "Error", message: "no database", finishedAt: formatInstant(at) }
  const waiting = { reason: "CrashLoopBackOff" }
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `${of}-0`, namespace: "shop", ownerReferences: [{ uid: `uid-${of}`, controller: true }] },
    spec: { nodeName: "node-1", containers: [{ name: "web", image }] },
    status: {
      phase: "Running",
      containerStatuses: [{ name: "web", restartCount: 2, state: { waiting }, lastState: { terminated } }],
    },
  } as unknown as KubeObject
}

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "dicoms.services.example.com" },
  spec: {
    group: "services.example.com",
    scope: "Namespaced",
    names: { kind: "Dicom", plural: "dicoms", singular: "dicom", shortNames: ["dic"] },
    versions: [{ name: "v1alpha1", served: true }],
  },
  status: { conditions: [{ type: "Established", status: "True" }] },
} as KubeObject

const node = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-1" },
  status: { conditions: [{ type: "Ready", status: "True" }] },
} as KubeObject

export const namespace = (name: string, labels: Record<string, string> = {}) =>
  ({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels } }) as KubeObject

/** A cluster that serves Dicoms, with a namespace and a node, and nothing else but these. */
export function inventoryOf(...objects: readonly KubeObject[]): Inventory {
  const inventory = new Inventory()
  const all = [
    serviceImages,
    customResourceDefinitions,
    namespaces,
    ...grants,
    pods,
    nodes,
    events,
    replicaSets,
    ...betweens,
  ]
  for (const resource of all) inventory.list(kindOf(resource))
  inventory.list(target)
  for (const object of [definition, namespace("shop"), node, ...objects])
    inventory.add({ ...object, metadata: { resourceVersion: "1", ...object.metadata } })
  return inventory
}

/** Names in the order in which the ServiceImage `web` takes their objects. */
export const inQueue = (...names: readonly string[]): string[] =>
  names.toSorted((a, b) => hash32(`serviceimage/web/uid-${a}`) - hash32(`serviceimage/web/uid-${b}`))
