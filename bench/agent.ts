/**
 * What the agent of a node and the kinds of pulls cost.
 *
 *   node bench/agent.ts [--nodes=5000] [--few=500] [--short]
 *
 * Nodes and their runtimes are simulated, the agents of the nodes are the product's own, and the manager is a process of
 * its own. The short form is for every change: small, and only what does not depend on the machine.
 */
import { parseArgs } from "node:util"
import { bundleAim } from "./support/controller-process.ts"
import { type Figure, holds, table } from "./support/figures.ts"
import { showProgress } from "./support/progress.ts"
import { pullCounts, pullScaling, pullsOnClusterSim } from "./support/pulls-on-cluster-sim.ts"

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    nodes: { type: "string", default: "5000" },
    few: { type: "string", default: "500" },
  },
})
const [many, few] = [Number(values.nodes), Number(values.few)]

const progress = showProgress()
const aim = await bundleAim()
const figures: Figure[] = []
try {
  if (values.short) figures.push(...(await short()))
  else figures.push(...(await pulls()))
} finally {
  aim.remove()
}
process.stdout.write(`${table(figures)}\n`)
process.exitCode = figures.every(holds) ? 0 : 1

async function pulls(): Promise<Figure[]> {
  const small = await pullsOnClusterSim(aim, { nodes: few, warmUps: 4, jobs: 4, images: 0 }, progress)
  const large = await pullsOnClusterSim(aim, { nodes: many, warmUps: 1, jobs: 1, images: 10 }, progress)
  return [...pullCounts(large), ...pullScaling(small, large)]
}

async function short(): Promise<Figure[]> {
  return pullCounts(await pullsOnClusterSim(aim, { nodes: 100, warmUps: 1, jobs: 1, images: 0 }, progress), 1.1)
}
