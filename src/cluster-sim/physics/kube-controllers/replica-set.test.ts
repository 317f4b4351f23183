import { expect, test } from "vitest"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { byDeletionOrder } from "./pods.ts"
import { plan, replicaSetController, status } from "./replica-set.ts"
import { plainNodes, testWorld } from "./test-world.ts"

const now = Date.parse("2026-01-01T01:00:00Z")
const ago = (minutes: number) => new Date(now - minutes * 60_000).toISOString()

type Traits = {
  node?: string
  phase?: string
  readyFor?: number // minutes
  age?: number
  cost?: string
  restarts?: number
  deleted?: boolean
  labels?: Record<string, string>
}

const pod = (name: string, traits: Traits = {}): Obj => {
  const { node = "node-0", phase = "Running", readyFor = 30, age = 40, cost, restarts = 0, deleted, labels } = traits
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      uid: name,
      resourceVersion: "1",
      creationTimestamp: ago(age),
      labels: labels ?? { app: "web" },
      ...(cost && { annotations: { "controller.kubernetes.io/pod-deletion-cost": cost } }),
      ...(deleted && { deletionTimestamp: ago(0) }),
    },
    spec: { ...(node && { nodeName: node }) },
    status: {
      phase,
      conditions: readyFor > 0 ? [{ type: "Ready", status: "True", lastTransitionTime: ago(readyFor) }] : [],
      containerStatuses: [{ name: "web", restartCount: restarts }],
    },
  }
}

const replicaSet = (replicas: number, rest: Json = {}): Obj => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata: {
    name: "web",
    uid: "rs",
    namespace: "default",
    resourceVersion: "1",
    creationTimestamp: ago(50),
    generation: 2,
  },
  spec: { replicas, template: { metadata: { labels: { app: "web" } } }, ...rest },
})

const pairs: Record<string, { first: Traits; last: Traits; crowd?: Traits[] }> = {
  "one without a node before one that has one": { first: { node: "" }, last: { node: "node-0", phase: "Pending" } },
  "pending before running": { first: { phase: "Pending", readyFor: 0 }, last: { readyFor: 0 } },
  "not ready before ready": { first: { readyFor: 0 }, last: { cost: "-5" } },
  "the cheaper one": { first: { cost: "-1" }, last: {} },
  "one on a node with related pods before one that is alone": {
    first: { node: "node-1", readyFor: 35 },
    last: { node: "node-0", readyFor: 1 },
    crowd: [{ node: "node-1" }, { node: "node-1" }],
  },
  "the one that became ready last": { first: { readyFor: 1 }, last: { readyFor: 30 } },
  "the one that restarted more often": { first: { restarts: 3 }, last: { restarts: 1 } },
  "the younger one": { first: { age: 33 }, last: { age: 100 } },
}
for (const [name, { first, last, crowd = [] }] of Object.entries(pairs))
  test(`too many pods: ${name} is deleted first`, () => {
    const [one, other] = [pod("one", first), pod("other", last)]
    const related = [one, other, ...crowd.map((traits, index) => pod(`crowd-${index}`, traits))]
    expect([other, one].sort(byDeletionOrder(related, now))[0]?.metadata.name).toBe("one")
  })

test("ages of one order of magnitude are equal, and the uid decides", () => {
  const [a, b] = [pod("a", { readyFor: 30 }), pod("b", { readyFor: 29 })]
  expect([b, a].sort(byDeletionOrder([a, b], now))[0]?.metadata.name).toBe("a")
})

const plans: Record<string, { replicas: number; pods: Obj[]; create: number; remove: string[] }> = {
  "creates what is missing": { replicas: 3, pods: [pod("a")], create: 2, remove: [] },
  "does not count pods that are ending or have ended": {
    replicas: 2,
    pods: [pod("a", { deleted: true }), pod("b", { phase: "Failed" })],
    create: 2,
    remove: [],
  },
  "deletes what is too much": { replicas: 1, pods: [pod("a"), pod("b", { readyFor: 0 })], create: 0, remove: ["b"] },
  "is content": { replicas: 1, pods: [pod("a")], create: 0, remove: [] },
}
for (const [name, { replicas, pods, ...want }] of Object.entries(plans))
  test(`a ReplicaSet ${name}`, () => {
    const next = plan({ replicaSet: replicaSet(replicas), pods, related: pods, now })
    expect({ create: next.create, remove: next.remove.map(({ metadata }) => metadata.name) }).toEqual(want)
  })

test("the status counts active, labelled, ready, available and terminating pods", () => {
  const pods = [
    pod("a"),
    pod("b", { readyFor: 1, labels: { app: "web", more: "x" } }),
    pod("c", { readyFor: 0, labels: { app: "other" } }),
    pod("d", { deleted: true }),
    pod("e", { phase: "Failed" }),
  ]
  expect(status({ replicaSet: replicaSet(3, { minReadySeconds: 600 }), pods, related: [], now }, undefined)).toEqual({
    replicas: 3,
    fullyLabeledReplicas: 2,
    readyReplicas: 2,
    availableReplicas: 1,
    terminatingReplicas: 1,
    observedGeneration: 2,
  })
})

function world() {
  const made = testWorld()
  made.start(replicaSetController(made), plainNodes(made))
  return made
}
const web = (spec: Json = {}) => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata: { name: "web" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "web:1" }] } },
    ...spec,
  },
})

test("pods that cannot be created are reported by a condition and an event, and are retried", async () => {
  const made = world()
  made.create(web())
  const { storage } = made
  const create = storage.create
  let isBroken = true
  storage.create = (kind, ...rest) => {
    if (isBroken && kind.kind === "Pod") throw new StatusError(403, "Forbidden", 'pods "web-" is forbidden: no')
    return create(kind, ...rest)
  }
  await made.clock.advance(100)
  expect(made.get("ReplicaSet", "web")?.status.conditions).toMatchObject([
    { type: "ReplicaFailure", status: "True", reason: "FailedCreate", message: 'pods "web-" is forbidden: no' },
  ])
  expect(made.events("web")[0]).toMatch(/^FailedCreate: Error creating: pods "web-" is forbidden: no/)
  isBroken = false
  await made.clock.advance(5000)
  expect(made.get("ReplicaSet", "web")?.status).toMatchObject({ readyReplicas: 2 })
  expect(made.get("ReplicaSet", "web")?.status.conditions).toBeUndefined()
})

test("a pod becomes available after minReadySeconds without another change", async () => {
  const made = world()
  made.create(web({ minReadySeconds: 10 }))
  await made.clock.advance(5000)
  expect(made.get("ReplicaSet", "web")?.status).toMatchObject({ readyReplicas: 2 })
  expect(made.get("ReplicaSet", "web")?.status.availableReplicas).toBeUndefined()
  await made.clock.advance(6000)
  expect(made.get("ReplicaSet", "web")?.status).toMatchObject({ availableReplicas: 2 })
})

test("a pod whose labels were changed is released and replaced", async () => {
  const made = world()
  made.create(web())
  await made.clock.advance(1000)
  const [first] = made.list("Pod")
  made.patch("Pod", first!.metadata.name, { metadata: { labels: { app: "debug" } } })
  await made.clock.advance(1000)
  expect(made.list("Pod")).toHaveLength(3)
  expect(made.get("Pod", first!.metadata.name)?.metadata.ownerReferences).toBeUndefined()
})
