import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createPullController, usualPullLimits } from "#agent/pull/index.ts"
import { type Cluster, createCluster, everyPart, type Json, serveHttp } from "#cluster-sim/index.ts"
import { imagePullJobs, nodeImages } from "#controllers/imagepulljob/resources.ts"
import { createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { runManager } from "#runtime/manager.ts"
import { seededRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { until } from "#tools/kube/api.ts"
import { type Bundled, type Memory, startController } from "./controller-process.ts"
import type { Figure } from "./figures.ts"
import { kubeconfigFor } from "./on-cluster-sim.ts"
import type { Progress } from "./progress.ts"
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
  /** The largest status of a job. */
  statusBytes: number
  memory: Memory
  images: number
}

export type PullOptions = { nodes: number; warmUps: number; jobs: number; images: number }

/**
 * Jobs that bring an image to every node of a simulated cluster. The manager is a process of its own, which is what
 * is measured; each node has the agent's own controller of pulls, in this process.
 */
export async function pullsOnClusterSim(aim: Bundled, options: PullOptions, progress: Progress): Promise<PullCost> {
  const { nodes, warmUps, jobs, images } = options
  const counted = { writes: 0, statusBytes: 0 }
  const cluster = createCluster({
    clock: systemClock,
    seed: 1,
    parts: everyPart({ nodes, heartbeat: "lazy" }),
    history: ({ object }: Json) => note(counted, object),
  })
  const transport = { send: cluster.transport.send, close: () => {} }
  const client = createClient({ transport, clock: systemClock, random: seededRandom(1) })
  const serving = await serveHttp(cluster.transport)
  const folder = mkdtempSync(join(tmpdir(), "aim-bench-"))
  const kubeconfig = join(folder, "kubeconfig")
  writeFileSync(kubeconfig, kubeconfigFor(serving.url), { mode: 0o600 })
  progress.begin(`starting ${nodes} nodes in process`)
  cluster.start()
  const stopping = new AbortController()
  try {
    await prepare(client)
    const manager = await startController(aim, {
      kubeconfig,
      leaderElect: false,
      more: ["--pulls-per-registry", "9999"],
    })
    try {
      progress.begin(`an agent for each of ${nodes} nodes`)
      const all = () => client.list(nodeImages, {}).then(({ items }) => items as Json[])
      await until("every node to have a NodeImage", async () => (await all()).length === nodes, { withinMs: 300_000 })
      for (let index = 0; index < nodes; index++) runAgent(cluster, `node-${index}`, stopping.signal)
      const isReady = ({ status }: Json) => status?.publicKey !== undefined
      await until("every agent to answer", async () => (await all()).every(isReady), { withinMs: 300_000 })
      const parallelism = Math.ceil(nodes / 10)
      const pull = async (tag: string) => {
        progress.begin(`a job over ${nodes} nodes`, nodes)
        const metadata = { name: tag, namespace: "default" }
        await client.create(imagePullJobs, { metadata, spec: { image: imageOf(tag), parallelism } } as Json)
        await until(
          "the job to be complete",
          async () => {
            const { status = {} }: Json = await client.get(imagePullJobs, metadata)
            progress.at(status.succeeded ?? 0)
            return status.completionTime !== undefined
          },
          { withinMs: 1_200_000, everyMs: 500 },
        )
      }
      for (let turn = 0; turn < warmUps; turn++) await pull(`warm-${turn}`)
      const before = { ...counted, cpu: (await manager.scrape()).cpuSeconds }
      for (let turn = 0; turn < jobs; turn++) await pull(`v${turn}`)
      const after = { ...counted, cpu: (await manager.scrape()).cpuSeconds }
      for (let turn = warmUps + jobs; turn < images; turn++) await pull(`more-${turn}`)
      return {
        nodes,
        parallelism,
        cpuMicroseconds: ((after.cpu - before.cpu) * 1e6) / (nodes * jobs),
        writes: (after.writes - before.writes) / jobs,
        statusBytes: counted.statusBytes,
        memory: manager.memory(),
        images: Math.max(images, warmUps + jobs),
      }
    } finally {
      await manager.stop()
    }
  } finally {
    stopping.abort()
    cluster.stop()
    await serving.close()
    client.close()
    rmSync(folder, { recursive: true, force: true })
    progress.end()
  }
}

/** Writes of the kinds of pulls, by whichever process. */
function note(counted: { writes: number; statusBytes: number }, object: Json): void {
  if (object.kind !== "NodeImage" && object.kind !== "ImagePullJob") return
  counted.writes++
  if (object.kind === "ImagePullJob")
    counted.statusBytes = Math.max(counted.statusBytes, JSON.stringify(object.status ?? {}).length)
}

function runAgent(cluster: Cluster, name: string, signal: AbortSignal): void {
  const simulated = cluster.node(name)
  if (!simulated) throw new Error(`there is no node ${name}`)
  const { runtime } = simulated
  const node = { name, runtime: runtime.connectMounted(), disk: async () => runtime.images.disk.statfs() }
  void runManager({
    transport: { send: cluster.transport.send, close: () => {} },
    controllers: [createPullController({ node, limits: usualPullLimits })],
    leaderElect: false,
    clock: systemClock,
    random: seededRandom(name.length),
    log: silentLogger,
    signal,
    graceMs: 0,
  })
}

/** What a job asks of the server. On a slow machine a wave may last long enough for one more status. */
export function pullCounts({ nodes, parallelism, writes, statusBytes }: PullCost, most = 1): Figure[] {
  return [
    {
      name: "writes of a job ÷ (2 N + ⌈N/parallelism⌉ + 2)",
      measured: writes / (2 * nodes + Math.ceil(nodes / parallelism) + 2),
      most,
      note: `${writes.toFixed(0)} writes for ${nodes} nodes, ${parallelism} at once`,
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
