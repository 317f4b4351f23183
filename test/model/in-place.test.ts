import { describe, expect, test } from "vitest"
import * as deployments from "./in-place-deployment.ts"
import * as sets from "./in-place-set.ts"
import { neverSettles } from "./in-place-world.ts"
import { readable, search } from "./search.ts"

/** One pod, and a user that asks once. */
const small: deployments.Bounds = {
  asks: [1],
  replicas: 1,
  scales: [],
  resumes: false,
  isStanding: false,
  losesPods: false,
  writesLate: false,
}
const smallSet: sets.Bounds = {
  kind: "StatefulSet",
  replicas: 2,
  asks: [1],
  bad: [],
  reapplies: false,
  losesPods: false,
  writesLate: false,
}
const isBroken = ({ broken }: { broken: readonly string[] }) => broken.length > 0
const inBrief = (bounds: object) =>
  Object.entries(bounds)
    .map(([key, value]) => `${key}: ${value}`)
    .join(", ")

describe("a Deployment keeps its pods and its ReplicaSet, whatever comes in between", () => {
  const searches: { bounds: Partial<deployments.Bounds>; states: number }[] = [
    { bounds: { writesLate: true, losesPods: true, replicas: 2 }, states: 500 },
    { bounds: { writesLate: true, asks: [1, 0] }, states: 1_500 },
    { bounds: { writesLate: true, asks: [1, 2, 1] }, states: 5_000 },
    { bounds: { writesLate: true, asks: [1], scales: [2], losesPods: true }, states: 2_000 },
    { bounds: { asks: [1, 0], scales: [0, 1] }, states: 5_000 },
    { bounds: { asks: [1, 2], resumes: true }, states: 2_000 },
    // 80,000 states take a while.
    ...(process.env.AIM_RUNS
      ? [
          { bounds: { writesLate: true, asks: [1, 0], scales: [2], losesPods: true }, states: 20_000 },
          { bounds: { writesLate: true, asks: [1, 2], resumes: true }, states: 10_000 },
        ]
      : []),
  ]
  for (const { bounds, states } of searches)
    test(`${inBrief(bounds)}: in more than ${states} states`, () => {
      const found = search(deployments.inPlaceDeployment(deployments.sound, { ...small, ...bounds }), isBroken)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
      expect(found.states, `${found.states} states`).toBeGreaterThan(states)
    })

  test("so does one whose fence counts instead of waiting for the annotation", () => {
    for (const bounds of [{ asks: [1, 0], writesLate: true }, { scales: [0] }]) {
      const protocol = { ...deployments.sound, fence: "counted" } as const
      const found = search(deployments.inPlaceDeployment(protocol, { ...small, ...bounds }), isBroken)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
    }
  })

  test.each([
    { asks: [1, 0], writesLate: true },
    { asks: [1, 0], losesPods: true },
    { scales: [0, 2] },
    { asks: [1, 2], resumes: true },
  ])("and is released in the end, from every state: %o", bounds => {
    const whole = { ...small, ...bounds }
    const model = deployments.inPlaceDeployment(deployments.sound, whole)
    const isStuck = neverSettles(model, world => deployments.isReleased(world, whole))
    const found = search(model, isStuck)
    expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
  })

  test.each([{ asks: [1, 0], writesLate: true }, { asks: [1, 2, 1] }, { asks: [1], scales: [2], losesPods: true }])(
    "so does one behind a standing hold, which a person releases at rest: %o",
    bounds => {
      const whole = { ...small, ...bounds, isStanding: true }
      const model = deployments.inPlaceDeployment(deployments.sound, whole)
      const found = search(model, isBroken)
      expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
      const isStuck = neverSettles(model, world => deployments.isSettled(world, whole), {
        ours: ["patch", "flip", "settle", "yield"],
      })
      const stuck = search(model, isStuck)
      expect(stuck.trace, stuck.trace && readable(stuck.trace)).toBeUndefined()
      const unfenced = deployments.inPlaceDeployment({ ...deployments.sound, fence: "none" }, whole)
      expect(search(unfenced, isBroken).trace).toContain("the user releases the Deployment at rest")
    },
  )

  test("all that can happen has happened", () => {
    const searches = [
      { scales: [2], losesPods: true },
      { resumes: true, writesLate: true },
    ].map(bounds => search(deployments.inPlaceDeployment(deployments.sound, { ...small, ...bounds }), () => false))
    const taken = new Set(searches.flatMap(({ taken }) => [...taken.keys()]))
    expect([...taken].sort()).toEqual(
      [
        ...["and stops before it arrives", "arrive", "ask", "count", "flip", "lose", "patch", "read", "reconcile"],
        ...["release", "resume", "scale", "see", "yield"],
      ].sort(),
    )
  })
})

