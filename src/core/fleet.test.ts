import fc from "fast-check"
import { expect, test } from "vitest"
import { endOf } from "./cohort.ts"
import { Fleet, type FleetRules, type TierView } from "./fleet.ts"
import { sameImage } from "./image-reference.ts"
import type { Member } from "./member.ts"

const second = 1000
const rules: FleetRules = {
  by: "serviceimage/web",
  operation: "g1",
  isRollback: false,
  startedAt: 100 * second,
  tiers: [
    { name: "", image: "shop/web:2", deadlineMs: 60 * second, cohortEnds: [1, 25, 100].map(endOf) },
    { name: "early", image: "shop/web:3", deadlineMs: 30 * second, cohortEnds: [endOf(100)] },
  ],
}
/** Of the default tier: everybody. */
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
  expect([...fleet.unmatched]).toEqual(["a/1"])
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

// ---- the index equals a plain recount, whatever happens in whatever order ----

const key = fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2")
const anyMember = fc.record({
  tier: fc.constantFrom("", "early", "nobody"),
  image: fc.constantFrom("", "shop/web:1", "shop/web:2", "docker.io/shop/web:3"),
  isUnmanaged: fc.boolean(),
  isDeleting: fc.boolean(),
  haltsOnFailure: fc.boolean(),
  isUpToDate: fc.boolean(),
  isDeployed: fc.boolean(),
  createdAt: fc.constantFrom(0, rules.startedAt + 1),
})
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("set" as const), key, fields: anyMember }) },
  fc.record({ do: fc.constant("delete" as const), key }),
  fc.record({ do: fc.constant("advance" as const), seconds: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ do: fc.constant("hold" as const), key, isWide: fc.boolean() }),
  fc.record({ do: fc.constant("release" as const), key }),
)

function recount(members: Map<string, Member>, tier: TierView) {
  const mine = [...members.values()].filter(
    each => !each.isDeleting && (each.labels["upgrade-tier"] === "early") === (tier.rule.name === "early"),
  )
  const managed = mine.filter(each => !each.isUnmanaged)
  const updated = managed.filter(each => sameImage(each.image, tier.rule.image))
  const counted = managed.filter(each => each.createdAt <= rules.startedAt || each.isDeployed)
  const upToDate = updated.filter(each => each.isUpToDate)
  return {
    total: managed.length,
    updated: updated.length,
    upToDate: upToDate.length,
    toUpdate: managed.filter(each => each.createdAt <= rules.startedAt && !upToDate.includes(each)).length,
    unmanaged: mine.length - managed.length,
    counted: counted.length,
    done: counted.filter(each => updated.includes(each) && each.isUpToDate).length,
  }
}

test("counts kept with each event equal a recount", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), steps => {
      const fleet = new Fleet(rules, rules.startedAt)
      const members = new Map<string, Member>()
      let now = rules.startedAt
      let version = 1
      for (const step of steps) {
        if (step.do === "set") {
          const { tier, ...fields } = step.fields
          const next = member({ ...fields, tier, namespace: step.key.slice(0, 1), resourceVersion: String(version++) })
          members.set(step.key, next)
          fleet.set(step.key, next)
        } else if (step.do === "delete") {
          members.delete(step.key)
          fleet.delete(step.key)
        } else if (step.do === "advance") {
          now += step.seconds * second
          fleet.advance(now)
        } else if (step.do === "hold")
          fleet.refuse(step.isWide ? { namespace: step.key.slice(0, 1) } : { key: step.key }, {
            reason: "Forbidden",
            message: "",
          })
        else fleet.release(step.key)

        for (const tier of fleet.tiers()) {
          const { total, updated, upToDate, toUpdate, unmanaged, counted } = tier
          expect({ total, updated, upToDate, toUpdate, unmanaged, counted: counted.total, done: counted.done }).toEqual(
            recount(members, tier),
          )
          expect(counted.stale + counted.waiting + counted.done + counted.failed).toBe(counted.total)
          expect(tier.halting + tier.ignored).toBe(counted.failed)
          for (const { key, member } of [...tier.stale(99, last), ...tier.blank(99)])
            expect(members.get(key)).toBe(member)
        }
        // What has fallen due was dealt with: nothing asks to be looked at in the past, which would be a hot loop.
        const next = fleet.nextChangeAt()
        if (next !== undefined) expect(next).toBeGreaterThan(now)
      }
    }),
    { numRuns: Number(process.env.AIM_RUNS ?? 300) },
  )
})
