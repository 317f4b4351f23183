import { describe, expect, test } from "vitest"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import { type FleetStory, fleetStory, serviceImage } from "#test/support/cluster-fleet-story.ts"
import { faults, keepAlive } from "./fates.ts"

// Every fault at every write to the hub of a run: it ends as without a fault, no cluster is begun before its batch, and
// each cluster gets its object once.

/** Of a run with a canary and a batch of two. */
const writes = 24

async function expectComplete(story: FleetStory, what: string): Promise<void> {
  const { world } = story
  await world.settle("2m")
  expect([what, await story.states()]).toEqual([what, { a: "Completed", b: "Completed", c: "Completed" }])
  expect([what, story.order[0], story.order.length]).toEqual([what, "a", 3])
  expect([what, story.most()]).toEqual([what, 2])
  for (const name of ["a", "b", "c"]) {
    // A successor may send again with a fence of its own, which changes no spec.
    expect([what, story.spoke(name).read(serviceImage())?.metadata.generation]).toEqual([what, 1])
  }
  const status = await story.status()
  expect([what, status.operation.id, status.operation.phase, status.inflight]).toEqual([what, "g1", "Complete", []])
  expect([what, status.history]).toEqual([what, []])
  // The canary was complete before another cluster was begun.
  const states = new Map<string, string>()
  for (const { object } of world.history) {
    if (object.kind !== "ClusterUpgrade") continue
    const { spec, status: seen } = object as unknown as { spec: { cluster: string }; status?: { state: string } }
    states.set(spec.cluster, seen?.state ?? "NotStarted")
    const isBegun = states.get("b") === "InProgress" || states.get("c") === "InProgress"
    if (isBegun) expect([what, states.get("a")]).toEqual([what, "Completed"])
  }
}

describe("a fault at each write of a run", () => {
  const every = process.env.AIM_RUNS === undefined ? 4 : 1
  for (const [index, [name, make]] of Object.entries(faults).entries())
    test(name, async () => {
      for (let at = 1 + (index % every); at <= writes; at += every) {
        const quick = { readyAfterMs: 20_000 }
        const story = await fleetStory({ a: { ...quick }, b: { ...quick }, c: { ...quick } })
        const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
        keepAlive(story.world.clock, given => story.start(given), fate)
        await story.run({ remediationStrategy: { canaries: ["a"], maxConcurrency: 2 } })
        await story.until("Completed", "2h")
        await expectComplete(story, `${name}: ${at}`)
      }
    })
})
