import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { operationOf } from "#core/in-place/operation.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Sight } from "./facts.ts"

// biome-ignore lint/suspicious/noExplicitAny: what a server would send
type Json = Record<string, any>
type Kind = "Deployment" | "StatefulSet" | "DaemonSet"

export const [v1, v2, v3] = [1, 2, 3].map(tag => `registry.example.com/web:${tag}`) as [string, string, string]

export const templateOf = (image: string, over: Json = {}) => ({
  metadata: { labels: { app: "web" } },
  spec: {
    containers: [
      { name: "web", image },
      { name: "proxy", image: "proxy:1" },
    ],
    ...over,
  },
})

export type Given = {
  kind?: Kind
  /** What its template says. */
  image?: string
  template?: Json
  replicas?: number
  annotations?: Record<string, string>
  /** The note of the hold, and with it the hold. */
  note?: Json | "none" | undefined
  /** Of a workload that is not held. */
  lastNote?: Json | undefined
  /** The update strategy before the hold. */
  strategy?: Json
  spec?: Json
  status?: Json
}

const originals: Record<Kind, object> = {
  Deployment: { paused: false },
  StatefulSet: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  DaemonSet: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
}
const holding: Record<Kind, object> = {
  Deployment: { paused: true },
  StatefulSet: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2_147_483_647 } } },
  DaemonSet: { updateStrategy: { type: "OnDelete" } },
}

/** A workload that has opted in, with its three pods as its template says, unless told otherwise. */
export function workload(given: Given = {}): KubeObject {
  const {
    kind = "Deployment",
    image = v1,
    replicas = 3,
    annotations = {},
    note,
    lastNote,
    spec = {},
    status = {},
  } = given
  const original = given.strategy ?? originals[kind]
  const hold = { by: "in-place", original, generation: 4 }
  const written = note === "none" ? undefined : (note ?? lastNote)
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: {
      name: "web",
      namespace: "shop",
      uid: "uid-web",
      generation: 5,
      ...(note && { labels: { [heldMark]: "in-place" } }),
      annotations: {
        [strategyAnnotation]: "InPlaceIfPossible",
        ...(note && { [heldMark]: JSON.stringify(hold) }),
        ...(written && { [inPlaceAnnotation]: JSON.stringify(written) }),
        ...annotations,
      },
    },
    spec: {
      ...(kind !== "DaemonSet" && { replicas }),
      selector: { matchLabels: { app: "web" } },
      template: given.template ?? templateOf(image),
      ...(kind === "Deployment"
        ? { strategy: { rollingUpdate: { maxUnavailable: 1 } } }
        : { updateStrategy: original }),
      ...(note && holding[kind]),
      ...spec,
    },
    status: {
      observedGeneration: 5,
      ...(kind === "DaemonSet"
        ? { desiredNumberScheduled: replicas, updatedNumberScheduled: replicas, numberAvailable: replicas }
        : { replicas, readyReplicas: replicas, updatedReplicas: replicas, availableReplicas: replicas }),
      ...(kind === "StatefulSet" && { currentRevision: "web-a", updateRevision: "web-a" }),
      ...status,
    },
  } as KubeObject
}

/** The update to the second image, under the hold of these tests. */
export const operation = operationOf({ hold: { by: "in-place", generation: 4 }, template: templateOf(v2) })

/** The note of an operation that changes web from v1 to v2. */
export const noteOf = (reason: string, message = "", over: Json = {}) => ({
  operation,
  reason,
  message,
  touched: { containers: ["web"], labels: [], annotations: [] },
  from: { web: v1 },
  to: { web: v2 },
  ...over,
})

const ownedBy = (uid: string, kind: string) => [{ apiVersion: "apps/v1", kind, name: "web", uid, controller: true }]

