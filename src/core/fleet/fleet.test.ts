import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { ImageRecord } from "../image/record.ts"
import { sameImage } from "../image/reference.ts"
import type { Crash } from "../pods/steady.ts"
import type { Trace } from "../pods/trace.ts"
import { endOf, placeOf } from "./cohort.ts"
import { Fleet, type FleetRules, type TierRule, type TierView } from "./fleet.ts"
import type { Member } from "./member.ts"

const second = 1000
const rules: FleetRules = {
  by: "serviceimage/web",
  uid: "s1",
  operation: "g1",
  isRollback: false,
  startedAt: 100 * second,
  tiers: [
    { name: "", image: "shop/web:2", deadlineMs: 60 * second, settleMs: 0, cohortEnds: [1, 25, 100].map(endOf) },
    { name: "early", image: "shop/web:3", deadlineMs: 30 * second, settleMs: 0, cohortEnds: [endOf(100)] },
  ],
}
/** The step of the default tier that takes in every object. */
const last = 2

const member = (fields: Partial<Member> & { tier?: string } = {}): Member => ({
  resourceVersion: "1",
  uid: "u",
  namespace: "a",
  labels: fields.tier === undefined ? {} : { "upgrade-tier": fields.tier },
  createdAt: 0,
  isDeleting: false,
  image: "shop/web:2",
  isUnmanaged: false,
  haltsOnFailure: false,
  isUpToDate: true,
  isDeployed: true,
  decision: undefined,
  ...fields,
})

const fleetOf = (members: Record<string, Member>, now = rules.startedAt, with_: FleetRules = rules) => {
  const fleet = new Fleet(with_, now)
  for (const [key, each] of Object.entries(members)) fleet.set(key, each)
  return fleet
}
const defaultTier = (fleet: Fleet) => fleet.tier("")!

test("an object whose label names no tier belongs to the default one", () => {
  const fleet = fleetOf({ "a/1": member(), "a/2": member({ tier: "nobody" }), "a/3": member({ tier: "early" }) })
  expect([defaultTier(fleet).total, fleet.tier("early")!.total]).toEqual([2, 1])
})

test("without a default tier it is counted apart, and named", () => {
  const fleet = fleetOf({ "a/1": member() }, 0, { ...rules, tiers: [rules.tiers[1]!] })
  expect(fleet.unmatched.firstItems(9)).toEqual(["a/1"])
})

test("an object that waits fails at its deadline, not before, counted from our stamp", () => {
  const at = 150 * second
  const stamped = { from: "", to: "shop/web:2", reason: "Stamped", operation: "g1", by: "", at }
  const fleet = fleetOf({ "a/1": member({ isUpToDate: false, decision: stamped }) }, at)
  expect(fleet.nextChangeAt()).toBe(at + 60 * second)
  fleet.advance(at + 60 * second - 1)
  expect(defaultTier(fleet).counted).toMatchObject({ waiting: 1, failed: 0 })
  fleet.advance(at + 60 * second)
  expect(defaultTier(fleet).counted).toMatchObject({ waiting: 0, failed: 1 })
  expect(defaultTier(fleet).troubles.map(({ reason, count }) => ({ reason, count }))).toEqual([
    { reason: "Timeout", count: 1 },
  ])
})

