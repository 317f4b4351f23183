import { describe, expect, test } from "vitest"
import { type Bounds, fence, type Protocol, sound } from "./fence.ts"
import { type Promised, promises, type World } from "./fence-world.ts"
import { readable, search } from "./search.ts"

/** The user asks for v2 and returns to v1: a late write then differs from a wanted one only by its time. */
const small: Bounds = {
  objects: 1,
  leaders: 2,
  images: [1, 2, 1],
  losesAnswers: true,
  deliversLate: true,
  warm: false,
  forgets: true,
}

const isBroken = ({ broken }: World) => broken.length > 0

describe("the fence holds, whatever comes in between", () => {
  const searches: { bounds: Partial<Bounds>; states: number }[] = [
    { bounds: { objects: 2, leaders: 2 }, states: 50_000 },
    { bounds: { objects: 1, leaders: 3 }, states: 5_000 },
    { bounds: { objects: 1, leaders: 3, images: [1, 2, 3] }, states: 5_000 },
    { bounds: { objects: 1, leaders: 2, warm: true }, states: 1_000 },
    { bounds: { objects: 1, leaders: 3, warm: true }, states: 5_000 },
    // 613,000 states take a while.
    ...(process.env.AIM_RUNS ? [{ bounds: { objects: 2, leaders: 2, warm: true }, states: 50_000 }] : []),
  ]
  for (const { bounds, states } of searches) {
    const { objects, leaders, images, warm } = { ...small, ...bounds }
    const name = `${warm ? "warm candidates, " : ""}objects: ${objects}, leaders: ${leaders}, images: v${images.join(" v")}; in more than ${states} states`
    test(name, () => {
      const found = search(fence(sound, { ...small, ...bounds }), isBroken)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
      expect(found.states, `${found.states} states`).toBeGreaterThan(states)
      expect([...found.taken.keys()].sort()).toEqual(warm ? [...everything, "catch up"].sort() : everything)
    })
  }

  /** All that can happen has happened; a model without time-outs would hold more easily. */
  const everything = [
    "aim",
    "and gives up before it arrives",
    "and the answer is lost",
    "change",
    "complete",
    "conflict",
    "declare",
    "deliver",
    "look",
    "read",
    "report",
    "stamp",
    "take over",
    "touch",
    "withdraw",
    "write",
  ]

  test.each([false, true])(
    "and never for good: any leader, left alone, reaches Complete from every state (warm: %s)",
    warm => {
      const model = fence(sound, { ...small, leaders: 3, warm })
      const inOrder = ["complete", "conflict", "stamp", "touch", "declare", "read", "catch up", "take over", "look"]
      const advance = (world: World): World | undefined => {
        const mine = model.steps(world).filter(({ by, fate }) => by === "ABC"[world.electionID] && !fate)
        return inOrder.flatMap(name => mine.filter(step => step.name === name)).at(0)?.next
      }
      const fine = new Set<number>()
      const isStuck = (start: World): boolean => {
        const path: number[] = []
        for (let world: World | undefined = start; world && path.length < 20; world = advance(world)) {
          path.push(model.keyOf(world))
          if (world.complete < world.generation && !fine.has(path.at(-1)!)) continue
          for (const key of path) fine.add(key)
          return false
        }
        return true
      }
      const found = search(model, isStuck)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
    },
  )
})

describe("the search can be believed", () => {
  test("a key stands for one world", () => {
    const model = fence(sound, { ...small, leaders: 3 })
    const worlds = new Map<number, string>()
    const isConfused = (world: World): boolean => {
      const [key, text] = [model.keyOf(world), JSON.stringify({ ...world, broken: [] })]
      const known = worlds.get(key) ?? text
      worlds.set(key, known)
      return known !== text
    }
    expect(search(model, isConfused).trace).toBeUndefined()
    expect(new Set(worlds.values()).size).toBe(worlds.size)
  })

  test("what a replaced leader forgets makes no difference to anything that others see", () => {
    const visible = (forgets: boolean) => {
      const seen = new Set<string>()
      search(fence(sound, { ...small, forgets }), ({ generation, electionID, inflight, complete, objects }) => {
        seen.add(JSON.stringify({ generation, electionID, inflight, complete, objects }))
        return false
      })
      return seen
    }
    expect(visible(true)).toEqual(visible(false))
  })
})