describe("every sentence of a Deployment's update in place is needed", () => {
  type Variant = {
    change: Partial<deployments.Protocol>
    bounds?: Partial<deployments.Bounds>
    steps: Partial<Record<deployments.Promised, number>>
  }
  const [another, anew] = deployments.promises

  /** What is left out, and in how many steps each promise is broken then. */
  const variants: Record<string, Variant> = {
    "the hold comes in a second write": {
      change: { holds: "in a second write" },
      steps: { [another]: 4, [anew]: 6 },
    },
    "R0 is changed while the Deployment is not held": {
      change: { holds: "never" },
      steps: { [another]: 4, [anew]: 6 },
    },
    "R0 is changed before the native controller has seen the hold": {
      change: { waitsForHold: false },
      steps: { [another]: 6, [anew]: 8 },
    },
    "released before the flip": {
      change: { flipsBeforeRelease: false, fence: "observed" },
      steps: { [another]: 9, [anew]: 11 },
    },
    "no fence": { change: { fence: "none" }, steps: { [another]: 10 } },
    "a fence of observedGeneration alone": { change: { fence: "observed" }, steps: { [another]: 10 } },
    "a fence without R0's observedGeneration, when the user goes back after the flip": {
      change: { fence: "updated" },
      bounds: { asks: [1, 0] },
      steps: { [another]: 17 },
    },
    "a fence without R0's observedGeneration, without pods": {
      change: { fence: "updated" },
      bounds: { scales: [0] },
      steps: { [another]: 13 },
    },
    "a fence that counts, and no annotation that the native controller would copy": {
      change: { fence: "counted", marksOperation: false },
      bounds: { asks: [1, 0], writesLate: true },
      steps: { [another]: 17, [anew]: 19 },
    },
    "the flip tests the image alone": {
      change: { flipOnCondition: "image" },
      bounds: { asks: [1, 0], writesLate: true },
      steps: { [another]: 18, [anew]: 20 },
    },
    "the release tests the image alone": {
      change: { releaseOnCondition: "image" },
      bounds: { asks: [1, 2, 1], writesLate: true },
      steps: { [another]: 24, [anew]: 26 },
    },
    "the release tests nothing": {
      change: { releaseOnCondition: "none" },
      bounds: { asks: [1, 2], writesLate: true },
      steps: { [another]: 16, [anew]: 19 },
    },
  }

  const modelOf = ({ change, bounds }: Pick<Variant, "change" | "bounds">) =>
    deployments.inPlaceDeployment({ ...deployments.sound, ...change }, { ...small, ...bounds })

  for (const [name, variant] of Object.entries(variants))
    test(`${name}: broken in ${Math.min(...Object.values(variant.steps))} steps`, () => {
      for (const [promised, steps] of Object.entries(variant.steps) as [deployments.Promised, number][]) {
        const { trace = [] } = search(modelOf(variant), ({ broken }) => broken.includes(promised))
        expect(trace.length, `${promised}:\n${readable(trace)}`).toBe(steps)
      }
    })

  test("without the fence another ReplicaSet is made, and drained: R0 is the older one, and a real server did the same", () => {
    expect(search(modelOf({ change: { fence: "none" } }), ({ broken }) => broken.includes(anew)).trace).toBeUndefined()
  })

  test("a pod that a late write changed after the release stays so, unless it is repaired", () => {
    const bounds = { ...small, asks: [1, 0], writesLate: true }
    const model = deployments.inPlaceDeployment({ ...deployments.sound, repairs: false }, bounds)
    const isStuck = neverSettles(model, world => deployments.isReleased(world, bounds))
    const { trace = [] } = search(model, isStuck)
    expect(trace.at(-1)).toBe("a late write arrives: changes a pod from T0 to T1")
  })

  test("none is left out", () => {
    const changed = Object.values(variants).flatMap(({ change }) => Object.keys(change))
    expect([...new Set([...changed, "repairs"])].sort()).toEqual(Object.keys(deployments.sound).sort())
  })

  test("a broken promise is shown step by step", () => {
    const { trace } = search(deployments.inPlaceDeployment({ ...deployments.sound, fence: "none" }, small), isBroken)
    expect(readable(trace!)).toBe(
      [
        "  1. the user asks for T1",
        "  2. the native cache sees the Deployment with T1, held, 1 replicas",
        "  3. the native controller reads the Deployment with T1, held, 1 replicas",
        "  4. the native controller acts with R0 of T0",
        "  5. aim changes a pod from T0 to T1",
        "  6. aim changes R0 from T0 to T1",
        "  7. aim releases the Deployment with T1",
        "  8. the native cache sees the Deployment with T1, 1 replicas",
        "  9. the native controller reads the Deployment with T1, 1 replicas",
        " 10. the native controller acts with R0 of T0",
      ].join("\n"),
    )
  })
})

