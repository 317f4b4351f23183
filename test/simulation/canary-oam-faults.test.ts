import { describe, expect, test } from "vitest"
import { isDecision, nth, stale } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { bad, image, type OamStory, oamStory } from "#test/support/oam-story.ts"
import { throughGateway } from "#test/support/traffic.ts"
import { faults, keepAlive, watches } from "./fates.ts"

// Every fault at every write of a run over an OAM component, beside a runtime that writes constantly. The run ends as
// without a fault: one revision has the pods and the requests, no request fails, and what always holds did at every moment.

const size = 2
const isLong = process.env.AIM_RUNS !== undefined
/** Of a run with two weights, from the first revision on. */
const writes = 36
/** In the long form each fault at each write, in the short form each at one. */
const every = isLong ? 1 : writes

async function faulty(make: (typeof faults)[string], at: number): Promise<OamStory> {
  const story = await oamStory({ isAlone: true })
  const { world } = story
  const strikes = (place: number) => nth(isDecision, place)
  keepAlive(world.clock, given => story.run(given), make(strikes(at), world.clock, strikes(at + 1)))
  await story.until("Succeeded", "1h")
  await story.resize(1, size)
  return story
}

async function expectEnd(story: OamStory, what: string, [result, sizes]: [string, number[]]): Promise<void> {
  await story.world.advance("2m")
  const { status } = await story.canary()
  expect([what, status.history.map(({ result }: Json) => result)]).toEqual([what, [result]])
  expect([what, await story.sizes()]).toEqual([what, sizes])
  expect([what, status.canaryWeight, status.run]).toEqual([what, 0, undefined])
}

describe("a fault at each write of a run of a component", () => {
  for (const [index, [name, make]] of Object.entries(faults).entries()) {
    test(`promoted: ${name}`, async () => {
      for (let at = 1 + ((index * 5) % every); at <= writes; at += every) {
        const story = await faulty(make, at)
        const clients = story.traffic.send({ perSecond: 5, through: throughGateway })
        await story.revise(image(2))
        await story.ended(1)
        await expectEnd(story, `${name}: ${at}`, ["Promoted", [0, size]])
        expect([at, clients.record().failures]).toEqual([at, []])
        expect([at, story.weights()]).toEqual([at, [0, 25, 50, 100, 0]])
      }
    })

    if (!isLong && index % 3 > 0) continue
    test(`rolled back: ${name}`, async () => {
      for (let at = 1 + ((index * 5 + 12) % every); at <= writes; at += every) {
        const story = await faulty(make, at)
        story.says.checks = bad
        await story.revise(image(2))
        await story.ended(1)
        await expectEnd(story, `${name}: ${at}`, ["RolledBack", [size, 0]])
        expect([at, story.weights()]).toEqual([at, [0, 25, 0]])
      }
    })
  }
})

for (const resource of ["deployments", "replicasets", "services"])
  test(`a view of ${resource} that is thirty seconds old`, async () => {
    const story = await oamStory({ isAlone: true })
    story.run({ faults: [stale(watches(resource), story.world.clock, 30_000)] })
    await story.until("Succeeded", "1h")
    await story.resize(1, size)
    await story.revise(image(2))
    await story.ended(1)
    await expectEnd(story, resource, ["Promoted", [0, size]])
  })
