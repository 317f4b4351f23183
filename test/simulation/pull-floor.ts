import { createPullController, usualPullLimits } from "#agent/pull/index.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import { everyPart, type Json, openRegistries, type SimulatedNode } from "#cluster-sim/index.ts"
import { nodes } from "#controllers/imagepulljob/resources.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Controller } from "#runtime/controller.ts"
import { type CallFault, loggedRuntime } from "#test/support/runtime-log.ts"
import { type ProcessOptions, type ScenarioOptions, scenario, type World } from "#test/support/scenario.ts"
import { type Fate, keepAlive } from "./fates.ts"

/** What happens to the manager, to the agent of one node, and to its calls of the runtime. */
export type PullFate = {
  manager?: (clock: Clock) => Fate
  agent?: (clock: Clock) => Fate
  calls?: (world: World) => CallFault
}

/** A simulated cluster whose nodes have agents, all calls of which are logged. */
export type PullFloor = {
  readonly world: World
  addNode(name: string, options?: { agent?: boolean }): Promise<void>
  removeNode(name: string): Promise<void>
  /** Starts the agent of a node that has none. */
  runAgent(name: string): void
  /** Ends the agent of a node, for good. */
  stopAgent(name: string): void
  /** Runs the manager's controllers. A process that dies is followed by another. */
  runManager(controllers: () => readonly Controller[]): void
  /** What a registry has, and from now on answers with. Returns its digest. */
  publish(image: string, content: { takesMs: number; version?: string }): string
  setAccounts: ReturnType<typeof openRegistries>["setAccounts"]
  runtime(node: string): SimulatedNode["runtime"]
}

/** The agent of this node is struck. */
export const struckNode = "node-0"

export const limits = {
  pullsPerNode: usualPullLimits.pullsPerNode,
  pullsPerRegistry: 2,
  thresholdPercent: usualPullLimits.imageGcHighThresholdPercent,
}

/** How soon a dead process is followed by another. */
const lookMs = 3000

/** So slow that a story can say in milliseconds how long a pull takes. */
const bytesPerMs = 1000

type Options = Pick<ScenarioOptions, "seed" | "saved"> & {
  /** Registries that have what is published and nothing else. */
  hosts: readonly string[]
  /** How long the garbage collector takes to notice that an owner is gone. */
  collectorBehindMs?: number
  fate?: PullFate
}

export async function pullFloor({ hosts, collectorBehindMs = 0, fate = {}, ...options }: Options): Promise<PullFloor> {
  const speed = { bytesPerSecond: 1000 * bytesPerMs, latencyMs: 0 }
  const registries = openRegistries(0, () => hosts.map(host => ({ host, ...speed, images: {} })))
  const collector = createLag()
  collector.behind(collectorBehindMs)
  const lags = { "garbage-collector-controller": collector }
  const world = await scenario({ ...options, parts: everyPart({ nodes: 0, registries, lags }) })
  const strike = fate.calls?.(world)
  /** How to give up the agent of each node. */
  const agents = new Map<string, () => { die(): void }>()
  let isStruck = false

  const runtime = (node: string) => world.cluster.node(node)!.runtime

  function agentOf(name: string, uid: string, fault: CallFault | undefined, options: ProcessOptions) {
    const simulated = runtime(name)
    const connection = simulated.connectMounted()
    const disk = async () => simulated.images.disk.statfs()
    const log = { world, node: { name, uid }, agent: () => process, disk, limits, fault }
    const node = { name, runtime: loggedRuntime(connection, log), disk }
    // The calls of a process end with it.
    const dies = { ...options.dies, onDeath: () => connection.close() }
    const process = world.run([createPullController({ node, limits: usualPullLimits })], { ...options, dies })
    return process
  }

  const floor: PullFloor = {
    world,
    runtime,
    async addNode(name, { agent = true } = {}) {
      const labels = { "kubernetes.io/os": "linux" }
      await world.apply({ apiVersion: "v1", kind: "Node", metadata: { name, labels } })
      await world.until(`${name} is there`, () => world.cluster.node(name) !== undefined)
      if (agent) floor.runAgent(name)
    },
    async removeNode(name) {
      floor.stopAgent(name)
      await world.client.delete(nodes, { name })
      await world.until(`${name} is gone`, () => world.cluster.node(name) === undefined)
    },
    runAgent(name) {
      const { uid } = world.history.findLast(({ object }) => isNode(object, name))!.object.metadata
      const hasFate = name === struckNode && !isStruck
      isStruck ||= hasFate
      const run = (options: ProcessOptions) => agentOf(name, uid, name === struckNode ? strike : undefined, options)
      agents.set(name, keepAlive(world.clock, run, hasFate ? fate.agent?.(world.clock) : {}, lookMs))
    },
    stopAgent(name) {
      agents.get(name)?.().die()
      agents.delete(name)
    },
    runManager(controllers) {
      keepAlive(world.clock, options => world.run(controllers(), options), fate.manager?.(world.clock), lookMs)
    },
    publish: (image, { takesMs, version = "" }) =>
      registries.push(image, { sizeBytes: takesMs * bytesPerMs + version.length }),
    setAccounts: registries.setAccounts,
  }
  return floor
}

const isNode = ({ kind, metadata }: Json, name: string) => kind === "Node" && metadata.name === name
