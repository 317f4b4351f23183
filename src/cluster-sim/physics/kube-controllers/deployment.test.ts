import { describe, expect, test } from "vitest"
import { seededRandom } from "#runtime/random.ts"
import type { Json, Obj } from "../../object.ts"
import { deploymentController } from "./deployment.ts"
import { garbageCollector } from "./garbage-collector.ts"
import { isActive, isReady } from "./pods.ts"
import { replicaSetController } from "./replica-set.ts"
import { plainNodes, testWorld } from "./test-world.ts"

const deployment = (spec: Json = {}, metadata: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", ...metadata },
  spec: {
    replicas: 3,
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "web", image: "shop/web:1.0" }] } },
    ...spec,
  },
})

const image = (tag: string) => ({
  spec: { template: { spec: { containers: [{ name: "web", image: `shop/web:${tag}` }] } } },
})

function workloads(options: { seed?: number; readyMs?: (pod: Obj) => number | undefined } = {}) {
  const { readyMs, ...rest } = options
  const world = testWorld(rest)
  world.start(
    deploymentController(world),
    replicaSetController(world),
    garbageCollector(world),
    plainNodes(world, readyMs ? { readyMs } : {}),
  )
  return world
}
type World = ReturnType<typeof workloads>

/** ReplicaSets by their revisions instead of names, so that the expectation has no hashes. */
const scalings = (world: World) => {
  const named = new Map(world.list("ReplicaSet").map(set => [set.metadata.name, `rs${revision(set)}`]))
  return world
    .events("web")
    .map(text =>
      text.replace(
        /^ScalingReplicaSet: Scaled (up|down) replica set (\S+)/,
        (_, way, name) => `${way} ${named.get(name)}`,
      ),
    )
}
const revision = ({ metadata }: Obj) => metadata.annotations?.["deployment.kubernetes.io/revision"]
const reasons = ({ status }: Obj) =>
  Object.fromEntries(status.conditions.map(({ type, reason }: Json) => [type, reason]))
const history = (world: World, kind: string) =>
  world.history.filter(({ object }) => object.kind === kind).map(({ object }) => object)

/** The output of `kubectl get deploy -w`, as recorded on a real 1.36. */
const seen = ({ metadata, spec, status = {} }: Obj) => {
  const {
    observedGeneration = 0,
    replicas,
    updatedReplicas,
    readyReplicas,
    unavailableReplicas,
    conditions = [],
  } = status
  const counts = [replicas, updatedReplicas, readyReplicas, unavailableReplicas].map(count => count ?? 0).join("/")
  const said = conditions.map(({ reason }: Json) => reason).join(" ")
  return `${observedGeneration}/${metadata.generation} rev ${revision({ metadata } as Obj) ?? "-"} want ${spec.replicas}: ${counts} ${said}`.trimEnd()
}

test("a Deployment comes up step by step as on a real cluster", async () => {
  const world = workloads()
  world.create(deployment())
  await world.clock.advance(1000)
  expect(history(world, "Deployment").map(seen)).toEqual([
    "0/1 rev - want 3: 0/0/0/0",
    "0/1 rev 1 want 3: 0/0/0/0 NewReplicaSetCreated",
    "1/1 rev 1 want 3: 0/0/0/3 NewReplicaSetCreated MinimumReplicasUnavailable",
    "1/1 rev 1 want 3: 3/3/0/3 MinimumReplicasUnavailable ReplicaSetUpdated",
    "1/1 rev 1 want 3: 3/3/3/0 MinimumReplicasAvailable NewReplicaSetAvailable",
  ])
  const [replicaSet] = world.list("ReplicaSet")
  expect(replicaSet?.metadata.annotations).toEqual({
    "deployment.kubernetes.io/desired-replicas": "3",
    "deployment.kubernetes.io/max-replicas": "4",
    "deployment.kubernetes.io/revision": "1",
  })
  const name = replicaSet!.metadata.name
  expect(name).toBe("web-75675bcc96") // the hash a real cluster gives this template
  expect(world.events("web")).toEqual([`ScalingReplicaSet: Scaled up replica set ${name} from 0 to 3`])
  expect(world.events(name)).toEqual(
    world.list("Pod").map(() => expect.stringMatching(/^SuccessfulCreate: Created pod: web-/)),
  )
})

