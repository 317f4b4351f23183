import { describe, expect, test } from "vitest"
import type { HandOver } from "#core/canary/hand-over.ts"
import { type Bounds, handOver, isHandedOver, type Promised, promises, type Sight } from "./hand-over.ts"
import { neverSettles } from "./in-place-world.ts"
import { readable, search } from "./search.ts"

const small: Bounds = { replicas: 2, scales: [], hasTwin: false, writesLate: false }
const sound: Sight = seen => seen
const ours = ["scaleTrial", "deleteTwin", "pauseTrial", "moveSet", "deleteTrial", "resumeUser"]
const reads = ["read user", "read trial"]
const isBroken = ({ broken }: { broken: readonly string[] }) => broken.length > 0

const inBrief = (bounds: object) =>
  Object.entries(bounds)
    .map(([key, value]) => `${key}: ${value}`)
    .join(", ")

describe("a tested ReplicaSet changes its owner and keeps its pods, however late the native controllers are", () => {
  const searches: { bounds: Partial<Bounds>; states: number }[] = [
    { bounds: {}, states: 80 },
    { bounds: { writesLate: true }, states: 400 },
    { bounds: { hasTwin: true, writesLate: true }, states: 1_000 },
    { bounds: { replicas: 0, writesLate: true }, states: 200 },
    { bounds: { scales: [3], writesLate: true }, states: 3_000 },
    { bounds: { scales: [1, 2], hasTwin: true }, states: 3_000 },
  ]
  for (const { bounds, states } of searches) {
    test(`${inBrief(bounds) || "nothing else happens"}: in more than ${states} states`, () => {
      const found = search(handOver(sound, { ...small, ...bounds }), isBroken)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
      expect(found.states, `${found.states} states`).toBeGreaterThan(states)
    })

    test(`${inBrief(bounds) || "nothing else happens"}: and ends, from every state`, () => {
      const whole = { ...small, ...bounds }
      const model = handOver(sound, whole)
      const isStuck = neverSettles(model, world => isHandedOver(world, whole), { ours, reads })
      const found = search(model, isStuck)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
    })
  }
})

describe("every sentence of the hand-over is needed", () => {
  const [made, gone] = promises
  const variants: Record<string, { sight: Sight; bounds?: Partial<Bounds>; breaks: Promised }> = {
    "the run's Deployment is not paused": {
      sight: seen => withTrial(seen, { isPaused: true, isPauseSeen: true }),
      breaks: made,
    },
    "the pause is not awaited": {
      sight: seen => withTrial(seen, { isPauseSeen: true }),
      breaks: made,
    },
    "the user's Deployment is resumed before its controller has counted": {
      sight: seen => ({ ...seen, user: { ...seen.user, hasCounted: true } }),
      breaks: made,
    },
    "the twin stays": {
      sight: ({ twin: _, ...seen }) => seen,
      bounds: { hasTwin: true },
      breaks: gone,
    },
  }
  test.each(Object.entries(variants))("%s", (_, { sight, bounds, breaks }) => {
    const model = handOver(sight, { ...small, ...bounds })
    const found = search(model, ({ broken }) => broken.includes(breaks))
    expect(found.trace).toBeDefined()
  })
})

const withTrial = (seen: HandOver, change: Partial<NonNullable<HandOver["trial"]>>): HandOver => ({
  ...seen,
  ...(seen.trial && { trial: { ...seen.trial, ...change } }),
})