describe("an object that was up to date and regressed", () => {
  const at = 150 * second
  const decision = { from: "", to: "shop/web:2", reason: "Stamped", operation: "g1", by: "", at } as const
  const well = member({ decision })
  const unwell = member({ decision, isUpToDate: false, resourceVersion: "2" })
  const failedIn = (fleet: Fleet, now: number) => {
    fleet.advance(now)
    return defaultTier(fleet).counted.failed
  }

  test("gets a fresh deadline, from the look that finds it so", () => {
    const fleet = fleetOf({ "a/1": well }, at)
    fleet.advance(at + 3600 * second) // a long soak, without an event
    fleet.set("a/1", unwell)
    fleet.trace("a/1", undefined) // further events before the look change nothing
    expect(failedIn(fleet, at + 4000 * second)).toBe(0)
    expect(failedIn(fleet, at + 4059 * second)).toBe(0)
    expect(failedIn(fleet, at + 4060 * second)).toBe(1)
  })

  test("counts from its stamp if it never was up to date", () => {
    const fleet = fleetOf({ "a/1": unwell }, at)
    fleet.set("a/1", { ...unwell, resourceVersion: "3", unwellSince: at + 50 * second })
    expect(failedIn(fleet, at + 60 * second)).toBe(1)
  })

  test("is judged by its own dates in a process that starts later", () => {
    const found = (unwellSince: number) => fleetOf({ "a/1": { ...unwell, unwellSince } }, at + 3600 * second)
    expect(failedIn(found(at + 3550 * second), at + 3600 * second)).toBe(0)
    expect(failedIn(found(at + 3540 * second), at + 3600 * second)).toBe(1)
    expect(failedIn(found(at + 9999 * second), at + 3600 * second)).toBe(1) // of the future, and not believed
    const stampedNow = fleetOf({ "a/1": { ...unwell, unwellSince: at + second } }, at + 2 * second)
    expect(stampedNow.standing("a/1")).toMatchObject({ lapsedAt: undefined, deadline: at + 60 * second })
  })

  test("had been up to date if it has no dates and was not counted as failed at its deadline", () => {
    const found = (cleanAt: number) => {
      const fleet = new Fleet(rules, at + 100 * second, { cleanAt })
      fleet.set("a/1", unwell)
      return fleet.standing("a/1")!
    }
    expect(found(at + 90 * second)).toMatchObject({ isFailed: false, deadline: at + 150 * second })
    expect(found(at + 60 * second)).toMatchObject({ isFailed: true, deadline: at + 60 * second })
    expect(found(0)).toMatchObject({ isFailed: true, deadline: at + 60 * second })
  })

  test("had been up to date if its tier was complete before, and not if its tier had another image or its stamp is later", () => {
    const found = (completedAt: number, unwellSince: number) => {
      const fleet = new Fleet(rules, at + 30 * second, { completedAt: new Map([["", completedAt]]) })
      fleet.set("a/1", { ...unwell, unwellSince })
      return fleet.standing("a/1")!.lapsedAt
    }
    expect(found(at + 10 * second, at + 20 * second)).toBe(at + 20 * second)
    expect(found(at + 20 * second, at + 20 * second)).toBeUndefined()
    expect(found(at - second, at + 20 * second)).toBeUndefined()
  })

  test("had been up to date if its tier was complete in an operation before this one, which did not change its image", () => {
    const next = { ...rules, operation: "g2", startedAt: at + 20 * second }
    const fleet = new Fleet(next, at + 85 * second, { completedAt: new Map([["", at + 10 * second]]) })
    fleet.set("a/1", { ...unwell, unwellSince: at + 30 * second })
    expect(fleet.standing("a/1")).toMatchObject({ isFailed: false, deadline: at + 90 * second })
  })

  test("was up to date until its deadline if it lost its health in that very second", () => {
    const fleet = fleetOf({ "a/1": { ...unwell, unwellSince: at + 60 * second } }, at + 61 * second)
    expect(fleet.standing("a/1")).toMatchObject({ isFailed: false, lapsedAt: at + 60 * second })
  })

  test("is forgotten with the image: a new one counts from its own stamp", () => {
    const fleet = fleetOf({ "a/1": well }, at)
    fleet.set("a/1", unwell)
    fleet.advance(at + 3600 * second)
    const tiers = [{ ...rules.tiers[0]!, image: "shop/web:3" }]
    fleet.renew({ ...rules, tiers, operation: "g2", startedAt: at + 3610 * second }, at + 3610 * second)
    const next = { ...decision, to: "shop/web:3", operation: "g2", at: at + 3620 * second }
    fleet.set("a/1", { ...unwell, image: "shop/web:3", decision: next, resourceVersion: "3" })
    expect(fleet.standing("a/1")).toMatchObject({ lapsedAt: undefined, deadline: at + 3680 * second })
  })
})

test("a stamp from the future, which only the object's owner can have written, does not postpone its deadline", () => {
  const stamped = { from: "", to: "shop/web:2", reason: "Stamped", operation: "g1", by: "", at: 10 ** 12 }
  const fleet = fleetOf({ "a/1": member({ isUpToDate: false, decision: stamped }) })
  expect(fleet.nextChangeAt()).toBe(rules.startedAt + 60 * second)
})

test("an object created after the start counts only once it was deployed", () => {
  const late = { createdAt: rules.startedAt + 1, image: "shop/web:1" }
  const fleet = fleetOf({ "a/1": member({ ...late, isDeployed: false }) })
  expect(defaultTier(fleet).counted.total).toBe(0)
  fleet.set("a/1", member({ ...late, isDeployed: true }))
  expect(defaultTier(fleet).counted).toMatchObject({ total: 1, stale: 1 })
})

test("a refused namespace is left alone, tried again later, and given back by the first success", () => {
  const stale = { image: "shop/web:1" }
  const fleet = fleetOf({ "a/1": member(stale), "a/2": member(stale), "b/1": member({ ...stale, namespace: "b" }) })
  fleet.refuse({ namespace: "a" }, { reason: "Forbidden", message: "" })
  const candidates = () =>
    defaultTier(fleet)
      .stale(10, last)
      .map(({ key }) => key)
  expect(candidates()).toEqual(["b/1"])
  expect(defaultTier(fleet).troubles.map(({ reason, count }) => ({ reason, count }))).toEqual([
    { reason: "Forbidden", count: 2 },
  ])
  fleet.advance(fleet.nextChangeAt()!)
  expect(candidates()).toEqual(["a/1", "a/2", "b/1"])
  fleet.refuse({ namespace: "a" }, { reason: "Forbidden", message: "" })
  expect(fleet.nextChangeAt()! - rules.startedAt).toBe((15 + 30) * second) // longer the second time
  fleet.release("a/2")
  expect(candidates()).toEqual(["a/1", "a/2", "b/1"])
  expect(defaultTier(fleet).troubles).toEqual([])
})

test("an object that stays refused fails at its deadline, counted from the first refusal", () => {
  const fleet = fleetOf({ "a/1": member({ image: "shop/web:1", haltsOnFailure: true }) })
  const why = { reason: "Forbidden", message: "" } as const
  fleet.refuse({ namespace: "a" }, why)
  fleet.advance(rules.startedAt + 20 * second)
  fleet.refuse({ namespace: "a" }, why)
  fleet.advance(rules.startedAt + 60 * second - 1)
  expect(defaultTier(fleet).halting).toBe(0)
  fleet.advance(rules.startedAt + 60 * second)
  expect(defaultTier(fleet).halting).toBe(1)
})

