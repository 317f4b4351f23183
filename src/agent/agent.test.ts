import { expect, test } from "vitest"
import { createCluster, everyPart } from "#cluster-sim/index.ts"
import type { Transport } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { type AgentOptions, runAgent } from "./agent.ts"

/** A server that answers nothing: the agent's watches wait for it. */
const silentServer: Transport = { send: () => new Promise(() => {}), close: () => {} }

function started(options: Partial<AgentOptions> = {}) {
  const clock = virtualClock(0)
  const cluster = createCluster({ clock, parts: everyPart({ nodes: 1 }) })
  cluster.start()
  const { runtime } = cluster.node("node-0")!
  const calls: string[] = []
  runtime.onCall(({ method }) => calls.push(method))
  const term = new AbortController()
  const state: { exitCode?: number } = {}
  const ended = runAgent({
    node: { name: "node-0", runtime: runtime.connectMounted() },
    transport: silentServer,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    signal: term.signal,
    graceMs: 1000,
    ...options,
  }).then(exitCode => {
    state.exitCode = exitCode
  })
  return { clock, runtime, calls, term, state, ended }
}

test("without work there is at most one call a minute", async () => {
  const { clock, calls, term, ended } = started()
  await clock.advance(10 * 60_000)
  expect(calls.length).toBeLessThanOrEqual(11)
  expect(new Set(calls)).toEqual(new Set(["version"]))
  term.abort()
  await clock.advance(5000)
  await ended
})

test("every metric names the node, however the agents are scraped", async () => {
  const serving = Promise.withResolvers<number>()
  const log = {
    ...silentLogger,
    debug: (_: string, { port }: { port?: unknown } = {}) => void (port && serving.resolve(port as number)),
  }
  const { clock, term, ended } = started({ log, metrics: { host: "127.0.0.1", port: 0 } })
  const text = await (await fetch(`http://127.0.0.1:${await serving.promise}/metrics`)).text()
  const series = text.split("\n").filter(line => line !== "" && !line.startsWith("#"))
  expect(series).toContainEqual(
    expect.stringMatching(/^controller_runtime_reconcile_errors_total\{.*controller="pull"/),
  )
  expect(series.filter(line => !line.includes('node="node-0"'))).toEqual([])
  term.abort()
  await clock.advance(5000)
  await ended
})

test("SIGTERM ends it with exit code 0", async () => {
  const { clock, term, state, ended } = started()
  await clock.advance(1000)
  term.abort()
  await clock.advance(5000)
  await ended
  expect(state.exitCode).toBe(0)
})

test("a dead socket ends it with exit code 1 within a minute, so that it is started with a new mount", async () => {
  const { clock, runtime, state, ended } = started()
  await clock.advance(1000)
  runtime.die()
  runtime.revive() // at another socket than the one that is mounted
  await clock.advance(65_000)
  await ended
  expect(state.exitCode).toBe(1)
})

test("a runtime that does not answer is tried again", async () => {
  const { clock, runtime, term, state, ended } = started()
  runtime.hang()
  await clock.advance(10 * 60_000)
  expect(state.exitCode).toBeUndefined()
  term.abort()
  await clock.advance(5000)
  await ended
  expect(state.exitCode).toBe(0)
})
