import { describe, expect, test } from "vitest"
import { answer, type Fault, isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import type { Clock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import type { RuntimeCall } from "#test/support/runtime-log.ts"
import { diskFaults, type MakeCallFault, nodeFaults, nthCall, registryFaults } from "./call-faults.ts"
import { type Fate, faults, type Make } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"
import { type PullFate, struckNode } from "./pull-floor.ts"
import { outcome, type PullStory, play, pullStories } from "./pull-stories.ts"
import { playSeeds } from "./runs.ts"

// Every fault at every write of the manager and of one node's agent, and at every call to that node's runtime. Each run
// ends as it would have, and what always holds does: S16 to S18 and S25, over the history and the log of calls.

type Calm = {
  story: PullStory
  /** Writes of the manager, and of the agent that is struck. */
  manager: number
  agent: number
  calls: number
  pulls: number
  outcome: Json
}

const isPull = ({ method }: RuntimeCall) => method === "pullImage"
const isAny = () => true

/** Counts the writes that a process sends. */
function counter(): { fate: () => Fate; count(): number } {
  let count = 0
  const fault: Fault = next => ({
    ...next,
    send(request) {
      if (isDecision(request)) count++
      return next.send(request)
    },
  })
  return { fate: () => ({ faults: [fault] }), count: () => count }
}

const calm = new Map<string, Calm>()
for (const [name, story] of Object.entries(pullStories)) {
  const [manager, agent] = [counter(), counter()]
  const run = await play(story, 1, { manager: manager.fate, agent: agent.fate })
  const calls = run.world.record.calls!.filter(({ node }) => node === struckNode)
  calm.set(name, {
    story,
    manager: manager.count(),
    agent: agent.count(),
    calls: calls.length,
    pulls: calls.filter(isPull).length,
    outcome: await outcome(run, story),
  })
}

async function endure({ story, ...calm }: Calm, where: string, seed: number, fate: PullFate, mayMiss = false) {
  try {
    const run = await play(story, seed, fate)
    judge(run.world.record)
    const { missing, ...rest } = await outcome(run, story)
    const { missing: none, ...expected } = calm.outcome
    expect(rest).toEqual(expected)
    if (!mayMiss) expect(missing).toEqual(none)
  } catch (error) {
    throw new Error(`${where}: ${(error as Error).message}`, { cause: error })
  }
}

const atCall = (make: MakeCallFault, matches: (call: RuntimeCall) => boolean, n: number): PullFate => ({
  calls: world => make(nthCall(n, matches), world),
})
const atWrite = (struck: "manager" | "agent", make: Make, n: number): PullFate => ({
  [struck]: (clock: Clock) => make(nth(isDecision, n), clock, nth(isDecision, n + 1)),
})

// In the long form every fault strikes everywhere. In the short form each strikes once in one of the stories, and the
// place moves on from fault to fault.
const isLong = process.env.AIM_RUNS !== undefined
const titles = [...calm.keys()]

/** One test for each story and fault: plays the story once for each place that the fault can strike. */
function strikeAt(
  all: Record<string, unknown>,
  at: string,
  places: (calm: Calm) => number,
  fate: (name: string, n: number) => PullFate,
  mayMiss = false,
) {
  for (const [index, name] of Object.keys(all).entries())
    for (const [turn, title] of titles.entries()) {
      if (!isLong && (index + turn) % titles.length !== 0) continue
      const story = calm.get(title)!
      const last = places(story)
      const first = isLong ? 1 : 1 + (index % last)
      test(`${title}: ${name}, at each ${at}`, async () => {
        for (let n = first; n <= (isLong ? last : first); n++)
          await endure(story, `${name}, at ${at} ${n}`, 1, fate(name, n), mayMiss)
      })
    }
}

for (const title of titles)
  test(`${title}: the trace is long enough to mean something, and everything is there at its end`, () => {
    const story = calm.get(title)!
    expect(story).toMatchObject({ outcome: { missing: [], sealed: false, underWay: 0 } })
    expect(story.manager).toBeGreaterThan(8)
    expect(story.agent).toBeGreaterThan(1)
    expect(story.calls).toBeGreaterThan(3)
  })

describe("ends as it would have", () => {
  for (const struck of ["manager", "agent"] as const)
    strikeAt(
      faults,
      `write of the ${struck}`,
      story => story[struck],
      (name, n) => atWrite(struck, faults[name]!, n),
    )
  strikeAt(
    nodeFaults,
    "call",
    story => story.calls,
    (name, n) => atCall(nodeFaults[name]!, isAny, n),
  )
  strikeAt(
    registryFaults,
    "pull",
    story => story.pulls,
    (name, n) => atCall(registryFaults[name]!, isPull, n),
  )
  strikeAt(
    diskFaults,
    "call",
    story => story.calls,
    (name, n) => atCall(diskFaults[name]!, isAny, n),
    true,
  )
})

/** A fault of each place, at random; the seed is all there is to it. */
async function misfortunes(seed: number) {
  const random = seededRandom(seed)
  const below = (n: number) => Math.floor(random.next() * n)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
  const [title, story] = pick([...calm])
  const chosen = (["manager", "agent"] as const).map(struck => {
    const [name, make] = pick(Object.entries(faults))
    const n = 1 + below(story[struck])
    return { where: `${name}, at write ${n} of the ${struck}`, fate: atWrite(struck, make, n) }
  })
  const [name, make] = pick(Object.entries({ ...nodeFaults, ...diskFaults, ...registryFaults }))
  const n = 1 + below(story.pulls)
  const where = [`seed ${seed}, ${title}`, ...chosen.map(({ where }) => where), `${name}, at pull ${n}`].join("; ")
  const fate = Object.assign({}, ...chosen.map(({ fate }) => fate), atCall(make, isPull, n))
  await endure(story, where, seed, fate, name in diskFaults)
  return { wrongs: [], told: [where] }
}

playSeeds("several misfortunes of pulls", { short: 10, share: 0.1 }, misfortunes)

test("a NodeImage that may not be written for a while ends no job, and the job says so meanwhile", async () => {
  const [story] = Object.values(pullStories)
  const refuses: Fault = next => {
    let isOver = false
    const refused = answer(({ method, path }) => method === "PUT" && /nodeimages/.test(path) && !isOver, 403, {
      reason: "Forbidden",
      message: "the role is being changed",
    })
    let count = 0
    return {
      ...next,
      send(request) {
        if (request.method === "PUT" && /nodeimages/.test(request.path) && ++count > 8) isOver = true
        return refused(next).send(request)
      },
    }
  }
  const run = await play(story!, 1, { manager: () => ({ faults: [refuses] }) })
  judge(run.world.record)
  expect(await outcome(run, story!)).toEqual([...calm.values()][0]!.outcome)
  const said = run.world.history.flatMap(({ object }) =>
    object.kind === "ImagePullJob" ? (object.status?.conditions ?? []) : [],
  )
  expect(said).toContainEqual(
    expect.objectContaining({
      type: "Stalled",
      status: "True",
      reason: "Refused",
      message: expect.stringContaining("the role is being changed"),
    }),
  )
})

test("a runtime that is away uses up no attempt", async () => {
  const once: PullStory = {
    has: { [struckNode]: ["registry.example.com/app:v1"] },
    async tell({ floor, job, until }) {
      const [image] = this.has[struckNode]!
      floor.publish(image!, { takesMs: 1000 })
      await job("app", {
        image,
        selector: { names: [struckNode] },
        pullPolicy: { timeoutSeconds: 60, backoffLimit: 0 },
      })
      await until("app", "Completed")
    },
  }
  const calls = 5
  for (const [name, make] of Object.entries(nodeFaults))
    for (let n = 1; n <= calls; n++) {
      const run = await play(once, 1, atCall(make, isAny, n)).catch((error: Error) => {
        throw new Error(`${name}, at call ${n}: ${error.message}`, { cause: error })
      })
      expect(await outcome(run, once)).toMatchObject({ missing: [], jobs: [["app", "Completed", { succeeded: 1 }]] })
    }
})
