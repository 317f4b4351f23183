import { describe, expect, test } from "vitest"
import { seededRandom } from "#runtime/random.ts"
import type { Json, Obj } from "../../object.ts"
import { garbageCollector } from "./garbage-collector.ts"
import { isReady } from "./pods.ts"
import { statefulSetController, volumeBinder } from "./stateful-set.ts"
import { type PlainNodes, plainNodes, testWorld } from "./test-world.ts"

const set = (spec: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "db" },
  spec: {
    replicas: 3,
    serviceName: "db",
    selector: { matchLabels: { app: "db" } },
    template: {
      metadata: { labels: { app: "db" } },
      spec: { terminationGracePeriodSeconds: 1, containers: [{ name: "db", image: "shop/db:1.0" }] },
    },
    ...spec,
  },
})
const image = (tag: string) => ({
  spec: { template: { spec: { containers: [{ name: "db", image: `shop/db:${tag}` }] } } },
})

function started({ seed = 1, ...options }: PlainNodes & { seed?: number } = {}) {
  const world = testWorld({ seed })
  world.start(
    statefulSetController(world),
    volumeBinder(world),
    garbageCollector(world),
    plainNodes(world, { readyMs: () => 50, endMs: () => 30, ...options }),
  )
  return world
}
type World = ReturnType<typeof started>

const tag = (pod: Obj) => pod.spec.containers[0].image.split(":")[1]
const tags = (world: World) =>
  world
    .list("Pod")
    .map(pod => `${pod.metadata.name} ${tag(pod)}`)
    .sort()
const isBroken = (pod: Obj) => tag(pod).includes("broken")
const seen = ({ status = {} }: Obj) =>
  [
    status.replicas,
    status.readyReplicas ?? 0,
    status.currentReplicas ?? 0,
    status.updatedReplicas ?? 0,
    status.currentRevision === status.updateRevision ? "one" : "two",
  ].join(" ")

test("pods are created one after the other and replaced from the last, as seen on a real 1.36", async () => {
  const world = started()
  world.create(set())
  await world.clock.advance(5000)
  world.patch("StatefulSet", "db", image("1.1"))
  await world.clock.advance(5000)
  const sequence = world.history.filter(({ object }) => object.kind === "StatefulSet").map(({ object }) => seen(object))
  // replicas ready current updated revisions
  expect(sequence).toEqual([
    "0 0 0 0 one",
    "0 0 0 0 one",
    "1 0 1 1 one",
    "1 1 1 1 one",
    "2 1 2 2 one",
    "2 2 2 2 one",
    "3 2 3 3 one",
    "3 3 3 3 one",
    "3 3 3 3 one", // the user's change
    "3 3 2 0 two",
    "2 2 2 0 two",
    "3 2 2 1 two",
    "3 3 1 1 two",
    "2 2 1 1 two",
    "3 2 1 2 two",
    "3 3 0 2 two",
    "2 2 0 2 two",
    "3 2 0 3 two",
    "3 3 3 3 one",
  ])
  expect(world.events("db")).toEqual(
    ["0", "1", "2"]
      .flatMap(index => [`SuccessfulCreate: Create Pod db-${index} in StatefulSet db successful (x2)`])
      .concat(["2", "1", "0"].map(index => `SuccessfulDelete: Delete Pod db-${index} in StatefulSet db successful`)),
  )
  const pod = world.get("Pod", "db-0")!
  expect(pod.metadata.labels).toEqual({
    app: "db",
    "apps.kubernetes.io/pod-index": "0",
    "controller-revision-hash": world.get("StatefulSet", "db")!.status.updateRevision,
    "statefulset.kubernetes.io/pod-name": "db-0",
  })
  expect(pod.spec).toMatchObject({ hostname: "db-0", subdomain: "db" })
})

test("revisions have the names of a real cluster, and a rollback renumbers them", async () => {
  const world = started()
  world.create(set())
  await world.clock.advance(5000)
  world.patch("StatefulSet", "db", image("1.1"))
  await world.clock.advance(5000)
  const revisions = () =>
    world
      .list("ControllerRevision")
      .sort((a, b) => a.revision - b.revision)
      .map(({ metadata, revision }) => `${metadata.name} ${revision}`)
  expect(revisions()).toEqual(["db-6c98bbcc8c 1", "db-947bd6c6 2"])
  world.patch("StatefulSet", "db", image("1.0"))
  await world.clock.advance(5000)
  expect(revisions()).toEqual(["db-947bd6c6 2", "db-6c98bbcc8c 3"])
})