test("an echo of an older version changes nothing, and our own write does not revive a deleted object", () => {
  const fleet = fleetOf({ "a/1": member({ resourceVersion: "10", image: "shop/web:2" }) })
  fleet.set("a/1", member({ resourceVersion: "9", image: "shop/web:1" }))
  expect(fleet.get("a/1")!.image).toBe("shop/web:2")
  fleet.delete("a/1")
  fleet.wrote("a/1", member({ resourceVersion: "11" }))
  expect(fleet.size).toBe(0)
})

const v2 = "shop/web:2"
const ours = (fields: Partial<ImageRecord> = {}): ImageRecord => ({
  from: "shop/web:1",
  to: v2,
  reason: "Stamped",
  operation: "g1",
  by: rules.by,
  at: rules.startedAt,
  ...fields,
})

describe("a contest", () => {
  /** Another writer restores v1 as soon as we have stamped v2; `again` is one round of that. */
  function contest() {
    const fleet = fleetOf({})
    let now = rules.startedAt
    let version = 1
    const set = (fields: Partial<Member>) =>
      fleet.set("a/1", member({ resourceVersion: String(version++), decision: ours(), ...fields }))
    const isCandidate = () => defaultTier(fleet).stale(1, last).length === 1
    return {
      fleet,
      /** How long it was left alone before it could be stamped again. */
      again() {
        set({ image: v2, isUpToDate: false })
        set({ image: "shop/web:1", contestedBy: "argocd" })
        set({ image: "shop/web:1", contestedBy: "argocd" }) // says it twice, and is counted once
        this.pass(0)
        const since = now
        while (!isCandidate()) this.pass(fleet.nextChangeAt()! - now)
        return now - since
      },
      pass(ms: number) {
        now += ms
        fleet.advance(now)
      },
      told: () => defaultTier(fleet).troubles.map(({ reason }) => reason),
      end: () => set({ image: v2 }),
    }
  }

  test("is answered at once, then more and more slowly, and at most every five minutes", () => {
    const story = contest()
    expect([1, 2, 3, 4, 5, 6, 7, 8].map(() => story.again() / second)).toEqual([0, 15, 30, 60, 120, 240, 300, 300])
  })

  test("is reported after three times, with the name of the other writer, until it is over", () => {
    const story = contest()
    story.again()
    story.again()
    expect(story.told()).toEqual([])
    story.again()
    expect(story.told()).toEqual(["Contested"])
    expect(defaultTier(story.fleet).contestants(3)).toEqual(["argocd"])
    story.end()
    expect(story.told()).toEqual([])
  })

  test("is forgotten after ten calm minutes and its last wait", () => {
    const story = contest()
    for (let round = 0; round < 3; round++) story.again()
    story.end()
    story.pass(600 * second)
    expect(story.again()).toBe(60 * second)
    story.end()
    story.pass(600 * second + 120 * second + 1)
    expect(story.again()).toBe(0)
  })

  test("begins with the look after it, however long ago the last one was", () => {
    const { fleet, pass, told } = contest()
    pass(second)
    const restore = () => {
      for (const image of [v2, "shop/web:1"]) fleet.set("a/1", member({ resourceVersion: `${version++}`, decision: ours(), image })) // biome-ignore format: a row
    }
    let version = 1
    restore()
    pass(3600 * second)
    restore()
    pass(9 * second)
    expect(told()).toEqual([])
    expect(defaultTier(fleet).counted.failed).toBe(0)
  })

  test("that lasts is a failure at the object's deadline", () => {
    const story = contest()
    story.again()
    story.again()
    story.again()
    story.pass(60 * second)
    expect(defaultTier(story.fleet).counted).toMatchObject({ failed: 1, stale: 0 })
  })

  test("is none where the owner keeps the image for a while", () => {
    const fleet = fleetOf({})
    const own = { decision: ours(), isUnmanaged: true }
    for (const version of ["1", "2", "3", "4"])
      fleet.set("a/1", member({ ...own, image: "own:1", resourceVersion: version }))
    fleet.set("a/1", member({ ...own, image: "own:1", resourceVersion: "5", isUnmanaged: false }))
    expect(defaultTier(fleet).stale(1, last)).toHaveLength(1)
  })
})

describe("a stamp that comes back with another image", () => {
  /** Stamps, and gets the object back as admission left it: with the image it had. */
  function altered(fields: Partial<Member> = {}) {
    const fleet = fleetOf({ "a/1": member({ image: "shop/web:1", ...fields }) })
    let version = 2
    let now = rules.startedAt
    return {
      fleet,
      stamp() {
        const [candidate] = [...defaultTier(fleet).stale(1, last), ...defaultTier(fleet).blank(1)]
        if (!candidate) return false
        const decision = ours({ from: candidate.member.image, to: candidate.to, at: now })
        fleet.stamped("a/1", member({ image: "shop/web:1", ...fields, decision, resourceVersion: String(version++) }))
        return true
      },
      pass(seconds: number) {
        now += seconds * second
        fleet.advance(now)
      },
    }
  }

  test("is contested at once, reported with its cause, and tried less and less often", () => {
    const { fleet, stamp, pass } = altered()
    expect(stamp()).toBe(true)
    expect(stamp()).toBe(false)
    expect(defaultTier(fleet).troubles).toMatchObject([
      { reason: "Contested", count: 1, message: "an admission webhook changes it in the same write" },
    ])
    let stamps = 1
    for (let seconds = 0; seconds < 3600; seconds++) {
      pass(1)
      if (stamp()) stamps++
    }
    expect(stamps).toBeGreaterThan(10)
    expect(stamps).toBeLessThan(20)
  })

  test("is one also where the object is left without any image", () => {
    const { fleet, stamp } = altered({ image: "" })
    expect(stamp()).toBe(true)
    expect(stamp()).toBe(false)
    expect(defaultTier(fleet).troubles).toMatchObject([{ reason: "Contested" }])
  })

  test("is no contest any more when the image stays", () => {
    const { fleet, stamp, pass } = altered()
    stamp()
    pass(15)
    fleet.stamped("a/1", member({ image: v2, decision: ours(), resourceVersion: "9" }))
    expect(defaultTier(fleet).troubles).toEqual([])
  })
})

