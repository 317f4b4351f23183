import fc from "fast-check"
import { expect, test } from "vitest"
import { endOf, placeOf } from "./cohort.ts"
import { Fleet, type FleetRules } from "./fleet.ts"
import type { Member } from "./member.ts"

// Cohorts as a plan sees them: the objects that the steps of a tier take in.

const percents = [1, 5, 25, 100]
const rules: FleetRules = {
  by: "serviceimage/web",
  uid: "s",
  operation: "g1",
  isRollback: false,
  startedAt: 0,
  tiers: [{ name: "", image: "shop/web:2", deadlineMs: 1000, settleMs: 0, cohortEnds: percents.map(endOf) }],
}
const member = (uid: string): Member => ({
  resourceVersion: "1",
  uid,
  namespace: "n",
  labels: {},
  createdAt: 0,
  isDeleting: false,
  image: "shop/web:1",
  isUnmanaged: false,
  haltsOnFailure: false,
  isUpToDate: true,
  isDeployed: true,
  decision: undefined,
})
const takenIn = (fleet: Fleet, step: number) =>
  fleet
    .tier("")!
    .stale(10_000, step)
    .map(({ key }) => key)

const uids = fc.uniqueArray(fc.nat({ max: 100_000 }).map(String), { maxLength: 60 })

test("1 % is inside 5 % is inside 25 % is inside all, and a step is empty only in an empty tier", () => {
  fc.assert(
    fc.property(uids, all => {
      const fleet = new Fleet(rules, 0)
      for (const uid of all) fleet.set(uid, member(uid))
      const shares = percents.map((_, step) => takenIn(fleet, step))
      for (const [step, share] of shares.entries()) {
        expect(share.length > 0).toBe(all.length > 0)
        for (const key of share) expect(shares[step + 1] ?? share).toContain(key)
        expect(fleet.tier("")!.cohort(step).total).toBe(share.length)
      }
      expect(shares.at(-1)).toHaveLength(all.length)
    }),
  )
})

test("adding or removing objects moves no other one; only an object that is first by default may give way", () => {
  fc.assert(
    fc.property(uids, uids, (here, coming) => {
      const fleet = new Fleet(rules, 0)
      for (const uid of here) fleet.set(uid, member(uid))
      const byThreshold = (step: number) =>
        takenIn(fleet, step).filter(uid => placeOf(rules.by, uid) < endOf(percents[step]!))
      const before = percents.map((_, step) => byThreshold(step))
      for (const uid of coming) if (!here.includes(uid)) fleet.set(uid, member(uid))
      for (const [step, share] of before.entries()) expect(byThreshold(step)).toEqual(expect.arrayContaining(share))
      for (const uid of coming) if (!here.includes(uid)) fleet.delete(uid)
      expect(percents.map((_, step) => byThreshold(step))).toEqual(before)
    }),
  )
})

test("a share of many is about that share, and another ServiceImage begins with others", () => {
  const fleet = new Fleet(rules, 0)
  const other = new Fleet({ ...rules, by: "serviceimage/other" }, 0)
  for (let uid = 0; uid < 10_000; uid++) for (const each of [fleet, other]) each.set(`${uid}`, member(`${uid}`))
  const sizes = percents.map((_, step) => takenIn(fleet, step).length / 100)
  for (const [step, percent] of percents.entries())
    expect(Math.abs(sizes[step]! - percent)).toBeLessThan(0.1 * percent + 0.3)
  const both = new Set(takenIn(fleet, 1)).intersection(new Set(takenIn(other, 1)))
  expect(both.size).toBeLessThan(60) // 25 of 500 by chance
})
