import { type AgentNode, agentControllers } from "#agent/index.ts"
import { kinds } from "#api/kinds.ts"
import type { Cluster, Obj } from "#cluster-sim/index.ts"
import type { Controller } from "#runtime/controller.ts"
import { type Random, seededRandom } from "#runtime/random.ts"

/** Runs controllers as a process of their own, until the signal is aborted. */
type RunProcess = (controllers: readonly Controller[], random: Random, signal: AbortSignal) => Promise<unknown>

/**
 * An agent for each node of a simulated cluster, as the DaemonSet of a real one has it: each comes with its node and
 * ends with it. They meet the container runtime of their node through its mounted socket. `stop` ends them all.
 */
export function runLocalAgents(cluster: Cluster, options: { seed: number; run: RunProcess }): () => Promise<void> {
  const { storage } = cluster
  const kind = storage.kind("v1", "Node")
  if (!kind) throw new Error("v1 Node is not served")
  const agents = new Map<string, { stopping: AbortController; ended: Promise<unknown> }>()
  let count = 0

  const begin = ({ metadata: { name, uid } }: Obj) => {
    const simulated = cluster.node(name)
    if (!simulated || agents.has(uid)) return
    const { runtime } = simulated
    const connection = runtime.connectMounted()
    const node = { name, runtime: connection, disk: async () => runtime.images.disk.statfs() }
    const stopping = new AbortController()
    const ended = options
      .run(controllersOf(node), seededRandom(options.seed + count++), stopping.signal)
      .finally(() => connection.close())
    agents.set(uid, { stopping, ended })
  }
  const end = async (uid: string) => {
    const agent = agents.get(uid)
    if (!agent) return
    agents.delete(uid)
    agent.stopping.abort()
    await agent.ended
  }

  const unsubscribe = storage.subscribe(kind, ({ type, object }) => {
    if (type === "DELETED") void end(object.metadata.uid)
    else begin(object)
  })
  for (const node of storage.list(kind).items) begin(node)
  return async () => {
    unsubscribe()
    await Promise.all([...agents.keys()].map(end))
  }
}

/** Those whose kind is installed here. The others would ask for it in vain, on every node. */
const controllersOf = (node: AgentNode) =>
  agentControllers(node).filter(({ permissions }) =>
    permissions.every(({ resource }) => kinds.some(({ plural }) => plural === resource.plural)),
  )
