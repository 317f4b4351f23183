import { expect, test } from "vitest"
import type { Proof } from "../canary/proof.ts"
import type { InPlaceFacts } from "../in-place/own-hold.ts"
import { endOf } from "./cohort.ts"
import { Fleet, type FleetRules } from "./fleet.ts"
import type { Member } from "./member.ts"

// A stamped workload with a Canary: the Canary says whether the image has proved itself.

const second = 1000
const [v1, v2] = ["shop/web:1", "shop/web:2"]
const startedAt = 100 * second
const stampedAt = 110 * second
const deadlineMs = 60 * second
const rules: FleetRules = {
  by: "serviceimage/web",
  uid: "s1",
  operation: "g1",
  isRollback: false,
  startedAt,
  tiers: [{ name: "", image: v2, deadlineMs, settleMs: 0, cohortEnds: [endOf(100)] }],
}
const stamp = { from: v1, to: v2, reason: "Stamped", operation: "g1", by: "serviceimage/web", uid: "s1", at: stampedAt }
const free: InPlaceFacts = {
  ...{ generation: 1, strategy: undefined, original: "{}", blocked: undefined, takenBack: undefined },
  ...{ isHeld: false, isLent: false, isUnderWay: false },
}
const stamped: Member = {
  resourceVersion: "1",
  uid: "u",
  namespace: "a",
  labels: {},
  createdAt: 0,
  isDeleting: false,
  image: v2,
  isUnmanaged: false,
  haltsOnFailure: false,
  isUpToDate: false,
  isDeployed: true,
  decision: stamp,
  inPlace: free,
}
const underWay: Proof = {
  name: "web",
  state: "UnderWay",
  images: [v2],
  source: [v1],
  message: "at 20 %",
  at: stampedAt,
}
const failed: Proof = { ...underWay, state: "Failed", source: [], message: "too many errors" }
const resting: Proof = { ...failed, state: "AtRest", images: [] }

const late = stampedAt + 10 * deadlineMs
type Row = { member?: Partial<Member>; proof?: Proof; strategy?: "InPlaceOnly"; now?: number; is: object }
const rows: Record<string, Row> = {
  "complete counts do not make it up to date while the run is under way": {
    member: { isUpToDate: true },
    proof: underWay,
    is: { state: "Waiting", isFailed: false, isWell: false },
  },
  "they do when the Canary is at rest": {
    member: { isUpToDate: true },
    proof: resting,
    is: { state: "Done", isWell: true },
  },
  "a run that takes longer than the deadline has not failed": {
    proof: underWay,
    now: late,
    is: { state: "Waiting", isFailed: false, deadline: undefined, changesAt: undefined, trouble: undefined },
  },
  "a run that waits for a person is not up to date, and the deadline counts from its last step": {
    member: { isUpToDate: true },
    proof: { ...underWay, state: "Waiting", at: late - second },
    now: late,
    is: { state: "Waiting", isFailed: false, isWell: false, deadline: late - second + deadlineMs, trouble: undefined },
  },
  "at the deadline such a run has failed, in the words of the Canary, and the others go on": {
    proof: { ...underWay, state: "Waiting", message: "AwaitingApproval" },
    now: late,
    is: { isFailed: true, isEarly: false, trouble: "CanaryFailed", words: "AwaitingApproval" },
  },
  "a run that needs a person is not up to date by its counts": {
    member: { isUpToDate: true },
    proof: { ...underWay, state: "Stalled" },
    is: { state: "Waiting", isFailed: false, isWell: false },
  },
  "a held workload without a run fails at its deadline": {
    proof: resting,
    now: late,
    is: { isFailed: true, isEarly: false, trouble: "Timeout" },
  },
  "the deadline counts from the end of the last run": {
    proof: { ...resting, at: late - second },
    now: late,
    is: { isFailed: false, deadline: late - second + deadlineMs },
  },
  "a time in the future does not put the deadline off": {
    proof: { ...resting, at: late * 2 },
    now: late,
    is: { isFailed: true },
  },
  "a rejected image has failed at once, with the words of the Canary": {
    proof: failed,
    is: { isFailed: true, isEarly: true, trouble: "CanaryFailed", words: "too many errors" },
  },
  "a Canary that rejected another image says nothing about this one": {
    proof: { ...failed, images: [v1] },
    is: { isFailed: false, trouble: undefined },
  },
  "a Canary that needs a person is named, and fails the object at its deadline only": {
    proof: { ...failed, state: "Stalled" },
    is: { isFailed: false, trouble: "CanaryFailed", words: "too many errors" },
  },
  "then it is the reason": {
    proof: { ...failed, state: "Stalled" },
    now: late,
    is: { isFailed: true, trouble: "CanaryFailed" },
  },
  "an image that was rejected and taken back is not stamped again": {
    member: { image: v1, isUpToDate: true },
    proof: failed,
    is: { state: "Stale", isRejected: true, isFailed: true, trouble: "CanaryFailed", words: "too many errors" },
  },
  "it is stamped if this operation has not tried it": {
    member: { image: v1, isUpToDate: true, decision: undefined },
    proof: failed,
    is: { state: "Stale", isRejected: false, isFailed: false },
  },
  "InPlaceOnly does not stamp a workload that a Canary has": {
    member: { image: v1, isUpToDate: true, decision: undefined },
    proof: resting,
    strategy: "InPlaceOnly",
    is: { isKept: true, trouble: "NotInPlace", words: expect.stringContaining("Canary web proves each change") },
  },
  "without a Canary it does": {
    member: { image: v1, isUpToDate: true, decision: undefined },
    strategy: "InPlaceOnly",
    is: { isKept: false, trouble: undefined },
  },
}

for (const [name, { member, proof, strategy, now = stampedAt + second, is }] of Object.entries(rows))
  test(name, () => {
    const tiers = rules.tiers.map(tier => ({ ...tier, ...(strategy && { strategy }) }))
    const fleet = new Fleet({ ...rules, tiers }, now)
    fleet.set("a/web", { ...stamped, ...member }, undefined, proof)
    fleet.advance(now)
    expect(fleet.standing("a/web")).toMatchObject(is)
  })

test("a run about something else leaves an image that was promoted before up to date", () => {
  const fleet = new Fleet(rules, stampedAt)
  fleet.set("a/web", { ...stamped, isUpToDate: true })
  fleet.advance(stampedAt + second)
  fleet.set("a/web", { ...stamped, resourceVersion: "2" })
  fleet.proof("a/web", { ...underWay, source: [v2] })
  fleet.advance(late)
  expect(fleet.standing("a/web")).toMatchObject({ state: "Done", isRegressed: false })
})

test("an object of a new uid has no proof of the one before", () => {
  const fleet = new Fleet(rules, stampedAt)
  fleet.set("a/web", stamped, undefined, failed)
  fleet.set("a/web", { ...stamped, uid: "other", resourceVersion: "2" })
  expect(fleet.proofOf("a/web")).toBeUndefined()
})