test("scaling, pausing and resuming have the status and events of a real cluster", async () => {
  const world = workloads()
  world.create(deployment())
  await world.clock.advance(1000)
  const from = history(world, "Deployment").length
  world.patch("Deployment", "web", { spec: { replicas: 5 } })
  await world.clock.advance(1000)
  world.patch("Deployment", "web", { spec: { paused: true } })
  await world.clock.advance(1000)
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(1000)
  expect(history(world, "Deployment").map(seen).slice(from)).toEqual([
    "1/2 rev 1 want 5: 3/3/3/0 MinimumReplicasAvailable NewReplicaSetAvailable",
    "2/2 rev 1 want 5: 3/3/3/0 NewReplicaSetAvailable MinimumReplicasUnavailable",
    "2/2 rev 1 want 5: 3/3/3/2 NewReplicaSetAvailable MinimumReplicasUnavailable",
    "2/2 rev 1 want 5: 5/5/3/2 NewReplicaSetAvailable MinimumReplicasUnavailable",
    "2/2 rev 1 want 5: 5/5/5/0 NewReplicaSetAvailable MinimumReplicasAvailable",
    "2/3 rev 1 want 5: 5/5/5/0 NewReplicaSetAvailable MinimumReplicasAvailable",
    "2/3 rev 1 want 5: 5/5/5/0 MinimumReplicasAvailable DeploymentPaused",
    "3/3 rev 1 want 5: 5/5/5/0 MinimumReplicasAvailable DeploymentPaused",
    "3/4 rev 1 want 5: 5/5/5/0 MinimumReplicasAvailable DeploymentPaused",
    "4/4 rev 1 want 5: 5/0/5/0 MinimumReplicasAvailable DeploymentPaused",
  ])
  world.patch("Deployment", "web", { spec: { paused: null } })
  await world.clock.advance(5000)
  expect(seen(world.get("Deployment", "web")!)).toBe(
    "5/5 rev 2 want 5: 5/5/5/0 MinimumReplicasAvailable NewReplicaSetAvailable",
  )
})

test("a rolling update scales up within maxSurge and down within maxUnavailable", async () => {
  const world = workloads()
  world.create(deployment({ replicas: 5 }))
  await world.clock.advance(1000)
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(5000)
  expect(scalings(world)).toEqual([
    "up rs1 from 0 to 5",
    "up rs2 from 0 to 2",
    "down rs1 from 5 to 4",
    "up rs2 from 2 to 3",
    expect.stringMatching(/^down rs1 from 4 to/),
    ...scalings(world).slice(5, -1),
    expect.stringMatching(/^down rs1 from \d to 0$/),
  ])
})

test("a rollback gives the old ReplicaSet a new revision, and records the one it had", async () => {
  const world = workloads()
  world.create(deployment())
  await world.clock.advance(1000)
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(5000)
  world.patch("Deployment", "web", image("1.0"))
  await world.clock.advance(5000)
  const [first, second] = world.list("ReplicaSet").sort((a, b) => b.spec.replicas - a.spec.replicas)
  expect(first?.metadata.annotations).toMatchObject({
    "deployment.kubernetes.io/revision": "3",
    "deployment.kubernetes.io/revision-history": "1",
  })
  expect(revision(second!)).toBe("2")
  expect(revision(world.get("Deployment", "web")!)).toBe("3")
})

test("history beyond its limit is removed, the oldest first", async () => {
  const world = workloads()
  world.create(deployment({ revisionHistoryLimit: 1 }))
  for (const tag of ["1.1", "1.2", "1.3"]) {
    await world.clock.advance(5000)
    world.patch("Deployment", "web", image(tag))
  }
  await world.clock.advance(5000)
  expect(world.list("ReplicaSet").map(revision).sort()).toEqual(["3", "4"])
})

test("no progress within the deadline is reported once, and later progress clears it", async () => {
  const world = workloads({ readyMs: pod => (pod.spec.containers[0].image.endsWith("1.1") ? undefined : 50) })
  world.create(deployment({ progressDeadlineSeconds: 10 }))
  await world.clock.advance(1000)
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(30_000)
  const stuck = world.get("Deployment", "web")!
  expect(stuck.status.conditions).toContainEqual({
    type: "Progressing",
    status: "False",
    lastUpdateTime: expect.any(String),
    lastTransitionTime: expect.any(String),
    reason: "ProgressDeadlineExceeded",
    message: `ReplicaSet "${world.list("ReplicaSet").find(set => revision(set) === "2")!.metadata.name}" has timed out progressing.`,
  })
  expect(stuck.status).toMatchObject({ readyReplicas: 3, unavailableReplicas: 1 })
  world.patch("Deployment", "web", image("1.0"))
  await world.clock.advance(5000)
  expect(reasons(world.get("Deployment", "web")!)).toMatchObject({ Progressing: "NewReplicaSetAvailable" })
})

test("Recreate starts the new pods when the last old one is gone", async () => {
  const world = workloads()
  world.create(deployment({ strategy: { type: "Recreate" } }))
  await world.clock.advance(1000)
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(5000)
  expect(scalings(world)).toEqual(["up rs1 from 0 to 3", "down rs1 from 3 to 0", "up rs2 from 0 to 3"])
  const pods = world.history.filter(({ object }) => object.kind === "Pod")
  const firstNew = pods.findIndex(({ object }) => object.spec.containers[0].image.endsWith("1.1"))
  const lastOld = pods.findLastIndex(({ object }) => object.spec.containers[0].image.endsWith("1.0"))
  expect(firstNew).toBeGreaterThan(lastOld)
})

