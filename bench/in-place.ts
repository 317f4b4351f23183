/**
 * What an update in place costs, beside the rolling update of the same Deployment.
 *
 *   node bench/in-place.ts [--pods=500] [--many=5000] [--nodes=20] [--rounds=3] [--workloads=1000] [--only=native,kinds,sets,scale,memory] [--short]
 *
 * On a real control plane with hollow nodes, whose agents are played. `native`: writes, time and CPU of the API server
 * beside the Deployment controller's own update, in turns. `kinds`: the same of a Deployment with the readiness gate and
 * of StatefulSets. `sets`: writes of StatefulSets and DaemonSets, the latter with a pod on each node. Two more are about
 * the manager alone, and its cluster is in this process. `scale`: its CPU per pod at two sizes. `memory`: its memory with many workloads that are all held.
 * The short form is for every change: on cluster-sim, small, and only what does not depend on the machine.
 */
import { parseArgs } from "node:util"
import { bundleAim } from "./support/controller-process.ts"
import { type Figure, holds, table } from "./support/figures.ts"
import { heldMemory } from "./support/in-place-held.ts"
import { countsOnClusterSim, withSimulatedCluster } from "./support/in-place-on-cluster-sim.ts"
import {
  compareUpdates,
  removeWeb,
  repeatUpdates,
  scalingFigures,
  setFigures,
  unusedFigures,
  updateFigures,
  withHollowCluster,
} from "./support/in-place-on-real-server.ts"
import type { Update } from "./support/in-place-updates.ts"
import { showProgress } from "./support/progress.ts"

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    pods: { type: "string", default: "500" },
    many: { type: "string", default: "5000" },
    nodes: { type: "string", default: "20" },
    rounds: { type: "string", default: "3" },
    workloads: { type: "string", default: "1000" },
    only: { type: "string", default: "native,kinds,sets,scale,memory" },
  },
})
const [pods, many, nodes, rounds] = [values.pods, values.many, values.nodes, values.rounds].map(Number) as [
  number,
  number,
  number,
  number,
]
const besideNative = [
  { kind: "Deployment", name: "web-gate", hasGate: true },
  { kind: "StatefulSet", name: "db" },
  { kind: "StatefulSet", name: "db-gate", hasGate: true },
] as const
const parts: Record<string, () => Promise<Figure[]>> = { native, kinds, sets, scale, memory }

const progress = showProgress()
const aim = await bundleAim()
const figures: Figure[] = []
try {
  if (values.short) figures.push(...(await countsOnClusterSim(aim, { pods: 40, nodes: 20 }, progress)))
  else for (const name of values.only.split(",")) figures.push(...(await parts[name]!()))
} finally {
  aim.remove()
  // What was measured before a failure is worth reading too.
  process.stdout.write(`${table(figures)}\n`)
}
process.exitCode = figures.every(holds) ? 0 : 1

function native(): Promise<Figure[]> {
  return withHollowCluster(aim, { nodes }, progress, async cluster => {
    const unused = await unusedFigures(cluster)
    const web = { name: "web", namespace: "team-0", replicas: pods }
    return [...updateFigures(await compareUpdates(cluster, web, rounds)), ...unused]
  })
}

function kinds(): Promise<Figure[]> {
  return withHollowCluster(aim, { nodes }, progress, async cluster => {
    const found: Figure[] = []
    for (const web of besideNative) {
      const all = { ...web, namespace: "team-0", replicas: pods }
      found.push(...updateFigures(await compareUpdates(cluster, all, rounds)))
      await removeWeb(cluster, all)
    }
    return found
  })
}

function sets(): Promise<Figure[]> {
  return withHollowCluster(aim, { nodes }, progress, cluster => setFigures(cluster, pods))
}

/** A process of its own for each size: the smaller one has compiled everything before it is measured. */
async function scale(): Promise<Figure[]> {
  const few = await updatesOf(pods, 2 * rounds)
  return scalingFigures(few.slice(rounds), await updatesOf(many, 1), [pods, many])
}

function updatesOf(replicas: number, times: number): Promise<Update[]> {
  const web = { name: "web", namespace: "team-0", replicas }
  return withSimulatedCluster(aim, nodesFor(replicas), progress, cluster => repeatUpdates(cluster, web, times))
}

function memory(): Promise<Figure[]> {
  return heldMemory(aim, { workloads: Number(values.workloads), podsEach: 10 }, progress)
}

/** A node takes 110 pods. */
function nodesFor(replicas: number): { nodes: number } {
  return { nodes: Math.max(nodes, Math.ceil(replicas / 50)) }
}