test("a decision of another ServiceImage of the same name is not this operation's", () => {
  const decided = (fields: Partial<ImageRecord>) => member({ decision: ours(fields) })
  const back = { ...rules, isRollback: true }
  const goesBack = (each: Member) => defaultTier(fleetOf({ "a/1": each }, rules.startedAt, back)).stale(1, last).length
  expect(goesBack(decided({ uid: rules.uid }))).toBe(1)
  expect(goesBack(decided({ uid: "s0" }))).toBe(0)
  // Written by an earlier version, which kept no uid: by its time.
  expect(goesBack(decided({ at: rules.startedAt }))).toBe(1)
  expect(goesBack(decided({ at: rules.startedAt - 61 * second }))).toBe(0)
})

test("objects in no tier are named in the order of their names, not of their creation", () => {
  const none = { ...rules, tiers: [rules.tiers[1]!] }
  const fleet = fleetOf({ "a/3": member(), "a/1": member(), "a/2": member() }, 0, none)
  fleet.set("a/1", member({ resourceVersion: "2" }))
  expect(fleet.unmatched.firstItems(2)).toEqual(["a/1", "a/2"])
})

test("an unhealthy object that comes from another ServiceImage gets a fresh deadline here", () => {
  const now = rules.startedAt + 9000 * second
  // The status of this one counted no failure when its fleet was first looked at, long ago.
  const fleet = new Fleet(rules, rules.startedAt + 70 * second, { cleanAt: rules.startedAt + 70 * second })
  fleet.advance(rules.startedAt + 70 * second)
  fleet.set("a/1", member({ isUpToDate: false, decision: ours({ by: "serviceimage/other" }) }))
  fleet.advance(now)
  expect(defaultTier(fleet).counted).toMatchObject({ waiting: 1, failed: 0 })
  fleet.advance(now + 60 * second - 1)
  expect(defaultTier(fleet).counted.failed).toBe(0)
  fleet.advance(now + 60 * second)
  expect(defaultTier(fleet).counted.failed).toBe(1)
})

describe("a write that fails", () => {
  const why = { reason: "WriteFailed", message: "no answer" } as const
  const stale = (namespace: string) => member({ image: "shop/web:1", namespace })
  const candidates = (fleet: Fleet) =>
    defaultTier(fleet)
      .stale(10, last)
      .map(({ key }) => key)

  test("lets others of its namespace be tried before it: one object does not stop its neighbours", () => {
    const fleet = fleetOf({ "a/1": stale("a"), "a/2": stale("a"), "b/1": stale("b") })
    fleet.refuse({ key: "a/1" }, why)
    fleet.refuse({ namespace: "a" }, why)
    expect(candidates(fleet)).toEqual(["b/1"])
    fleet.advance(fleet.nextChangeAt()!)
    expect(candidates(fleet)).toEqual(["a/2", "b/1"])
    fleet.advance(fleet.nextChangeAt()!)
    expect(candidates(fleet)).toEqual(["a/1", "a/2", "b/1"])
  })

  test("is tried again after a second, and in the end every five minutes", () => {
    const fleet = fleetOf({ "a/1": stale("a") })
    const waits = Array.from({ length: 10 }, () => {
      fleet.refuse({ key: "a/1" }, why)
      const { retryAt } = fleet.refusalOf("a/1")!
      fleet.advance(retryAt)
      return retryAt
    })
    expect(waits.map((at, index) => (at - (waits[index - 1] ?? rules.startedAt)) / second)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300]) // biome-ignore format: a row
  })

  test("while one is tried, the others of its namespace wait for its result", () => {
    const fleet = fleetOf({ "a/1": stale("a"), "a/2": stale("a") })
    fleet.refuse({ namespace: "a" }, why)
    fleet.advance(fleet.nextChangeAt()!)
    fleet.awaits("a")
    expect(candidates(fleet)).toEqual([])
    fleet.stamped("a/1", member({ resourceVersion: "2" }))
    expect(candidates(fleet)).toEqual(["a/2"])
  })

  test("is forgotten when the object has its image, whichever writer gave it", () => {
    const fleet = fleetOf({ "a/1": stale("a") })
    fleet.refuse({ key: "a/1" }, why)
    fleet.set("a/1", member({ resourceVersion: "2" }))
    fleet.set("a/1", { ...stale("a"), resourceVersion: "3" })
    expect(candidates(fleet)).toEqual(["a/1"])
    expect(defaultTier(fleet).troubles).toEqual([])
  })
})

// ---- the index equals a plain recount, whatever happens in whatever order ----

