import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import { inPlaceViolationsOf } from "./in-place.ts"

// The invariants themselves: an update in which nothing is wrong, and one step in it that is.

const prefix = "autoimagemanager.io"
const digest = `sha256:${"2".repeat(64)}`

const deployment = (fields: Json = {}): Json => ({
  kind: "Deployment",
  metadata: {
    name: "web",
    uid: "web",
    annotations: { [`${prefix}/held`]: '{"by":"in-place"}', [`${prefix}/in-place-grace-seconds`]: "2" },
    ...fields.metadata,
  },
  spec: { replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 1 } }, template: { image: 2 } },
})
const replicaSet: Json = {
  kind: "ReplicaSet",
  metadata: { name: "web-1", uid: "set", ownerReferences: [{ uid: "web", controller: true }] },
  spec: { replicas: 2 },
}
const nodeImage: Json = {
  kind: "NodeImage",
  metadata: { name: "node-0", uid: "image" },
  status: { imageStatuses: { web: { tags: [{ tag: "2", phase: "Succeeded", digest }] } } },
}

type PodState = { image?: string; id?: string; isDrained?: boolean; isReady?: boolean; side?: string; more?: Json }

const pod = (name: string, version: number, state: PodState = {}): Json => {
  const { image = "web:1", id = "old", isDrained = false, isReady = !isDrained, side = "side" } = state
  const bits = id === "old" ? "sha256:1" : digest
  return {
    kind: "Pod",
    metadata: {
      ...{ name, uid: `uid-${name}`, resourceVersion: String(version), labels: { app: "web" } },
      ownerReferences: [{ uid: "set", controller: true }],
    },
    spec: {
      nodeName: "node-0",
      readinessGates: [{ conditionType: `${prefix}/InPlaceUpdateReady` }],
      containers: [
        { name: "web", image },
        { name: "side", image: "side:1" },
      ],
      ...state.more,
    },
    status: {
      conditions: [
        { type: "Ready", status: isReady ? "True" : "False" },
        {
          type: `${prefix}/InPlaceUpdateReady`,
          ...(isDrained ? { status: "False", reason: "InPlaceUpdate" } : { status: "True" }),
        },
      ],
      containerStatuses: [
        { name: "web", containerID: id, ready: true, imageID: `web@${bits}` },
        { name: "side", containerID: side, ready: true, imageID: "side" },
      ],
    },
  }
}

type Step = { object: Json; before?: Json; isOurs?: boolean; body?: Json; at?: number }

const updated: PodState = { image: "web:2", id: "new" }
/** One pod: drained, changed three seconds later, restarted, and serving again. */
const usual = (name: string, from = 10): Step[] => {
  const states: PodState[] = [
    {},
    { isDrained: true },
    { image: "web:2", isDrained: true },
    { ...updated, isDrained: true },
    updated,
  ]
  const objects = states.map((state, index) => pod(name, from + index, state))
  return objects.map((object, index) => ({
    object,
    ...(index > 0 && { before: objects[index - 1]!, isOurs: index !== 3 }),
  }))
}

function runOf(steps: readonly Step[]): Run {
  const updates: Sent[] = []
  const commits = steps.map(({ object, before, isOurs, body, at }, index): Commit => {
    const revision = Number(object.metadata.resourceVersion ?? index + 1)
    const time = at ?? index * 3000
    if (isOurs) {
      const { uid, resourceVersion } = before!.metadata
      const sent = { process: 0, method: "PATCH", path: "", at: time, after: revision - 1, revision }
      updates.push({ ...sent, body: { metadata: { uid, resourceVersion }, ...body } })
    }
    return { revision, at: time, type: before ? "MODIFIED" : "ADDED", object, before } as unknown as Commit
  })
  return { seed: 1, initial: [], sent: [], lagMs: 0, commits, updates }
}

const calm = () => [{ object: deployment() }, { object: replicaSet }, { object: nodeImage }, ...usual("a")]
/** The calm update with one of its steps replaced: those of the pod begin at 3. */
const withStep = (index: number, step: Partial<Step>) => calm().with(index, { ...calm()[index]!, ...step } as Step)

