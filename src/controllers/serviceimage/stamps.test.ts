import { describe, expect, test } from "vitest"
import { maxInflight } from "#api/v1alpha1/serviceimage/index.ts"
import type { Member } from "#core/fleet/member.ts"
import type { Trace } from "#core/pods/trace.ts"
import type { Plan } from "./plan.ts"
import type { Fence } from "./stamps.ts"
import { decide, dicom, start, v2, type World } from "./test-snapshot.ts"

// What a plan stamps now, what it only declares, and at what cost in pods.

const fence: Fence = {
  electionID: "me",
  declared: new Map(),
  isFresh: true,
  unsure: new Set(),
  busy: new Set(),
  trust: new Map([["n", "Proven"]]),
  outdated: new Map(),
  isBehind: false,
}
const many = (count: number, fields: Partial<Member> = {}) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`n/${index}`, dicom(fields)]))
const oneTier = (fields: object = {}) => ({ tiers: [{ upgradeTier: "", ...fields }] })
const outcome = ({ stamps, intents, declares }: Plan) => ({
  stamps: stamps.map(({ key }) => key),
  intents: Object.fromEntries(intents),
  declares,
})
const versions = (version: string, ...keys: string[]) => Object.fromEntries(keys.map(key => [key, version]))

describe("the fence", () => {
  const world = (see: Partial<Fence>, members = many(3)): World => ({
    spec: oneTier(),
    members,
    see: { fence: { ...fence, ...see } },
  })
  const all = versions("1", "n/0", "n/1", "n/2")
  const declared = new Map(Object.entries(all))
  const cases: Record<string, { given: World; stamps: string[]; intents: Record<string, string>; declares: boolean }> = {
    "what is not declared is declared first, with the version it was read at": {
      given: world({}), stamps: ["n/0", "n/1", "n/2"], intents: all, declares: true,
    },
    "what is declared is stamped without another word": {
      given: world({ declared }), stamps: ["n/0", "n/1", "n/2"], intents: all, declares: false,
    },
    "unless the status was written so long ago that another leader may have written it since": {
      given: world({ declared, isFresh: false }), stamps: ["n/0", "n/1", "n/2"], intents: all, declares: true,
    },
    "what has changed since waits for the next declaration, while the others go": {
      given: world({ declared }, { ...many(3), "n/1": dicom({ resourceVersion: "2" }) }),
      stamps: ["n/0", "n/2"], intents: all, declares: false,
    },
    "which comes when no other object is left": {
      given: world({ declared: new Map([["n/1", "1"]]) }, { "n/1": dicom({ resourceVersion: "2" }) }),
      stamps: ["n/1"], intents: { "n/1": "2" }, declares: true,
    },
    "an object that another leader may still write to is neither stamped nor declared": {
      given: world({ unsure: new Set(["n/1"]) }), stamps: ["n/0", "n/2"], intents: versions("1", "n/0", "n/2"), declares: true,
    },
    "where there is nothing to do, nothing stays declared": {
      given: world({ declared }, many(3, { image: v2 })), stamps: [], intents: {}, declares: false,
    },
  } // biome-ignore format: rows
  for (const [name, { given, ...want }] of Object.entries(cases))
    test(name, () => expect(outcome(decide(given))).toEqual(want))

  test("an object that may still be written to is touched, is in flight, and keeps the rollout from being complete", () => {
    const next = decide(world({ unsure: new Set(["n/1"]) }, many(3, { image: v2 })))
    expect(next.touches).toEqual(["n/1"])
    expect(next.status.inflight).toEqual(["n/1"])
    expect(next.status.conditions[0]).toMatchObject({ type: "Complete", status: "False", reason: "WaitingForFence" })
  })

  test("no more are in flight than the protocol allows, unsure ones included", () => {
    const unsure = new Set(Array.from({ length: 50 }, (_, index) => `n/${index}`))
    // Half of it at once, so that the next half is declared while the first is written.
    expect(decide(world({}, many(500))).status.inflight).toHaveLength(maxInflight / 2)
    const busy = new Set(decide(world({}, many(500))).stamps.map(({ key }) => key))
    const second = decide(world({ busy }, many(500)))
    expect(second.status.inflight).toHaveLength(maxInflight)
    expect(second.stamps.some(({ key }) => busy.has(key))).toBe(false)
    const { inflight } = decide(world({ unsure, busy }, many(500))).status
    expect(inflight.length).toBeLessThanOrEqual(maxInflight)
    expect(inflight).toEqual(expect.arrayContaining([...unsure]))
    expect(decide(world({ unsure }, many(500))).stamps.filter(({ key }) => unsure.has(key))).toEqual([])
  })
})

