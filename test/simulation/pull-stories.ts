import { crdOf } from "#api/crd.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createImageListPullJobController } from "#controllers/imagelistpulljob/controller.ts"
import { createImagePullJobController } from "#controllers/imagepulljob/controller.ts"
import { imagePullJobs, nodeImages, nodes } from "#controllers/imagepulljob/resources.ts"
import { createNodeImageController } from "#controllers/nodeimage/controller.ts"
import { scenario, type World } from "#test/support/scenario.ts"
import { limits, type PullFate, type PullFloor, pullFloor, struckNode } from "./pull-floor.ts"

/** A story of pulls, described by conditions rather than times. */
export type PullStory = {
  tell(play: Play): Promise<void>
  /** What each node has at the end. */
  has: Record<string, readonly string[]>
}

type Play = {
  world: World
  floor: PullFloor
  job(name: string, spec: Json): Promise<void>
  until(name: string, reason: string): Promise<void>
}

const host = "registry.example.com"
const [app, web, db] = [`${host}/app:v1`, `${host}/web:v1`, `${host}/db:v1`]
const listed = [app, "one.example.com/web:v1", "two.example.com/db:v1"]
const policy = { timeoutSeconds: 60, backoffLimit: 50 }

const secret: Json = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "registry", namespace: "default" },
  type: "kubernetes.io/dockerconfigjson",
  data: {
    ".dockerconfigjson": Buffer.from(
      JSON.stringify({ auths: { [host]: { username: "robot", password: "sesame" } } }),
    ).toString("base64"),
  },
}

const isStruck = ({ metadata }: Json) => metadata.name === struckNode

export const pullStories: Record<string, PullStory> = {
  "two jobs over three nodes, from a private registry": {
    has: { "node-0": [app, web], "node-1": [app], "node-2": [app, web] },
    async tell({ world, floor, job, until }) {
      floor.publish(app, { takesMs: 3000 })
      floor.publish(web, { takesMs: 7000 })
      floor.setAccounts(host, { robot: "sesame" })
      await world.apply(secret)
      await job("app", { image: app, parallelism: 2, pullSecrets: ["registry"] })
      await job("web", {
        image: web,
        parallelism: 3,
        pullSecrets: ["registry"],
        selector: { names: ["node-0", "node-2"] },
      })
      await until("app", "Completed")
      await until("web", "Completed")
    },
  },
  "another image in the middle, and a job that is deleted": {
    has: { "node-0": [db], "node-1": [db], "node-2": [db] },
    async tell({ world, floor, job, until }) {
      floor.publish(app, { takesMs: 400_000 })
      floor.publish(web, { takesMs: 400_000 })
      floor.publish(db, { takesMs: 1000 })
      await job("app", {
        image: app,
        selector: { names: ["node-0"] },
        pullPolicy: { timeoutSeconds: 600, backoffLimit: 50 },
      })
      await job("web", {
        image: web,
        selector: { names: ["node-1"] },
        pullPolicy: { timeoutSeconds: 600, backoffLimit: 50 },
      })
      await pulls(world, "node-0", app)
      await pulls(world, "node-1", web)
      await job("app", { image: db, parallelism: 3 })
      await world.client.delete(imagePullJobs, { name: "web", namespace: "default" })
      await until("app", "Completed")
    },
  },
  "a node that is replaced under its name": {
    has: { "node-0": [app], "node-1": [app], "node-2": [app] },
    async tell({ world, floor, job, until }) {
      floor.publish(app, { takesMs: 2000 })
      await job("app", { image: app, parallelism: 3, completionPolicy: { type: "Never" } })
      await until("app", "Present")
      await floor.removeNode(struckNode)
      await floor.addNode(struckNode)
      // What it reports counts: the kubelet may have removed the image since.
      const reports = async () => {
        const [node, nodeImage]: Json[] = await Promise.all(
          [nodes, nodeImages].map(kind => world.list(kind).then(all => all.find(isStruck))),
        )
        return nodeImage?.metadata.ownerReferences[0].uid === node?.metadata.uid && nodeImage.status?.succeeded === 1
      }
      await world.until("the new node to report it", reports, "1h")
      await until("app", "Present")
    },
  },
  "the same image three times: first, once more, and from the registry in any case": {
    has: { "node-0": [app], "node-1": [app], "node-2": [app] },
    async tell({ floor, job, until }) {
      floor.publish(app, { takesMs: 1000 })
      await job("first", { image: app, parallelism: 3 })
      await until("first", "Completed")
      floor.runtime(struckNode).images.collect(app)
      await job("again", { image: app, parallelism: 3 })
      await until("again", "Completed")
      floor.publish(app, { takesMs: 1000, version: "b" })
      await job("newest", { image: app, parallelism: 3, imagePullPolicy: "Always" })
      await until("newest", "Completed")
    },
  },
  "a list of images from three registries": {
    has: { "node-0": listed, "node-1": listed, "node-2": listed },
    async tell({ world, floor }) {
      for (const image of listed) floor.publish(image, { takesMs: 2000 })
      const { apiVersion, kind } = ImageListPullJob
      const spec = { images: listed, parallelism: 3, pullPolicy: policy }
      await world.apply({ apiVersion, kind, metadata: { name: "list", namespace: "default" }, spec })
      const isDone = () => {
        const jobs = new Map(world.history.filter(isJob).map(({ object }) => [object.metadata.name, object]))
        return jobs.size === listed.length && [...jobs.values()].every(job => reasonOf(job) === "Completed")
      }
      await world.until("all of them to be complete", isDone, "6h")
    },
  },
}

