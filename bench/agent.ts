/**
 * What the agent of a node and the kinds of pulls cost.
 *
 *   node bench/agent.ts [--nodes=5000] [--few=500] [--only=agent,pulls] [--short]
 *
 * Nodes and their runtimes are simulated. `agent`: one node with 110 containers and 200 images, whose agent is a process
 * of its own and meets the runtime through a unix socket. `pulls`: jobs over many nodes, whose agents are the product's
 * own in this process. The manager is always a process of its own. The short form is for every change: small, and only
 * what does not depend on the machine.
 */
import { parseArgs } from "node:util"
import { agentCounts, agentFigures, agentOnClusterSim } from "./support/agent-on-cluster-sim.ts"
import { bundleAim } from "./support/controller-process.ts"
import { type Figure, holds, table } from "./support/figures.ts"
import { showProgress } from "./support/progress.ts"
import { pullCounts, pullScaling, pullsOnClusterSim } from "./support/pulls-on-cluster-sim.ts"

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    nodes: { type: "string", default: "5000" },
    few: { type: "string", default: "500" },
    only: { type: "string", default: "agent,pulls" },
  },
})
const [many, few] = [Number(values.nodes), Number(values.few)]
const parts: Record<string, () => Promise<Figure[]>> = { agent, pulls }

const progress = showProgress()
const aim = await bundleAim()
const figures: Figure[] = []
try {
  if (values.short) figures.push(...(await short()))
  else for (const name of values.only.split(",")) figures.push(...(await parts[name]!()))
} finally {
  aim.remove()
}
process.stdout.write(`${table(figures)}\n`)
process.exitCode = figures.every(holds) ? 0 : 1

async function agent(): Promise<Figure[]> {
  const load = { containers: 110, images: 200, samples: 10 }
  const cost = await agentOnClusterSim(aim, { ...load, pullMs: 5000, pullRounds: 3, quietMs: 60_000 }, progress)
  return [...agentFigures(cost), ...agentCounts(cost)]
}

async function pulls(): Promise<Figure[]> {
  const small = await pullsOnClusterSim(aim, { nodes: few, warmUps: 2, jobs: 3, images: 0 }, progress)
  const large = await pullsOnClusterSim(aim, { nodes: many, warmUps: 1, jobs: 1, images: 10 }, progress)
  return [...pullCounts(large), ...pullScaling(small, large)]
}

/** Both at once: writes are counted, and no time is measured. */
async function short(): Promise<Figure[]> {
  const load = { containers: 10, images: 2, samples: 2 }
  const [ofPulls, ofAgent] = await Promise.all([
    pullsOnClusterSim(aim, { nodes: 100, warmUps: 0, jobs: 1, images: 0 }, progress),
    agentOnClusterSim(aim, { ...load, pullMs: 0, pullRounds: 0, quietMs: 0 }, progress),
  ])
  return [...pullCounts(ofPulls, 1.1), ...agentCounts(ofAgent)]
}