test("a partition keeps the revision of the pods below it, also when they are recreated", async () => {
  const world = started()
  world.create(set({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } }))
  await world.clock.advance(5000)
  world.patch("StatefulSet", "db", image("1.1"))
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-0 1.0", "db-1 1.0", "db-2 1.1"])
  world.remove("Pod", "db-0")
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-0 1.0", "db-1 1.0", "db-2 1.1"])
  world.patch("StatefulSet", "db", { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } })
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-0 1.1", "db-1 1.1", "db-2 1.1"])
})

test("OnDelete waits until a user deletes the pods", async () => {
  const world = started()
  world.create(set({ updateStrategy: { type: "OnDelete" } }))
  await world.clock.advance(5000)
  world.patch("StatefulSet", "db", image("1.1"))
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-0 1.0", "db-1 1.0", "db-2 1.0"])
  world.remove("Pod", "db-1")
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-0 1.0", "db-1 1.1", "db-2 1.0"])
})

test("a broken pod blocks the rollout, also after the template is fixed, until the pod is deleted", async () => {
  const world = started({ readyMs: pod => (isBroken(pod) ? undefined : 50) })
  world.create(set())
  await world.clock.advance(5000)
  world.patch("StatefulSet", "db", image("broken"))
  await world.clock.advance(60_000)
  expect(tags(world)).toEqual(["db-0 1.0", "db-1 1.0", "db-2 broken"])
  world.patch("StatefulSet", "db", image("1.2"))
  await world.clock.advance(60_000)
  expect(tags(world)).toEqual(["db-0 1.0", "db-1 1.0", "db-2 broken"])
  world.remove("Pod", "db-2")
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-0 1.2", "db-1 1.2", "db-2 1.2"])
})

test("with parallel management all pods are created at once, and the last ones are deleted at once", async () => {
  const world = started()
  world.create(set({ podManagementPolicy: "Parallel", ordinals: { start: 5 } }))
  await world.clock.advance(20)
  expect(tags(world)).toEqual(["db-5 1.0", "db-6 1.0", "db-7 1.0"])
  await world.clock.advance(5000)
  world.patch("StatefulSet", "db", { spec: { replicas: 1 } })
  await world.clock.advance(5000)
  expect(tags(world)).toEqual(["db-5 1.0"])
})

test("claims are created, bound, and deleted by the retention policy", async () => {
  const world = started()
  const claim = {
    metadata: { name: "data" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  }
  world.create(
    set({
      replicas: 2,
      volumeClaimTemplates: [claim],
      persistentVolumeClaimRetentionPolicy: { whenScaled: "Delete", whenDeleted: "Retain" },
    }),
  )
  await world.clock.advance(5000)
  const claims = () =>
    world.list("PersistentVolumeClaim").map(({ metadata, status }) => `${metadata.name} ${status.phase}`)
  expect(claims()).toEqual(["data-db-0 Bound", "data-db-1 Bound"])
  expect(world.get("Pod", "db-1")?.spec.volumes).toContainEqual({
    name: "data",
    persistentVolumeClaim: { claimName: "data-db-1" },
  })
  world.patch("StatefulSet", "db", { spec: { replicas: 1 } })
  await world.clock.advance(5000)
  expect(claims()).toEqual(["data-db-0 Bound"])
  world.remove("StatefulSet", "db")
  await world.clock.advance(5000)
  expect(world.list("Pod")).toEqual([])
  expect(claims()).toEqual(["data-db-0 Bound"])
})

describe("in every ordered update", () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "one pod at most is missing, from the last to the first (seed %i)",
    async seed => {
      const chance = seededRandom(seed)
      const world = started({ seed, readyMs: () => 1 + chance.next() * 3000, endMs: () => 1 + chance.next() * 500 })
      const replicas = 1 + Math.floor(chance.next() * 5)
      world.create(set({ replicas }))
      await world.clock.advance(60_000)
      const known = new Map(world.list("Pod").map(pod => [pod.metadata.name, pod]))
      const from = world.history.length
      world.patch("StatefulSet", "db", image("1.1"))
      await world.clock.advance(60_000)
      const replaced: string[] = []
      for (const { type, object } of world.history.slice(from)) {
        if (object.kind !== "Pod") continue
        if (type === "DELETED") known.delete(object.metadata.name)
        else known.set(object.metadata.name, object)
        if (type === "ADDED") replaced.push(object.metadata.name)
        const serving = [...known.values()].filter(pod => isReady(pod) && !pod.metadata.deletionTimestamp)
        expect(serving.length).toBeGreaterThanOrEqual(replicas - 1)
      }
      expect(replaced).toEqual(Array.from({ length: replicas }, (_, index) => `db-${replicas - 1 - index}`))
      expect(world.get("StatefulSet", "db")?.status).toMatchObject({
        readyReplicas: replicas,
        updatedReplicas: replicas,
      })
    },
  )
})