/** An object as it was last written. Asking the server at each step would take most of a run's time. */
const lastOf = (world: World, kind: string, name: string): Json =>
  world.history.findLast(({ object }) => object.kind === kind && object.metadata.name === name)?.object ?? {}

const isJob = ({ object }: { object: Json }) => object.kind === "ImagePullJob"
const reasonOf = ({ status }: Json): string =>
  status?.conditions?.find((each: Json) => each.type === "Ready")?.reason ?? ""

/** Waits until the node's runtime is asked for it. */
const pulls = (world: World, node: string, image: string) =>
  world.until(
    `${node} to pull ${image}`,
    () => world.record.calls!.some(call => call.node === node && call.subject === image && call.method === "pullImage"),
    "1h",
  )

const empty = await (async () => {
  const world = await scenario()
  await world.apply(...[NodeImage, ImagePullJob, ImageListPullJob].map(kind => crdOf(kind) as Json))
  await world.advance("1s")
  return world.cluster.store.dump()
})()

/** Plays a story to its end, and until nothing moves any more. */
export async function play(story: PullStory, seed: number, fate: PullFate): Promise<PullFloor> {
  const hosts = listed.map(image => image.split("/")[0]!)
  // The NodeImage of a node that was replaced must not be believed before it is collected.
  const floor = await pullFloor({ seed, saved: empty, hosts, collectorBehindMs: 3_600_000, fate })
  const { world } = floor
  const managers = () => [
    createImagePullJobController({ pullsPerRegistry: limits.pullsPerRegistry }),
    createNodeImageController(),
    createImageListPullJobController(),
  ]
  for (const name of ["node-0", "node-1", "node-2"]) await floor.addNode(name)
  floor.runManager(managers)
  await story.tell({
    world,
    floor,
    async job(name, spec) {
      const { apiVersion, kind } = ImagePullJob
      const fields = { pullPolicy: policy, ...spec }
      await world.apply({ apiVersion, kind, metadata: { name, namespace: "default" }, spec: fields })
    },
    until: (name, reason) =>
      world.until(`job ${name} to say ${reason}`, () => reasonOf(lastOf(world, "ImagePullJob", name)) === reason, "6h"),
  })
  await world.settle()
  return floor
}

/** What remains of a run once the times are taken out. */
export async function outcome({ world, runtime }: PullFloor, story: PullStory): Promise<Json> {
  const jobs = await world.list(imagePullJobs)
  const made = await world.list(nodeImages)
  const missing = Object.entries(story.has).flatMap(([node, images]) =>
    images.filter(image => !runtime(node).images.lookUp(image)).map(image => `${node} ${image}`),
  )
  return {
    jobs: jobs.map(job => {
      const { desired, active, succeeded, failed } = job.status
      return [job.metadata.name, reasonOf(job), { desired, active, succeeded, failed }]
    }),
    nodeImages: made.map(({ metadata, status }) => [metadata.name, reasonOf({ status })]),
    sealed: JSON.stringify(made).includes("sealedCredentials"),
    // A pull that nothing wants any more has ended.
    underWay: world.record.calls!.filter(({ method, ended }) => method === "pullImage" && ended === undefined).length,
    missing,
  }
}
