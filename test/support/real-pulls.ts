import { onTestFinished } from "vitest"
import { type AgentLimits, agentPermissions, runAgent } from "#agent/index.ts"
import { namesOf } from "#api/names.ts"
import { createImageListPullJobController } from "#controllers/imagelistpulljob/controller.ts"
import { createImagePullJobController } from "#controllers/imagepulljob/controller.ts"
import { createNodeImageController } from "#controllers/nodeimage/controller.ts"
import { nodeImages } from "#controllers/nodeimage/resources.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import type { Surroundings } from "#controllers/surroundings.ts"
import type { Disk } from "#core/pulls/disk.ts"
import { connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import type { Permission } from "#runtime/controller.ts"
import { connectRuntime, type Image } from "#runtime/cri/index.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { systemRandom } from "#runtime/random.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { conditionOf } from "./fleet.ts"
import { floor, type Json, realNode, uniqueNamespace, until } from "./floor.ts"
import { surroundings, transportFor, untilTestEnds } from "./in-process.ts"

/** Pulls on the real node: the manager's controllers and an agent, each with the rights that its code declares. */

const { group, version, plural: jobs } = namesOf("ImagePullJob")
const lists = namesOf("ImageListPullJob").plural
const apiVersion = `${group}/${version}`
const nodeImagePath = `/apis/${apiVersion}/${nodeImages.plural}/${realNode}`

export const nodeImage = (): Promise<Json> => floor().api.get(nodeImagePath)

/** What containerd itself says of an image. */
export async function nodeAnswer(reference: string): Promise<Image | undefined> {
  const runtime = connectRuntime({ socketPath: floor().containerdSocket })
  try {
    return await runtime.imageStatus(reference)
  } finally {
    runtime.close()
  }
}

/** What the agent reports of one image, by its repository and its tag or digest. */
export const toldOf = ({ status }: Json, name: string, tag: string): Json =>
  status?.imageStatuses?.[name]?.tags.find((each: Json) => each.tag === tag)

/** Starts a manager as `aim-controller` of the namespace: without Secrets, which a grant must allow. */
async function startManager(namespace: string, pullsPerRegistry: number): Promise<void> {
  const controllers = [
    createImagePullJobController({ pullsPerRegistry }),
    createNodeImageController(),
    createImageListPullJobController(),
  ]
  const recording: Permission = { resource: events, verbs: ["create", "patch"] }
  const declared = controllers.flatMap(({ permissions }) => permissions)
  const printed = [...declared, recording].filter(({ resource }) => resource.plural !== "secrets")
  const transport = await transportFor(namespace, "aim-controller", printed)
  untilTestEnds(signal => runManager({ ...surroundings, transport, controllers, leaderElect: false, signal }))
}

const workloads = ["deployments", "statefulsets", "daemonsets"]

/** Starts a controller of ServiceImages that may change workloads. */
export async function startRollouts(namespace: string, more: Surroundings = {}): Promise<void> {
  const controller = createServiceImageController(more)
  const targets = workloads.map(
    (plural): Permission => ({ resource: { group: "apps", plural }, verbs: ["list", "watch", "patch"] }),
  )
  const recording: Permission = { resource: events, verbs: ["create", "patch"] }
  const transport = await transportFor(namespace, "rollouts", [...controller.permissions, ...targets, recording])
  untilTestEnds(signal =>
    runManager({ ...surroundings, transport, controllers: [controller], leaderElect: false, signal }),
  )
}

export type AgentWish = { limits?: Partial<AgentLimits>; disk?: () => Promise<Disk> }

/** A disk that is nearly full is no matter here, unless a test says so. */
export async function startAgent(namespace: string, { limits, disk }: AgentWish = {}): Promise<void> {
  const runtime = connectRuntime({ socketPath: floor().containerdSocket })
  const transport = await transportFor(namespace, "agent", agentPermissions)
  untilTestEnds(signal =>
    runAgent({
      ...surroundings,
      node: { name: realNode, runtime, ...(disk && { disk }) },
      limits: { imageGcHighThresholdPercent: 100, ...limits },
      transport,
      signal,
      graceMs: 0,
    }),
  )
}

/** A namespace with a manager. */
export async function beginPulls({ pullsPerRegistry = 20 } = {}) {
  const namespace = await uniqueNamespace()
  await startManager(namespace, pullsPerRegistry)
  const { api } = floor()
  const pathOf = (plural: string, name = "") =>
    `/apis/${apiVersion}/namespaces/${namespace}/${plural}${name && `/${name}`}`
  const onNode = { selector: { names: [realNode] } }
  const runtime = connectRuntime({ socketPath: floor().containerdSocket })
  onTestFinished(() => runtime.close())
  const job = (name: string) => api.get(pathOf(jobs, name))
  const ended = (plural: string, name: string): Promise<Json> =>
    until(`${name} has ended`, async () => {
      const found = await api.get(pathOf(plural, name))
      return found.status?.completionTime && found
    })
  return {
    namespace,
    transfers: () => runtime.pullProgress(),
    pull: (name: string, image: string, spec: Json = {}) =>
      api.create(pathOf(jobs), {
        apiVersion,
        kind: "ImagePullJob",
        metadata: { name },
        spec: { image, ...onNode, ...spec },
      }),
    pullList: (name: string, images: string[]) =>
      api.create(pathOf(lists), {
        apiVersion,
        kind: "ImageListPullJob",
        metadata: { name },
        spec: { images, ...onNode },
      }),
    job,
    ended: (name: string) => ended(jobs, name),
    listEnded: (name: string) => ended(lists, name),
    /** Waits until the job's Ready condition has this reason, and returns its message. */
    says: (name: string, reason: string): Promise<string> =>
      until(`${name} says ${reason}`, async () => {
        const ready = conditionOf(await job(name), "Ready")
        return ready?.reason === reason && (ready.message || reason)
      }),
  }
}

/** Every version of the node's NodeImage from now on. */
export async function recordNodeImage(): Promise<readonly Json[]> {
  const { transport } = await connect({ kubeconfig: floor().kubeconfig })
  const client = createClient({ transport, clock: systemClock, random: systemRandom })
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const versions: Json[] = []
  const fieldSelector = `metadata.name=${realNode}`
  const { metadata } = await client.list(nodeImages, { fieldSelector })
  const follow = async () => {
    const options = { fieldSelector, resourceVersion: metadata.resourceVersion }
    for await (const { object } of client.watch<KubeObject>(nodeImages, options, stop.signal)) versions.push(object)
  }
  follow().catch(error => {
    if (!stop.signal.aborted) throw error
  })
  return versions
}
