import { createPullController, usualPullLimits } from "#agent/pull/index.ts"
import { crdOf } from "#api/crd.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import type { Lag } from "#cluster-sim/faults/lag.ts"
import { everyPart, type Json, openRegistries, type SimulatedNode } from "#cluster-sim/index.ts"
import type { Nodes } from "#cluster-sim/physics/node/index.ts"
import { createImagePullJobController } from "#controllers/imagepulljob/controller.ts"
import { imagePullJobs, nodeImages, nodes } from "#controllers/imagepulljob/resources.ts"
import { createNodeImageController } from "#controllers/nodeimage/controller.ts"
import { loggedRuntime } from "./runtime-log.ts"
import { type Process, type ProcessOptions, scenario, type World } from "./scenario.ts"

/** The registry of the stories. It has what was pushed and nothing else. */
export const host = "registry.example.com"

/** A cluster whose nodes pull images: the manager's controllers, and an agent for each node. */
export type PullStory = {
  world: World
  /** The kubelets, which can be stopped. */
  machines: Nodes
  /** Its faults and accounts can be set. */
  registries: ReturnType<typeof openRegistries>
  /** Adds an image, or moves its tag, and gives its digest. A pull of it takes 100 ms unless given. */
  push(image: string, content?: { takesMs?: number; version?: string }): string
  runtime(node: string): SimulatedNode["runtime"]
  /** The ID of an image on a node, if it is there. */
  imageOn(node: string, image: string): string | undefined
  /** Tags of the images on a node. */
  tagsOn(node: string): string[]
  /** References that were pulled on a node by its agents, in order. */
  pullsOn(node: string): readonly string[]
  /** Pulls under way on a node, or on all. */
  underWay(node?: string): number
  /** The most pulls that were ever under way on a node, or on all. */
  most(node?: string): number
  manager: Process
  runManager(options?: ProcessOptions): Process
  addNode(name: string, options?: { labels?: Json; agent?: boolean }): Promise<void>
  removeNode(name: string): Promise<void>
  runAgent(name: string, options?: Pick<ProcessOptions, "clockAheadMs">): Process
  agents: Map<string, Process>
  job(name: string, spec: Json): Promise<void>
  statusOf(name: string): Promise<Json>
  reasonOf(name: string): Promise<string>
  until(name: string, reason: string, within?: string): Promise<void>
}

export type PullStoryOptions = {
  nodes?: number
  seed?: number
  pullsPerRegistry?: number
  /** Controllers of the control plane that are behind or stopped, by name. */
  lags?: Readonly<Record<string, Lag>>
  /** What autoscalers measure. */
  measure?: NonNullable<Parameters<typeof everyPart>[0]>["measure"]
}

/** So slow that a story can say in milliseconds how long a pull takes. */
const bytesPerMs = 1000

/** The manager's controllers of pulls, as a process has them. */
function pullControllers(pullsPerRegistry: number) {
  return [createImagePullJobController({ pullsPerRegistry }), createNodeImageController()]
}