/** The default tier waits 20 s until an object counts as done, the other one does not. */
const settling: FleetRules = { ...rules, tiers: rules.tiers.map(tier => ({ ...tier, settleMs: tier.name === "" ? 20 * second : 0 })) } // biome-ignore format: a row
const back: FleetRules = { ...rules, isRollback: true, tiers: rules.tiers.map(tier => ({ ...tier, fallback: "shop/web:0", settleMs: 0 })) } // biome-ignore format: a row
const images = ["", "shop/web:0", "shop/web:1", v2, "docker.io/shop/web:3"]
const key = fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2")
const anyDecision = fc.record({
  from: fc.constantFrom(...images),
  to: fc.constantFrom("shop/web:1", v2, "shop/web:3"),
  reason: fc.constantFrom("Stamped", "RolledBack"),
  operation: fc.constantFrom("g1", "g1", "g0"),
  by: fc.constantFrom(rules.by, rules.by, "serviceimage/other"),
  uid: fc.constantFrom(rules.uid, rules.uid, "s0", "none"),
  at: fc.constantFrom(0, rules.startedAt + 5 * second, 10 ** 12),
})
const anyMember = fc.record({
  life: fc.constantFrom(1, 1, 1, 2),
  tier: fc.constantFrom("", "early", "nobody"),
  image: fc.constantFrom(...images),
  isUnmanaged: fc.boolean(),
  isDeleting: fc.boolean(),
  haltsOnFailure: fc.boolean(),
  isUpToDate: fc.boolean(),
  isDeployed: fc.boolean(),
  createdAt: fc.constantFrom(0, rules.startedAt + 1),
  decision: fc.option(
    anyDecision.map(({ uid, ...rest }): ImageRecord => (uid === "none" ? rest : { ...rest, uid })),
    { nil: undefined },
  ),
})
const crash = (fields: Partial<Crash>): Crash => ({ image: v2, isLoop: true, isOver: false, at: 0, message: "", said: "", ...fields }) // biome-ignore format: a row
const anyTrace = fc.option(
  fc.record({
    pods: fc.nat({ max: 2 }),
    troubles: fc.constantFrom(
      [],
      [{ reason: "ImagePullFailed" as const, message: "", isTentative: false, images: [v2], pods: 1 }],
      [{ reason: "Unhealthy" as const, message: "", isTentative: true, images: [v2, "shop/web:3"], pods: 1 }],
      [{ reason: "QuotaExceeded" as const, message: "", isTentative: false, images: undefined, pods: 0 }],
    ),
    crashes: fc.constantFrom<Crash[][]>([], [], [crash({})], [crash({ isOver: true, at: rules.startedAt + 30 * second })], [crash({ isLoop: false })]), // biome-ignore format: a row
    steadyAt: fc.constant(0),
    lost: fc.constantFrom([], [{ images: ["shop/web:1"], count: 2, examples: [{ key: "a/pod", node: "gone" }] }]),
  }),
  { nil: undefined },
)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("set" as const), key, fields: anyMember }) },
  fc.record({ do: fc.constant("restore" as const), key }),
  fc.record({ do: fc.constant("trace" as const), key, trace: anyTrace }),
  fc.record({ do: fc.constant("delete" as const), key }),
  fc.record({ do: fc.constant("advance" as const), seconds: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ do: fc.constant("hold" as const), key, isWide: fc.boolean() }),
  fc.record({ do: fc.constant("release" as const), key }),
)

/** Everything that happened, in order; what follows from it is computed again each time. */
type Known = {
  rules: FleetRules
  now: number
  members: Map<string, Member>
  traces: Map<string, Trace | undefined>
  holds: Map<string, { since: number; retryAt: number; attempts: number }>
  /** When the next look came after each; undefined until then. */
  restores: Map<string, (number | undefined)[]>
  /** Everything that was ever seen of the health of an object. */
  sights: Map<string, Sight[]>
  /** When objects came that were not in the first look; undefined until the next one. */
  arrivals: Map<string, number | undefined>
}

/** `at` is the next look after it was seen: an event has no time of its own. */
type Sight = { seenAt: number; at: number | undefined; wanted: string; isThere: boolean; isWell: boolean; isOurs: boolean } // biome-ignore format: a row

const backoff = (attempts: number) => Math.min(15 * 2 ** (attempts - 1), 300) * second
const tierFor = ({ rules: { tiers } }: Known, { labels }: Member) =>
  tiers.find(({ name }) => name === labels["upgrade-tier"]) ?? tiers.find(({ name }) => name === "")!
const isOurs = ({ decision }: Member) =>
  decision?.operation === "g1" &&
  decision.by === rules.by &&
  (decision.uid === undefined ? decision.at >= rules.startedAt - 60 * second : decision.uid === rules.uid)

function wantedImage(known: Known, each: Member): string | undefined {
  const { image, fallback } = tierFor(known, each)
  if (!known.rules.isRollback) return image
  if (each.image === "") return fallback
  const { decision } = each
  if (!decision || !isOurs(each) || !sameImage(each.image, decision.to)) return undefined
  const to = decision.reason === "RolledBack" ? decision.to : decision.from || fallback!
  return decision.reason !== "RolledBack" && sameImage(to, decision.to) ? undefined : to
}

