import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { collect, keep } from "#cli/collect.ts"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { imagePullJobs, pods } from "#controllers/imagepulljob/resources.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { Inventory } from "#explain/inventory.ts"
import { outlookOf } from "#explain/serviceimage/outlook.ts"
import { readRollouts } from "#explain/serviceimage/reading.ts"
import { survey } from "#explain/serviceimage/survey.ts"
import { whyObject } from "#explain/serviceimage/why.ts"
import { Deployments, deployment } from "#test/support/failover-story.ts"
import { host, type PullStory, pullStory } from "#test/support/pull-story.ts"
import { about, type Story } from "#test/support/rollout-story.ts"
import type { Process, ProcessOptions } from "#test/support/scenario.ts"

// Tiers that start when their image is on the nodes of their pods: a ServiceImage, the controllers of pulls, and the
// agents of simulated nodes.

const image = (tag: string) => `${host}/web:${tag}`
const [v1, v2, v3] = [image("v1"), image("v2"), image("v3")]
const target = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "basic-demo" } }
const twoTiers = [
  { upgradeTier: "early", priority: 1, settleSeconds: 0 },
  { upgradeTier: "", priority: 0, settleSeconds: 0 },
]

type Cached = Story & {
  pulls: PullStory
  jobs(): Promise<Json[]>
  tags(): Promise<Record<string, string>>
  message(): Promise<string>
  runController(options?: ProcessOptions): Process
  /** Waits until this is a part of what Complete says. */
  says(words: string): Promise<void>
}

type Options = { nodes?: number; spec?: Json; pod?: Json; isPrivate?: boolean }

/** early-0 on node-0, early-1 on node-1, late-2 on node-2 and so on: one pod each, complete with v1. */
async function cached({ nodes = 3, spec = {}, pod = {}, isPrivate = false }: Options = {}): Promise<Cached> {
  const pulls = await pullStory({ nodes })
  const { world } = pulls
  await world.apply(crdOf(ServiceImage) as Json)
  pulls.push(v1)
  if (isPrivate) {
    await world.apply(secret("default"))
    pulls.registries.setAccounts(host, { robot: "sesame" })
  }
  for (let index = 0; index < nodes; index++) {
    const tier = index < 2 ? "early" : "late"
    await world.apply(placed(`${tier}-${index}`, index, pod))
  }
  const story = about(world, undefined as never)
  const cached: Cached = {
    ...story,
    pulls,
    jobs: () => world.list(imagePullJobs),
    async tags() {
      const tagOf = ({ spec }: Json) => spec.template.spec.containers[0].image.split(":")[1]
      return Object.fromEntries((await world.list(Deployments)).map(each => [each.metadata.name, tagOf(each)]))
    },
    message: async () => (await story.condition("Complete"))?.message ?? "",
    runController(options) {
      cached.process = world.run([createServiceImageController()], options)
      return cached.process
    },
    says: words => world.until(`it says "${words}"`, async () => (await cached.message()).includes(words), "2h"),
  }
  cached.runController()
  await world.apply({
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "dicom" },
    spec: { target, defaultImage: v1, tiers: twoTiers, pace: { podsPerSecond: 0 }, preCache: "BeforeTier", ...spec },
  })
  await cached.complete()
  await world.until("the pods run", async () =>
    (await world.list(pods)).every(each => each.status?.phase === "Running"),
  )
  return cached
}

function placed(name: string, node: number, pod: Json = {}): Json {
  const labels = name.startsWith("early") ? { "upgrade-tier": "early" } : {}
  return deployment(name, v1, {
    metadata: { labels },
    spec: { replicas: 1 },
    pod: { nodeName: `node-${node}`, ...pod },
  })
}

const secret = (namespace: string): Json => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "registry", namespace },
  type: "kubernetes.io/dockerconfigjson",
  data: {
    ".dockerconfigjson": Buffer.from(
      JSON.stringify({ auths: { [host]: { username: "robot", password: "sesame" } } }),
    ).toString("base64"),
  },
})

