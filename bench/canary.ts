/**
 * What Canaries cost.
 *
 *   node bench/canary.ts [--canaries=100] [--many=1000] [--pods=6] [--runs=20] [--nodes=20] [--only=rest,runs,once] [--short]
 *
 * `rest`: memory, requests and CPU of Canaries that wait, at two sizes, on cluster-sim. The other two need root: a real
 * control plane with hollow nodes. `runs`: the time of runs one by one, without that of their pods and the intervals.
 * `once`: as many Deployments as `--canaries` at once, beside their native rolling updates. The short form is `rest` with
 * 20 and 60 of them. What a run writes does not depend on the machine: test/scenarios/canary-cost.test.ts counts it.
 */
import { parseArgs } from "node:util"
import { canaryHold } from "#policies/canary-hold.ts"
import { atRest, restFigures } from "./support/canary-at-rest.ts"
import { atOnce, oneByOne } from "./support/canary-runs.ts"
import { bundleAim } from "./support/controller-process.ts"
import { type Figure, holds, table } from "./support/figures.ts"
import { type HollowCluster, withHollowCluster } from "./support/in-place-on-real-server.ts"
import { showProgress } from "./support/progress.ts"

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    canaries: { type: "string", default: "100" },
    many: { type: "string", default: "1000" },
    pods: { type: "string", default: "6" },
    runs: { type: "string", default: "20" },
    nodes: { type: "string", default: "20" },
    only: { type: "string", default: "rest,runs,once" },
  },
})
const parts: Record<string, () => Promise<Figure[]>> = {
  rest,
  runs: () => onHollowNodes(cluster => oneByOne(cluster, Number(values.runs))),
  once: () => onHollowNodes(cluster => atOnce(cluster, Number(values.canaries))),
}

const progress = showProgress()
const aim = await bundleAim()
const figures: Figure[] = []
try {
  for (const name of values.short ? ["rest"] : values.only.split(",")) figures.push(...(await parts[name]!()))
} finally {
  aim.remove()
  // What was measured before a failure is worth reading too.
  process.stdout.write(`${table(figures)}\n`)
}
process.exitCode = figures.every(holds) ? 0 : 1

async function rest(): Promise<Figure[]> {
  const each = { podsEach: Number(values.pods), quietMs: values.short ? 20_000 : 60_000, touches: 1000 }
  const [few, many] = values.short ? [20, 60] : [Number(values.canaries), Number(values.many)]
  const least = await atRest(aim, { ...each, canaries: few }, progress)
  return restFigures(least, await atRest(aim, { ...each, canaries: many }, progress))
}

function onHollowNodes(measure: (cluster: HollowCluster) => Promise<Figure[]>): Promise<Figure[]> {
  return withHollowCluster(aim, { nodes: Number(values.nodes), policies: [canaryHold] }, progress, measure)
}