test("scaling in the middle of a rollout is distributed in proportion", async () => {
  const world = workloads({ readyMs: pod => (pod.spec.containers[0].image.endsWith("1.1") ? undefined : 50) })
  world.create(deployment({ replicas: 10, strategy: { rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } } }))
  await world.clock.advance(1000)
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(1000)
  const sizes = () =>
    world
      .list("ReplicaSet")
      .map(({ spec }) => spec.replicas)
      .sort((a, b) => a - b)
  expect(sizes()).toEqual([5, 8])
  world.patch("Deployment", "web", { spec: { replicas: 15 } })
  await world.clock.advance(1000)
  expect(sizes()).toEqual([7, 11]) // the example in Kubernetes' documentation
})

test("a matching ReplicaSet without an owner is adopted; one that no longer matches is released", async () => {
  const world = workloads()
  world.create(deployment())
  await world.clock.advance(1000)
  world.remove("Deployment", "web", "Orphan")
  await world.clock.advance(1000)
  const [orphan] = world.list("ReplicaSet")
  expect(orphan?.metadata.ownerReferences).toBeUndefined()
  expect(world.list("Pod")).toHaveLength(3)
  world.create(deployment())
  await world.clock.advance(1000)
  const [adopted] = world.list("ReplicaSet")
  expect(adopted?.metadata.uid).toBe(orphan?.metadata.uid)
  expect(adopted?.metadata.ownerReferences).toMatchObject([{ kind: "Deployment", name: "web", controller: true }])
  const { labels } = adopted!.metadata
  world.patch("ReplicaSet", adopted!.metadata.name, { metadata: { labels: { ...labels, app: "other" } } })
  await world.clock.advance(1000)
  expect(world.get("ReplicaSet", adopted!.metadata.name)?.metadata.ownerReferences).toBeUndefined()
})

test("two templates with one hash: the second takes another name and the collision is counted", async () => {
  const world = workloads()
  const name = "web-75675bcc96" // the name for this template, which here another ReplicaSet has
  const { template } = deployment().spec
  const foreign = { ...template, metadata: { labels: { app: "other" } } }
  world.create({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name, labels: { app: "other" } },
    spec: { replicas: 0, selector: { matchLabels: { app: "other" } }, template: foreign },
  })
  world.create(deployment())
  await world.clock.advance(1000)
  expect(world.get("Deployment", "web")?.status).toMatchObject({ collisionCount: 1, readyReplicas: 3 })
  expect(world.list("ReplicaSet").map(({ metadata }) => metadata.name)).toHaveLength(2)
})

test("a stopped controller finds missed changes when it starts again", async () => {
  const world = workloads()
  world.create(deployment())
  await world.clock.advance(1000)
  world.stop("deployment-controller")
  world.patch("Deployment", "web", image("1.1"))
  await world.clock.advance(5000)
  expect(world.list("ReplicaSet")).toHaveLength(1)
  world.start(deploymentController(world))
  await world.clock.advance(5000)
  expect(seen(world.get("Deployment", "web")!)).toContain("rev 2 want 3: 3/3/3/0")
})

describe("in every rolling update", () => {
  const seeds = Array.from({ length: 25 }, (_, seed) => seed)
  test.each(seeds)("never too many pods, and never too few available ones (seed %i)", async seed => {
    const chance = seededRandom(seed)
    const pick = (most: number) => Math.floor(chance.next() * (most + 1))
    const replicas = 1 + pick(11)
    const maxSurge = pick(4)
    const maxUnavailable = maxSurge === 0 ? 1 + pick(3) : pick(3)
    const world = workloads({ seed, readyMs: () => 1 + chance.next() ** 3 * 2000 })
    const limits = `replicas ${replicas}, maxSurge ${maxSurge}, maxUnavailable ${maxUnavailable}`
    world.create(deployment({ replicas, strategy: { rollingUpdate: { maxSurge, maxUnavailable } } }))
    await world.clock.advance(10_000)

    const known = new Map([...world.list("Pod"), ...world.list("ReplicaSet")].map(each => [each.metadata.uid, each]))
    const from = world.history.length
    for (const tag of ["1.1", "1.2", "1.0"]) {
      world.patch("Deployment", "web", image(tag))
      await world.clock.advance(pick(3000)) // the next update may come before this one is complete
    }
    await world.clock.advance(120_000)

    for (const { type, object } of world.history.slice(from)) {
      if (type === "DELETED") known.delete(object.metadata.uid)
      else known.set(object.metadata.uid, object)
      const all = [...known.values()]
      // Desired pods, not existing ones: on a real cluster, too, a new pod may exist before an old one is gone.
      const asked = all.filter(({ kind }) => kind === "ReplicaSet").reduce((sum, { spec }) => sum + spec.replicas, 0)
      expect(asked, limits).toBeLessThanOrEqual(replicas + maxSurge)
      const serving = all.filter(each => each.kind === "Pod" && isActive(each) && isReady(each))
      expect(serving.length, limits).toBeGreaterThanOrEqual(replicas - Math.min(replicas, maxUnavailable))
    }
    const { status, metadata } = world.get("Deployment", "web")!
    expect(status, limits).toMatchObject({ replicas, updatedReplicas: replicas, availableReplicas: replicas })
    expect(status.observedGeneration).toBe(metadata.generation)
  })
})