/** Whether a node had the image before the first object of a tier was changed to it. */
const stampedAt = ({ world }: Story, name: string, tag: string) =>
  world.history.find(
    ({ place, object }) =>
      place.endsWith("deployments") &&
      object.metadata.name === name &&
      object.spec.template.spec.containers[0].image === image(tag),
  )?.at

test("a tier starts when its image is on the nodes of its pods, and on no others; its jobs go with it", async () => {
  const story = await cached()
  expect(await story.jobs()).toEqual([])
  story.pulls.push(v2, { takesMs: 20_000 })
  await story.change({ defaultImage: v2 })
  await story.until("Complete", "PreCaching")
  await story.says("tier early: 1 image on 0 of 2 nodes")
  expect((await story.status()).pullJobs).toBe(1)
  await story.world.advance("10s")
  expect(await story.tags()).toEqual({ "early-0": "v1", "early-1": "v1", "late-2": "v1" })
  expect(story.pulls.pullsOn("node-2")).toEqual([])
  await story.world.until("early starts", () => stampedAt(story, "early-0", "v2") !== undefined)
  for (const node of ["node-0", "node-1"]) expect(story.pulls.imageOn(node, v2)).toBeDefined()
  await story.world.until("the jobs of early go, and late waits", async () => {
    const names = (await story.jobs()).map(({ spec }) => spec.selector.names)
    return names.length === 1 && names[0].includes("node-2")
  })
  await story.complete()
  expect(stampedAt(story, "late-2", "v2")).toBeGreaterThan(stampedAt(story, "early-0", "v2")! + 15_000)
  await story.world.until("every job is gone", async () => (await story.jobs()).length === 0)
  await story.world.until("nothing is left of it", async () => (await story.status()).pullJobs === undefined)
  expect(await story.events()).toContain("PreCaching")
})

test("aim why and aim plan name it, from what they read of the cluster", async () => {
  const story = await cached()
  story.pulls.push(v2, { takesMs: 60_000 })
  await story.change({ defaultImage: v2 })
  await story.world.until("the pulls began", () => story.pulls.underWay() === 2)
  await story.world.advance("10s")
  const inventory = new Inventory()
  let isRead = false
  const read = async () => {
    for await (const piece of collect(story.world.client, [readRollouts()])) keep(inventory, piece)
    isRead = true
  }
  read()
  await story.world.until("everything is read", () => isRead)
  const surveyed = survey(inventory, story.world.clock.now())
  const [rollout] = surveyed.rollouts
  expect(rollout!.plan.jobs).toEqual([])
  expect(outlookOf(rollout!).stages[0]!.waits).toEqual([
    { tier: "early", reason: "PreCaching", message: await story.message() },
  ])
  const object = await story.world.get(Deployments, "early-0", "default")
  const why = whyObject(surveyed, { key: "default/early-0", object: object as never })
  expect(why.reason).toBe("PreCaching")
  expect(why.sentences.join(" ")).toContain("After 30m it halts.")
})

test("pre-caching costs one job for all nodes of one source, and two writes a node", async () => {
  const story = await cached({ nodes: 8, spec: { tiers: [] } })
  story.pulls.push(v2)
  const { length } = story.world.history
  await story.change({ defaultImage: v2 })
  await story.complete()
  await story.world.until("every job is gone", async () => (await story.jobs()).length === 0)
  const count = (plural: string) =>
    story.world.history.slice(length).filter(({ place }) => place.endsWith(plural)).length
  expect(count("nodeimages")).toBe(16)
  expect(count("imagepulljobs")).toBeLessThanOrEqual(5)
  expect(count("serviceimages")).toBeLessThanOrEqual(8)
})

test("without preCache there are no jobs, and none are watched", async () => {
  const story = await cached({ spec: { preCache: "Never" } })
  story.pulls.push(v2)
  const { length } = story.world.history
  await story.change({ defaultImage: v2 })
  await story.complete()
  expect(story.world.history.slice(length).filter(({ place }) => place.includes("imagepulljobs"))).toEqual([])
})

