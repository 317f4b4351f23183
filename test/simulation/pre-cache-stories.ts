import { crdOf } from "#api/crd.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createImagePullJobController } from "#controllers/imagepulljob/controller.ts"
import { imagePullJobs, nodeImages, pods } from "#controllers/imagepulljob/resources.ts"
import { createNodeImageController } from "#controllers/nodeimage/controller.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { Clock } from "#runtime/clock.ts"
import { Deployments, deployment } from "#test/support/failover-story.ts"
import { scenario } from "#test/support/scenario.ts"
import { type Fate, keepRunning } from "./fates.ts"
import { limits, type PullFate, type PullFloor, pullFloor } from "./pull-floor.ts"

/** What happens to the controller of ServiceImages; the manager of a PullFate has the controllers of pulls. */
export type PreCacheFate = PullFate & { rollout?: (clock: Clock) => Fate }

/** A story of tiers that wait for their images, described by conditions rather than times. */
export type PreCacheStory = {
  spec?: Json
  tell(play: Play): Promise<void>
}

type Play = PullFloor & {
  change(spec: Json): Promise<void>
  /** A Deployment with one pod on one node. */
  place(name: string, node: string): Promise<void>
  complete(): Promise<void>
  /** Waits until a condition has this reason. */
  says(type: string, reason: string): Promise<void>
  /** Waits until a node's runtime is asked to pull something. */
  pulls(node: string): Promise<void>
}

const host = "registry.example.com"
const image = (tag: string) => `${host}/web:${tag}`
const [v1, v2, v3] = [image("v1"), image("v2"), image("v3")]

export const preCacheStories: Record<string, PreCacheStory> = {
  "two tiers, the second on a node of the first as well": {
    async tell({ publish, change, complete }) {
      publish(v2, { takesMs: 3000 })
      await change({ defaultImage: v2 })
      await complete()
    },
  },
  "a node that joins and one that leaves while images are pulled": {
    async tell({ world, publish, change, pulls, addNode, removeNode, place, complete }) {
      publish(v2, { takesMs: 20_000 })
      await change({ defaultImage: v2 })
      await pulls("node-0")
      await addNode("node-3")
      await place("early-3", "node-3")
      await world.client.delete(Deployments, { name: "early-1", namespace: "default" })
      await removeNode("node-1")
      await complete()
    },
  },
  "a node whose agent is missing, until the time is up": {
    spec: { preCacheTimeoutSeconds: 120, preCacheMissing: "Proceed" },
    async tell({ publish, change, stopAgent, complete }) {
      publish(v2, { takesMs: 1000 })
      stopAgent("node-1")
      await change({ defaultImage: v2 })
      await complete()
    },
  },
  "a node whose agent is missing, until it is there": {
    spec: { preCacheTimeoutSeconds: 120 },
    async tell({ world, publish, change, says, stopAgent, runAgent, complete }) {
      publish(v2, { takesMs: 1000 })
      stopAgent("node-1")
      await change({ defaultImage: v2 })
      await says("Halted", "PreCacheIncomplete")
      await world.advance("1m")
      runAgent("node-1")
      await complete()
    },
  },
  "a pod that moves while the rollout is paused, its image already everywhere": {
    async tell({ world, publish, change, pulls, place, says, complete }) {
      publish(v2, { takesMs: 5000 })
      await change({ defaultImage: v2 })
      await pulls("node-1")
      await change({ paused: true })
      await says("Complete", "Paused")
      await world.advance("30s")
      await place("early-1", "node-2")
      const isThere = async () =>
        (await world.list(pods)).some(
          ({ metadata, spec, status }) =>
            metadata.name.startsWith("early-1") && spec.nodeName === "node-2" && status?.phase === "Running",
        )
      await world.until("the pod to run there", isThere, "1h")
      await world.advance("1m")
      await change({ paused: false })
      await complete()
    },
  },
  "an object that moves to the next tier when it has its image": {
    async tell({ world, publish, change, complete }) {
      publish(v2, { takesMs: 5000 })
      await change({ defaultImage: v2 })
      const hasImage = ({ object }: { object: Json }) => object.metadata.name === "early-1" && imageOf(object) === v2
      await world.until("it to have its image", () => world.history.some(hasImage), "6h")
      await world.patch(Deployments, "early-1", { metadata: { labels: { "upgrade-tier": null } } }, "default")
      await complete()
    },
  },
  "a digest whose tag has moved on, and another image in the middle": {
    async tell({ world, publish, change, complete }) {
      const digest = publish(v2, { takesMs: 2000 })
      publish(v2, { takesMs: 2000, version: "moved" })
      publish(v3, { takesMs: 4000 })
      await change({ defaultImage: `${v2}@${digest}` })
      await world.until("the first tier to start", () => world.history.some(({ object }) => hasDigest(object)), "6h")
      await change({ defaultImage: v3 })
      await complete()
    },
  },
}

