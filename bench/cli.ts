/**
 * What a command costs before it does anything: processor time of `aim --version` and `aim status`, beside
 * `kubectl get` of the same objects, one after the other in each round.
 *
 *   node bench/cli.ts [--rounds=21]
 *
 * Needs kubectl. The cluster is `aim up` on loopback, so answers come at once.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { assemble, bundle } from "../tools/build.ts"
import { repository } from "../tools/kube/folders.ts"
import { type Figure, holds, percentile, show, table } from "./support/figures.ts"
import { showProgress } from "./support/progress.ts"

const { values } = parseArgs({ options: { rounds: { type: "string", default: "21" } } })
const rounds = Number(values.rounds)
const progress = showProgress()
const folder = mkdtempSync(join(tmpdir(), "aim-bench-cli-"))
const kubeconfig = join(folder, "kubeconfig")
const env = { ...process.env, KUBECONFIG: kubeconfig }

/** Milliseconds of processor time, the program's own and that of all it starts. */
function cost([program, ...args]: readonly string[]): number {
  const timed = 'TIMEFORMAT="%3U %3S"; time "$0" "$@" >/dev/null'
  const { status, stderr } = spawnSync("bash", ["-c", timed, program!, ...args], { env, encoding: "utf8" })
  const times = /(\d+\.\d+) (\d+\.\d+)\s*$/.exec(stderr)
  if (status !== 0 || !times) throw new Error(`${program} ${args.join(" ")}: ${stderr}`)
  return 1000 * (Number(times[1]) + Number(times[2]))
}

const clone = join(repository, "bin/aim")
const published = join(assemble(await bundle({ folder: join(folder, "dist") })), "bin/aim")
const commands = {
  kubectl: ["kubectl", "get", "serviceimages"],
  version: [clone, "--version"],
  status: [clone, "status"],
  publishedVersion: [published, "--version"],
  publishedStatus: [published, "status"],
} as const
type Name = keyof typeof commands
const names = Object.keys(commands) as Name[]

const rollout = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "web" },
  spec: {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" } },
    defaultImage: "registry.example.com/web:v1",
  },
}
const manifest = join(folder, "rollout.json")
writeFileSync(manifest, JSON.stringify(rollout))
const up = spawn(clone, ["up", "--no-tls", "--write-kubeconfig", kubeconfig, "--load", manifest], {
  stdio: ["ignore", "ignore", "pipe"],
})
const failing = once(up, "exit").then(([code]) => Promise.reject(new Error(`aim up ended with ${code}`)))
const samples = Object.fromEntries(names.map(name => [name, [] as number[]])) as Record<Name, number[]>
try {
  await Promise.race([once(up.stderr!, "data"), failing])
  // The first call of each fills caches, also kubectl's, and does not count.
  for (const name of names) cost(commands[name])
  progress.begin("commands", rounds)
  for (let round = 0; round < rounds; round++) {
    for (const name of names) samples[name].push(cost(commands[name]))
    progress.at(round + 1)
  }
  progress.end()
} finally {
  up.kill("SIGTERM")
  await failing.catch(() => {})
  rmSync(folder, { recursive: true })
}

/** The least of all rounds: it is disturbed the least by other work on a shared machine. */
const least = (name: Name) => Math.min(...samples[name])
const figure = (name: string, of: Name, most: number): Figure => ({
  name: `${name} ÷ kubectl get`,
  measured: least(of) / least("kubectl"),
  most,
  note: `${show(least(of))} ms beside ${show(least("kubectl"))}; medians ${[of, "kubectl" as const].map(each => show(percentile(samples[each], 0.5))).join(" and ")}`,
})
const figures = [
  figure("CPU of aim --version in a clone", "version", 2),
  figure("CPU of aim status in a clone", "status", 3),
  figure("CPU of aim --version, published", "publishedVersion", 2),
  figure("CPU of aim status, published", "publishedStatus", 3),
]
process.stdout.write(`${table(figures)}\n`)
process.exitCode = figures.every(holds) ? 0 : 1
