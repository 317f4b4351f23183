/**
 * What an AlternateImageSource costs: how soon a pod that cannot pull is repaired, with how many writes, what healthy
 * pods cost, and what a namespace full of sources and containers costs the others.
 *
 *   node --expose-gc bench/alternateimagesource.ts [--pods=10000] [--failing=2000] [--samples=50]
 *     [--only=memory,counts,outage,latency,crowd] [--short]
 *
 * The short form is for every change: without a real server, small, and only what does not depend on the machine.
 */
import { parseArgs } from "node:util"
import { bundleAim } from "./support/controller-process.ts"
import { crowdedNamespace } from "./support/crowded-namespace.ts"
import { type Figure, holds, show, table } from "./support/figures.ts"
import { type OutageCost, outageOnClusterSim } from "./support/outage-on-cluster-sim.ts"
import { repairsOnRealServer } from "./support/outage-on-real-server.ts"
import { showProgress } from "./support/progress.ts"
import { heapOfHealthyPods } from "./support/watched-pods.ts"

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    pods: { type: "string", default: "10000" },
    failing: { type: "string", default: "2000" },
    samples: { type: "string", default: "50" },
    only: { type: "string", default: "memory,counts,outage,latency,crowd" },
  },
})
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
  if (values.short) figures.push(...(await short()))
  else {
    if (only.includes("memory")) figures.push(await heapOfHealthyPods(Number(values.pods), collect, progress))
    if (only.includes("counts")) figures.push(...counts(await smallOutage()))
    if (only.includes("outage")) figures.push(...(await scaling(Number(values.failing))))
    if (only.includes("latency"))
      figures.push(...(await repairsOnRealServer(aim, { samples: Number(values.samples) }, progress)))
    // Last, since it moves this process off one core for good.
    if (only.includes("crowd"))
      figures.push(...(await crowdedNamespace(aim, { sources: 1000, containers: 10_000, rounds: 20 }, progress)))
  }
} finally {
  aim.remove()
}
process.stdout.write(`${table(figures)}\n`)
process.exitCode = figures.every(holds) ? 0 : 1

/** Ten pods of each of twenty workloads, whose kubelets notice it within two seconds. */
async function smallOutage(): Promise<OutageCost> {
  const pods = { namespaces: 1, workloads: 20, failing: 10, healthy: 0 }
  return outageOnClusterSim(aim, { ...pods, warmUps: 0, outages: 1, spreadMs: 2000 }, progress)
}

function counts({ failing, workloads, patches, statusWrites, events, gets, lists, questions }: OutageCost): Figure[] {
  return [
    {
      name: "writes ÷ (pods + workloads)",
      measured: (patches + statusWrites) / (failing + workloads),
      most: 1.05,
      note: `${patches} patches and ${statusWrites} of the status for ${failing} pods of ${workloads} workloads; ${events} events`,
    },
    { name: "questions ÷ images", measured: questions / workloads, most: 2, note: "for the tag, and for its digest" },
    { name: "GET ÷ images", measured: gets / workloads, most: 1, note: "the service account, for its credentials" },
    { name: "LIST during an outage", measured: lists, most: 0 },
  ]
}

/** All at once, ten pods of each workload, in four namespaces. */
async function scaling(failing: number): Promise<Figure[]> {
  const shape = { namespaces: 4, failing: 10, spreadMs: 0 }
  const [few, many] = [failing / 100, failing / 10]
  const small = await outageOnClusterSim(
    aim,
    { ...shape, workloads: few, healthy: 0, warmUps: 4, outages: 5 },
    progress,
  )
  const large = { ...shape, workloads: many, warmUps: 1, outages: 2 }
  const failed = await outageOnClusterSim(aim, { ...large, healthy: 0 }, progress)
  const among = await outageOnClusterSim(aim, { ...large, healthy: 90 }, progress)
  return [...ratios(small, failed, among), ...bounds(among)]
}

function ratios(few: OutageCost, many: OutageCost, among: OutageCost): Figure[] {
  const each = ({ failing, pods, cpuMicroseconds }: OutageCost) =>
    `${cpuMicroseconds.toFixed(0)} µs at ${failing} of ${pods}`
  return [
    {
      name: "CPU per failing pod, many ÷ few",
      measured: many.cpuMicroseconds / few.cpuMicroseconds,
      most: 1.5,
      note: `${each(few)}, ${each(many)}`,
    },
    {
      name: "CPU per failing pod, among many ÷ alone",
      measured: among.cpuMicroseconds / many.cpuMicroseconds,
      most: 1.5,
      note: `${each(many)}, ${each(among)}`,
    },
  ]
}

function bounds({ writesAtOnce, questionsAtOnce, failing, patches, statusWrites, tookMs }: OutageCost): Figure[] {
  return [
    {
      name: "pods written at once",
      measured: writesAtOnce,
      most: 16,
      note: `${failing} pods of 4 namespaces repaired in ${show(tookMs / 1000, "s")}: ${patches} patches, ${statusWrites} of the status`,
    },
    { name: "questions at once", measured: questionsAtOnce, most: 6, note: "at one registry" },
  ]
}

/** Nothing that is compared with a time. */
async function short(): Promise<Figure[]> {
  const heap = await heapOfHealthyPods(2000, collect, progress)
  return [heap, ...counts(await smallOutage())]
}
