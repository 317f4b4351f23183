import { setTimeout as sleep } from "node:timers/promises"
import { namesOf } from "#api/names.ts"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { everyPart, type Json, openRegistries } from "#cluster-sim/index.ts"
import { imageListPullJobs } from "#controllers/imagelistpulljob/resources.ts"
import { imagePullJobs } from "#controllers/imagepulljob/resources.ts"
import { connectRuntime } from "#runtime/cri/index.ts"
import { core, type Resource, resourceOf } from "#runtime/resource.ts"
import { until } from "#tools/kube/api.ts"
import { type AimProcess, type Bundled, type Memory, startAgent, startController } from "./controller-process.ts"
import { type Figure, percentile, show } from "./figures.ts"
import type { Progress } from "./progress.ts"
import { serveSimulated } from "./runtime-socket.ts"
import { type ServedCluster, serveCluster } from "./served-cluster.ts"
import { prepare } from "./tenants.ts"

const MiB = 2 ** 20
const host = "registry.example.com"
const namespace = "default"
const pods = core("pods", "Pod")
const requests = resourceOf(namesOf("ContainerRecreateRequest"))
const bytesPerMs = 1000

export type AgentCostOptions = {
  containers: number
  images: number
  /** Requests of each form: for one container, for two, and with the gate. */
  samples: number
  /** How long the bare pull takes that a job's is compared with. */
  pullMs: number
  pullRounds: number
  quietMs: number
}

export type AgentCost = AgentCostOptions & {
  memory: Memory
  /** Share of a core, in percent. */
  quietPercent: number
  /** From the creation of a request to StopContainer. */
  stopMs: readonly number[]
  /** Writes of both processes for a request. */
  writes: { one: number; two: number; gated: number }
  /** How long each pull took: asked of the runtime, and through a job, until the image is on the node. */
  pulls: { bareMs: readonly number[]; jobMs: readonly number[] }
}

/**
 * One node with its agent, a process of its own that meets a simulated container runtime through a unix socket. The
 * manager is a second process.
 */
export async function agentOnClusterSim(
  aim: Bundled,
  options: AgentCostOptions,
  progress: Progress,
): Promise<AgentCost> {
  const registries = openRegistries(0, () => [{ host, bytesPerSecond: 1000 * bytesPerMs, latencyMs: 0, images: {} }])
  const served = await serveCluster({ parts: everyPart({ nodes: 1, registries }) })
  const { cluster, client, kubeconfig } = served
  const push = (name: string, takesMs: number) => {
    registries.push(`${host}/${name}:1`, { sizeBytes: takesMs * bytesPerMs })
    return `${host}/${name}:1`
  }
  const processes: AimProcess[] = []
  cluster.start()
  await until("the node", async () => cluster.node("node-0") !== undefined)
  const { runtime } = cluster.node("node-0")!
  const socket = await serveSimulated(runtime.connect())
  try {
    await prepare(client)
    progress.begin(`starting ${options.containers} containers`)
    const fleet = await startPods(served, push("app", 10), options)
    const manager = await startController(aim, { kubeconfig, leaderElect: false })
    processes.push(manager)
    const more = ["--stops-per-minute", "9999", "--image-gc-high-threshold", "100"]
    const agent = await startAgent(aim, { kubeconfig, node: "node-0", socketPath: socket.socketPath, more })
    processes.push(agent)
    progress.begin(`pulling ${options.images} images`)
    const images = Array.from({ length: options.images }, (_, index) => push(`image-${index}`, 10))
    await complete(served, imageListPullJobs, "images", { images })
    const both = { manager, agent }
    const app = { containers: [{ name: "app" }] }
    progress.begin("restarting containers")
    const one = await restarts(served, both, fleet.single, app)
    const two = await restarts(served, both, fleet.double, { containers: [{ name: "app" }, { name: "sidecar" }] })
    const gated = await restarts(served, both, fleet.gated, { ...app, strategy: { unreadyGracePeriodSeconds: 0 } })
    progress.begin("pulling beside the runtime's own pull")
    const pulls = await comparePulls(served, socket.socketPath, push, options)
    progress.begin(`${options.quietMs / 1000} s of quiet, twice`)
    await quiet(agent, options.quietMs)
    const memory = agent.memory()
    const before = agent.cpuSeconds()
    await quiet(agent, options.quietMs)
    const quietPercent = (100_000 * (agent.cpuSeconds() - before)) / options.quietMs
    const writes = { one: one.writes, two: two.writes, gated: gated.writes }
    return { ...options, memory, quietPercent, stopMs: one.stopMs, writes, pulls }
  } finally {
    for (const process of processes.toReversed()) await process.stop()
    cluster.stop()
    await socket.close()
    await served.close()
    progress.end()
  }
}

