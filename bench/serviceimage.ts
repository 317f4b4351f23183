/**
 * What a ServiceImage costs: how many writes, how much time compared with the minimum, how much memory and CPU.
 *
 *   node --expose-gc bench/serviceimage.ts [--objects=10000] [--many=100000] [--rounds=3] [--only=real,sim,virtual] [--short]
 *
 * The short form is for every change: without a real server, small, and only what does not depend on the machine.
 */
import { parseArgs } from "node:util"
import { bundleAim } from "./support/controller-process.ts"
import { type Figure, holds, table } from "./support/figures.ts"
import { heapOverRollouts, quiescence } from "./support/in-virtual-time.ts"
import { counts, onClusterSim, scaling } from "./support/on-cluster-sim.ts"
import { onRealServer } from "./support/on-real-server.ts"
import { showProgress } from "./support/progress.ts"

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    objects: { type: "string", default: "10000" },
    many: { type: "string", default: "100000" },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: "virtual,sim,real" },
  },
})
const objects = Number(values.objects)
const many = Number(values.many)
const only = values.only.split(",")

const collect: () => void =
  globalThis.gc ??
  (() => {
    throw new Error("run with --expose-gc")
  })

const progress = showProgress()
const aim = await bundleAim()
const figures: Figure[] = []
try {
  if (only.includes("virtual")) figures.push(await heapOverRollouts(collect, progress), await quiescence(progress))
  if (values.short) figures.push(...(await short()))
  else {
    if (only.includes("sim")) figures.push(...(await scale()))
    if (only.includes("real"))
      figures.push(
        ...(await onRealServer(
          aim,
          { objects, pods: true, rounds: Number(values.rounds), samples: 100, quietMs: 60_000 },
          progress,
        )),
      )
  }
} finally {
  aim.remove()
}
process.stdout.write(`${table(figures)}\n`)
process.exitCode = figures.every(holds) ? 0 : 1

async function scale(): Promise<Figure[]> {
  const few = await onClusterSim(aim, { objects: 1000, warmUps: 5, rollouts: 5, quietMs: 0 }, progress)
  return scaling(few, await onClusterSim(aim, { objects: many, warmUps: 0, rollouts: 1, quietMs: 0 }, progress))
}

/** Ten times as many objects: only quadratic costs show. */
async function short(): Promise<Figure[]> {
  const few = await onClusterSim(aim, { objects: 500, warmUps: 6, rollouts: 6, quietMs: 0 }, progress)
  const more = await onClusterSim(aim, { objects: 5000, warmUps: 0, rollouts: 1, quietMs: 0 }, progress)
  const [cpu] = scaling(few, more)
  return [cpu!, ...counts(more)]
}
