import { describe, expect, test } from "vitest"
import { type Fault, isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import type { Clock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { unjudgedRuns } from "#test/support/record.ts"
import type { RuntimeCall } from "#test/support/runtime-log.ts"
import { diskFaults, type MakeCallFault, nodeFaults, nthCall, registryFaults } from "./call-faults.ts"
import { type Fate, faults, type Make } from "./fates.ts"
import { judge } from "./invariants/invariants.ts"
import { type PullFate, type PullFloor, struckNode } from "./pull-floor.ts"
import { playSeeds } from "./runs.ts"

/** Stories on nodes with agents, and the processes whose writes are struck: the names of fates. */
type Campaign<S, W extends string> = {
  stories: Record<string, S>
  writers: readonly W[]
  play(story: S, seed: number, fate: PullFate & { [writer in W]?: (clock: Clock) => Fate }): Promise<PullFloor>
  /** What remains of a run once the times are taken out. What is missing on nodes is not compared where disks fail. */
  outcome(floor: PullFloor, story: S): Promise<Json>
  /** How many random runs in the short form, and which part of the faults strikes there in each place: 2 is half. */
  seeds: number
  part?: number
}

type Calm<S> = {
  story: S
  /** Writes of each process. */
  writes: Record<string, number>
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

export const atCall = (
  make: MakeCallFault,
  n: number,
  matches: (call: RuntimeCall) => boolean = isAny,
): Pick<PullFate, "calls"> => ({ calls: world => make(nthCall(n, matches), world) })
const atWrite = (writer: string, make: Make, n: number): PullFate => ({
  [writer]: (clock: Clock) => make(nth(isDecision, n), clock, nth(isDecision, n + 1)),
})

/**
 * Every fault at every write of every process, and at every call to one node's runtime. Each run ends as it would have,
 * and what always holds does, over the history and the log of calls. Returns the stories as they end without a fault.
 */
export async function campaign<S, W extends string>(title: string, of: Campaign<S, W>): Promise<Map<string, Calm<S>>> {
  const { stories, writers, play, outcome, seeds, part = 1 } = of
  const calm = new Map<string, Calm<S>>()
  for (const [name, story] of Object.entries(stories)) {
    const counters = writers.map(writer => [writer, counter()] as const)
    const fate = fateOf(counters.map(([writer, { fate }]) => ({ [writer]: fate })))
    const run = await play(story, 1, fate).catch(error => {
      // What always holds says more than a story that comes to no end.
      for (const each of unjudgedRuns()) judge(each)
      throw error
    })
    const calls = run.world.record.calls!.filter(({ node }) => node === struckNode)
    calm.set(name, {
      story,
      writes: Object.fromEntries(counters.map(([writer, { count }]) => [writer, count()])),
      calls: calls.length,
      pulls: calls.filter(isPull).length,
      outcome: await outcome(run, story),
    })
  }

  async function endure({ story, ...calm }: Calm<S>, where: string, seed: number, fate: PullFate, mayMiss: boolean) {
    try {
      const run = await play(story, seed, fate as never)
      judge(run.world.record)
      const { missing, ...rest } = await outcome(run, story)
      const { missing: none, ...expected } = calm.outcome
      expect(rest).toEqual(expected)
      if (!mayMiss) expect(missing).toEqual(none)
    } catch (error) {
      throw new Error(`${where}: ${(error as Error).message}`, { cause: error })
    }
  }

  // In the long form every fault strikes everywhere. In the short form each strikes once in one of the stories, and the
  // place moves on from fault to fault.
  const isLong = process.env.AIM_RUNS !== undefined
  const titles = [...calm.keys()]
  let places = 0

  /** One test for each story and fault: plays the story once for each place that the fault can strike. */
  function strikeAt<F>(
    all: Record<string, F>,
    at: string,
    lastOf: (calm: Calm<S>) => number,
    fate: (fault: F, n: number) => PullFate,
  ) {
    const turnOf = places++
    for (const [index, [name, fault]] of Object.entries(all).entries())
      for (const [turn, title] of titles.entries()) {
        if (!isLong && ((index + turn) % titles.length !== 0 || (index + turnOf) % part !== 0)) continue
        const story = calm.get(title)!
        const last = lastOf(story)
        const first = isLong ? 1 : 1 + (index % last)
        test(`${title}: ${name}, at each ${at}`, async () => {
          expect(last, `the story has a ${at} to strike`).toBeGreaterThan(0)
          for (let n = first; n <= (isLong ? last : first); n++)
            await endure(story, `${name}, at ${at} ${n}`, 1, fate(fault, n), name in diskFaults)
        })
      }
  }

  describe("ends as it would have", () => {
    for (const writer of writers)
      strikeAt(
        faults,
        `write of the ${writer}`,
        story => story.writes[writer]!,
        (make, n) => atWrite(writer, make, n),
      )
    for (const all of [nodeFaults, diskFaults])
      strikeAt(
        all,
        "call",
        story => story.calls,
        (make, n) => atCall(make, n),
      )
    strikeAt(
      registryFaults,
      "pull",
      story => story.pulls,
      (make, n) => atCall(make, n, isPull),
    )
  })

  /** A fault of each place, at random; the seed is all there is to it. */
  async function misfortunes(seed: number) {
    const random = seededRandom(seed)
    const below = (n: number) => Math.floor(random.next() * n)
    const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
    const [title, story] = pick([...calm])
    const chosen = writers.map(writer => {
      const [name, make] = pick(Object.entries(faults))
      const n = 1 + below(story.writes[writer]!)
      return { where: `${name}, at write ${n} of the ${writer}`, fate: atWrite(writer, make, n) }
    })
    const [name, make] = pick(Object.entries({ ...nodeFaults, ...diskFaults, ...registryFaults }))
    const n = 1 + below(story.pulls)
    const where = [`seed ${seed}, ${title}`, ...chosen.map(({ where }) => where), `${name}, at pull ${n}`].join("; ")
    const fate = fateOf([...chosen.map(({ fate }) => fate), atCall(make, n, isPull)])
    await endure(story, where, seed, fate, name in diskFaults)
    return { wrongs: [], told: [where] }
  }

  playSeeds(title, { short: seeds, share: 0.1 }, misfortunes)
  return calm
}

const fateOf = (parts: readonly object[]) => Object.assign({}, ...parts)