/** A ReplicaSet or ControllerRevision of the workload. */
export function revision(kind: Kind, number: number, template: Json): KubeObject {
  const name = `web-${"abcdef"[number - 1]}`
  const metadata = { name, namespace: "shop", uid: `uid-${name}`, ownerReferences: ownedBy("uid-web", kind) }
  if (kind !== "Deployment")
    return {
      ...{ apiVersion: "apps/v1", kind: "ControllerRevision" },
      metadata: { ...metadata, labels: { app: "web", "controller-revision-hash": name.slice(4) } },
      ...{ revision: number, data: { spec: { template: { ...template, $patch: "replace" } } } },
    } as KubeObject
  return {
    ...{ apiVersion: "apps/v1", kind: "ReplicaSet" },
    metadata: {
      ...metadata,
      labels: { app: "web" },
      annotations: { "deployment.kubernetes.io/revision": String(number) },
    },
    spec: { replicas: 0, selector: { matchLabels: { app: "web" } }, template },
  } as KubeObject
}

export type GivenPod = {
  kind?: Kind
  image?: string
  revision?: number
  isReady?: boolean
  mark?: Json
  node?: string
  status?: Json
}

export function pod(name: string, given: GivenPod = {}): KubeObject {
  const {
    kind = "Deployment",
    image = v1,
    revision: number = 1,
    isReady = true,
    mark,
    node = "node-0",
    status = {},
  } = given
  const owner = `web-${"abcdef"[number - 1]}`
  const hash = kind === "StatefulSet" ? owner : owner.slice(4)
  const containers = templateOf(image).spec.containers
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...{ name, namespace: "shop", uid: `uid-${name}`, resourceVersion: "7" },
      labels: { app: "web", ...(kind !== "Deployment" && { "controller-revision-hash": hash }) },
      ...(mark && { annotations: { [inPlaceAnnotation]: JSON.stringify(mark) } }),
      ownerReferences: kind === "Deployment" ? ownedBy(`uid-${owner}`, "ReplicaSet") : ownedBy("uid-web", kind),
    },
    spec: { nodeName: node, containers },
    status: {
      conditions: [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime: "2026-01-01T00:00:00Z" }],
      containerStatuses: containers.map(each => ({
        ...{ name: each.name, ready: isReady, restartCount: 0, containerID: `containerd://${name}-${each.image}` },
        state: { running: {} },
      })),
      ...status,
    },
  } as KubeObject
}

/** What a pod carries after it was changed from v1 to v2. */
export const markOf = (over: Json = {}) => ({
  operation,
  from: { web: v1 },
  to: { web: v2 },
  was: { web: { id: "containerd://old", restarts: 0 } },
  at: "2026-01-01T00:05:00Z",
  ...over,
})

/** A NodeImage whose agent reports this of an image. */
export const nodeImage = (node: string, image?: string, phase = "Succeeded", reason = ""): KubeObject => {
  const [name, tag] = image ? [image.slice(0, image.lastIndexOf(":")), image.slice(image.lastIndexOf(":") + 1)] : []
  return {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "NodeImage",
    metadata: { name: node },
    spec: { images: name ? { [name]: { tags: [{ tag, version: 1, createdAt: "2026-01-01T00:00:00Z" }] } } : {} },
    status: {
      publicKey: "key",
      imageStatuses: name
        ? { [name]: { tags: [{ tag, version: 1, phase, ...(reason && { reason }), attempts: 1 }] } }
        : {},
    },
  } as unknown as KubeObject
}

export const budget = (name: string, allowed: number): KubeObject =>
  ({
    ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name, namespace: "shop" } },
    spec: { selector: { matchLabels: { app: "web" } } },
    status: { disruptionsAllowed: allowed },
  }) as KubeObject

const now = Date.parse("2026-01-01T00:06:00Z")

/** Three pods of revision 1 on three nodes with agents. */
export const sight = (given: Given = {}, over: Partial<Sight> = {}): Sight => {
  const { kind = "Deployment" } = given
  return {
    workload: workload(given),
    revisions: [revision(kind, 1, templateOf(v1))],
    pods: [0, 1, 2].map(index => pod(`web-${index}`, { kind, node: `node-${index}` })),
    budgets: [],
    nodeImages: [0, 1, 2].map(index => nodeImage(`node-${index}`)),
    now,
    ...over,
  }
}