describe("a StatefulSet and a DaemonSet keep their pods, whatever comes in between", () => {
  const searches: { bounds: Partial<sets.Bounds>; states: number }[] = [
    { bounds: { writesLate: true, losesPods: true, bad: [1] }, states: 1_000 },
    { bounds: { writesLate: true, reapplies: true, asks: [1, 0] }, states: 5_000 },
    { bounds: { asks: [1, 2, 0], bad: [1], replicas: 1 }, states: 200 },
    { bounds: { asks: [1, 0], losesPods: true }, states: 2_000 },
    { bounds: { asks: [1, 0, 1], losesPods: true, writesLate: true, replicas: 1 }, states: 10_000 },
    // 190,000 states take a while.
    ...(process.env.AIM_RUNS
      ? [{ bounds: { asks: [1, 0, 1], losesPods: true, writesLate: true }, states: 100_000 }]
      : []),
  ]
  for (const kind of ["StatefulSet", "DaemonSet"] as const)
    for (const { bounds, states } of searches)
      test(`${kind}, ${inBrief(bounds)}: in more than ${states} states`, () => {
        const found = search(sets.inPlaceSet(sets.sound, { ...smallSet, ...bounds, kind }), isBroken)
        expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
        expect(found.states, `${found.states} states`).toBeGreaterThan(states)
      })

  test.each([
    { kind: "StatefulSet", asks: [1, 0], losesPods: true },
    { kind: "DaemonSet", asks: [1, 0], losesPods: true },
    { kind: "StatefulSet", asks: [1, 2], bad: [1], writesLate: true, replicas: 1 },
  ] as const)("and are released in the end, from every state: %o", bounds => {
    const whole: sets.Bounds = { ...smallSet, ...bounds }
    const model = sets.inPlaceSet(sets.sound, whole)
    // With an image that crashes it stays held until the user asks for another.
    const waitsForUser = ({ asked }: sets.World) => whole.bad.includes(whole.asks[asked - 1] ?? 0)
    const isStuck = neverSettles(model, world => waitsForUser(world) || sets.isReleased(world, whole))
    const found = search(model, isStuck)
    expect(found.trace, found.trace && readable(found.trace)).toBeUndefined()
  })

  test("all that can happen has happened", () => {
    const bounds = { ...smallSet, asks: [1, 0], reapplies: true, losesPods: true, writesLate: true, replicas: 1 }
    const { taken } = search(sets.inPlaceSet(sets.sound, bounds), () => false)
    expect([...taken.keys()].sort()).toEqual(
      [
        ...["and stops before it arrives", "apply", "arrive", "ask", "label", "lose", "patch", "read", "reconcile"],
        ...["release", "restart", "see"],
      ].sort(),
    )
  })
})

