import { policies } from "#cli/manifests/policies.ts"
import { everyPart, type Json } from "#cluster-sim/index.ts"
import { type Bundled, startController } from "./controller-process.ts"
import type { Figure } from "./figures.ts"
import { createWeb, grant, rolledOut, type Update, updateInPlace, type Web } from "./in-place-updates.ts"
import type { Progress } from "./progress.ts"
import { startAgents } from "./pulls-on-cluster-sim.ts"
import { serveCluster } from "./served-cluster.ts"
import { prepare } from "./tenants.ts"

/** What one update in place asks of the server, in a cluster in this process. No time is measured. */
export async function countsOnClusterSim(
  aim: Bundled,
  { pods, nodes }: { pods: number; nodes: number },
  progress: Progress,
): Promise<Figure[]> {
  const served = await serveCluster({ parts: everyPart({ nodes, heartbeat: "lazy" }) })
  const { cluster, client, kubeconfig } = served
  cluster.start()
  try {
    await prepare(client)
    const namespace = "team-0"
    await grant(client, namespace)
    for (const policy of policies() as Json[]) {
      const kind = cluster.storage.kind(policy.apiVersion, policy.kind)
      if (!kind) throw new Error(`the cluster does not serve ${policy.kind}`)
      cluster.storage.create(kind, policy, { fieldManager: "bench" })
    }
    const manager = await startController(aim, { kubeconfig, leaderElect: false })
    try {
      const stopAgents = await startAgents(served, nodes, progress)
      try {
        const figures: Figure[] = []
        for (const hasGate of [false, true]) {
          const web: Web = { name: hasGate ? "gated" : "web", namespace, replicas: pods, hasGate }
          progress.begin(`creating ${pods} pods in process`, pods)
          await createWeb(client, web)
          await rolledOut(client, web, progress)
          figures.push(...countFigures(await updateInPlace({ client, manager, progress }, web, "v1"), web))
        }
        return figures
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

/** What an update writes for the workload itself, whatever the number of its pods. */
const constantWrites = 20
/** Both write the Deployment and its ReplicaSet at the same moments: at the hold, at the flip and at the release. */
const constantConflicts = 8

/** `update` may be the worst of several. */
export function countFigures(
  update: Pick<Update, "writes" | "questions" | "conflicts" | "workloadConflicts">,
  { replicas, hasGate = false }: Web,
): Figure[] {
  const { writes, questions, conflicts, workloadConflicts } = update
  const which = hasGate ? "with the gate" : "Deployment"
  return [
    {
      name: `${which}: (writes − ${constantWrites}) ÷ pods`,
      measured: Math.max(0, writes - constantWrites) / replicas,
      most: hasGate ? 3 : 1,
      note: `${writes} writes for ${replicas} pods; ${questions} dry-run evictions beside them`,
    },
    {
      name: `${which}: (conflicts − ${constantConflicts}) ÷ writes`,
      measured: (100 * Math.max(0, conflicts - constantConflicts)) / writes,
      most: 1,
      unit: "%",
      note: `${conflicts}, ${workloadConflicts} of them on the Deployment, which its own controller writes too`,
    },
  ]
}