/** Without work. The kubelet probes every ten seconds, and Prometheus scrapes once. */
async function quiet(agent: AimProcess, ms: number): Promise<void> {
  for (let probes = 0; probes < ms / 10_000; probes++) {
    await Promise.all([agent.ask("/livez"), agent.ask("/readyz")])
    await sleep(10_000)
  }
  if (ms > 0) await agent.scrape()
}

/** As many containers as given: most pods have one, some two, and some list our readiness gate. */
async function startPods({ client }: ServedCluster, image: string, { containers, samples }: AgentCostOptions) {
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
  const fleet = {
    double: names("double", samples),
    gated: names("gated", samples),
    single: names("single", containers - 3 * samples),
  }
  const create = (name: string, spec: Json) => client.create(pods, { metadata: { name, namespace }, spec } as Json)
  const container = (name: string) => ({ name, image })
  for (const name of fleet.single) await create(name, { containers: [container("app")] })
  for (const name of fleet.double) await create(name, { containers: [container("app"), container("sidecar")] })
  for (const name of fleet.gated)
    await create(name, { containers: [container("app")], readinessGates: [{ conditionType: readinessGate }] })
  await everyPod({ client }, "running", ({ status }) => status?.phase === "Running")
  return { ...fleet, single: fleet.single.slice(0, 5 * samples) }
}

type Both = { manager: AimProcess; agent: AimProcess }

/** Restarts one pod after the other. Returns how many writes a request took, and the time to each stop. */
async function restarts(
  { cluster, client }: ServedCluster,
  processes: Both,
  names: readonly string[],
  spec: Json,
): Promise<{ writes: number; stopMs: number[] }> {
  const { runtime } = cluster.node("node-0")!
  const stopMs: number[] = []
  const before = await writesOf(processes)
  for (const podName of names) {
    const stopped = Promise.withResolvers<number>()
    const unsubscribe = runtime.onCall(({ method }) => {
      if (method === "stopContainer") stopped.resolve(performance.now())
    })
    const createdAt = performance.now()
    await client.create(requests, { metadata: { name: podName, namespace }, spec: { podName, ...spec } } as Json)
    stopMs.push((await stopped.promise) - createdAt)
    unsubscribe()
  }
  const all = async () => (await client.list(requests, { namespace })).items as Json[]
  await until("every request to be complete", async () => (await all()).every(({ status }) => isOver(status)), {
    withinMs: 120_000,
  })
  await everyPod({ client }, "ready again", ({ status }) => isReady(status))
  const bad = (await all()).find(({ status }) => status.conditions[0].status !== "True")
  if (bad) throw new Error(`${bad.metadata.name}: ${bad.status.message}`)
  return { writes: ((await writesOf(processes)) - before) / names.length, stopMs }
}

const everyPod = ({ client }: Pick<ServedCluster, "client">, what: string, isSo: (pod: Json) => boolean) =>
  until(`every pod to be ${what}`, async () => ((await client.list(pods, { namespace })).items as Json[]).every(isSo), {
    withinMs: 120_000,
  })

const isReady = (status: Json | undefined) =>
  status?.conditions?.some((each: Json) => each.type === "Ready" && each.status === "True")
const isOver = (status: Json | undefined) => status?.phase === "Completed"