const wrong: Record<string, { steps: () => Step[]; says: string }> = {
  "an image for any version": {
    steps: () => withStep(5, { body: { metadata: { uid: "uid-a" } } }),
    says: "S21 pod a by process 0 at 12: sent for version of any",
  },
  "an image for any pod of the name": {
    steps: () => withStep(5, { body: { metadata: { resourceVersion: "11" } } }),
    says: "S21 pod a by process 0 at 12: sent for uid of any pod",
  },
  "an image while the pod serves": {
    steps: () => [
      ...calm().slice(0, 4),
      { object: pod("a", 11, { image: "web:2" }), before: pod("a", 10), isOurs: true },
    ],
    says: "S21 pod a by process 0 at 11: another image for web while its gate is True",
  },
  "an image within the grace period": {
    steps: () => withStep(5, { at: 12_500 }),
    says: "S21 pod a by process 0 at 12: after 500 ms, and its grace period is 2000 ms",
  },
  "an image that no agent has shown": {
    steps: () => calm().toSpliced(2, 1),
    says: "S17 pod a by process 0 at 12: the image of web was not shown",
  },
  "a release of any version": {
    steps: () => {
      const [before, released] = [deployment(), deployment({ metadata: { annotations: {} } })]
      before.metadata.resourceVersion = "30"
      released.metadata.resourceVersion = "31"
      return [...calm(), { object: before }, { object: released, before, isOurs: true, body: { metadata: {} } }]
    },
    says: "S10 Deployment web by process 0 at 31: sent for version of any",
  },
  "a gate that is opened before the restart": {
    steps: () => withStep(7, { before: pod("a", 13, { image: "web:2", isDrained: true }) }),
    says: "S22 pod a by process 0 at 14: web is not a new container",
  },
  "a gate that is opened for other bits": {
    steps: () => {
      const other = pod("a", 13, { image: "web:2", id: "new", isDrained: true })
      other.status.containerStatuses[0].imageID = "web@sha256:3"
      return withStep(7, { before: other })
    },
    says: "S22 pod a by process 0 at 14: web runs web@sha256:3, and other bits were pulled",
  },
  "two pods at a time": {
    steps: () => [...calm().slice(0, 5), ...usual("b", 20).slice(0, 2)],
    says: "S23 pod b by process 0 at 21: 2 pods are down, 1 are allowed",
  },
  "a budget that wants all": {
    steps: () => [
      {
        object: {
          kind: "PodDisruptionBudget",
          metadata: { name: "all", uid: "all" },
          spec: { minAvailable: "100%", selector: { matchLabels: { app: "web" } } },
        },
      },
      ...calm(),
    ],
    says: "S23 pod a by process 0 at 11: 1 pods of budget all are down, 0 are allowed",
  },
  "another field of the spec": {
    steps: () => withStep(5, { object: pod("a", 12, { image: "web:2", isDrained: true, more: { hostname: "x" } }) }),
    says: "S24 pod a by process 0 at 12: more of its spec than images is changed",
  },
  "the condition of the kubelet": {
    steps: () => withStep(4, { body: { ...idOf(10), status: { conditions: [{ type: "Ready" }] } } }),
    says: "S24 pod a by process 0 at 11: condition Ready is written",
  },
  "the container beside": {
    steps: () => withStep(6, { object: pod("a", 13, { ...updated, isDrained: true, side: "other" }) }),
    says: "S24 pod a at 13: container side was replaced",
  },
  "a second ReplicaSet after the release": {
    steps: () => {
      const note = JSON.stringify({ reason: "Completed", fence: 2 })
      const released = deployment({ metadata: { annotations: { [`${prefix}/in-place`]: note } } })
      const second = { ...replicaSet, metadata: { ...replicaSet.metadata, uid: "second", resourceVersion: "31" } }
      released.metadata.resourceVersion = "30"
      return [...calm(), { object: released, before: deployment() }, { object: second }]
    },
    says: "S24 web was released at 30, and got another ReplicaSet at 31",
  },
}

const idOf = (version: number) => ({ metadata: { uid: "uid-a", resourceVersion: String(version) } })

test("nothing is wrong with an update as it should be, or with two pods after another", () => {
  expect(inPlaceViolationsOf(runOf(calm()))).toEqual([])
  expect(inPlaceViolationsOf(runOf([...calm(), ...usual("b", 20)]))).toEqual([])
})

for (const [name, { steps, says }] of Object.entries(wrong))
  test(name, () => expect(inPlaceViolationsOf(runOf(steps()))).toContain(says))
