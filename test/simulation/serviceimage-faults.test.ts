import { describe, expect, test } from "vitest"
import { breakWatch, cut, type Fault, isDecision, isWatch, nth, silence, stale } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import type { Clock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import type { Sent } from "#test/support/record.ts"
import type { ProcessOptions, World } from "#test/support/scenario.ts"
import { type Fate, faults, from, keepRunning, type Make, watches } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"
import { fenceAnnotation, isStatusOf } from "./invariants/reading.ts"
import { playSeeds } from "./runs.ts"
import { outcome, play, type Story, stories } from "./stories.ts"

/** Only where a standby exists: a process that is cut off for good and has no rival does nothing more. */
const leaderFaults: Record<string, Make> = {
  ...faults,
  "nothing gets through from it on": at => ({ faults: [cut(from(at))] }),
}
const isLong = process.env.AIM_RUNS !== undefined
const isFew = (name: string) => /^the process is killed (before|after) it$|^its answer is lost$/.test(name)
const faultsOf = ({ leaderElect, isBrief }: Story) =>
  Object.entries(leaderElect ? leaderFaults : faults).filter(([name]) => isLong || !isBrief || isFew(name))

/** A view of the world that is wrong for a while. A silence is noticed after two and a half minutes. */
const views: Record<string, (clock: Clock) => ProcessOptions> = {
  "the first watch of Dicoms says nothing": () => ({
    faults: [silence(nth(watches("dicoms"), 1))],
    seesLateByMs: 180_000,
  }),
  "the first watch of ServiceImages says nothing": () => ({
    faults: [silence(nth(watches("serviceimages"), 1))],
    seesLateByMs: 180_000,
  }),
  "every watch of Dicoms breaks after a few events": () => ({
    faults: [breakWatch(watches("dicoms"), 3)],
    seesLateByMs: 60_000,
  }),
  "what watches say comes a minute late": clock => ({
    faults: [stale(isWatch, clock, 60_000)],
    seesLateByMs: 60_000,
  }),
}

function start(world: World, { leaderElect = false, judges }: Story, fate: Fate): void {
  if (leaderElect) world.run([createServiceImageController({}, judges)], { leaderElect })
  keepRunning(world, () => createServiceImageController({}, judges), fate, { leaderElect })
}

type Calm = { story: Story; writes: number; statuses: number; outcome: Json }

const isStatus = ({ path, revision }: Sent) => isStatusOf(path) && revision !== undefined

const calm = new Map<string, Calm>()
for (const [name, story] of Object.entries(stories)) {
  const world = await play(story, 1, world => start(world, story, {}))
  const { sent } = world.record
  calm.set(name, { story, writes: sent.length, statuses: sent.filter(isStatus).length, outcome: await outcome(world) })
}

/** Plays a story with misfortunes: it ends as it did without, what always holds did, and nothing was written in vain. */
async function endure({ story, ...calm }: Calm, where: string, seed: number, make: (clock: Clock) => Fate) {
  try {
    const world = await play(story, seed, world => start(world, story, make(world.clock)))
    judge(world.record)
    expect(await outcome(world)).toEqual(calm.outcome)
    // A takeover touches what was declared, a lost answer one object; and each costs a few words.
    const touches = world.history.filter(({ object, before }) => before && markOf(object) !== markOf(before))
    const tenants = calm.outcome.images.length
    expect(touches.length).toBeLessThanOrEqual(3 * tenants)
    expect(world.record.sent.filter(isStatus).length).toBeLessThanOrEqual(calm.statuses * 2 + 10)
  } catch (error) {
    throw new Error(`${where}: ${(error as Error).message}`, { cause: error })
  }
}

const markOf = ({ metadata }: Json) => metadata.annotations?.[fenceAnnotation]

// In the long form every fault strikes at every write; in the short form each at some, and together at all of them.
const every = isLong ? 1 : 7

for (const [title, story] of calm)
  describe(title, () => {
    test("the trace is long enough to mean something", () => expect(story.writes).toBeGreaterThan(10))

    for (const [index, [name, make]] of faultsOf(story.story).entries())
      test(`ends as it would have: ${name}, at each of ${story.writes} writes`, async () => {
        for (let n = 1 + (index % every); n <= story.writes; n += every)
          await endure(story, `${name}, at write ${n}`, 1, clock =>
            make(nth(isDecision, n), clock, nth(isDecision, n + 1)),
          )
      })

    for (const [name, make] of Object.entries(views))
      test(`ends as it would have: ${name}`, () => endure(story, name, 1, make))
  })

/** Up to three faults at random writes of a random story; the seed is all there is to it. */
async function misfortunes(seed: number) {
  const random = seededRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!
  const [title, story] = pick([...calm])
  const chosen = Array.from({ length: 1 + Math.floor(random.next() * 3) }, () => ({
    fault: pick(faultsOf(story.story)),
    n: 1 + Math.floor(random.next() * story.writes),
  }))
  const where = `seed ${seed}, ${title}: ${chosen.map(({ fault: [name], n }) => `${name} at ${n}`).join("; ")}`
  await endure(story, where, seed, clock => {
    const all = chosen.map(({ fault: [, make], n }) => make(nth(isDecision, n), clock, nth(isDecision, n + 1)))
    const [successor = {}] = all.flatMap(({ successor = [] }) => successor)
    const dies = Object.assign({}, ...all.map(({ dies }) => dies))
    return { faults: all.flatMap(({ faults = [] }) => faults), dies, successor }
  })
  return { wrongs: [], told: [where] }
}

playSeeds("several misfortunes in one story", { short: 30, share: 0.25 }, misfortunes)

test("where nothing goes wrong, no write is refused: nothing is decided from a copy that our own write has overtaken", async () => {
  const refused: string[] = []
  const listen: Fault = next => ({
    ...next,
    async send(request) {
      const response = await next.send(request)
      if (isDecision(request) && response.status >= 400)
        refused.push(`${response.status} ${request.method} ${request.path}`)
      return response
    },
  })
  const [story] = Object.values(stories)
  await play(story!, 1, world => start(world, story!, { faults: [listen] }))
  expect(refused).toEqual([])
})

test("the same seed gives the same history", async () => {
  const [story] = Object.values(stories)
  const one = await play(story!, 7, world => start(world, story!, {}))
  const two = await play(story!, 7, world => start(world, story!, {}))
  const trace = (world: World) =>
    world.history.map(({ place, object, revision }) => `${revision} ${place} ${object.metadata.name}`)
  expect(trace(one)).toEqual(trace(two))
})