/** We gave it the image it is to have, and it has another; or we gave it one, and it has none. */
function isContested(known: Known, each: Member | undefined): boolean {
  if (!each || each.isUnmanaged || !isOurs(each)) return false
  if (each.image === "" || known.rules.isRollback) return each.image === ""
  const { image } = tierFor(known, each)
  return sameImage(each.decision!.to, image) && !sameImage(each.image, image)
}

const stampedAt = ({ decision }: Member, wanted: string) =>
  Math.max(decision && sameImage(decision.to, wanted) && decision.at < 10 ** 12 ? decision.at : 0, rules.startedAt)

/** What the containers with the image did since the stamp, of an object that this operation stamped. */
function crashIn(known: Known, key: string, each: Member, wanted: string): Crash | undefined {
  const found = known.traces.get(key)?.crashes[0]
  if (!found || !isOurs(each) || !sameImage(found.image, wanted)) return undefined
  return found.at === 0 || found.at > stampedAt(each, wanted) - 60 * second ? found : undefined
}

function look(known: Known, key: string): void {
  const each = known.members.get(key)
  if (!each || each.isDeleting) return
  const wanted = wantedImage(known, each)
  const isThere = wanted !== undefined && sameImage(each.image, wanted)
  const crash = isThere ? crashIn(known, key, each, wanted) : undefined
  const isWell = isThere && each.isUpToDate && !(crash?.isLoop && !crash.isOver)
  const seen = { seenAt: known.now, at: undefined, wanted: wanted ?? each.image }
  const sight = { ...seen, isThere, isWell, isOurs: isThere && isOurs(each) }
  known.sights.set(key, [...(known.sights.get(key) ?? []), sight])
}

/** Since when it is well, whether that has lasted, and since when it no longer is: after it had (lapse), or had not. */
function healthOf({ sights, now }: Known, key: string, { settleMs }: TierRule) {
  let before: Sight | undefined
  let well: { at: number | undefined; isProven: boolean } | undefined
  let lapse: { at: number | undefined } | undefined
  let broke: { at: number | undefined } | undefined
  let isGuessed = false
  const isSteadyAt = (time: number) =>
    well !== undefined && (well.isProven || settleMs === 0 || (well.at !== undefined && well.at + settleMs <= time))
  for (const sight of sights.get(key) ?? []) {
    const isSame = before?.wanted === sight.wanted
    const wasSteady = isSame && isSteadyAt(sight.seenAt)
    if (!isSame || !sight.isThere) lapse = undefined
    else if (wasSteady) lapse = sight.isWell ? undefined : { at: sight.at }
    if (!isSame || !sight.isThere || sight.isWell) broke = undefined
    else if (before?.isWell && !wasSteady) broke = { at: sight.at }
    isGuessed = sight.isWell && (before ? isGuessed : sight.isOurs)
    if (!sight.isWell) well = undefined
    else if (!before) well = { at: sight.at, isProven: !sight.isOurs }
    else if (!isSame || !before.isWell) well = { at: sight.at, isProven: false }
    before = sight
  }
  const isSteady = isSteadyAt(now)
  return { isWell: well !== undefined, isSteady, lapse: isSteady ? undefined : lapse, broke, isGuessed }
}

function contestOf(restores: readonly (number | undefined)[], now: number) {
  let found: { count: number; since: number; at: number } | undefined
  for (const dated of restores) {
    const at = dated ?? now
    const isOver = found && at - found.at > 600 * second + backoff(found.count)
    found = found && !isOver ? { ...found, count: found.count + 1, at } : { count: 1, since: at, at }
  }
  return found
}

const crashInTrace = (trace: Trace | undefined, wanted: string) =>
  trace?.crashes.some(({ isLoop, image }) => isLoop && sameImage(image, wanted)) === true

function judge(known: Known, key: string, each: Member) {
  const { now, rules, traces, holds } = known
  const rule = tierFor(known, each)
  const trace = traces.get(key)
  const wanted = wantedImage(known, each)
  const place = placeOf(rules.by, each.uid)
  const cohort = rule.cohortEnds.findIndex(end => place < end)
  const base = {
    key,
    tier: rule.name,
    place,
    cohort,
    each,
    isNew: !rules.isRollback && each.createdAt > rules.startedAt,
  }
  if (each.isUnmanaged) return { ...base, state: "Unmanaged" }
  if (wanted === undefined) return { ...base, state: "Done", isNew: false }
  const isCounted = rules.isRollback ? each.image !== "" : !base.isNew || each.isDeployed
  const lost = trace?.lost.length && !sameImage("shop/web:1", wanted) ? 2 : 0
  const common = { ...base, isCounted, lost }
  if (sameImage(each.image, wanted)) {
    const { isWell, isSteady, lapse, broke, isGuessed } = healthOf(known, key, rule)
    const crash = crashIn(known, key, each, wanted)
    const loops = crash?.isLoop === true && (!crash.isOver || crash.at + rule.settleMs > now)
    const isLapsed = lapse !== undefined
    if (isWell && (isSteady || !isOurs(each) || base.isNew)) return { ...common, state: "Done", isLapsed }
    if (isWell && !loops) return { ...common, state: "Settling", trouble: crash && "Unhealthy", isLapsed, isGuessed }
    const waitsFrom = Math.max(stampedAt(each, wanted), lapse?.at ?? 0, known.arrivals.get(key) ?? 0)
    const isLate = waitsFrom + rule.deadlineMs <= now && (!broke || (broke.at ?? now) + rule.settleMs <= now)
    const isFailed = isLate || loops
    const isLoop = crashInTrace(trace, wanted)
    const found = trace?.troubles.find(({ images }) => !images || images.some(image => sameImage(image, wanted)))
    const isPull = found?.reason === "ImagePullFailed"
    const told = found && (isFailed || !found.isTentative) ? found.reason : isLate ? "Timeout" : undefined
    const trouble = isLoop && !isPull ? "CrashLoop" : told
    const isDue = lapse?.at !== undefined && lapse.at + rule.settleMs <= now
    const isRegressed = lapse !== undefined && (isFailed || isDue)
    return { ...common, state: "Waiting", isFailed, isEarly: isFailed && !isLate, trouble, isRegressed, isLapsed }
  }
  const state = each.image === "" ? "Blank" : "Stale"
  const [own, around] = [holds.get(key), holds.get(each.namespace)]
  const hold = own ?? around
  if (hold) {
    const isHeld = [own, around].some(each => each && each.retryAt > now)
    const isFailed = hold.since + rule.deadlineMs <= now
    return { ...common, state, isFailed, isHeld, trouble: "Forbidden" }
  }
  const contest = isContested(known, each) ? contestOf(known.restores.get(key) ?? [], now) : undefined
  if (!contest || contest.count < 2) return { ...common, state }
  const [isFailed, isHeld] = [contest.since + rule.deadlineMs <= now, contest.at + backoff(contest.count - 1) > now]
  return { ...common, state, isFailed, isHeld, trouble: contest.count >= 3 || isFailed ? "Contested" : undefined }
}
type Judged = ReturnType<typeof judge> & { isCounted?: boolean; isFailed?: boolean; isHeld?: boolean; isEarly?: boolean; isRegressed?: boolean; isLapsed?: boolean; isGuessed?: boolean; trouble?: string | undefined; lost?: number } // biome-ignore format: a row

