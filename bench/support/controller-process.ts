import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { agentNodeFlags } from "#cli/manifests/agent.ts"
import { bundle } from "#tools/build.ts"
import { until } from "#tools/kube/api.ts"
import { onClearedCore } from "./cores.ts"

/** `aim` as it is published, in a process of its own: what it costs is measured from outside. */
export type AimProcess = {
  scrape(): Promise<Scrape>
  /** The content of a path, such as `/readyz`. */
  ask(path: string): Promise<string>
  memory(): Memory
  /** User and system, read from outside: a scrape would cost some. */
  cpuSeconds(): number
  /** Resolves with the time at which it ended. */
  kill(signal: "SIGTERM" | "SIGKILL"): Promise<number>
  /** As kubelet would. */
  stop(): Promise<void>
}

/** The content of `/metrics` at one moment. */
export type Scrape = {
  /** The sum over all labels that match. */
  sum(name: string, labels?: Record<string, string>): number
  /** How many series match. */
  count(name: string, labels?: Record<string, string>): number
  /** Requests that changed something, or tried to; the Lease has nothing to do with a rollout. */
  writes: number
  stamps: number
  lists: number
  gets: number
  cpuSeconds: number
  /** Since the scrape before this one. */
  eventLoopP99Ms: number
}

/** In bytes; the peak is that of the whole life of the process. */
export type Memory = { resident: number; peak: number }

export type Bundled = { file: string; remove(): void }

/** A copy of the program: edits of the source during the run change nothing. */
export async function bundleAim(): Promise<Bundled> {
  const folder = mkdtempSync(join(tmpdir(), "aim-bench-"))
  await bundle({ folder })
  return { file: join(folder, "aim.js"), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

type ControllerOptions = { kubeconfig: string; leaderElect?: boolean; hasOwnCore?: boolean; more?: string[] }

export function startController(
  aim: Bundled,
  { kubeconfig, leaderElect = true, hasOwnCore = false, more = [] }: ControllerOptions,
): Promise<AimProcess> {
  const election = leaderElect ? ["--lease-namespace", "kube-system"] : ["--no-leader-elect"]
  const args = ["controller", "--kubeconfig", kubeconfig, ...election, ...more]
  return startAim(aim, { args, nodeFlags: flagsFromEnvironment(), hasOwnCore })
}

export type AgentOptions = { kubeconfig: string; node: string; socketPath: string; more?: string[] }

/** With the flags that the DaemonSet has. */
export function startAgent(
  aim: Bundled,
  { kubeconfig, node, socketPath, more = [] }: AgentOptions,
): Promise<AimProcess> {
  const args = ["agent", "--kubeconfig", kubeconfig, "--node-name", node, "--cri-socket", socketPath, ...more]
  return startAim(aim, { args, nodeFlags: agentNodeFlags })
}

type Start = { args: readonly string[]; nodeFlags: readonly string[]; hasOwnCore?: boolean }

async function startAim({ file }: Bundled, { args, nodeFlags, hasOwnCore = false }: Start): Promise<AimProcess> {
  const port = await freePort()
  const command = [process.execPath, ...nodeFlags, file, ...args, "--metrics-port", String(port)]
  const [program, ...words] = hasOwnCore ? onClearedCore(command) : command
  const child = spawn(program!, words, { stdio: ["ignore", "ignore", "pipe"] })
  let output = ""
  child.stderr.setEncoding("utf8").on("data", text => {
    output = (output + text).slice(-20_000)
  })
  let isOver = false
  const ended = new Promise<void>(resolve =>
    child.once("close", () => {
      isOver = true
      resolve()
    }),
  )
  const ask = async (path: string) => {
    if (isOver) throw new Error(`aim ${args[0]} ended:\n${output}`)
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return answer.text()
  }
  const isReady = until(`aim ${args[0]} to be ready`, async () => Boolean(await ask("/readyz")), { withinMs: 120_000 })
  await Promise.race([isReady, ended.then(() => ask("/readyz"))]).catch(error => {
    child.kill("SIGKILL")
    throw error
  })
  return {
    ask,
    scrape: async () => read(await ask("/metrics")),
    memory() {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8")
      const bytes = (name: string) => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1])
      return { resident: bytes("VmRSS"), peak: bytes("VmHWM") }
    },
    cpuSeconds() {
      // The name stands in brackets and may contain spaces; user and system time are the 14th and 15th field.
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ")
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
    },
    async kill(signal) {
      child.kill(signal)
      await ended
      return performance.now()
    },
    async stop() {
      if (!isOver) child.kill("SIGTERM")
      await ended
    },
  }
}

/** Of Linux on every common machine. */
const ticksPerSecond = 100

function read(text: string): Scrape {
  const samples = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = "", value]) => ({
    name,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, word]) => [label!, word!])),
    value: Number(value),
  }))
  const matching = (name: string, wanted: Record<string, string> = {}) =>
    samples.filter(
      each => each.name === name && Object.entries(wanted).every(([label, word]) => each.labels[label] === word),
    )
  const sum: Scrape["sum"] = (name, wanted) => matching(name, wanted).reduce((total, { value }) => total + value, 0)
  const requests = (labels: Record<string, string>) => sum("rest_client_requests_total", labels)
  const writing = ["create", "update", "patch", "delete"]
  return {
    sum,
    count: (name, wanted) => matching(name, wanted).length,
    writes: writing.reduce(
      (total, verb) => total + requests({ verb }) - requests({ verb, resource: "leases.coordination.k8s.io" }),
      0,
    ),
    stamps: requests({ verb: "patch", resource: "dicoms.services.example.com", code: "200" }),
    lists: requests({ verb: "list" }),
    gets: requests({ verb: "get" }) - requests({ verb: "get", resource: "leases.coordination.k8s.io" }),
    cpuSeconds: sum("process_cpu_seconds_total"),
    eventLoopP99Ms: 1000 * sum("nodejs_eventloop_lag_p99_seconds"),
  }
}

/** For trying things out: `AIM_BENCH_NODE_FLAGS="--cpu-prof --cpu-prof-dir=/tmp/profile"`. */
const flagsFromEnvironment = () => (process.env.AIM_BENCH_NODE_FLAGS ?? "").split(" ").filter(Boolean)

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}