test("a private image is pulled with the Secrets that the pods name", async () => {
  const story = await cached({ isPrivate: true, pod: { imagePullSecrets: [{ name: "registry" }] } })
  story.pulls.push(v2, { takesMs: 5000 })
  await story.change({ defaultImage: v2 })
  await story.until("Complete", "PreCaching")
  expect((await story.jobs()).map(({ spec }) => spec.pullSecrets)).toEqual([["registry"]])
  await story.complete()
  for (const node of ["node-0", "node-1", "node-2"]) expect(story.pulls.pullsOn(node)).toEqual([v2])
})

test("an image that does not exist halts the tier when the time is over, with nodes and reason; it goes on when it is there", async () => {
  const story = await cached({ spec: { preCacheTimeoutSeconds: 120, onFailure: "Rollback" } })
  await story.change({ defaultImage: v2 })
  await story.until("Complete", "PreCaching")
  await story.until("Halted", "PreCacheIncomplete")
  const { message } = (await story.condition("Halted"))!
  expect(message).toBe(`tier early: ${v2} is not on 2 of 2 nodes: node-0 (NotFound), node-1 (NotFound), after 2m`)
  expect(await story.condition("Stalled")).toMatchObject({ status: "True", reason: "PreCacheIncomplete" })
  // Images that are not there are no reason to take anything back.
  await story.world.advance("10m")
  expect((await story.status()).operation.phase).toBe("Halted")
  story.pulls.push(v2)
  await story.complete()
  expect(new Set(Object.values(await story.tags()))).toEqual(new Set(["v2"]))
})

test("a node without an agent counts as missing, with that word; Proceed starts without it and says so", async () => {
  for (const isPrivate of [false, true]) {
    const pod = isPrivate ? { imagePullSecrets: [{ name: "registry" }] } : {}
    const spec = { preCacheTimeoutSeconds: 120, preCacheMissing: "Proceed", tiers: [] }
    const story = await cached({ nodes: 2, spec, pod, isPrivate })
    await story.pulls.addNode("node-2", { agent: false })
    await story.world.apply(placed("late-2", 2, pod))
    await story.complete()
    story.pulls.push(v2)
    await story.change({ defaultImage: v2 })
    const began = story.world.clock.now()
    await story.says("1 image on 2 of 3 nodes; node-2 (AgentMissing)")
    expect(await story.tags()).toEqual({ "early-0": "v1", "early-1": "v1", "late-2": "v1" })
    await story.says("started without the image on 1 of 3 nodes: node-2 (AgentMissing)")
    expect(story.world.clock.now() - began).toBeGreaterThanOrEqual(119_000)
    await story.complete()
    expect(await story.events()).toContain("PreCacheIncomplete")
  }
})

test("a node that the pods come to meanwhile is asked too", async () => {
  const story = await cached({ spec: { tiers: [] } })
  story.pulls.push(v2, { takesMs: 20_000 })
  await story.change({ defaultImage: v2 })
  await story.says("1 image on 0 of 3 nodes")
  await story.pulls.addNode("node-3")
  await story.world.apply(placed("late-3", 3))
  await story.says("of 4 nodes")
  await story.complete()
  expect(story.pulls.pullsOn("node-3")[0]).toBe(v2)
  expect(await story.jobs()).toEqual([])
})

test("another image gives up the first one", async () => {
  const story = await cached()
  story.pulls.push(v2, { takesMs: 600_000 })
  story.pulls.push(v3, { takesMs: 1000 })
  await story.change({ defaultImage: v2 })
  await story.says("1 image on 0 of 2 nodes")
  await story.world.until("the pulls began", () => story.pulls.underWay() === 2)
  await story.change({ defaultImage: v3 })
  await story.complete()
  expect(new Set(Object.values(await story.tags()))).toEqual(new Set(["v3"]))
  expect(stampedAt(story, "early-0", "v2")).toBeUndefined()
  expect(await story.jobs()).toEqual([])
})