function counts(list: readonly Judged[]) {
  const failed = list.filter(each => each.isFailed)
  const open = list.filter(each => !each.isFailed)
  const stamped = list.filter(({ state }) => state !== "Stale" && state !== "Blank")
  return {
    total: list.length,
    stale: open.filter(({ state }) => state === "Stale" || state === "Blank").length,
    waiting: open.filter(({ state }) => state === "Waiting").length,
    settling: open.filter(({ state }) => state === "Settling").length,
    done: open.filter(({ state }) => state === "Done").length,
    failed: failed.length,
    guessed: open.filter(({ state, isGuessed }) => state === "Settling" && isGuessed).length,
    stamped: stamped.length,
    unpullable: stamped.filter(({ state, trouble }) => state === "Waiting" && trouble === "ImagePullFailed").length,
    crashing: stamped.filter(
      ({ each, state, trouble }) => state === "Waiting" && isOurs(each) && trouble === "CrashLoop",
    ).length,
    invalid: 0,
  }
}

function recount(known: Known, rule: TierRule) {
  const mine: Judged[] = [...known.members]
    .filter(([, each]) => !each.isDeleting)
    .map(([key, each]) => judge(known, key, each))
    .filter(({ tier }) => tier === rule.name)
    .sort((a, b) => a.place - b.place)
  const managed = mine.filter(({ state }) => state !== "Unmanaged")
  const counted = managed.filter(each => each.isCounted)
  const failed = counted.filter(each => each.isFailed)
  const isIn = (step: number) => (each: Judged) => each.cohort <= step
  const first = (step: number) => (counted.some(isIn(step)) ? counted.filter(isIn(step)) : counted.slice(0, 1))
  const free = (state: string) => managed.filter(each => each.state === state && !each.isHeld)
  const steps = rule.cohortEnds.map((_, step) => step)
  const isLast = (step: number) => step === steps.length - 1
  return {
    total: managed.length,
    unmanaged: mine.length - managed.length,
    updated: managed.filter(({ state }) => state !== "Stale" && state !== "Blank").length,
    upToDate: managed.filter(({ state }) => state === "Done" || state === "Settling").length,
    toUpdate: managed.filter(({ state, isNew }) => state !== "Done" && !isNew).length,
    underWay: managed.filter(({ state, isFailed }) => state === "Settling" || (state === "Waiting" && !isFailed))
      .length,
    newcomers: managed.filter(({ isNew, isCounted }) => isNew && !isCounted).length,
    early: failed.filter(each => each.isEarly).length,
    regressed: counted.filter(each => each.isRegressed).length,
    regressedAndFailed: failed.filter(each => each.isRegressed).length,
    lapsed: counted.filter(({ isLapsed, isFailed, each }) => isLapsed && !isFailed && isOurs(each)).length,
    regressedWithStamp: counted.filter(({ isRegressed, each }) => isRegressed && isOurs(each)).length,
    lostPods: managed.reduce((sum, { lost = 0 }) => sum + lost, 0),
    halting: failed.filter(({ each }) => each.haltsOnFailure).length,
    ignored: failed.filter(({ each }) => !each.haltsOnFailure).length,
    counted: counts(counted),
    cohorts: steps.map(step => counts(isLast(step) ? counted : first(step))),
    // A share without objects takes the first in the queue; objects that do not count yet follow when it has some.
    stale: steps.map(step => {
      const all = free("Stale")
      const chosen = isLast(step)
        ? all
        : all.filter(counted.some(isIn(step)) ? isIn(step) : each => each === counted[0])
      return chosen.map(each => each.key)
    }),
    blank: free("Blank").map(each => each.key),
    troubles: Object.fromEntries(
      [
        ...Map.groupBy(
          managed.filter(each => each.trouble),
          each => each.trouble!,
        ),
      ].map(([reason, all]) => [reason, all.length]),
    ),
  }
}

