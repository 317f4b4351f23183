import { describe, expect, test } from "vitest"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { type Restarts, restarts } from "#test/support/restart-story.ts"
import type { Process, ProcessOptions } from "#test/support/scenario.ts"
import { type Fate, faults } from "./fates.ts"

// Every fault at every write of a restart, in the manager and in the agent. S26: for one request and container only one
// container ID is ever stopped, the recorded one, and the beginning of its stop is written before.

/** Runs a process and, whenever it is found dead, another. */
function keep(story: Restarts, run: (options: ProcessOptions) => Process, { successor, ...options }: Fate): void {
  const watchOver = (process: Process, next: ProcessOptions) => {
    if (!process.isDead && process.exitCode === undefined)
      return story.clock.after(1000, () => watchOver(process, next))
    return watchOver(run(next), {})
  }
  watchOver(run(options), successor ?? {})
}

const spec = {
  containers: [{ name: "app" }, { name: "sidecar" }],
  strategy: { orderedRecreate: true, unreadyGracePeriodSeconds: 2 },
}

for (const struck of ["manager", "agent"] as const)
  describe(`a fault in the ${struck}`, () => {
    for (const [name, make] of Object.entries(faults))
      test(name, async () => {
        for (const at of [1, 2, 3, 4]) {
          const story = await restarts({
            containers: { app: { isStubborn: true }, sidecar: {} },
            graceSeconds: 20,
            hasGate: true,
          })
          const fate = make(nth(isDecision, at), story.clock, nth(isDecision, at + 1))
          keep(story, options => story.manager(options), struck === "manager" ? fate : {})
          keep(story, options => story.agent(options), struck === "agent" ? fate : {})
          await story.request("restart", spec)
          const { status } = await story.completed("restart", "1h")
          const words = status.containerRecreateStates.map(({ name, phase }: Json) => `${name} ${phase}`)
          expect([`fault at ${at}`, ...words]).toEqual([`fault at ${at}`, "app Succeeded", "sidecar Succeeded"])
          expect(new Set(story.stopped())).toEqual(new Set(["app-0", "sidecar-0"]))
          expect(story.unannounced).toEqual([])
        }
      })
  })

describe("the agent is killed at each moment of a stop", () => {
  for (const ms of [0, 100, 1000, 5000, 19_000, 20_500, 21_000])
    test(`${ms} ms after the request`, async () => {
      const story = await restarts({ containers: { app: { isStubborn: true }, sidecar: {} }, graceSeconds: 20 })
      story.manager()
      const agent = story.agent()
      await story.request("restart", { containers: spec.containers })
      await story.advance(`${ms}ms`)
      agent.die()
      await story.advance("3s")
      story.agent()
      const { status } = await story.completed("restart", "5m")
      expect(status.conditions[0]).toMatchObject({ type: "Ready", status: "True" })
      expect(new Set(story.stopped())).toEqual(new Set(["app-0", "sidecar-0"]))
    })
})