/** Of requests and pods; events are not counted. */
async function writesOf(processes: Both): Promise<number> {
  const scrapes = await Promise.all(Object.values(processes).map(process => process.scrape()))
  const written = ["containerrecreaterequests.autoimagemanager.io/status", "pods/status"].flatMap(resource =>
    ["create", "update", "patch", "delete"].map(verb => ({ verb, resource })),
  )
  return scrapes.flatMap(({ sum }) => written.map(labels => sum("rest_client_requests_total", labels))).reduce(add, 0)
}

const add = (a: number, b: number) => a + b

/** The same pull, asked of the runtime and through a job, in turns. */
async function comparePulls(
  served: ServedCluster,
  socketPath: string,
  push: (name: string, takesMs: number) => string,
  { pullMs, pullRounds }: AgentCostOptions,
): Promise<AgentCost["pulls"]> {
  const bare = connectRuntime({ socketPath })
  const { runtime } = served.cluster.node("node-0")!
  const there = runtime.connect()
  const [bareMs, jobMs]: [number[], number[]] = [[], []]
  try {
    for (let round = 0; round < pullRounds; round++) {
      const startedAt = performance.now()
      await bare.pullImage({ reference: push(`bare-${round}`, pullMs) })
      bareMs.push(performance.now() - startedAt)
      const image = push(`job-${round}`, pullMs)
      const createdAt = performance.now()
      const done = complete(served, imagePullJobs, `job-${round}`, { image })
      await until("the image to be there", async () => (await there.imageStatus(image)) !== undefined, { everyMs: 10 })
      jobMs.push(performance.now() - createdAt)
      await done
    }
  } finally {
    bare.close()
    there.close()
  }
  return { bareMs, jobMs }
}

async function complete({ client }: ServedCluster, resource: Resource, name: string, spec: Json): Promise<void> {
  const metadata = { name, namespace }
  await client.create(resource, { metadata, spec } as Json)
  const { status }: Json = await until(
    `${name} to be complete`,
    async () => {
      const object: Json = await client.get(resource, metadata)
      return object.status?.completionTime !== undefined && object
    },
    { withinMs: 300_000, everyMs: 250 },
  )
  if (status.succeeded !== status.desired) throw new Error(`${name}: ${JSON.stringify(status)}`)
}

/** Counts, and what does not depend on the machine. */
export function agentCounts({ writes }: AgentCost): Figure[] {
  return [
    { name: "writes of a restart of one container", measured: writes.one, most: 4 },
    { name: "writes of a restart of two containers", measured: writes.two, most: 5 },
    { name: "writes of a restart with the gate", measured: writes.gated, most: 6 },
  ]
}

export function agentFigures(cost: AgentCost): Figure[] {
  const { memory, quietPercent, quietMs, stopMs, pulls, pullMs, containers, images } = cost
  const size = `${containers} containers, ${images} images`
  const [bare, job] = [percentile(pulls.bareMs, 0.5), percentile(pulls.jobMs, 0.5)]
  return [
    {
      name: "agent's memory after a minute of quiet",
      measured: memory.resident / MiB,
      most: 80,
      unit: "MiB",
      note: size,
    },
    { name: "agent's memory at its peak", measured: memory.peak / MiB, most: 110, unit: "MiB", note: size },
    {
      name: "agent's CPU when quiet",
      measured: quietPercent,
      most: 0.2,
      unit: "%",
      note: `of a core, over ${quietMs / 1000} s`,
    },
    {
      name: "request to StopContainer, p50",
      measured: percentile(stopMs, 0.5),
      most: 300,
      unit: "ms",
      note: `p99 ${show(percentile(stopMs, 0.99), "ms")} of ${stopMs.length}`,
    },
    {
      name: "pull through a job ÷ the bare pull",
      measured: job / bare,
      most: 1.1,
      note: `${show(job / 1000, "s")} and ${show(bare / 1000, "s")}, an image of ${pullMs / 1000} s`,
    },
  ]
}
