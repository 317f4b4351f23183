/**
 * How soon another process goes on where a leader ended, on a real server, and what it costs to be able to.
 *
 *   node bench/standby.ts [--objects=10000] [--rounds=3]
 *
 * Three pods for each object. Needs root, as every real API server does.
 */
import { parseArgs } from "node:util"
import { bundleAim } from "./support/controller-process.ts"
import { holds, table } from "./support/figures.ts"
import { handOvers } from "./support/hand-over.ts"
import { showProgress } from "./support/progress.ts"

const { values } = parseArgs({
  options: { objects: { type: "string", default: "10000" }, rounds: { type: "string", default: "3" } },
})

const progress = showProgress()
const aim = await bundleAim()
try {
  const figures = await handOvers(aim, { objects: Number(values.objects), rounds: Number(values.rounds) }, progress)
  process.stdout.write(`${table(figures)}\n`)
  process.exitCode = figures.every(holds) ? 0 : 1
} finally {
  aim.remove()
}
