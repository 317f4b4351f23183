import { createPullController, usualPullLimits } from "#agent/pull/index.ts"
import { crdOf } from "#api/crd.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createImagePullJobController } from "#controllers/imagepulljob/index.ts"
import { imagePullJobs, nodeImages, nodes } from "#controllers/imagepulljob/resources.ts"
import { createNodeImageController } from "#controllers/nodeimage/index.ts"
import type { Disk } from "#core/pulls/disk.ts"
import { type FakeRegistry, fakeRegistry, type ImageRuntime, imageRuntime } from "./image-runtime.ts"
import { type Process, type ProcessOptions, scenario, type World } from "./scenario.ts"

/** A cluster whose nodes pull images: the manager's controllers, and an agent for each node. */
export type PullStory = {
  world: World
  registry: FakeRegistry
  runtimes: Map<string, ImageRuntime>
  disks: Map<string, Disk>
  manager: Process
  runManager(options?: ProcessOptions): Process
  addNode(name: string, options?: { ready?: boolean; labels?: Json; agent?: boolean }): Promise<void>
  runAgent(name: string): Process
  agents: Map<string, Process>
  job(name: string, spec: Json): Promise<void>
  statusOf(name: string): Promise<Json>
  reasonOf(name: string): Promise<string>
  until(name: string, reason: string, within?: string): Promise<void>
}

export type PullStoryOptions = { nodes?: number; seed?: number; pullsPerRegistry?: number }

const roomy: Disk = { sizeBytes: 100 * 2 ** 30, freeBytes: 90 * 2 ** 30 }

/** The manager's controllers of pulls, as a process has them. */
function pullControllers(pullsPerRegistry?: number) {
  return [createImagePullJobController({ pullsPerRegistry }), createNodeImageController()]
}

export async function pullStory({
  nodes: count = 3,
  seed = 1,
  pullsPerRegistry,
}: PullStoryOptions = {}): Promise<PullStory> {
  const world = await scenario({ seed })
  await world.apply(...[NodeImage, ImagePullJob, ImageListPullJob].map(kind => crdOf(kind) as Json))
  await world.advance("1s")
  const registry = fakeRegistry()
  const story: PullStory = {
    world,
    registry,
    runtimes: new Map(),
    disks: new Map(),
    agents: new Map(),
    manager: undefined as never,
    runManager(options) {
      story.manager = world.run(pullControllers(pullsPerRegistry), options)
      return story.manager
    },
    async addNode(name, { ready = true, labels = {}, agent = true } = {}) {
      const conditions = [{ type: "Ready", status: ready ? "True" : "False" }]
      const node = {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name, labels: { "kubernetes.io/os": "linux", ...labels } },
      }
      await world.apply(node)
      const made = await world.get(nodes, name)
      await world.client.replace(nodes, { ...made, status: { ...made.status, conditions } } as never, {
        subresource: "status",
      })
      if (agent) story.runAgent(name)
    },
    runAgent(name) {
      const runtime = story.runtimes.get(name) ?? imageRuntime(world.clock, registry)
      story.runtimes.set(name, runtime)
      const disk = async () => story.disks.get(name) ?? roomy
      const process = world.run([createPullController({ node: { name, runtime, disk }, limits: usualPullLimits })])
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