export async function pullStory({
  nodes: count = 3,
  seed = 1,
  pullsPerRegistry = 20,
  lags = {},
  measure,
}: PullStoryOptions = {}): Promise<PullStory> {
  const description = [{ host, bytesPerSecond: 1000 * bytesPerMs, latencyMs: 0, images: {} }]
  const registries = openRegistries(0, () => description)
  let machines: Nodes | undefined
  const onMachines = (found: Nodes) => {
    machines = found
  }
  const world = await scenario({ seed, parts: everyPart({ nodes: 0, registries, lags, measure, onMachines }) })
  await world.apply(...[NodeImage, ImagePullJob, ImageListPullJob].map(kind => crdOf(kind) as Json))
  await world.advance("1s")
  const limits = {
    pullsPerNode: usualPullLimits.pullsPerNode,
    pullsPerRegistry,
    thresholdPercent: usualPullLimits.imageGcHighThresholdPercent,
  }
  const story: PullStory = {
    world,
    machines: machines!,
    registries,
    push: (image, { takesMs = 100, version = "" } = {}) =>
      registries.push(image, { sizeBytes: takesMs * bytesPerMs + version.length }),
    ...lookAt(world),
    agents: new Map(),
    manager: undefined as never,
    runManager(options) {
      story.manager = world.run(pullControllers(pullsPerRegistry), options)
      return story.manager
    },
    async addNode(name, { labels = {}, agent = true } = {}) {
      await world.apply({ apiVersion: "v1", kind: "Node", metadata: { name, labels } })
      await world.until(`${name} is ready`, () => world.cluster.node(name) !== undefined)
      if (agent) story.runAgent(name)
    },
    async removeNode(name) {
      story.agents.get(name)?.die()
      story.agents.delete(name)
      await world.client.delete(nodes, { name })
      await world.until(`${name} is gone`, () => world.cluster.node(name) === undefined)
    },
    runAgent(name, options = {}) {
      const simulated = story.runtime(name)
      const connection = simulated.connectMounted()
      const disk = async () => simulated.images.disk.statfs()
      const { uid } = world.history.findLast(({ object }) => isNode(object, name))!.object.metadata
      const runtime = loggedRuntime(connection, { world, node: { name, uid }, agent: () => process, disk, limits })
      // The calls of a process end with it.
      const dies = { onDeath: () => connection.close() }
      const node = { name, runtime, disk }
      const process = world.run([createPullController({ node, limits: usualPullLimits })], { ...options, dies })
      story.agents.set(name, process)
      return process
    },
    async job(name, spec) {
      const { apiVersion, kind } = ImagePullJob
      await world.apply({ apiVersion, kind, metadata: { name, namespace: "default" }, spec })
    },
    statusOf: async name => (await world.get(imagePullJobs, name, "default")).status ?? {},
    reasonOf: async name =>
      (await story.statusOf(name)).conditions?.find((each: Json) => each.type === "Ready")?.reason ?? "",
    until: (name, reason, within = "5m") =>
      world.until(`job ${name} says ${reason}`, async () => (await story.reasonOf(name)) === reason, within),
  }
  for (let index = 0; index < count; index++) await story.addNode(`node-${index}`)
  story.runManager()
  await world.until("every node has a NodeImage", async () => (await world.list(nodeImages)).length === count, "1m")
  return story
}

const isNode = ({ kind, metadata }: Json, name: string) => kind === "Node" && metadata.name === name

/** What the nodes of a story have and do. */
function lookAt({ cluster }: World) {
  const known = new Map<SimulatedNode["runtime"], { pulls: string[]; most: number }>()
  let mostOfAll = 0
  const underWay = (node?: string) =>
    node
      ? runtime(node).images.pullsUnderWay
      : [...known.keys()].reduce((sum, { images }) => sum + images.pullsUnderWay, 0)

  function runtime(node: string): SimulatedNode["runtime"] {
    const found = cluster.node(node)?.runtime
    if (!found) throw new Error(`there is no node ${node}`)
    if (!known.has(found)) listenTo(found)
    return found
  }
  function listenTo(runtime: SimulatedNode["runtime"]) {
    const seen = { pulls: [] as string[], most: 0 }
    known.set(runtime, seen)
    runtime.onCall(({ method, reference = "" }) => {
      if (method !== "pullImage") return
      seen.pulls.push(reference)
      // It arrives, and is not under way yet.
      seen.most = Math.max(seen.most, runtime.images.pullsUnderWay + 1)
      mostOfAll = Math.max(mostOfAll, underWay() + 1)
    })
  }
  return {
    runtime,
    underWay,
    imageOn: (node: string, image: string) => runtime(node).images.lookUp(image)?.id,
    tagsOn: (node: string) => [...runtime(node).images.all()].flatMap(({ tags }) => [...tags]).sort(),
    pullsOn: (node: string) => known.get(runtime(node))!.pulls,
    most: (node?: string) => (node ? known.get(runtime(node))!.most : mostOfAll),
  }
}
