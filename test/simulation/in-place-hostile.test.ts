import { describe, expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { arriveLate, type Fault, isDecision, nth, slow, stale } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { deployments, pods, replicaSets } from "#controllers/in-place/resources.ts"
import { inPlaceAnnotation } from "#core/in-place/names.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { type InPlaceStory, imageOf, inPlaceStory, isRolledOut, v1, v2 } from "#test/support/in-place-story.ts"
import type { ProcessOptions, World } from "#test/support/scenario.ts"
import { keepAlive, watches } from "./fates.ts"
import { expectDone, isActive, withGate } from "./in-place-runs.ts"
import { judge } from "./invariants/invariants.ts"

// Other writers of the same objects, two processes at the same time, and views that are behind: S21 to S24 hold in each
// run, and the update ends once it is let.

/** Writes to objects that the update works on. `turn` counts the writes of this writer. */
type CoWriter = (of: { world: World; pods: readonly Json[]; sets: readonly Json[] }, turn: number) => Promise<unknown>[]

const name = { name: "web", namespace: "default" }
const nameOf = ({ metadata }: Json) => ({ name: metadata.name, namespace: metadata.namespace })

const annotated = (value: string | null, key = "example.com/other") => ({
  type: "merge" as const,
  body: { metadata: { annotations: { [key]: value } } },
})

const opened = (now: Instant) => ({
  type: readinessGate,
  status: "True",
  reason: "Other",
  message: "",
  lastTransitionTime: formatInstant(now),
})

const writers: Record<string, CoWriter> = {
  "writes annotations of all objects": ({ world: { client }, pods: all, sets }, turn) => [
    client.patch(deployments, name, annotated(`${turn}`)),
    ...sets.map(set => client.patch(replicaSets, nameOf(set), annotated(`${turn}`))),
    ...all.map(pod => client.patch(pods, nameOf(pod), annotated(`${turn}`))),
  ],
  "removes the record of the update": ({ world }) => [
    world.client.patch(deployments, name, annotated(null, inPlaceAnnotation)),
  ],
  "opens the readiness gates": ({ world: { client, clock }, pods: all }) => {
    const body = { status: { conditions: [opened(clock.now())] } }
    return all.map(pod => client.patch(pods, nameOf(pod), { type: "strategic", body }, { subresource: "status" }))
  },
}

/** Writes so often until it is told to end. What is refused, and what is gone, does not stop it. */
async function writeOften(story: InPlaceStory, hertz: number, write: CoWriter): Promise<() => void> {
  const { world } = story
  const { clock } = world
  const of = { world, pods: await story.pods(), sets: await story.sets() }
  let isOver = false
  let turn = 0
  const again = () => {
    if (isOver) return
    for (const each of write(of, ++turn)) each.catch(() => {})
    clock.after(1000 / hertz, again)
  }
  again()
  return () => {
    isOver = true
  }
}

const isLong = process.env.AIM_RUNS !== undefined

/** A request takes some milliseconds, and so does an event: another write comes in between. */
const distance = (world: World): Fault[] => [slow(isDecision, world.clock, 4), stale(watches(""), world.clock, 6)]

describe("another writer", () => {
  for (const hertz of [1, 50])
    for (const [what, write] of Object.entries(writers))
      test(`${what}, ${hertz} times a second`, async () => {
        const story = await inPlaceStory(withGate)
        const { world } = story
        story.update({ faults: distance(world) })
        const before = await story.pods()
        const end = await writeOften(story, hertz, write)
        await story.setImage({ web: v2 })
        await world.advance(isLong ? "2m" : hertz > 1 ? "5s" : "12s")
        end()
        await expectDone(story, before, what)
      })

  test("scales up and down, once a second: what is there at the end is complete", async () => {
    const story = await inPlaceStory(withGate)
    const { world } = story
    story.update({ faults: distance(world) })
    const scale: CoWriter = (_, turn) => [
      world.client.patch(deployments, name, { type: "merge", body: { spec: { replicas: [5, 2, 0, 3][turn % 4] } } }),
    ]
    const end = await writeOften(story, 1, scale)
    await story.setImage({ web: v2 })
    await world.advance("31s")
    end()
    await story.patch({ spec: { replicas: 3 } })
    await story.free("1h")
    await world.settle("2m")
    judge(world.record)
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v2, v2, v2])
    expect((await story.sets()).filter(isActive)).toHaveLength(1)
    expect(isRolledOut(await story.deployment())).toBe(true)
  })

  test("puts the old image back, once a second, against another that sets the new one: the last one decides", async () => {
    const story = await inPlaceStory(withGate)
    const { world } = story
    story.update({ faults: distance(world) })
    const before = await story.pods()
    const set: CoWriter = (_, turn) => {
      const containers = [{ name: "web", image: turn % 2 ? v2 : v1 }]
      const body = { spec: { template: { spec: { containers } } } }
      return [world.client.patch(deployments, name, { type: "strategic", body })]
    }
    const end = await writeOften(story, 1, set)
    await world.advance("40s")
    end()
    await story.setImage({ web: v1 })
    await story.free("1h")
    await story.setImage({ web: v2 })
    await expectDone(story, before, "puts the old image back")
  })
})

describe("two processes", () => {
  const views: Record<string, (world: World) => ProcessOptions> = {
    "of which one sees everything five seconds late": ({ clock }) => ({
      faults: [stale(watches(""), clock, 5000)],
      seesLateByMs: 5000,
    }),
    "of which one sees pods five seconds late": ({ clock }) => ({
      faults: [stale(watches("pods"), clock, 5000)],
      seesLateByMs: 5000,
    }),
  }
  for (const [what, view] of Object.entries(views))
    test(`that both work at the same time, ${what}`, async () => {
      const story = await inPlaceStory(withGate)
      const { world } = story
      story.update({ faults: distance(world) })
      story.update(view(world))
      const before = await story.pods()
      await story.setImage({ web: v2 })
      await expectDone(story, before, what)
    })

  /** Of an update of three pods with a gate. */
  const writes = 22
  const every = isLong ? 1 : 5
  for (const [what, late] of [
    ["is killed at it", false],
    ["is killed, and it arrives half a minute later", true],
  ] as const)
    test(`a leader ${what}, and the other one goes on with what it sees five seconds late`, async () => {
      for (let at = late ? 2 : 1; at <= writes; at += every) {
        const story = await inPlaceStory(withGate)
        const { world } = story
        const { clock } = world
        const dies = { before: nth(isDecision, late ? at + 1 : at) }
        const faults = late ? [arriveLate(nth(isDecision, at), clock, 30_000)] : []
        keepAlive(clock, given => story.update({ ...given, leaderElect: true }), { faults, dies })
        await world.settle("10s")
        story.update({ leaderElect: true, faults: [stale(watches(""), clock, 5000)], seesLateByMs: 5000 })
        const before = await story.pods()
        await story.setImage({ web: v2 })
        await expectDone(story, before, `${what} (late: ${late}): ${at}`)
      }
    })
})
