import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import type { RuntimeCall } from "#test/support/runtime-log.ts"
import { nodeWorkViolationsOf } from "./node-work.ts"

// The invariants themselves: a history in which nothing is wrong, and one step in it that is.

const image = "registry.example.com/app:v1"
const limits = { pullsPerNode: 1, pullsPerRegistry: 2, thresholdPercent: 85 }

const commit = (revision: number, object: Json, before?: Json): Commit =>
  ({ revision, at: revision * 1000, type: before ? "MODIFIED" : "ADDED", object, before }) as unknown as Commit

const nodeImage = (fields: { node?: string; version?: number; told?: Json; policy?: string } = {}): Json => {
  const { node = "node-0", version = 0, told, policy = "IfNotPresent" } = fields
  return {
    kind: "NodeImage",
    metadata: { name: node, uid: `image-of-${node}`, ownerReferences: [{ kind: "Node", uid: `uid-of-${node}` }] },
    spec: {
      images: {
        "registry.example.com/app": {
          tags: [{ tag: "v1", version, imagePullPolicy: policy, ownerReferences: [{ uid: "job" }] }],
        },
      },
    },
    ...(told && { status: { imageStatuses: { "registry.example.com/app": { tags: [{ tag: "v1", ...told }] } } } }),
  }
}
const there = { phase: "Succeeded", version: 0, imageID: "sha256:a" }
const job = (succeeded: number): Json => ({
  kind: "ImagePullJob",
  metadata: { name: "app", uid: "job" },
  spec: { image },
  status: { succeeded },
})

let moment = 0
const call = (fields: Partial<RuntimeCall> = {}): RuntimeCall => {
  const { node = "node-0", after = 1 } = fields
  const [begun, ended] = [moment++, moment++]
  const usual = { node, nodeUid: `uid-of-${node}`, agent: 0, method: "imageStatus" as const, subject: image }
  return { ...usual, at: after * 1000, after, begun, ended, endedAfter: after, ...fields }
}
const pull = (fields: Partial<RuntimeCall> = {}) =>
  call({ method: "pullImage", pull: { usedPercent: 50, wasThere: false, limits }, imageId: "sha256:a", ...fields })
const shown = (fields: Partial<RuntimeCall> = {}) => call({ imageId: "sha256:a", ...fields })

const run = (fields: Partial<Run>): Run => ({
  seed: 1,
  initial: [],
  sent: [],
  lagMs: 0,
  commits: [commit(1, nodeImage()), commit(5, nodeImage({ told: there }), nodeImage()), commit(6, job(1), job(0))],
  calls: [pull(), shown()],
  ...fields,
})
const request = (state: Json, fields: Json = {}): Json => ({
  kind: "ContainerRecreateRequest",
  metadata: { name: "restart", uid: "request" },
  status: { nodeName: "node-0", podUID: "pod", containerRecreateStates: [{ name: "app", ...state }], ...fields },
})
const begun = { containerID: "containerd://app-0", stopTime: "2026-01-01T00:00:00.000000Z" }
const stop = (fields: Partial<RuntimeCall> = {}) =>
  call({ method: "stopContainer", subject: "app-0", podUid: "pod", after: 2, ...fields })
const stops = (calls: RuntimeCall[], ...objects: Json[]) =>
  run({ commits: objects.map((object, index) => commit(index + 1, object)), calls })
const sent = (path: string): Sent => ({ process: 0, method: "PUT", path, body: undefined, at: 0, after: 0 })

const states = "/apis/autoimagemanager.io/v1alpha1/nodeimages/node-0/status"
const cases: Record<string, { run: Run; wrong: string | undefined }> = {
  "nothing is wrong": { run: run({ pulls: [sent(states)] }), wrong: undefined },
  "two pulls on a node that may have one": {
    run: run({ calls: [pull({ begun: 1000, ended: 1003 }), pull({ begun: 1001, ended: 1002 }), shown()] }),
    wrong: "S16",
  },
  "three pulls at a registry that may have two": {
    run: run({
      commits: ["node-0", "node-1", "node-2"].map((node, index) => commit(index, nodeImage({ node }))),
      calls: ["node-0", "node-1", "node-2"].map(node => pull({ node, after: 3, ended: 9999 })),
    }),
    wrong: "S16",
  },
  "a pull to a full disk": {
    run: run({ calls: [pull({ pull: { usedPercent: 90, wasThere: false, limits } }), shown()] }),
    wrong: "S16",
  },
  "an image that was not shown": { run: run({ calls: [pull()] }), wrong: "S17" },
  "an image that was shown as another one": {
    run: run({ calls: [pull(), shown({ imageId: "sha256:b" })] }),
    wrong: "S17",
  },
  "an image that was shown before it was asked for": {
    run: run({ calls: [pull(), shown({ after: 0, endedAfter: 0 })] }),
    wrong: "S17",
  },
  "an image that the node before this one had": {
    run: run({ calls: [pull(), shown({ nodeUid: "another" })] }),
    wrong: "S17",
  },
  "an image that must be pulled anew and was only shown": {
    run: run({
      commits: [commit(1, nodeImage({ policy: "Always" })), commit(5, nodeImage({ policy: "Always", told: there }))],
      calls: [shown()],
    }),
    wrong: "S17",
  },
  "a node that is counted too early": {
    run: run({ commits: [commit(1, nodeImage()), commit(2, job(1), job(0))] }),
    wrong: "S17",
  },
  "a write to a node": { run: run({ pulls: [sent("/api/v1/nodes/node-0")] }), wrong: "S18" },
  "a write to a pod": { run: run({ pulls: [sent("/api/v1/namespaces/default/pods/web-0/status")] }), wrong: "S18" },
  "a pull that nothing asked for": {
    run: run({ commits: [commit(1, nodeImage({ node: "node-1" }))], calls: [pull()] }),
    wrong: "S25",
  },
  "a stop that was written before": { run: stops([stop(), stop()], request(begun)), wrong: undefined },
  "a stop without a request": { run: stops([stop()], request({ containerID: "containerd://other" })), wrong: "S25" },
  "a stop on another node": { run: stops([stop({ node: "node-1" })], request(begun)), wrong: "S25" },
  "a stop of another pod's container": { run: stops([stop({ podUid: "another" })], request(begun)), wrong: "S25" },
  "a stop that was not written before": {
    run: stops([stop()], request({ containerID: "containerd://app-0" })),
    wrong: "S26",
  },
  "a second container for the same request": {
    run: stops(
      [stop(), stop({ subject: "app-1" })],
      request(begun),
      request({ ...begun, containerID: "containerd://app-1" }),
    ),
    wrong: "S26",
  },
}

for (const [name, { run, wrong }] of Object.entries(cases))
  test(`${wrong ?? "right"}: ${name}`, () => {
    const found = nodeWorkViolationsOf(run)
    if (wrong === undefined) expect(found).toEqual([])
    else expect(found.join("\n")).toContain(wrong)
  })
