import { expect, test } from "vitest"
import type { Target } from "#api/v1alpha1/serviceimage/index.ts"
import { decisionAnnotation, formatDecision } from "#core/image/record.ts"
import { readPod } from "#core/pods/pod-facts.ts"
import { targetReader } from "#core/workloads/target-reader.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { cut } from "../shapes.ts"
import { cutTarget, neededOfPod } from "./needed.ts"

type Json = Record<string, unknown>

const decision = formatDecision({
  from: "shop/web:1",
  to: "shop/web:2",
  reason: "Stamped",
  operation: "g1",
  by: "serviceimage/web",
  at: 0,
})
const metadata = (managed: Json) => ({
  name: "a",
  namespace: "shop",
  uid: "u",
  resourceVersion: "7",
  generation: 3,
  creationTimestamp: "2026-01-01T00:00:00Z",
  labels: { "upgrade-tier": "early" },
  annotations: { [decisionAnnotation]: decision, "example.com/secret": "not-for-a-dump" },
  managedFields: [
    { manager: "aim", time: "2026-01-01T00:00:00Z", fieldsV1: managed },
    { manager: "argocd", time: "2026-01-01T00:01:00Z", fieldsV1: { ...managed, "f:not-for-a-dump": {} } },
    { manager: "somebody-else", time: "2026-01-01T00:02:00Z", fieldsV1: { "f:metadata": { "f:not-for-a-dump": {} } } },
    {
      manager: "operator",
      subresource: "status",
      time: "2026-01-01T00:03:00Z",
      fieldsV1: { "f:status": { "f:not-for-a-dump": {} } },
    },
  ],
})

const custom = (image: Target["image"], health = ""): Target => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  image,
  health,
})
const dicom = (spec: Json, status: Json, managed: Json): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: metadata(managed),
  spec: { ...spec, password: "not-for-a-dump" },
  status: { ...status, note: "not-for-a-dump" },
})
const conditions = [
  { type: "UpToDate", status: "True", observedGeneration: 3, message: "not-for-a-dump" },
  { type: "Deployed", status: "True" },
]

const containerFields = { "f:template": { "f:spec": { "f:containers": { 'k:{"name":"web"}': { "f:image": {} } } } } }

// A cut object is read exactly as the whole one, and holds nothing else.
const cases: Record<string, { target: Target; object: Json }> = {
  "an object that is not up to date any more": {
    target: custom({ paths: ["spec.image"] }),
    object: dicom(
      { image: "shop/web:1" },
      {
        observedGeneration: 3,
        conditions: [{ type: "UpToDate", status: "False", lastTransitionTime: "2026-01-01T00:04:00Z" }],
      },
      { "f:spec": { "f:image": {} } },
    ),
  },
  "an object that keeps the contract": {
    target: custom({ paths: ["spec.image"] }),
    object: dicom(
      { image: "shop/web:1", failureHaltsUpdate: true, manuallySpecifiedImage: true },
      { observedGeneration: 3, conditions },
      { "f:spec": { "f:image": {} } },
    ),
  },
  "two paths, one of them missing, owned as a whole": {
    target: custom({ paths: ["spec.image", "spec.sidecar.image"] }),
    object: dicom({ image: "shop/web:1", sidecar: { token: "not-for-a-dump" } }, {}, { "f:spec": {} }),
  },
  "a path that holds something else": {
    target: custom({ paths: ["spec.image"] }),
    object: dicom({ image: { secret: "not-for-a-dump" } }, {}, {}),
  },
  "health by an expression": {
    target: custom({ paths: ["spec.image"] }, "object.status.parts.all(p, p.ready) && object.spec.size > 1"),
    object: dicom({ image: "shop/web:2", size: 2 }, { observedGeneration: 3, parts: [{ ready: true }] }, {}),
  },
  "a Deployment, contested": {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" }, health: "" },
    object: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: metadata({ "f:spec": containerFields }),
      spec: {
        replicas: 2,
        template: {
          spec: { containers: [{ name: "web", image: "shop/web:1", env: [{ name: "P", value: "not-for-a-dump" }] }] },
        },
      },
      status: { observedGeneration: 3, replicas: 2, updatedReplicas: 2, availableReplicas: 2, readyReplicas: 2 },
    },
  },
  "a StatefulSet with an init container and a partition": {
    target: { apiVersion: "apps/v1", kind: "StatefulSet", image: { container: "web" }, health: "" },
    object: {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: metadata({}),
      spec: {
        replicas: 3,
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } },
        template: { spec: { containers: [], initContainers: [{ name: "web", image: "shop/web:2" }] } },
      },
      status: { observedGeneration: 3, replicas: 3, updatedReplicas: 2, availableReplicas: 3, currentRevision: "a" },
    },
  },
  "a DaemonSet": {
    target: { apiVersion: "apps/v1", kind: "DaemonSet", image: { container: "web" }, health: "" },
    object: {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: metadata({}),
      spec: { template: { spec: { containers: [{ name: "web", image: "shop/web:2", command: ["not-for-a-dump"] }] } } },
      status: { observedGeneration: 3, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 },
    },
  },
}

for (const [name, { target, object }] of Object.entries(cases))
  test(name, () => {
    const whole = object as unknown as KubeObject
    const left = cutTarget([target])(whole)
    const { read } = targetReader(target)
    expect(read(left)).toEqual(read(whole))
    expect(JSON.stringify(left)).not.toContain("not-for-a-dump")
  })

test("the writer that contests the image is still known", () => {
  const { target, object } = cases["a Deployment, contested"]!
  const left = cutTarget([target])(object as unknown as KubeObject)
  expect(targetReader(target).read(left).contestedBy).toBe("argocd")
})

test("two ServiceImages that read a kind differently both find what they read", () => {
  const [a, b] = [custom({ paths: ["spec.image"] }), custom({ paths: ["spec.other"] }, "object.status.ok")]
  const object = dicom({ image: "x:1", other: "x:2" }, { ok: true }, {}) as unknown as KubeObject
  const left = cutTarget([a, b])(object)
  for (const target of [a, b]) expect(targetReader(target).read(left)).toEqual(targetReader(target).read(object))
})

test("a pod that crashes, without the end of its log", () => {
  const terminated = { exitCode: 3, reason: "Error", message: "not-for-a-dump", finishedAt: "2026-01-01T00:00:07Z" }
  const pod = {
    metadata: { name: "p", namespace: "shop", ownerReferences: [{ uid: "u", controller: true, name: "rs" }] },
    spec: { nodeName: "n", containers: [{ image: "x:1", env: [{ name: "P", value: "not-for-a-dump" }] }] },
    status: {
      phase: "Running",
      containerStatuses: [
        {
          name: "web",
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: "CrashLoopBackOff" } },
          lastState: { terminated },
        },
      ],
    },
  } as unknown as KubeObject
  const left = cut(neededOfPod)(pod)
  // Only the end of the log is lost.
  const { crash, ...facts } = readPod(pod)
  expect(readPod(left)).toEqual({ ...facts, crash: { ...crash, said: "" } })
  expect(crash).toMatchObject({ isLoop: true, said: "not-for-a-dump" })
  expect(readPod(left).trouble?.message).toContain("exited with 3")
  expect(JSON.stringify(left)).not.toContain("not-for-a-dump")
})
