import { expect, test } from "vitest"
import { pullsAs, readPod, readWorkload } from "#controllers/alternateimagesource/facts.ts"
import { decisionAnnotation, formatDecision } from "#core/image/record.ts"
import { mirrorMark, skipMark } from "#core/pods/left-alone.ts"
import { both } from "#lib/shape.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { cutTarget } from "../serviceimage/needed.ts"
import { cut } from "../shapes.ts"
import { neededOfPod, neededOfWorkload, neededToAsk } from "./needed.ts"

// A cut object is read exactly as the whole one, and holds nothing else.

type Json = Record<string, unknown>

const decision = formatDecision({
  ...{ from: "quay.io/app:1", was: { app: "quay.io/app:1" }, to: "docker.io/app:1", reason: "Unreachable" },
  ...{ operation: "incident-1", by: "alternateimagesource/demo", at: 0 },
})
const metadata = (more: Json = {}): Json => ({
  name: "web",
  namespace: "shop",
  uid: "u",
  resourceVersion: "7",
  generation: 3,
  labels: { app: "web", "controller-revision-hash": "web-2" },
  annotations: { "example.com/token": "not-for-a-dump", [decisionAnnotation]: decision },
  ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "r", controller: true }],
  ...more,
})
const container = { name: "app", env: [{ name: "P", value: "not-for-a-dump" }], imagePullPolicy: "Always" }
const podSpec = (image: string): Json => ({
  nodeName: "n",
  containers: [{ ...container, image }],
  initContainers: [{ ...container, name: "init", image: "quay.io/init:1" }],
  imagePullSecrets: [{ name: "key" }],
  serviceAccountName: "robot",
  volumes: [{ secret: { secretName: "not-for-a-dump" } }],
})
const digest = `sha256:${"1".repeat(64)}`
const pod = (more: Json, status: Json): Json => ({
  kind: "Pod",
  metadata: metadata(more),
  spec: podSpec("docker.io/app:1"),
  status: { phase: "Running", containerStatuses: [{ name: "app", ...status }] },
})
const waiting = { reason: "ErrImagePull", message: "dial tcp: connection refused" }
const failing = { restartCount: 0, state: { waiting } }
const terminated = { exitCode: 1, message: "not-for-a-dump", finishedAt: "2026-01-01T00:00:00Z" }

const pods: Record<string, Json> = {
  "that cannot pull": pod({}, failing),
  "that cannot pull and belongs to no object": pod({ ownerReferences: [] }, failing),
  "that had started": pod({}, { ...failing, containerID: "containerd://1" }),
  "that runs": pod({}, { restartCount: 0, imageID: `docker.io/app@${digest}`, state: { running: {} } }),
  "that is to be left alone": pod({ annotations: { [skipMark]: "true" } }, failing),
  "of a kubelet": pod({ annotations: { [mirrorMark]: "x" } }, failing),
}
for (const [name, object] of Object.entries(pods))
  test(`a pod ${name}`, () => {
    const left = cut(both(neededOfPod, neededToAsk))(object as unknown as KubeObject)
    expect(readPod(left)).toEqual(readPod(object as unknown as KubeObject))
    expect(JSON.stringify(left)).not.toContain("not-for-a-dump")
  })

test("a pod that crashes with its new image, without the end of its log", () => {
  const status = { restartCount: 4, state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated } }
  const object = pod({}, status) as unknown as KubeObject
  const left = cut(neededOfPod)(object)
  expect(readPod(left)).toEqual(readPod(object))
  expect(readPod(object).crash).toBeDefined()
  expect(JSON.stringify(left)).not.toContain("not-for-a-dump")
})

const spec = { selector: { matchLabels: { app: "web" } }, template: { spec: podSpec("quay.io/app:1") } }
const workloads: Record<string, Json> = {
  Deployment: { metadata: metadata(), spec },
  "Deployment of a tool that marks it": {
    metadata: metadata({ annotations: { "argocd.argoproj.io/tracking-id": "shop" } }),
    spec,
  },
  "Deployment that a tool has written": {
    metadata: metadata({ managedFields: [{ manager: "flux", fieldsV1: { "f:not-for-a-dump": {} } }] }),
    spec,
  },
  "StatefulSet whose controller has seen its template": {
    metadata: metadata(),
    spec,
    status: { observedGeneration: 3, updateRevision: "web-2", conditions: [{ message: "not-for-a-dump" }] },
  },
  "Deployment that asks for updates in place": {
    metadata: metadata({
      generation: 3,
      annotations: { "autoimagemanager.io/update-strategy": "InPlaceOnly", "autoimagemanager.io/held": "{}" },
    }),
    spec: { ...spec, paused: true },
  },
  "DaemonSet that asks for updates in place": {
    metadata: metadata({ generation: 3, annotations: { "autoimagemanager.io/update-strategy": "InPlaceIfPossible" } }),
    spec: { ...spec, updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } } },
  },
  CronJob: { metadata: metadata(), spec: { jobTemplate: { spec } } },
}
for (const [name, written] of Object.entries(workloads))
  test(`a ${name}`, () => {
    const object = { apiVersion: "apps/v1", kind: name.split(" ")[0], ...written } as unknown as KubeObject
    const asTarget = cutTarget(
      [{ kind: "Deployment", image: { container: "app" }, health: "" }],
      both(neededOfWorkload, neededToAsk),
    )
    for (const left of [cut(both(neededOfWorkload, neededToAsk))(object), asTarget(object)]) {
      expect(readWorkload(left)).toEqual(readWorkload(object))
      expect(pullsAs(left)).toEqual(pullsAs(object))
      expect(JSON.stringify(left)).not.toContain("not-for-a-dump")
    }
    expect(JSON.stringify(cut(neededOfWorkload)(object))).not.toMatch(/"key"|robot/)
  })