function told(tier: TierView): ReturnType<typeof recount> {
  const { total, unmanaged, updated, upToDate, toUpdate, underWay, lostPods, halting, ignored, counted, rule } = tier
  const { newcomers, early, regressed, regressedAndFailed, regressedWithStamp, lapsed } = tier
  const steps = rule.cohortEnds.map((_, step) => step)
  const keys = (list: readonly { key: string }[]) => list.map(each => each.key)
  return {
    ...{ total, unmanaged, updated, upToDate, toUpdate, underWay, lostPods, halting, ignored, counted },
    ...{ newcomers, early, regressed, regressedAndFailed, regressedWithStamp, lapsed },
    cohorts: steps.map(step => tier.cohort(step)),
    stale: steps.map(step => keys(tier.stale(99, step))),
    blank: keys(tier.blank(99)),
    troubles: Object.fromEntries(tier.troubles.map(({ reason, count }) => [reason, count])),
  }
}

test("what is kept with each event equals a recount, forwards and back", () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(step, { maxLength: 60, size: "max" }), (isBack, steps) => {
      const with_ = isBack ? back : settling
      const fleet = new Fleet(with_, rules.startedAt)
      const known: Known = { rules: with_, now: rules.startedAt, members: new Map(), traces: new Map(), holds: new Map(), restores: new Map(), sights: new Map(), arrivals: new Map() } // biome-ignore format: a row
      const { members, traces, holds, restores, sights, arrivals } = known
      let version = 1
      let isListed = false
      const forget = (key: string) => {
        for (const map of [traces, holds, restores, sights, arrivals]) map.delete(key)
      }
      // An object that has its image was not refused it.
      const forgetHold = (key: string) => {
        const each = members.get(key)!
        if (!each.isDeleting && !["Stale", "Blank"].includes(judge(known, key, each).state)) holds.delete(key)
      }
      const set = (key: string, next: Member) => {
        const before = members.get(key)
        if (before && before.uid !== next.uid) forget(key)
        const was = before?.uid === next.uid && !before.isDeleting && isContested(known, before)
        if (!was && isContested(known, next)) restores.set(key, [...(restores.get(key) ?? []), undefined])
        if (isListed && before?.uid !== next.uid) arrivals.set(key, undefined)
        members.set(key, next)
        look(known, key)
        forgetHold(key)
        fleet.set(key, next)
      }
      for (const step of steps) {
        if (step.do === "set") {
          const { tier, life, ...fields } = step.fields
          const [namespace = "", resourceVersion] = [step.key.slice(0, 1), String(version++)]
          const uid = `${step.key} ${life}`
          const before = members.get(step.key)
          // A deletion is never taken back.
          const isDeleting = fields.isDeleting || (before?.uid === uid && before.isDeleting)
          set(step.key, member({ ...fields, isDeleting, tier, namespace, resourceVersion, uid }))
        } else if (step.do === "restore") {
          // We stamp it, and another writer puts another image back.
          const before = members.get(step.key)
          if (!before || before.isDeleting) continue
          const { image } = tierFor(known, before)
          const decision = ours({ to: image })
          const both = { ...before, decision, isUnmanaged: false }
          set(step.key, { ...both, image, resourceVersion: String(version++) })
          set(step.key, { ...both, image: "shop/web:1", resourceVersion: String(version++) })
        } else if (step.do === "trace") {
          fleet.trace(step.key, step.trace)
          if (members.has(step.key)) traces.set(step.key, step.trace)
          look(known, step.key)
        } else if (step.do === "delete") {
          members.delete(step.key)
          forget(step.key)
          fleet.delete(step.key)
        } else if (step.do === "advance") {
          known.now += step.seconds * second
          isListed = true
          for (const [key, at] of arrivals) arrivals.set(key, at ?? known.now)
          for (const [key, list] of restores) restores.set(key, list.map(at => at ?? known.now)) // biome-ignore format: a row
          for (const [key, list] of sights)
            sights.set(
              key,
              list.map(sight => ({ ...sight, at: sight.at ?? known.now })),
            )
          fleet.advance(known.now)
        } else if (step.do === "hold") {
          if (!members.has(step.key)) continue
          const namespace = step.key.slice(0, 1)
          const name = step.isWide ? namespace : step.key
          const attempts = (holds.get(name)?.attempts ?? 0) + 1
          const since = holds.get(name)?.since ?? known.now
          holds.set(name, { since, attempts, retryAt: known.now + backoff(attempts) })
          forgetHold(step.key)
          fleet.refuse(step.isWide ? { namespace } : { key: step.key }, { reason: "Forbidden", message: "" })
        } else {
          holds.delete(step.key)
          if (members.has(step.key)) holds.delete(step.key.slice(0, 1))
          fleet.release(step.key)
        }

        for (const tier of fleet.tiers()) expect(told(tier)).toEqual(recount(known, tier.rule))
        // Everything due was handled: a next look in the past would be a hot loop.
        const next = fleet.nextChangeAt()
        if (next !== undefined) expect(next).toBeGreaterThan(known.now)
      }
    }),
    { numRuns: Number(process.env.AIM_RUNS ?? 300) },
  )
})
