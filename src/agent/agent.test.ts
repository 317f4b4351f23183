import { expect, test } from "vitest"
import type { Transport } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { RuntimeError } from "#runtime/cri/index.ts"
import { seededRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { fakeRuntime } from "#test/support/fake-runtime.ts"
import { runAgent } from "./agent.ts"

/** A server that answers nothing: the agent's watches wait for it. */
const silentServer: Transport = { send: () => new Promise(() => {}), close: () => {} }

function started() {
  const clock = virtualClock(0)
  const runtime = fakeRuntime(clock)
  const term = new AbortController()
  const state: { exitCode?: number } = {}
  const ended = runAgent({
    node: { name: "node-a", runtime },
    transport: silentServer,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    signal: term.signal,
    graceMs: 1000,
  }).then(exitCode => {
    state.exitCode = exitCode
  })
  return { clock, runtime, term, state, ended }
}

const trouble = (kind: "SocketDead" | "Unavailable") => new RuntimeError(kind, "asking for the version", { said: kind })

test("without work there is at most one call a minute", async () => {
  const { clock, runtime, term, ended } = started()
  await clock.advance(10 * 60_000)
  expect(runtime.calls.length).toBeLessThanOrEqual(11)
  expect(new Set(runtime.calls)).toEqual(new Set(["version"]))
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
  runtime.trouble = trouble("SocketDead")
  await clock.advance(65_000)
  await ended
  expect(state.exitCode).toBe(1)
})

test("a runtime that does not answer is tried again", async () => {
  const { clock, runtime, term, state, ended } = started()
  runtime.trouble = trouble("Unavailable")
  await clock.advance(10 * 60_000)
  expect(state.exitCode).toBeUndefined()
  term.abort()
  await clock.advance(5000)
  await ended
  expect(state.exitCode).toBe(0)
})
