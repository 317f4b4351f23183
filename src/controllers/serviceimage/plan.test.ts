import { describe, expect, test } from "vitest"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { formatInstant } from "#lib/instant.ts"
import { type Plan, plan } from "./plan.ts"
import {
  after,
  begun,
  condition,
  decide,
  dicom,
  done,
  fleet,
  look,
  on,
  second,
  start,
  v1,
  v2,
  v3,
  type World,
  words,
} from "./test-snapshot.ts"

const cases: Record<
  string,
  { given: World; stamps: Record<string, string>; reason: string; complete?: string; priority?: number }
> = {
  "stamps the highest priority first, and only that": {
    given: {},
    stamps: { "n/e1": v2, "n/e2": v2 },
    reason: "RollingOut",
    priority: 1,
  },
  "waits until every object of the tier is up to date": {
    given: { members: { ...on(v2, "n/e1", "n/e2"), "n/e2": dicom({ tier: "early", image: v2, isUpToDate: false }) } },
    stamps: {},
    reason: "WaitingForHealth",
    priority: 1,
  },
  "goes on to the next priority when the tier is done": {
    given: { members: on(v2, "n/e1", "n/e2") },
    stamps: { "n/d1": v2, "n/d2": v2 },
    reason: "RollingOut",
    priority: 0,
  },
  "is complete when every object is up to date": {
    given: { members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2") },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
    priority: 0,
  },
  "works tiers of one priority together": {
    given: { spec: { tiers: [{ upgradeTier: "early" }, { upgradeTier: "" }] } },
    stamps: { "n/d1": v2, "n/d2": v2, "n/e1": v2, "n/e2": v2 },
    reason: "RollingOut",
  },
  "takes another writing of the same image for the same image": {
    given: { members: on("docker.io/shop/web:2", "n/e1", "n/e2", "n/d1", "n/d2") },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "finds nothing to do where there are no objects": {
    given: { members: {} },
    stamps: {},
    reason: "NoObjects",
    complete: "True",
  },
  "is complete where only newcomers are on their way, and does not call them up to date": {
    given: { members: { "n/new": dicom({ createdAt: start + 1, isDeployed: false, image: v2, isUpToDate: false }) } },
    stamps: {},
    reason: "NoObjects",
    complete: "True",
  },
  "leaves objects alone whose owner chose the image, and does not wait for them": {
    given: { members: { ...on(v2, "n/e1", "n/e2", "n/d1"), "n/d2": dicom({ isUnmanaged: true, isUpToDate: false }) } },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "does not wait for an object that is being deleted": {
    given: { members: { ...on(v2, "n/e1", "n/e2", "n/d1"), "n/d2": dicom({ isDeleting: true }) } },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "gives an object without an image its tier's image at once: on the first rollout the target": {
    given: { members: { ...fleet, "n/new": dicom({ image: "", createdAt: start + 1, isDeployed: false }) } },
    stamps: { "n/e1": v2, "n/e2": v2, "n/new": v2 },
    reason: "RollingOut",
    priority: 1,
  },
  "on a later rollout the image that last completed there, until the tier's turn comes": {
    given: {
      status: done,
      spec: { defaultImage: v3 },
      generation: 2,
      members: {
        ...on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
        "n/new": dicom({ image: "", createdAt: start + 1, isDeployed: false }),
      },
    },
    stamps: { "n/e1": v3, "n/e2": v3, "n/new": v2 },
    reason: "RollingOut",
    priority: 1,
  },
  "and the target, without a detour, when the turn has come": {
    given: {
      status: done,
      spec: { defaultImage: v3 },
      generation: 2,
      members: {
        ...on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
        "n/new": dicom({ tier: "early", image: "", createdAt: start + 1, isDeployed: false }),
      },
    },
    stamps: { "n/e1": v3, "n/e2": v3, "n/new": v3 },
    reason: "RollingOut",
    priority: 1,
  },
  "does not wait for objects that were created later and never deployed": {
    given: {
      status: begun,
      members: {
        ...on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
        "n/new": dicom({ image: v2, createdAt: start + 1, isDeployed: false, isUpToDate: false }),
      },
    },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "halts at the deadline of an object whose failure halts, before the next priority": {
    given: {
      status: begun,
      now: start + 601 * second,
      members: {
        ...on(v2, "n/e1"),
        "n/e2": dicom({ tier: "early", image: v2, isUpToDate: false, haltsOnFailure: true }),
      },
    },
    stamps: {},
    reason: "FailureHaltsUpdate",
    priority: 1,
  },
  "goes on by itself when that object recovers": {
    given: {
      status: begun,
      now: start + 601 * second,
      members: { ...on(v2, "n/e1"), "n/e2": dicom({ tier: "early", image: v2, haltsOnFailure: true }) },
    },
    stamps: { "n/d1": v2, "n/d2": v2 },
    reason: "RollingOut",
  },
  "ignores the failure of an object that does not ask for a halt": {
    given: {
      status: begun,
      now: start + 601 * second,
      members: { ...on(v2, "n/e1"), "n/e2": dicom({ tier: "early", image: v2, isUpToDate: false }) },
    },
    stamps: { "n/d1": v2, "n/d2": v2 },
    reason: "RollingOut",
  },
  "halts when every object fails, whatever the flags": {
    given: {
      status: begun,
      now: start + 601 * second,
      members: {
        ...fleet,
        "n/e1": dicom({ tier: "early", image: v2, isUpToDate: false }),
        "n/e2": dicom({ tier: "early", image: v2, isUpToDate: false }),
      },
    },
    stamps: {},
    reason: "AllFailed",
    priority: 1,
  },
  "gives new objects the proven image while it is halted": {
    given: {
      status: after({
        status: done,
        spec: { defaultImage: v3 },
        generation: 2,
        members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
      }),
      spec: { defaultImage: v3 },
      generation: 2,
      now: start + 601 * second,
      members: {
        ...on(v2, "n/e1", "n/d1", "n/d2"),
        "n/e1": dicom({ tier: "early", image: v3 }),
        "n/e2": dicom({ tier: "early", image: v3, isUpToDate: false, haltsOnFailure: true }),
        "n/new": dicom({ tier: "early", image: "", createdAt: start + 1, isDeployed: false }),
      },
    },
    stamps: { "n/new": v2 },
    reason: "FailureHaltsUpdate",
    priority: 1,
  },
  "reopens a finished tier for an object with another image, and holds lower priorities": {
    given: { status: after({ members: on(v2, "n/e1", "n/e2") }), members: on(v2, "n/e1") },
    stamps: { "n/e2": v2 },
    reason: "TierReopened",
    priority: 1,
  },
  "does not rewind for an object that lost its health after its tier was done": {
    given: {
      status: done,
      members: {
        ...on(v2, "n/e1", "n/d1", "n/d2"),
        "n/e2": dicom({ tier: "early", image: v2, isUpToDate: false, haltsOnFailure: true }),
      },
    },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "stays complete through an edit that changes no image": {
    given: {
      status: done,
      generation: 2,
      spec: { pace: { podsPerSecond: 1 } },
      members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
    },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "starts again from the highest priority when the image changes": {
    given: { status: done, generation: 2, spec: { defaultImage: v3 }, members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2") },
    stamps: { "n/e1": v3, "n/e2": v3 },
    reason: "RollingOut",
    priority: 1,
  },
  "goes back to an older image like to any other": {
    given: { status: done, generation: 2, spec: { defaultImage: v1 }, members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2") },
    stamps: { "n/e1": v1, "n/e2": v1 },
    reason: "RollingOut",
    priority: 1,
  },
  "stamps nothing while paused, not even new objects": {
    given: { spec: { paused: true }, members: { ...fleet, "n/new": dicom({ image: "" }) } },
    stamps: {},
    reason: "Paused",
    priority: 1,
  },
  "keeps no more on their way than maxConcurrent": {
    given: {
      spec: { tiers: [{ upgradeTier: "", maxConcurrent: 2 }] },
      members: { ...on(v2), "n/e1": dicom({ image: v2, isUpToDate: false }) },
    },
    stamps: { "n/d1": v2 },
    reason: "RollingOut",
  },
  "stamps what was never deployed in a finished tier at once, while others are under way": {
    given: {
      status: after({ members: on(v2, "n/e1", "n/e2") }),
      members: {
        ...on(v2, "n/e1", "n/e2"),
        "n/new": dicom({ tier: "early", createdAt: start + 1, isDeployed: false }),
      },
    },
    stamps: { "n/d1": v2, "n/d2": v2, "n/new": v2 },
    reason: "RollingOut",
  },
  "gives a new object the proven image while maxConcurrent leaves no room for the new one": {
    given: {
      status: done,
      spec: { defaultImage: v3, tiers: [{ upgradeTier: "", maxConcurrent: 1 }] },
      generation: 2,
      members: {
        "n/d1": dicom({ image: v3, isUpToDate: false }),
        "n/new": dicom({ image: "", createdAt: start + 1, isDeployed: false }),
      },
    },
    stamps: { "n/new": v2 },
    reason: "WaitingForHealth",
  },
  "shares the pace between the tiers of one priority": {
    given: {
      see: { pace: { pods: 3, readyAt: start } },
      spec: { tiers: [{ upgradeTier: "early" }, { upgradeTier: "" }] },
    },
    stamps: { "n/d1": v2, "n/d2": v2, "n/e1": v2 },
    reason: "RollingOut",
  },
  "rounds a percentage down, and to no less than one": {
    given: { spec: { tiers: [{ upgradeTier: "", maxConcurrent: "10%" }] } },
    stamps: { "n/d1": v2 },
    reason: "RollingOut",
  },
  "stamps no faster than the pace": {
    given: { see: { pace: { pods: 1, readyAt: start } } },
    stamps: { "n/e1": v2 },
    reason: "RollingOut",
    priority: 1,
  },
  "is not held back by the pace for objects that have no pods yet": {
    given: { see: { pace: { pods: 0, readyAt: start + 100 } }, members: { ...fleet, "n/new": dicom({ image: "" }) } },
    stamps: { "n/new": v2 },
    reason: "RollingOut",
    priority: 1,
  },
  "puts objects of no tier last, on the default image": {
    given: { spec: { tiers: [{ upgradeTier: "early", priority: -5 }] } },
    stamps: { "n/e1": v2, "n/e2": v2 },
    reason: "RollingOut",
    priority: -5,
  },
  "leaves objects of no tier alone where there is no default image": {
    given: {
      spec: { defaultImage: "", tiers: [{ upgradeTier: "early", image: v2 }] },
      members: on(v2, "n/e1", "n/e2"),
    },
    stamps: {},
    reason: "AllUpToDate",
    complete: "True",
  },
  "concludes nothing about a kind the cluster does not serve": {
    given: { see: { target: { state: "Missing" } } },
    stamps: {},
    reason: "KindNotFound",
  },
  "concludes nothing from a list that failed": {
    given: { see: { target: { state: "Unreadable", message: "no" } }, members: {} },
    stamps: {},
    reason: "ListFailed",
  },
  "is not complete while an older ServiceImage has some of its objects, and stamps the others": {
    given: { see: { conflicts: { count: 3, with: "older" } } },
    stamps: { "n/e1": v2, "n/e2": v2 },
    reason: "ClaimedByAnother",
    priority: 1,
  },
  "refuses InPlaceOnly for a kind that its own controller updates": {
    given: { spec: { tiers: [{ upgradeTier: "", updateStrategy: "InPlaceOnly" }] } },
    stamps: {},
    reason: "NotInPlace",
  },
  "lets a custom kind be updated by its own controller where it cannot be in place": {
    given: { spec: { tiers: [{ upgradeTier: "", updateStrategy: "InPlaceIfPossible" }] } },
    stamps: { "n/d1": v2, "n/d2": v2, "n/e1": v2, "n/e2": v2 },
    reason: "RollingOut",
  },
}

describe("plan", () => {
  for (const [name, { given, stamps, reason, complete = "False", priority = 0 }] of Object.entries(cases))
    test(name, () => expect(words(decide(given))).toEqual({ stamps, reason, complete, priority }))
})

test("newcomers of a paused rollout are said to wait", () => {
  const newcomer = dicom({ createdAt: start + 1, isDeployed: false, image: "", isUpToDate: false })
  const { status } = decide({ members: { "n/new": newcomer }, spec: { paused: true } })
  expect(status.conditions.find(({ type }) => type === "Complete")?.message).toBe(
    "no objects existed at the start; 1 created since gets its image when spec.paused is false",
  )
})

test("the same snapshot gives the same plan", () => {
  const seen = look({})
  expect(plan(seen)).toEqual(plan(seen))
})

test("Complete of an earlier generation is never left standing: both move in one status", () => {
  const next = decide({
    status: done,
    generation: 2,
    spec: { defaultImage: v3 },
    members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
  })
  expect(next.status.observedGeneration).toBe(2)
  expect(
    next.status.conditions.map(({ type, status, observedGeneration }) => ({ type, status, observedGeneration })),
  ).toEqual([
    { type: "Complete", status: "False", observedGeneration: 2 },
    { type: "InProgress", status: "True", observedGeneration: 2 },
    { type: "Ready", status: "False", observedGeneration: 2 },
    { type: "Stalled", status: "False", observedGeneration: 2 },
  ])
})

test("a condition's time moves only when its status flips", () => {
  const later = decide({ status: begun, now: start + 5 * second, members: on(v2, "n/e1", "n/e2") })
  expect(condition(later, "Complete")!.lastTransitionTime).toBe(formatInstant(start))
  const end = decide({ status: later.status, now: start + 9 * second, members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2") })
  expect(condition(end, "Complete")!.lastTransitionTime).toBe(formatInstant(start + 9 * second))
})

test("a tier's newDeploymentImage flips when the tier completes, not before", () => {
  const images = ({ status }: Plan) =>
    Object.fromEntries(status.tierStatus.map(tier => [tier.upgradeTier, tier.newDeploymentImage]))
  const spec = { defaultImage: v3 }
  const all = on(v2, "n/e1", "n/e2", "n/d1", "n/d2")
  const first = decide({ status: done, generation: 2, spec, members: all })
  expect(images(first)).toEqual({ early: v2, "": v2 })
  const early = { "n/e1": dicom({ tier: "early", image: v3 }), "n/e2": dicom({ tier: "early", image: v3 }) }
  expect(images(decide({ status: first.status, generation: 2, spec, members: { ...all, ...early } }))).toEqual({
    early: v3,
    "": v2,
  })
})

test("a superseded operation goes into the history, a completed one with the time it ended", () => {
  const next = after({
    status: done,
    generation: 2,
    spec: { defaultImage: v3 },
    now: start + 60 * second,
    members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
  })
  expect(next.history.map(({ id, phase, endedAt }) => ({ id, phase, endedAt }))).toEqual([
    { id: "g1", phase: "Complete", endedAt: formatInstant(start) },
  ])
  const third = after({
    status: next,
    generation: 3,
    spec: { defaultImage: v1 },
    now: start + 90 * second,
    members: on(v2, "n/d1"),
  })
  expect(third.history.map(({ id, phase }) => ({ id, phase }))).toEqual([
    { id: "g2", phase: "Superseded" },
    { id: "g1", phase: "Complete" },
  ])
})

test("an invalid edit leaves the last good rollout as it was", () => {
  const next = after({
    status: done,
    generation: 2,
    spec: { tiers: [{ upgradeTier: "", updateStrategy: "InPlaceOnly" }] },
    members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2"),
  })
  expect(next.tierStatus).toEqual(done.tierStatus)
  expect(next.operation).toEqual(done.operation)
  expect(next.observedGeneration).toBe(2)
})

test("looks again when the first deadline passes, or when the pace allows one more", () => {
  const waiting = decide({
    members: { ...on(v2, "n/e1"), "n/e2": dicom({ tier: "early", image: v2, isUpToDate: false }) },
  })
  expect(waiting.lookAgainAt).toBe(start + 600 * second)
  expect(decide({ see: { pace: { pods: 0, readyAt: start + 100 } } }).lookAgainAt).toBe(start + 100)
  expect(decide({}).lookAgainAt).toBeUndefined()
})

test("a failing tier names at most ten objects, many failing tiers fewer each, and the largest status is legal", () => {
  const tiers = Array.from({ length: 64 }, (_, index) => ({
    upgradeTier: `${"t".repeat(60)}${index}`,
    image: `r/${"i".repeat(200)}:${index}`,
    priority: index % 2,
  }))
  const members = Object.fromEntries(
    tiers.flatMap(({ upgradeTier, image }, tier) =>
      Array.from(
        { length: 12 },
        (_, index) =>
          [
            `${"n".repeat(60)}/${"d".repeat(200)}-${tier}-${index}`,
            dicom({ tier: upgradeTier, image, isUpToDate: false }),
          ] as const,
      ),
    ),
  )
  const spec = { tiers, defaultImage: "" }
  const status = after({ spec, members, status: after({ spec, members }), now: start + 601 * second })
  expect(ServiceImage.status.safeParse(status).error).toBeUndefined()
  expect(status.tierStatus.every(tier => tier.failures[0]!.count === 12)).toBe(true)
  expect(JSON.stringify(status).length).toBeLessThan(256_000)
})

test("a kind that is missing waits by itself: it is not stalled", () => {
  const next = decide({ see: { target: { state: "Missing" } } })
  expect(condition(next, "Stalled")).toMatchObject({ status: "False", reason: "NotStalled" })
  expect(condition(next, "Ready")).toMatchObject({ status: "False", reason: "KindNotFound" })
  expect(condition(next, "TargetKindMissing")).toMatchObject({ status: "True" })
})
