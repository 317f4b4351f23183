import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { onTestFinished } from "vitest"
import { type AtEnd, floor, until } from "./floor.ts"

/** Clients in the network of a cluster: on its node, beside its pods. */

export type TrafficOptions = {
  /** `HOST:PORT`; they are asked in turn. */
  addresses: string[]
  path?: string
  headers?: Record<string, string>
  perSecond: number
  /** How many connections are kept and used in turn; 0 opens a fresh one for each request. */
  connections?: number
  /** It ends after so many requests, or so many seconds. */
  requestsMost?: number
  secondsMost?: number
  /** A request that is not answered within this time has failed. */
  answerSeconds?: number
}

export type Counted = { version: string; pod: string; status: number; count: number }
export type Cookie = { cookie: string; version: string; count: number }
/** Requests without an answer, or with an answer that no server of the test gave: how many, asked from when to when. */
export type Failure = { address: string; reason: string; count: number; first: string; last: string; logged?: string[] }
export type TrafficResult = { sent: number; answers: Counted[]; cookies: Cookie[]; failures: Failure[] }

export type ClientOptions = Required<TrafficOptions>
export type ClientLine = { answered: number } | { result: TrafficResult }

export type Traffic = {
  /** What became of all requests, when the client has ended by itself or by `stop`. */
  result: Promise<TrafficResult>
  /** From now on it asks these. */
  use(addresses: string[]): void
  /** Returns when so many more were answered. */
  more(count: number): Promise<void>
  stop(): Promise<TrafficResult>
}

/** Begins to send requests; killed when the test ends. */
export function startTraffic(options: TrafficOptions, atEnd: AtEnd = onTestFinished): Traffic {
  // It ends with the test, however long that takes on a busy machine. These are bounds of one that is left behind.
  const bounds = { requestsMost: 1_000_000, secondsMost: 3600, answerSeconds: 30 }
  const all: ClientOptions = { path: "/", headers: {}, connections: 0, ...bounds, ...options }
  const program = join(import.meta.dirname, "client-program.ts")
  const inside = [`--net=/proc/${floor().pid}/ns/net`, process.execPath, program, JSON.stringify(all)]
  const child = spawn("nsenter", inside, { stdio: ["pipe", "pipe", "inherit"] })
  atEnd(() => void child.kill("SIGKILL"))
  child.stdin.on("error", () => {}) // it has ended by itself
  const { promise, resolve, reject } = Promise.withResolvers<TrafficResult>()
  promise.catch(() => {}) // the test may be waiting for something else
  let answered = 0
  createInterface({ input: child.stdout }).on("line", line => {
    const said = JSON.parse(line) as ClientLine
    if ("result" in said) resolve(explained(said.result, all.headers.host))
    else answered = said.answered
  })
  child.once("error", reject)
  child.once("close", (code, signal) => reject(new Error(`the client ended with ${signal ?? code}`)))
  return {
    result: promise,
    use: addresses => void child.stdin.write(`${JSON.stringify(addresses)}\n`),
    async more(count) {
      const wanted = answered + count
      await until(`${count} more answers`, async () => answered >= wanted)
    },
    stop() {
      child.stdin.end()
      return promise
    },
  }
}

/**
 * A gateway answers for a pod that it lost, and only its log says which pod and why: response flags and the upstream's
 * address. Its lines are there a second later (see `envoy` in `tools/kube/gateway.ts`).
 */
async function explained(result: TrafficResult, host: string | undefined): Promise<TrafficResult> {
  const log = join(floor().folder, "logs", "envoy.log")
  if (result.failures.length === 0 || !host || !existsSync(log)) return result
  const lines = () =>
    readFileSync(log, "utf8")
      .split("\n")
      // Behind the request come status and flags: a status of 0, or a flag, is not an answer of the server behind it.
      .filter(line => line.includes(host) && /" (?:0 |\d+ [A-Z])/.test(line))
  const logged = await until("Envoy has logged it", async () => lines().length > 0 && lines().slice(-10), {
    withinMs: 5000,
  }).catch(() => [])
  return { ...result, failures: result.failures.map(failure => ({ ...failure, logged })) }
}

/** Sends so many requests and returns what became of them. */
export const sendTraffic = (options: TrafficOptions & { requestsMost: number }, atEnd?: AtEnd) =>
  startTraffic(options, atEnd).result

/** How many answers there were of each version. */
export function byVersion({ answers }: TrafficResult): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { version, count } of answers) counts[version] = (counts[version] ?? 0) + count
  return counts
}

/** Which percentage of the answers a version gave. */
export function shareOf(version: string, result: TrafficResult): number {
  const counts = byVersion(result)
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0)
  return (100 * (counts[version] ?? 0)) / all
}