test("a spec that no longer wants it starts the tier at once, also after a restart of the controller", async () => {
  const story = await cached()
  story.pulls.push(v2, { takesMs: 600_000 })
  await story.change({ defaultImage: v2 })
  await story.says("1 image on 0 of 2 nodes")
  await story.world.until("the job is there", async () => (await story.jobs()).length === 1)
  story.process.die()
  await story.change({ preCache: "Never" })
  story.runController()
  await story.world.until("early starts", () => stampedAt(story, "early-0", "v2") !== undefined)
  await story.world.until("the job goes", async () => (await story.jobs()).length === 0)
})

test("the next leader goes on with the same jobs", async () => {
  const story = await cached()
  story.pulls.push(v2, { takesMs: 30_000 })
  await story.change({ defaultImage: v2 })
  await story.world.until("the pulls began", () => story.pulls.underWay() === 2)
  const names = async () => (await story.jobs()).map(({ metadata }) => metadata.uid)
  const before = await names()
  story.process.die()
  story.pulls.manager.die()
  await story.world.advance("5s")
  story.pulls.runManager()
  story.runController()
  await story.world.advance("5s")
  expect(await names()).toEqual(before)
  expect(await story.tags()).toMatchObject({ "early-0": "v1" })
  await story.complete()
  expect(story.pulls.pullsOn("node-0")).toEqual([v2])
})

test("a leader that is killed after any of its writes leaves nothing undone", async () => {
  const isWhole = async (writes: number) => {
    const story = await cached({ nodes: 2, spec: { tiers: [] } })
    story.pulls.push(v2, { takesMs: 1000 })
    story.process.die()
    const process = story.runController({ dies: { after: nth(isDecision, writes) } })
    await story.change({ defaultImage: v2 })
    const isOver = async () => process.isDead || ((await story.status()).operation.id === "g2" && (await isDone(story)))
    await story.world.until("it dies, or all is done", isOver, "1h")
    if (process.isDead) story.runController()
    await story.world.until("all is done", () => isDone(story), "1h")
    for (const node of ["node-0", "node-1"]) expect(story.pulls.pullsOn(node)).toEqual([v2])
    return !process.isDead
  }
  let writes = 1
  while (!(await isWhole(writes)) && writes < 30) writes++
  expect(writes).toBeGreaterThan(5)
  expect(writes).toBeLessThan(30)
}, 60_000)

/** Complete with v2, and no job is left. */
async function isDone(story: Cached): Promise<boolean> {
  const { operation, pullJobs } = await story.status()
  return operation.phase === "Complete" && pullJobs === undefined && (await story.tags())["early-0"] === "v2"
}

test("paused, no node is asked; what was asked for goes on, and the tier starts when it is resumed", async () => {
  const story = await cached()
  story.pulls.push(v2, { takesMs: 20_000 })
  await story.change({ paused: true, defaultImage: v2 })
  await story.until("Complete", "Paused")
  await story.world.advance("1m")
  expect(await story.jobs()).toEqual([])
  await story.change({ paused: false })
  await story.world.until("the pulls began", () => story.pulls.underWay() === 2)
  await story.change({ paused: true })
  await story.world.until("the images are there", () => story.pulls.imageOn("node-1", v2) !== undefined)
  await story.world.advance("1m")
  expect(await story.tags()).toMatchObject({ "early-0": "v1" })
  await story.change({ paused: false })
  await story.complete()
  expect(story.pulls.pullsOn("node-0")).toEqual([v2])
})

/** The late tier waits for a node without an agent, when the early one has v2. */
async function lateWaits(): Promise<Cached> {
  const story = await cached({ nodes: 2, spec: { preCacheTimeoutSeconds: 120 } })
  await story.pulls.addNode("node-2", { agent: false })
  await story.world.apply(placed("late-2", 2))
  await story.complete()
  story.pulls.push(v2)
  await story.change({ defaultImage: v2 })
  await story.says("1 image on 0 of 1 node")
  return story
}