describe("every sentence of the protocol is needed", () => {
  const [older, untrue, overtaken] = promises
  type Variant = { change: Partial<Protocol>; bounds?: Partial<Bounds>; steps: Partial<Record<Promised, number>> }

  /** What is left out, and in how many steps each promise is broken then. */
  const variants: Record<string, Variant> = {
    "the original protocol: asks for the electionID, and writes": {
      change: { intents: "asked" },
      bounds: { losesAnswers: false, deliversLate: false },
      steps: { [older]: 9, [untrue]: 9 },
    },
    "the original protocol with a single leader and a late request": {
      change: { intents: "asked" },
      bounds: { leaders: 1 },
      steps: { [older]: 8, [untrue]: 8 },
    },
    "a successor does not touch what it inherits": {
      change: { touchesInherited: false },
      steps: { [older]: 8, [untrue]: 8 },
    },
    "a successor clears the list, then touches": {
      change: { clearsBeforeTouching: true },
      bounds: { leaders: 3, forgets: true },
      steps: { [older]: 10, [untrue]: 10 },
    },
    "a write of unknown outcome is not followed by a touch": {
      change: { touchesUnknown: false },
      steps: { [older]: 8, [untrue]: 8 },
    },
    "a touch does not move the resourceVersion": {
      change: { touchMoves: "never" },
      steps: { [older]: 8, [untrue]: 8, [overtaken]: 7 },
    },
    "a touch writes the electionID, so that the second one of a leader moves nothing": {
      change: { touchMoves: "oncePerLeader" },
      steps: { [older]: 11, [untrue]: 11 },
    },
    "the object is read after the intent": {
      change: { readsAfterIntent: true },
      steps: { [older]: 10, [untrue]: 10, [overtaken]: 8 },
    },
    "objects are written unconditionally": {
      change: { stampsOnCondition: false },
      steps: { [older]: 8, [untrue]: 8, [overtaken]: 7 },
    },
    "the status is written whatever its electionID": {
      change: { statusNeedsElectionID: false },
      steps: { [older]: 8, [untrue]: 8, [overtaken]: 9 },
    },
    "an intent may come from a generation that is no longer the current one": {
      change: { intentNeedsGeneration: false },
      steps: { [older]: 6 },
    },
    "a leader's first status is written whatever has changed since it looked": {
      change: { firstStatusIsSwap: false },
      steps: { [older]: 8, [untrue]: 8 },
    },
    "an intent leaves the list before its write was answered": {
      change: { listsUntilAnswered: false },
      steps: { [older]: 9, [untrue]: 9 },
    },
    "intents are withdrawn, and used after all when the answer to that is lost": {
      change: { forgetsBeforeWithdrawing: false },
      steps: { [older]: 9, [untrue]: 9 },
    },
    "Complete does not wait for suspects": {
      change: { completesWithSuspects: true },
      steps: { [older]: 8, [untrue]: 8 },
    },
    "a successor trusts a cache that was filled before it looked": {
      change: { readsAfterLooking: false },
      steps: { [untrue]: 9 },
    },
    "a successor that was warm says Complete before its cache is shown to be current": {
      change: { completesUnproven: true },
      bounds: { warm: true },
      steps: { [untrue]: 9 },
    },
    "a leader trusts a cache that is behind its own write": {
      change: { seesOwnWrites: false },
      steps: { [untrue]: 6 },
    },
  }

  const modelOf = ({ change, bounds }: Variant) =>
    fence({ ...sound, ...change }, { ...small, forgets: false, ...bounds })

  for (const [name, variant] of Object.entries(variants))
    test(`${name}: broken in ${Math.min(...Object.values(variant.steps))} steps`, () => {
      for (const [promised, steps] of Object.entries(variant.steps) as [Promised, number][]) {
        const { trace = [] } = search(modelOf(variant), ({ broken }) => broken.includes(promised))
        expect(trace.length, `${promised}:\n${readable(trace)}`).toBe(steps)
      }
    })

  test("none is left out", () => {
    const changed = Object.values(variants).flatMap(({ change }) => Object.keys(change))
    expect([...new Set(changed)].sort()).toEqual(Object.keys(sound).sort())
  })

  test("a broken promise is shown step by step", () => {
    const [original] = Object.values(variants)
    const { trace } = search(modelOf(original!), ({ broken }) => broken.includes(older))
    expect(readable(trace!)).toBe(
      [
        "  1. the user asks for v2 (generation 2)",
        "  2. A reads tenant-1: v1",
        "  3. A asks whether it leads (yes) and what is wanted (v2)",
        "  4. the user asks for v1 (generation 3)",
        "  5. B is elected and reads the ServiceImage",
        "  6. B takes over",
        "  7. B reads tenant-1: v1",
        "  8. B says Complete (generation 3)",
        "  9. A writes v2 (generation 2) into tenant-1",
      ].join("\n"),
    )
  })
})