describe("every sentence of a StatefulSet's update in place is needed", () => {
  type Variant = {
    change: Partial<sets.Protocol>
    bounds?: Partial<sets.Bounds>
    steps: Partial<Record<sets.Promised, number>>
  }
  const [anew, unproven, early] = sets.promises

  /** What is left out, and in how many steps each promise is broken then. */
  const variants: Record<string, Variant> = {
    "the hold comes in a second write": { change: { holds: "in a second write" }, steps: { [anew]: 4 } },
    "the hold is not asserted again": {
      change: { reasserts: false },
      bounds: { reapplies: true },
      steps: { [anew]: 6 },
    },
    "labels are omitted, and the release does not wait for them": {
      change: { labels: "never", fence: "observed" },
      steps: { [anew]: 12 },
    },
    "the label comes with the image, and so before health": {
      change: { labels: "with the image" },
      bounds: { bad: [1] },
      steps: { [anew]: 5, [unproven]: 8 },
    },
    "labels before the native controller has seen the hold": {
      change: { waitsForHold: false, labelsWhenCounted: "no" },
      steps: { [anew]: 7 },
    },
    "released before the status shows every label": { change: { fence: "observed" }, steps: { [anew]: 17 } },
    "no fence": { change: { fence: "none" }, steps: { [anew]: 17 } },
    "labels whatever the native controller counts, when the user goes back": {
      change: { labelsWhenCounted: "no" },
      bounds: { asks: [1, 0] },
      steps: { [anew]: 19 },
    },
    "labels while a pod is still on the image of an earlier target": {
      change: { labelsAfterTakingBack: false },
      bounds: { asks: [1, 0], writesLate: true },
      steps: { [anew]: 30 },
    },
    "labels whatever pods the native controller counts, when one was lost": {
      change: { labelsWhenCounted: "labels" },
      bounds: { asks: [1, 0], losesPods: true, replicas: 1 },
      steps: { [anew]: 24 },
    },
    "a late label tests uid and image alone": {
      change: { labelOnCondition: "image" },
      bounds: { asks: [1, 0, 1], writesLate: true, replicas: 1 },
      steps: { [anew]: 21, [unproven]: 18 },
    },
    "a late label tests nothing": {
      change: { labelOnCondition: "none" },
      bounds: { asks: [1, 0], writesLate: true, replicas: 1 },
      steps: { [anew]: 19 },
    },
    "the release tests nothing": {
      change: { releaseOnCondition: false },
      bounds: { asks: [1, 2], writesLate: true, replicas: 1 },
      steps: { [anew]: 17, [early]: 13 },
    },
  }

  for (const [name, { change, bounds, steps }] of Object.entries(variants))
    test(`${name}: broken in ${Math.min(...Object.values(steps))} steps`, () => {
      for (const [promised, length] of Object.entries(steps) as [sets.Promised, number][]) {
        const model = sets.inPlaceSet({ ...sets.sound, ...change }, { ...smallSet, ...bounds })
        const { trace = [] } = search(model, ({ broken }) => broken.includes(promised))
        expect(trace.length, `${promised}:\n${readable(trace)}`).toBe(length)
      }
    })

  test("a pod that a late write changed after the release stays so, unless it is repaired", () => {
    const bounds = { ...smallSet, asks: [1, 0], writesLate: true, replicas: 1 }
    const model = sets.inPlaceSet({ ...sets.sound, repairs: false }, bounds)
    const isStuck = neverSettles(model, world => sets.isReleased(world, bounds))
    const { trace = [] } = search(model, isStuck)
    expect(trace).toContain("a late write arrives: changes pod 0 from T0 to T1")
  })

  test("none is left out", () => {
    const changed = Object.values(variants).flatMap(({ change }) => Object.keys(change))
    expect([...new Set([...changed, "repairs"])].sort()).toEqual(Object.keys(sets.sound).sort())
  })
})
