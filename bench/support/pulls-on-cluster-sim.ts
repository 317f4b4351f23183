import { runLocalAgents } from "#cli/local-agents.ts"
import { everyPart, type Json } from "#cluster-sim/index.ts"
import { imageListPullJobs } from "#controllers/imagelistpulljob/resources.ts"
import { imagePullJobs, nodeImages } from "#controllers/imagepulljob/resources.ts"
import { systemClock } from "#runtime/clock.ts"
import { runManager } from "#runtime/manager.ts"
import type { Resource } from "#runtime/resource.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { until } from "#tools/kube/api.ts"
import { type AimProcess, type Bundled, type Memory, startController } from "./controller-process.ts"
import type { Figure } from "./figures.ts"
import type { Progress } from "./progress.ts"
import { type ServedCluster, serveCluster } from "./served-cluster.ts"
import { prepare } from "./tenants.ts"

const MiB = 2 ** 20
const imageOf = (tag: string) => `registry.example.com/team/web:${tag}`

export type PullCost = {
  nodes: number
  parallelism: number
  /** Of the manager, for one node of one job. */
  cpuMicroseconds: number
  /** Of manager and agents together, for one job. */
  writes: number
  /** How long one job took. */
  seconds: number
  /** The largest status of a job. */
  statusBytes: number
  memory: Memory
  images: number
}

type Counted = { writes: number; statusBytes: number }

export type PullOptions = { nodes: number; warmUps: number; jobs: number; images: number }

/**
 * Jobs that bring an image to every node of a simulated cluster. The manager is a process of its own, which is what
 * is measured; each node has the agent's own controllers, in this process.
 */
export async function pullsOnClusterSim(aim: Bundled, options: PullOptions, progress: Progress): Promise<PullCost> {
  const { nodes } = options
  const counted = { writes: 0, statusBytes: 0 }
  const parts = everyPart({ nodes, heartbeat: "lazy" })
  const served = await serveCluster({ parts, history: ({ object }: Json) => note(counted, object) })
  const { cluster, client, kubeconfig } = served
  progress.begin(`starting ${nodes} nodes in process`)
  cluster.start()
  try {
    await prepare(client)
    const more = ["--pulls-per-registry", "9999"]
    const manager = await startController(aim, { kubeconfig, leaderElect: false, more })
    try {
      const stopAgents = await startAgents(served, nodes, progress)
      try {
        return { ...(await measureJobs(served, manager, counted, options, progress)), memory: manager.memory() }
      } finally {
        await stopAgents()
      }
    } finally {
      await manager.stop()
    }
  } finally {
    cluster.stop()
    await served.close()
    progress.end()
  }
}

/** The product's own agents, in this process. */
export async function startAgents({ cluster, client }: ServedCluster, nodes: number, progress: Progress) {
  progress.begin(`an agent for each of ${nodes} nodes`)
  const all = () => client.list(nodeImages, {}).then(({ items }) => items as Json[])
  // A list of all of them is not cheap, and is made in this process.
  const patience = { withinMs: 900_000, everyMs: nodes }
  await until("every node to have a NodeImage", async () => (await all()).length === nodes, patience)
  const transport = { send: cluster.transport.send, close: () => {} }
  const stop = runLocalAgents(cluster, {
    seed: 1,
    run: (controllers, random, signal) =>
      runManager({
        transport,
        controllers,
        leaderElect: false,
        clock: systemClock,
        random,
        log: silentLogger,
        signal,
        graceMs: 0,
      }),
  })
  const isReady = ({ status }: Json) => status?.publicKey !== undefined
  await until("every agent to answer", async () => (await all()).every(isReady), patience)
  return stop
}

async function measureJobs(
  { client }: ServedCluster,
  manager: Pick<AimProcess, "scrape">,
  counted: Counted,
  { nodes, warmUps, jobs, images }: PullOptions,
  progress: Progress,
): Promise<Omit<PullCost, "memory">> {
  const parallelism = Math.ceil(nodes / 10)
  const pull = async (resource: Resource, name: string, spec: Json) => {
    const metadata = { name, namespace: "default" }
    await client.create(resource, { metadata, spec: { ...spec, parallelism } } as Json)
    await until(
      "the job to be complete",
      async () => {
        const { status = {} }: Json = await client.get(resource, metadata)
        progress.at(status.succeeded ?? 0)
        return status.completionTime !== undefined
      },
      { withinMs: 1_200_000, everyMs: 500 },
    )
  }
  const pullOne = (tag: string) => {
    progress.begin(`a job over ${nodes} nodes`, nodes)
    return pull(imagePullJobs, tag, { image: imageOf(tag) })
  }
  for (let turn = 0; turn < warmUps; turn++) await pullOne(`warm-${turn}`)
  const before = { ...counted, cpu: (await manager.scrape()).cpuSeconds }
  const startedAt = performance.now()
  for (let turn = 0; turn < jobs; turn++) await pullOne(`v${turn}`)
  const seconds = (performance.now() - startedAt) / 1000 / jobs
  const after = { ...counted, cpu: (await manager.scrape()).cpuSeconds }
  // A NodeImage keeps what running jobs want, so all of the images are those of one list.
  const more = Array.from({ length: images }, (_, index) => imageOf(`more-${index}`))
  if (more.length > 0) {
    progress.begin(`a list of ${more.length} images over ${nodes} nodes`, more.length)
    await pull(imageListPullJobs, "more", { images: more })
  }
  return {
    nodes,
    parallelism,
    cpuMicroseconds: ((after.cpu - before.cpu) * 1e6) / (nodes * jobs),
    writes: (after.writes - before.writes) / jobs,
    seconds,
    statusBytes: counted.statusBytes,
    images: Math.max(images, 1),
  }
}

/** Writes of the kinds of pulls, by whichever process. */
function note(counted: Counted, object: Json): void {
  if (object.kind !== "NodeImage" && object.kind !== "ImagePullJob") return
  counted.writes++
  if (object.kind === "ImagePullJob")
    counted.statusBytes = Math.max(counted.statusBytes, JSON.stringify(object.status ?? {}).length)
}

/** What a job asks of the server: two writes a node, one of the job for each wave, and two: its creation and its start. */
export function pullCounts({ nodes, parallelism, writes, seconds, statusBytes }: PullCost, most = 1): Figure[] {
  const waves = Math.ceil(nodes / parallelism)
  const size = `${writes.toFixed(0)} writes for ${nodes} nodes, ${parallelism} at once, in ${seconds.toFixed(0)} s`
  return [
    {
      name: "writes of a job ÷ (2 N + waves + 2)",
      measured: writes / (2 * nodes + waves + 2),
      most,
      note: `${size}; ${waves} waves`,
    },
    { name: "largest status of a job", measured: statusBytes / 1000, most: 20, unit: "kB" },
  ]
}

/** What it costs the manager, at the one size and at the other. */
export function pullScaling(few: PullCost, many: PullCost): Figure[] {
  const cpu = ({ cpuMicroseconds, nodes }: PullCost) => `${cpuMicroseconds.toFixed(0)} µs at ${nodes}`
  return [
    {
      name: "manager's CPU per node, many ÷ few",
      measured: many.cpuMicroseconds / few.cpuMicroseconds,
      most: 1.5,
      note: `${cpu(few)}, ${cpu(many)}`,
    },
    {
      name: "manager's memory at its peak",
      measured: many.memory.peak / MiB,
      most: 250,
      unit: "MiB",
      note: `${many.nodes} NodeImages with ${many.images} images each`,
    },
  ]
}
