import { describe, expect, test } from "vitest"
import { seededRandom } from "#runtime/random.ts"
import type { Json, Obj } from "../../object.ts"
import { daemonSetController } from "./daemon-set.ts"
import { garbageCollector } from "./garbage-collector.ts"
import { isReady } from "./pods.ts"
import { type PlainNodes, plainNodes, testWorld } from "./test-world.ts"

const daemonSet = (spec: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "agent" },
  spec: {
    selector: { matchLabels: { app: "agent" } },
    template: {
      metadata: { labels: { app: "agent" } },
      spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "a", image: "shop/agent:1.0" }] },
    },
    ...spec,
  },
})
const image = (tag: string) => ({
  spec: { template: { spec: { containers: [{ name: "a", image: `shop/agent:${tag}` }] } } },
})

function started({ count = 2, seed = 1, ...options }: PlainNodes & { count?: number; seed?: number } = {}) {
  const world = testWorld({ seed })
  for (let index = 0; index < count; index++)
    world.create({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: `node-${index}`, labels: { "kubernetes.io/hostname": `node-${index}` } },
    })
  world.start(daemonSetController(world), garbageCollector(world), plainNodes(world, options))
  return world
}
type World = ReturnType<typeof started>

const where = (world: World) =>
  world
    .list("Pod")
    .map(({ spec }) => `${spec.nodeName} ${spec.containers[0].image.split(":")[1]}`)
    .sort()
const seen = ({ metadata, status = {} }: Obj) =>
  [
    `${status.observedGeneration ?? 0}/${metadata.generation}`,
    status.desiredNumberScheduled,
    status.currentNumberScheduled,
    status.updatedNumberScheduled ?? 0,
    status.numberReady,
  ].join(" ")

test("one pod on each node, replaced one by one, as seen on a real 1.36", async () => {
  const world = started({ endMs: () => 60 })
  world.create(daemonSet())
  await world.clock.advance(2000)
  world.patch("DaemonSet", "agent", image("1.1"))
  await world.clock.advance(2000)
  // observed/generation desired current updated ready
  expect(world.history.filter(({ object }) => object.kind === "DaemonSet").map(({ object }) => seen(object))).toEqual([
    "0/1 0 0 0 0",
    "1/1 2 2 2 0",
    "1/1 2 2 2 2",
    "1/2 2 2 2 2", // the user's change
    "2/2 2 2 0 2",
    "2/2 2 2 1 1",
    "2/2 2 2 1 2",
    "2/2 2 2 2 1",
    "2/2 2 2 2 2",
  ])
  const [pod] = world.list("Pod")
  expect(pod?.metadata.labels).toEqual({
    app: "agent",
    "controller-revision-hash": expect.stringMatching(/^[bcdfghjklmnpqrstvwxz2456789]+$/),
    "pod-template-generation": "2",
  })
  expect(pod?.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms).toEqual([
    { matchFields: [{ key: "metadata.name", operator: "In", values: [pod?.spec.nodeName] }] },
  ])
  expect(pod?.spec.tolerations.map(({ key }: Json) => key.split("/")[1])).toEqual([
    "not-ready",
    "unreachable",
    "disk-pressure",
    "memory-pressure",
    "pid-pressure",
    "unschedulable",
  ])
})

test("with a surge the new pod is ready before the old one is deleted", async () => {
  const world = started()
  world.create(daemonSet({ updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } }))
  await world.clock.advance(2000)
  const from = world.history.length
  world.patch("DaemonSet", "agent", image("1.1"))
  await world.clock.advance(5000)
  expect(where(world)).toEqual(["node-0 1.1", "node-1 1.1"])
  for (const { object } of world.history.slice(from))
    if (object.kind === "DaemonSet") expect(object.status.numberReady).toBe(2)
})

test("OnDelete does not replace pods", async () => {
  const world = started()
  world.create(daemonSet({ updateStrategy: { type: "OnDelete" } }))
  await world.clock.advance(2000)
  world.patch("DaemonSet", "agent", image("1.1"))
  await world.clock.advance(5000)
  expect(where(world)).toEqual(["node-0 1.0", "node-1 1.0"])
})

test("nodes that are added, removed, selected or tainted", async () => {
  const world = started()
  world.create(daemonSet())
  await world.clock.advance(1000)
  world.create({ apiVersion: "v1", kind: "Node", metadata: { name: "node-2", labels: { tier: "edge" } } })
  await world.clock.advance(1000)
  expect(where(world)).toEqual(["node-0 1.0", "node-1 1.0", "node-2 1.0"])
  world.patch("Node", "node-1", { spec: { taints: [{ key: "gone", effect: "NoExecute" }] } })
  await world.clock.advance(1000)
  expect(where(world)).toEqual(["node-0 1.0", "node-2 1.0"])
  world.patch("Node", "node-0", { spec: { taints: [{ key: "full", effect: "NoSchedule" }] } })
  await world.clock.advance(1000)
  expect(where(world)).toEqual(["node-0 1.0", "node-2 1.0"]) // running pods stay
  expect(world.get("DaemonSet", "agent")?.status).toMatchObject({ desiredNumberScheduled: 1, numberMisscheduled: 1 })
  world.patch("DaemonSet", "agent", { spec: { template: { spec: { nodeSelector: { tier: "edge" } } } } })
  await world.clock.advance(2000)
  expect(where(world)).toEqual(["node-2 1.0"])
})

test("a failed pod is reported, removed and created again, each time a little later", async () => {
  const world = started({ count: 1 })
  world.create(daemonSet())
  await world.clock.advance(1000)
  const [pod] = world.list("Pod")
  world.setStatus(pod!, { phase: "Failed" })
  await world.clock.advance(1000)
  expect(world.events("agent")).toContain(
    `FailedDaemonPod: Found failed daemon pod default/${pod!.metadata.name} on node node-0, will try to kill it`,
  )
  expect(where(world)).toEqual(["node-0 1.0"])
  expect(world.list("Pod")[0]?.metadata.uid).not.toBe(pod!.metadata.uid)
})

describe("in every rolling update", () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])("no more nodes than allowed are without a serving pod (seed %i)", async seed => {
    const chance = seededRandom(seed)
    const pick = (most: number) => Math.floor(chance.next() * (most + 1))
    const count = 2 + pick(6)
    const isSurging = pick(1) === 1
    const [maxSurge, maxUnavailable] = isSurging ? [1 + pick(2), 0] : [0, 1 + pick(2)]
    const world = started({
      count,
      seed,
      readyMs: () => 1 + chance.next() * 2000,
      endMs: () => 1 + chance.next() * 300,
    })
    world.create(daemonSet({ updateStrategy: { rollingUpdate: { maxSurge, maxUnavailable } } }))
    await world.clock.advance(20_000)
    const known = new Map(world.list("Pod").map(pod => [pod.metadata.uid, pod]))
    const from = world.history.length
    world.patch("DaemonSet", "agent", image("1.1"))
    await world.clock.advance(60_000)
    for (const { type, object } of world.history.slice(from)) {
      if (object.kind !== "Pod") continue
      if (type === "DELETED") known.delete(object.metadata.uid)
      else known.set(object.metadata.uid, object)
      const serving = [...known.values()].filter(pod => isReady(pod) && !pod.metadata.deletionTimestamp)
      const nodes = new Set(serving.map(({ spec }) => spec.nodeName))
      expect(nodes.size, `${count} nodes, surge ${maxSurge}`).toBeGreaterThanOrEqual(count - maxUnavailable)
    }
    expect(where(world)).toEqual(Array.from({ length: count }, (_, index) => `node-${index} 1.1`))
  })
})
