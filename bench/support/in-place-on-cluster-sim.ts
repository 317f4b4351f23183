import { policies } from "#cli/manifests/policies.ts"
import { everyPart, type Json } from "#cluster-sim/index.ts"
import type { Client } from "#runtime/client/client.ts"
import { type AimProcess, type Bundled, startController } from "./controller-process.ts"
import type { Figure } from "./figures.ts"
import { grant, type Update, updateInPlace } from "./in-place-updates.ts"
import { createWeb, type Kind, kindOf, kinds, rolledOut, titleOf, type Web } from "./in-place-workloads.ts"
import type { Progress } from "./progress.ts"
import { startAgents } from "./pulls-on-cluster-sim.ts"
import { serveCluster } from "./served-cluster.ts"
import { prepare } from "./tenants.ts"

/** A cluster with the policies that hold, and the manager in a process of its own. */
export type Floor = { client: Client; manager: AimProcess; nodes: number; progress: Progress }

/** What one update in place asks of the server, in a cluster in this process. No time is measured. */
export const countsOnClusterSim = (
  aim: Bundled,
  { pods, nodes }: { pods: number; nodes: number },
  progress: Progress,
) =>
  withSimulatedCluster(aim, { nodes }, progress, async parts => {
    const { client } = parts
    const figures: Figure[] = []
    for (const web of websOf({ pods, nodes }, namespaces[0]!)) {
      progress.begin(`creating the pods of ${web.name} in process`, web.replicas)
      await createWeb(client, web)
      await rolledOut(client, web, progress)
      figures.push(...countFigures(await updateInPlace(parts, web, "v1"), web))
      await client.delete(kindOf(web).resource, web, { propagationPolicy: "Background" })
    }
    return figures
  })

/** Those that `prepare` makes. */
export const namespaces = Array.from({ length: 20 }, (_, team) => `team-${team}`)

/** The cluster is in this process, and its nodes have the agent's own controllers. */
export async function withSimulatedCluster<T>(
  aim: Bundled,
  { nodes }: { nodes: number },
  progress: Progress,
  measure: (parts: Floor) => Promise<T>,
): Promise<T> {
  const served = await serveCluster({ parts: everyPart({ nodes, heartbeat: "lazy" }) })
  const { cluster, client, kubeconfig } = served
  cluster.start()
  try {
    await prepare(client)
    for (const namespace of namespaces) await grant(client, namespace)
    for (const policy of policies() as Json[]) {
      const kind = cluster.storage.kind(policy.apiVersion, policy.kind)
      if (!kind) throw new Error(`the cluster does not serve ${policy.kind}`)
      cluster.storage.create(kind, policy, { fieldManager: "bench" })
    }
    const manager = await startController(aim, { kubeconfig, leaderElect: false })
    try {
      const stopAgents = await startAgents(served, nodes, progress)
      try {
        return await measure({ client, manager, nodes, progress })
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

/** Each kind, without and with the gate. */
export const websOf = ({ pods, nodes }: { pods: number; nodes: number }, namespace: string): Web[] =>
  (Object.keys(kinds) as Kind[]).flatMap(kind =>
    [false, true].map(hasGate => ({
      ...{ kind, namespace, hasGate },
      name: `${kind.toLowerCase()}${hasGate ? "-gated" : ""}`,
      replicas: kind === "DaemonSet" ? nodes : pods,
    })),
  )

/**
 * What an update writes for the workload itself, whatever the number of its pods: four notes, the release
 * and the label; the ReplicaSet that is kept and the one that is flipped; four events; and conflicts of these.
 */
const constantWrites = 20
/** Its own controller writes the workload and its ReplicaSet at the same moments: hold, flip, fence and release. */
const constantConflicts = 8

type Counts = Pick<
  Update,
  "writes" | "questions" | "conflicts" | "workloadConflicts" | "workloadWrites" | "revisionWrites" | "eventWrites"
>

/** `update` may be the worst of several. */
export function countFigures(update: Counts, web: Web): Figure[] {
  const { writes, questions, conflicts, workloadConflicts, workloadWrites, revisionWrites, eventWrites } = update
  const { replicas, hasGate = false } = web
  const others = `${workloadWrites} of the workload, ${revisionWrites} of ReplicaSets, ${eventWrites} events`
  return [
    {
      name: `${titleOf(web)}: (writes − ${constantWrites}) ÷ pods`,
      measured: Math.max(0, writes - constantWrites) / replicas,
      most: kindOf(web).mostWrites + (hasGate ? 2 : 0),
      note: `${writes} writes for ${replicas} pods, among them ${others}; ${questions} dry-run evictions beside them`,
    },
    {
      name: `${titleOf(web)}: (conflicts − ${constantConflicts}) ÷ writes`,
      measured: (100 * Math.max(0, conflicts - constantConflicts)) / writes,
      most: 1,
      unit: "%",
      note: `${conflicts}, ${workloadConflicts} of them on the workload, which its own controller writes too`,
    },
  ]
}