describe("what may be in flight is shared out", () => {
  const of = (namespace: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${namespace}/${index}`, dicom({ namespace })]))
  const stampedIn = (see: Partial<Fence>, members: Record<string, Member>) => {
    const { stamps } = decide({ spec: oneTier(), members, see: { fence: { ...fence, trust: new Map(), ...see } } })
    return Object.fromEntries(
      [...Map.groupBy(stamps, ({ member }) => member.namespace)].map(([n, all]) => [n, all.length]),
    )
  }

  test("a namespace in which no write has gone well yet gets a quarter", () => {
    expect(stampedIn({}, of("a", 90))).toEqual({ a: 50 })
    expect(stampedIn({ busy: new Set(Object.keys(of("a", 40))) }, of("a", 90))).toEqual({ a: 10 })
    expect(stampedIn({ trust: new Map([["a", "Proven"]]) }, of("a", 90))).toEqual({ a: 90 })
  })

  test("all of these together get half, and one more each", () => {
    const members = { ...of("a", 40), ...of("b", 40), ...of("c", 40), ...of("d", 1) }
    const unsure = new Set([...Object.keys(of("a", 40)), ...Object.keys(of("b", 40)), ...Object.keys(of("c", 23))])
    expect(stampedIn({ unsure }, members)).toEqual({ d: 1 })
  })

  test("one whose last write failed gets one, while nothing of it is in doubt", () => {
    const trust = new Map([["a", "Suspect" as const]])
    expect(stampedIn({ trust }, of("a", 90))).toEqual({ a: 1 })
    expect(stampedIn({ trust, unsure: new Set(["a/7"]) }, of("a", 90))).toEqual({})
  })

  test("objects that may go are found behind many that may not", () => {
    const trust = new Map([["a", "Suspect" as const]])
    expect(stampedIn({ trust }, { ...of("a", 900), ...of("b", 30) })).toEqual({ a: 1, b: 30 })
  })
})

test("an object that had changed when it was written waits until our copy shows the change", () => {
  const outdated = new Map([["n/0", "1"]])
  const see = { fence: { ...fence, outdated } }
  expect(decide({ spec: oneTier(), members: many(2), see }).stamps.map(({ key }) => key)).toEqual(["n/1"])
  const shown = { ...many(2), "n/0": dicom({ resourceVersion: "2" }) }
  expect(decide({ spec: oneTier(), members: shown, see }).stamps.map(({ key }) => key)).toEqual(["n/0", "n/1"])
})

test("what is being written counts as on its way: maxConcurrent is not exceeded by it", () => {
  const spec = oneTier({ maxConcurrent: 2 })
  const see = { fence: { ...fence, busy: new Set(["n/0"]) } }
  expect(decide({ spec, members: many(6), see }).stamps.map(({ key }) => key)).toEqual(["n/1"])
})

test("maxConcurrent bounds what is stamped, not what is declared: otherwise each would be a status write", () => {
  const spec = oneTier({ maxConcurrent: 2 })
  const first = decide({ spec, members: many(6) })
  expect(outcome(first)).toMatchObject({ stamps: ["n/0", "n/1"], declares: true })
  expect(first.intents.size).toBe(6)
  const declared = first.intents
  const oneBack = { ...many(6), "n/0": dicom({ image: v2 }), "n/1": dicom({ image: v2, isUpToDate: false }) }
  const second = decide({ spec, members: oneBack, see: { fence: { ...fence, declared } } })
  expect(outcome(second)).toMatchObject({ stamps: ["n/2"], declares: false })
})

describe("the pace counts pods", () => {
  const traced = (pods: number): Trace => ({ pods, troubles: [], crashes: [], steadyAt: 0, lost: [] })
  const stampedWith = (pods: number, members: Record<string, Member>, traces: Record<string, Trace> = {}) =>
    decide({ spec: oneTier(), members, traces, see: { pace: { pods, readyAt: start + 100 } } }).stamps.map(
      ({ key, pods }) => `${key} ${pods}`,
    )

  test("an object of fifty pods goes when one is allowed, and no object after it", () => {
    expect(stampedWith(1, many(2), { "n/0": traced(50) })).toEqual(["n/0 50"])
    expect(stampedWith(0.9, many(2), { "n/0": traced(50) })).toEqual([])
  })

  test("an object without pods is free, and not held back by those that are not", () => {
    const members = { ...many(2), "n/new": dicom({ isDeployed: false }), "n/zero": dicom({ replicas: 0 }) }
    expect(stampedWith(0, members, { "n/new": traced(0) })).toEqual(["n/new 0", "n/zero 0"])
  })

  test("an object that cannot be traced costs one; a workload's replicas count", () => {
    expect(stampedWith(100, { "n/a": dicom(), "n/b": dicom({ replicas: 7 }) })).toEqual(["n/a 1", "n/b 7"])
    // Was deployed, and its pods cannot be found: one at least.
    expect(stampedWith(100, { "n/a": dicom() }, { "n/a": traced(0) })).toEqual(["n/a 1"])
  })
})
