import { describe, expect, test } from "vitest"
import { arriveLate, type Fault, isDecision, type Matcher, nth, stale } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { Clock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import type { Process, ProcessOptions, World } from "#test/support/scenario.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import { watches } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"
import { outcome, play, type Story, stories } from "./stories.ts"

// A warm candidate takes over from a leader that ends at any of its writes: nothing is written before the Lease is held,
// and nothing is concluded from a cache that does not show yet what the old leader did last.

/** Those in which an object has an image, gets another and gets the first one back: an old view of it looks right. */
const chosen = [
  "an image that is withdrawn as soon as it is announced",
  "a pause, a change of mind in the middle, and back again",
  "two processes, and intents that are used up slowly",
] as const

/** How the leader ends: what happens to it at a write, and what is done to the process then. */
type End = (strikes: Matcher, clock: Clock, next: Matcher, terminate: () => void) => ProcessOptions
const ends: Record<string, End> = {
  "is told to end": (at, _clock, _next, terminate) => ({ faults: [calls(at, terminate)] }),
  "is killed before it": before => ({ dies: { before } }),
  "is killed after it": after => ({ dies: { after } }),
  "is killed, and the write arrives a minute late": (at, clock, before) => ({
    faults: [arriveLate(at, clock, 60_000)],
    dies: { before },
  }),
}

/** What the candidate sees while it stands by. */
const views: Record<string, (world: World) => ProcessOptions> = {
  "everything at once": () => ({}),
  "no Dicom since the first rollout was complete": world => ({
    faults: [freezes(watches("dicoms"), firstIsOver(world))],
  }),
  "no ServiceImage since then": world => ({ faults: [freezes(watches("serviceimages"), firstIsOver(world))] }),
  "everything a minute late": ({ clock }) => ({
    faults: [stale(watches(""), clock, 60_000)],
    seesLateByMs: 60_000,
  }),
}

/** Every image was v1 by then, for at least a moment. */
const firstIsOver = (world: World) => () =>
  world.history.some(({ object }) =>
    object.status?.conditions?.some((each: Json) => each.type === "Complete" && each.status === "True"),
  )

const calls =
  (strikes: Matcher, what: () => void): Fault =>
  next => ({
    ...next,
    send(request) {
      if (strikes(request)) what()
      return next.send(request)
    },
  })

/** Watches that are open at that moment stay open and show nothing more; those opened later work. */
const freezes =
  (strikes: Matcher, when: () => boolean): Fault =>
  next => ({
    ...next,
    async send(request) {
      const response = await next.send(request)
      return strikes(request) && !when()
        ? { ...response, body: untilFrozen(response.body, when, request.signal) }
        : response
    },
  })

async function* untilFrozen(body: AsyncIterable<Uint8Array>, isFrozen: () => boolean, signal: AbortSignal) {
  for await (const chunk of body) {
    if (isFrozen())
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
    yield chunk
  }
}

type Pair = {
  end?: (clock: Clock, terminate: () => void) => ProcessOptions
  view?: (world: World) => ProcessOptions
  /** No other process follows the leader. */
  isAlone?: boolean
}

/** A leader, a candidate once the leader leads, and another process for each that has ended, as a Deployment does. */
function startPair(world: World, { end, view, isAlone = false }: Pair): Process {
  const run = (options: ProcessOptions = {}) =>
    world.run([createServiceImageController()], { ...options, leaderElect: true })
  const watchOver = (process: Process): unknown =>
    process.isDead || process.exitCode !== undefined
      ? watchOver(run())
      : world.clock.after(1000, () => watchOver(process))
  let leader: Process | undefined
  leader = run(end?.(world.clock, () => leader?.terminate()))
  if (!isAlone) watchOver(leader)
  world.clock.after(100, () => watchOver(run(view?.(world))))
  return leader
}

const isLease = ({ place }: { place: string }) => place.includes("leases")

/** Every write, by the process that held the Lease when it was sent. */
function expectHolders({ seed, history, record }: World): void {
  const leases = history.filter(isLease)
  for (const { process, at, after, method, path } of record.sent) {
    const lease = leases.findLast(({ revision }) => revision <= after)
    const identity = seededRandom(seed + 100 + process).uuid()
    expect(lease?.object.spec.holderIdentity, `${method} ${path} of process ${process} at ${at}`).toBe(identity)
  }
}

const transitions = ({ history }: World): number => history.findLast(isLease)!.object.spec.leaseTransitions

test("a rollout that looks complete to a candidate with an old view is not called complete before it is", async () => {
  let leader: Process | undefined
  const order = (world: World, tag: string, paused: boolean) =>
    world.patch(serviceImages, "dicom", { spec: { defaultImage: `registry.example.com/dicom:${tag}`, paused } })
  const imageOf = async (world: World) => (await world.get(Dicoms, "early-1", "default")).spec.image
  const isComplete = async (world: World) => {
    const { metadata, status } = await world.get(serviceImages, "dicom")
    const said = status.conditions.find((each: Json) => each.type === "Complete")
    return said.status === "True" && said.observedGeneration === metadata.generation
  }
  const story: Story = {
    async tell(world) {
      await order(world, "v2", false)
      await world.until("a stamp", async () => (await imageOf(world)).endsWith("v2"))
      await order(world, "v2", true)
      // What is declared would be touched, and seen by that.
      const declared = async () => (await world.get(serviceImages, "dicom")).status.inflight ?? []
      await world.until("nothing to be declared", async () => (await declared()).length === 0)
      leader!.die()
      await order(world, "v1", false)
      await world.until("Complete", () => isComplete(world))
      expect(await imageOf(world)).toBe("registry.example.com/dicom:v1")
    },
  }
  const view = views["no Dicom since the first rollout was complete"]!
  const world = await play(story, 1, world => {
    leader = startPair(world, { view })
  })
  judge(world.record)
  expectHolders(world)
})

type Calm = { story: Story; writes: number; outcome: Json }

const calm = new Map<string, Promise<Calm>>()

/** The same story where nothing ends. */
function calmOf(name: string): Promise<Calm> {
  const tell = async () => {
    const story = stories[name]!
    const world = await play(story, 1, world => void startPair(world, {}))
    expectHolders(world)
    return { story, writes: world.record.sent.length, outcome: await outcome(world) }
  }
  const known = calm.get(name) ?? tell()
  calm.set(name, known)
  return known
}

// In the long form the leader ends at every write; in the short form at two, which are others for each view.
const everyOf = (writes: number) => (process.env.AIM_RUNS === undefined ? Math.ceil(writes / 2) : 1)

for (const title of chosen)
  describe(title, () => {
    for (const [index, [view, see]] of Object.entries(views).entries())
      for (const [end, make] of Object.entries(ends))
        test(`the leader ${end}, and the candidate saw ${view}`, async () => {
          const { story, writes, outcome: expected } = await calmOf(title)
          for (let n = 1 + (index % everyOf(writes)); n <= writes; n += everyOf(writes)) {
            const strikes = nth(isDecision, n)
            const end = (clock: Clock, terminate: () => void) => make(strikes, clock, nth(isDecision, n + 1), terminate)
            const world = await play(story, 1, world => void startPair(world, { end, view: see }))
            try {
              judge(world.record)
              expectHolders(world)
              expect(transitions(world)).toBeGreaterThan(0)
              expect(await outcome(world)).toEqual(expected)
            } catch (error) {
              throw new Error(`at write ${n}: ${(error as Error).message}`, { cause: error })
            }
          }
        })
  })

test("told to end in the middle of a rollout, the leader is followed within a second", async () => {
  const story = stories["two processes, and intents that are used up slowly"]!
  for (const n of [12, 15, 18]) {
    const end = (_clock: Clock, terminate: () => void) => ({ faults: [calls(nth(isDecision, n), terminate)] })
    const world = await play(story, 1, world => void startPair(world, { end, isAlone: true }))
    const { sent } = world.record
    const last = sent.findLast(({ process }) => process === 1)!
    const next = sent.find(({ process }) => process === 2)!
    expect(next.at - last.at).toBeLessThanOrEqual(1000)
    judge(world.record)
  }
})