/** An object that has v2 from the early tier comes to the late one, which goes on waiting. */
async function moves(story: Cached, from: Json): Promise<void> {
  await story.world.patch(Deployments, "early-1", { metadata: { labels: { "upgrade-tier": null } } }, "default")
  await story.world.advance("10s")
  await story.change(from)
  story.process.die()
  story.runController()
  await story.world.advance("3m")
  expect(await story.tags()).toEqual({ "early-0": "v2", "early-1": "v2", "late-2": "v1" })
  await story.until("Halted", "PreCacheIncomplete")
}

test("an object that moves into the next tier while the rollout is paused opens no tier", async () => {
  const story = await lateWaits()
  await story.change({ paused: true })
  await story.world.until("late is paused", async () => (await story.tier("")).conditions[0].reason === "Paused")
  await moves(story, { paused: false })
})

test("an object that moves into a tier that is incomplete does not open it", async () => {
  const story = await lateWaits()
  await story.until("Halted", "PreCacheIncomplete")
  await moves(story, { preCacheTimeoutSeconds: 150 })
})

test("a rollback waits for no image, and removes the jobs", async () => {
  const story = await cached()
  story.pulls.push(v2, { takesMs: 100 })
  await story.change({ defaultImage: v2 })
  await story.world.until("early has v2", () => stampedAt(story, "early-1", "v2") !== undefined)
  await story.world.until("late waits", async () => (await story.tier("")).conditions[0].reason === "PreCaching")
  const { id } = (await story.status()).operation
  await story.world.patch(serviceImages, "dicom", { metadata: { annotations: { "autoimagemanager.io/rollback": id } } })
  await story.until("Complete", "RolledBack")
  expect(new Set(Object.values(await story.tags()))).toEqual(new Set(["v1"]))
  await story.world.until("every job is gone", async () => (await story.jobs()).length === 0)
})

test("a job that the server refuses is named, tried again at intervals, and made when there is room", async () => {
  const story = await cached()
  const full = { "count/imagepulljobs.autoimagemanager.io": "0" }
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "full", namespace: "default" } }
  await story.world.apply({ ...quota, spec: { hard: full } })
  await story.world.advance("5s")
  story.pulls.push(v2)
  const { length } = story.world.record.sent
  await story.change({ defaultImage: v2 })
  await story.says("1 image on 0 of 2 nodes; in default: ")
  expect(await story.message()).toContain("exceeded quota: full")
  await story.world.advance("2m")
  const isCreate = ({ method, path }: { method: string; path: string }) =>
    method === "POST" && path.includes("imagepulljobs")
  expect(story.world.record.sent.slice(length).filter(isCreate).length).toBeLessThanOrEqual(10)
  await story.world.apply({ ...quota, spec: { hard: { "count/imagepulljobs.autoimagemanager.io": "9" } } })
  await story.complete()
})

test("where the kind is not installed the tier says so, and starts when it is", async () => {
  const story = await cached({ spec: { preCacheTimeoutSeconds: 60 } })
  story.pulls.manager.die()
  const definition = { group: "apiextensions.k8s.io", version: "v1", plural: "customresourcedefinitions", kind: "CustomResourceDefinition", namespaced: false } // biome-ignore format: a row
  await story.world.client.delete(definition, { name: "imagepulljobs.autoimagemanager.io" })
  story.process.die()
  story.runController()
  story.pulls.push(v2)
  await story.change({ defaultImage: v2 })
  await story.until("Halted", "PreCacheIncomplete")
  expect((await story.condition("Halted"))!.message).toContain("the cluster does not serve ImagePullJob")
  await story.world.apply(crdOf(ImagePullJob) as Json)
  story.pulls.runManager()
  await story.complete()
})
