import { describe, expect, test } from "vitest"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { restarts } from "#test/support/restart-story.ts"
import { nodeFaults, nthCall } from "./call-faults.ts"
import { faults, keepAlive } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"

// Every fault at every write of a restart, in the manager and in the agent. S26: for one request and container only one
// container ID is ever stopped, the recorded one, and the beginning of its stop is written before.

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
          keepAlive(story.clock, options => story.manager(options), struck === "manager" ? fate : {})
          keepAlive(story.clock, options => story.agent(options), struck === "agent" ? fate : {})
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

describe("at each call to the runtime", () => {
  // In the long form each fault at each call; in the short form at some, and together at all of them.
  const every = process.env.AIM_RUNS === undefined ? 5 : 1
  for (const [index, [name, make]] of Object.entries(nodeFaults).entries())
    test(name, async () => {
      for (let n = 1 + (index % every); n <= 10; n += every) {
        const story = await restarts({ containers: { app: { isStubborn: true }, sidecar: {} }, graceSeconds: 20 })
        const fault = make(nthCall(n), story)
        story.manager()
        keepAlive(story.clock, options => story.agent({ ...options, fault }))
        await story.request("restart", { containers: spec.containers })
        const { status } = await story.completed("restart", "10m")
        expect([`fault at call ${n}`, status.conditions[0].reason]).toEqual([`fault at call ${n}`, "Succeeded"])
        expect(new Set(story.stopped())).toEqual(new Set(["app-0", "sidecar-0"]))
        judge(story.record)
      }
    })
})