const imageOf = ({ kind, spec }: Json): string => (kind === "Deployment" ? spec.template.spec.containers[0].image : "")
const hasDigest = (object: Json) => imageOf(object).includes("@")

const serviceImage = (spec: Json = {}): Json => ({
  apiVersion: ServiceImage.apiVersion,
  kind: "ServiceImage",
  metadata: { name: "web" },
  spec: {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "basic-demo" } },
    defaultImage: v1,
    tiers: [
      { upgradeTier: "early", priority: 1, settleSeconds: 0 },
      { upgradeTier: "", priority: 0, settleSeconds: 0 },
    ],
    pace: { podsPerSecond: 0 },
    preCache: "BeforeTier",
    ...spec,
  },
})

const empty = await (async () => {
  const world = await scenario()
  await world.apply(...[NodeImage, ImagePullJob, ServiceImage].map(kind => crdOf(kind) as Json))
  await world.advance("1s")
  return world.cluster.store.dump()
})()

const managers = () => [
  createImagePullJobController({ pullsPerRegistry: limits.pullsPerRegistry }),
  createNodeImageController(),
]

/** Plays a story to its end, and until nothing moves any more: four Deployments of two tiers on three nodes. */
export async function play({ spec, tell }: PreCacheStory, seed: number, fate: PreCacheFate): Promise<PullFloor> {
  const floor = await pullFloor({ seed, saved: empty, hosts: [host], fate })
  const { world } = floor
  const last = (): Json => world.history.findLast(({ object }) => object.kind === "ServiceImage")!.object
  const conditionOf = ({ status }: Json, type: string): Json | undefined =>
    status?.conditions.find((each: Json) => each.type === type)
  const until = (what: string, isSo: (serviceImage: Json) => boolean) => world.until(what, () => isSo(last()), "6h")
  const play: Play = {
    ...floor,
    change: spec => world.patch(serviceImages, "web", { spec }),
    async place(name, node) {
      const labels = name.startsWith("early") ? { "upgrade-tier": "early" } : {}
      await world.apply(deployment(name, v1, { metadata: { labels }, spec: { replicas: 1 }, pod: { nodeName: node } }))
    },
    complete: () =>
      until("what the spec says now to be complete", serviceImage => {
        const { status, observedGeneration } = conditionOf(serviceImage, "Complete") ?? {}
        return status === "True" && observedGeneration === serviceImage.metadata.generation
      }),
    says: (type, reason) => until(`${type} to say ${reason}`, each => conditionOf(each, type)?.reason === reason),
    pulls: node => {
      const isPull = ({ method, node: name }: { method: string; node: string }) =>
        method === "pullImage" && name === node
      return world.until(`${node} to pull`, () => world.record.calls!.some(isPull), "6h")
    },
  }
  floor.publish(v1, { takesMs: 100 })
  for (const name of ["node-0", "node-1", "node-2"]) await floor.addNode(name)
  await play.place("early-0", "node-0")
  await play.place("early-1", "node-1")
  await play.place("late-0", "node-0")
  await play.place("late-2", "node-2")
  floor.runManager(managers)
  keepRunning(world, () => createServiceImageController(), fate.rollout?.(world.clock) ?? {})
  await world.apply(serviceImage(spec))
  await play.complete()
  const runs = async () => (await world.list(pods)).filter(each => each.status?.phase === "Running").length === 4
  await world.until("the pods to run", runs, "1h")
  // Pods that are new may not be known, and prove nothing about a tier that did not wait.
  await world.advance("1m")
  await tell(play)
  await world.settle()
  return floor
}

/** What remains of a run once the times are taken out. */
export async function outcome({ world }: PullFloor): Promise<Json> {
  const { status } = await world.get(serviceImages, "web")
  return {
    images: (await world.list(Deployments)).map(each => [each.metadata.name, imageOf(each)]),
    conditions: status.conditions.map(({ type, status, reason, message }: Json) => [type, status, reason, message]),
    phase: status.operation.phase,
    pullJobs: status.pullJobs,
    inflight: status.inflight,
    jobs: (await world.list(imagePullJobs)).length,
    asked: (await world.list(nodeImages)).map(({ metadata, spec }) => [metadata.name, Object.keys(spec.images ?? {})]),
    underWay: world.record.calls!.filter(({ method, ended }) => method === "pullImage" && ended === undefined).length,
  }
}
