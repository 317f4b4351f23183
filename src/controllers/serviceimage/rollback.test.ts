import { describe, expect, test } from "vitest"
import { retryAnnotation, rollbackAnnotation, type ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import type { Member } from "#core/fleet/member.ts"
import type { ImageRecord } from "#core/image/record.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Plan } from "./plan.ts"
import { condition, decide, dicom, second, stamped, start, v1, v2, v3, type World } from "./test-snapshot.ts"

// What an operation changed is taken back: automatically, or when a person asks for it.

const spec = { onFailure: "Rollback" } as const
const decided = (by: Partial<ImageRecord> = {}): ImageRecord => ({
  from: v1,
  to: v2,
  reason: "Stamped",
  operation: "g2",
  by: "serviceimage/web",
  at: start,
  ...by,
})
/** The operation stamped it. */
const changed = (fields: Partial<Member> & { tier?: string } = {}) =>
  dicom({ image: v2, decision: decided(), ...fields })
const back = (fields: Partial<Member> & { tier?: string } = {}) =>
  dicom({ image: v1, decision: decided({ from: v2, to: v1, reason: "RolledBack" }), ...fields })

/** v1 was rolled out and completed; then came v2, which is to be taken back. */
const proven: ServiceImageStatus = decide({
  spec: { defaultImage: v1 },
  members: { "n/a": dicom() },
}).status
const under: ServiceImageStatus = decide({ generation: 2, status: proven, members: { "n/a": dicom() } }).status
const asked: World = { generation: 2, status: under, annotations: { [rollbackAnnotation]: "g2" } }
const reason = (next: Plan) => condition(next, "Complete")!.reason

describe("a rollback", () => {
  const cases: Record<string, { members: Record<string, Member>; stamps: Record<string, string>; reason: string }> = {
    "takes back what this operation changed, and nothing else": {
      members: {
        "n/ours": changed(),
        "n/never": dicom(),
        "n/earlier": changed({ decision: decided({ operation: "g1" }) }),
        "n/theirs": changed({ decision: decided({ by: "serviceimage/other" }) }),
      },
      stamps: { "n/ours": v1 },
      reason: "RollingBack",
    },
    "begins with the lowest priority": {
      members: { "n/early": changed({ tier: "early" }), "n/default": changed() },
      stamps: { "n/default": v1 },
      reason: "RollingBack",
    },
    "waits for it before the next": {
      members: { "n/early": changed({ tier: "early" }), "n/default": back({ isUpToDate: false }) },
      stamps: {},
      reason: "RollingBack",
    },
    "goes on to the next when it is well again": {
      members: { "n/early": changed({ tier: "early" }), "n/default": back() },
      stamps: { "n/early": v1 },
      reason: "RollingBack",
    },
    "gives an object that had no image the last one that proved itself": {
      members: { "n/a": changed({ decision: decided({ from: "", reason: "StampedNew" }) }) },
      stamps: { "n/a": v1 },
      reason: "RollingBack",
    },
    "leaves alone what another writer has changed since": {
      members: { "n/a": changed({ image: v3 }) },
      stamps: {},
      reason: "RolledBack",
    },
    "also where it had been taken back before": {
      members: { "n/a": back({ image: v3 }) },
      stamps: {},
      reason: "RolledBack",
    },
    "leaves an object alone whose owner chose the image": {
      members: { "n/a": changed({ isUnmanaged: true }) },
      stamps: {},
      reason: "RolledBack",
    },
    "is over when all are back": {
      members: { "n/a": back(), "n/b": back({ tier: "early" }) },
      stamps: {},
      reason: "RolledBack",
    },
    "gives newcomers the image that proved itself, and does not wait for them": {
      members: { "n/a": back(), "n/new": dicom({ image: "", isDeployed: false, isUpToDate: false }) },
      stamps: { "n/new": v1 },
      reason: "RolledBack",
    },
    "nor for those that have it and are on their way": {
      members: {
        "n/a": back(),
        "n/new": dicom({
          isDeployed: false,
          isUpToDate: false,
          decision: decided({ from: "", to: v1, reason: "StampedNew" }),
        }),
      },
      stamps: {},
      reason: "RolledBack",
    },
  }
  for (const [name, { members, stamps, reason: word }] of Object.entries(cases))
    test(name, () => {
      const next = decide({ ...asked, members })
      expect({ stamps: stamped(next), reason: reason(next) }).toEqual({ stamps, reason: word })
    })

  test("leaves an object that had no image as it is, when none has ever proved itself", () => {
    const first = decide({ members: { "n/a": dicom({ image: "" }) } }).status
    const decision = decided({ from: "", operation: "g1", reason: "StampedNew" })
    const members = { "n/a": changed({ decision }) }
    const next = decide({ status: first, annotations: { [rollbackAnnotation]: "g1" }, members })
    expect({ stamps: stamped(next), reason: reason(next) }).toEqual({ stamps: {}, reason: "RolledBack" })
  })

  test("gives an object that is created meanwhile the image that the status names for new ones", () => {
    // Neither v1 nor v2 was ever complete: v1 was the first target, and v2 is being taken back.
    const first = decide({ spec: { defaultImage: v1 }, members: { "n/a": dicom({ image: v3 }) } }).status
    const second = decide({ generation: 2, status: first, members: { "n/a": dicom() } }).status
    const members = { "n/a": changed(), "n/new": dicom({ image: "" }) }
    const next = decide({ ...asked, status: second, members })
    expect(next.status.tierStatus.find(({ upgradeTier }) => upgradeTier === "")?.newDeploymentImage).toBe(v1)
    expect(stamped(next)).toEqual({ "n/a": v1, "n/new": v1 })
  })

  test("goes into the history with the time at which all were back, not with that of the next operation", () => {
    const over = decide({ ...asked, members: { "n/a": back() }, now: start + 90 * second }).status
    const later = decide({ ...asked, status: over, members: { "n/a": back() }, now: start + 100 * second }).status
    const next = { status: later, generation: 3, spec: { defaultImage: v3 }, members: { "n/a": back() } }
    expect(decide({ ...next, now: start + 3600 * second }).status.history[0]).toMatchObject({
      id: "g2",
      phase: "RolledBack",
      endedAt: formatInstant(start + 90 * second),
    })
  })

  test("counts unmanaged objects as before", () => {
    const members = { "n/a": back(), "n/own": dicom({ image: v3, isUnmanaged: true }) }
    const [, tier] = decide({ ...asked, members }).status.tierStatus
    expect(tier).toMatchObject({ total: 1, unmanaged: 1 })
  })

  test("does not wait for ever for those that do not become well with the old image, and says so", () => {
    const members = { "n/a": back({ isUpToDate: false }) }
    const next = decide({ ...asked, members, now: start + 700 * second })
    expect(condition(next, "Complete")).toMatchObject({ reason: "RolledBack" })
    expect(condition(next, "Complete")!.message).toMatch(/1 does not become healthy with it/)
  })

  test("of several paths gives each its own image back", () => {
    const was = { "spec.image": "a:1", "spec.sidecar.image": "b:1" }
    const next = decide({ ...asked, members: { "n/a": changed({ decision: decided({ from: "a:1", was }) }) } })
    expect(next.stamps.map(({ key, reason, member }) => ({ key, reason, was: member.decision?.was }))).toEqual([
      { key: "n/a", reason: "RolledBack", was },
    ])
    const images = ["a:1", "b:1"]
    expect(reason(decide({ ...asked, members: { "n/a": back({ image: "a:1", images }) } }))).toBe("RolledBack")
  })

  test("stamps nothing while paused, and goes on afterwards", () => {
    const members = { "n/a": changed() }
    const paused = decide({ ...asked, members, spec: { paused: true } })
    expect([reason(paused), stamped(paused), paused.status.operation?.phase]).toEqual(["Paused", {}, "RollingBack"])
    expect(stamped(decide({ ...asked, members, status: paused.status }))).toEqual({ "n/a": v1 })
  })
})

describe("a rollout that failed", () => {
  const failed = { "n/a": changed({ isUpToDate: false, haltsOnFailure: true }), "n/b": dicom() }
  const late = start + 700 * second

  test("is halted, and taken back only where the spec says so", () => {
    const world = { generation: 2, status: under, members: failed, now: late }
    expect(reason(decide(world))).toBe("FailureHaltsUpdate")
    const next = decide({ ...world, spec })
    expect(next.status.operation).toMatchObject({ phase: "RollingBack" })
    expect(next.status.operation?.cause).toMatch(/n\/a failed and failureHaltsUpdate is set/)
    expect(stamped(next)).toEqual({}) // reported first
    expect(stamped(decide({ ...world, spec, status: next.status }))).toEqual({ "n/a": v1 })
  })

  test("early is taken back only if it lasts: a registry may be away for a moment", () => {
    const troubles = [{ reason: "ImagePullFailed", message: "", isTentative: false, images: [v2], pods: 1 }] as const
    const members = { "n/a": changed({ isUpToDate: false }) }
    const world = {
      generation: 2,
      spec,
      members,
      traces: { "n/a": { pods: 1, troubles, crashes: [], steadyAt: 0, lost: [] } },
    }
    const first = decide({ ...world, status: under, now: start })
    expect([reason(first), first.lookAgainAt]).toEqual(["AllFailed", start + 30 * second])
    expect(reason(decide({ ...world, status: first.status, now: start + 29 * second }))).toBe("AllFailed")
    expect(reason(decide({ ...world, status: first.status, now: start + 30 * second }))).toBe("RollingBack")
  })
})

describe("after a rollback", () => {
  const members = { "n/a": back({ tier: "early" }), "n/b": dicom() }
  const over = decide({ ...asked, members }).status

  test("the spec still names the new image, and nothing happens by itself", () => {
    const next = decide({ generation: 2, status: over, members })
    expect([reason(next), stamped(next)]).toEqual(["RolledBack", {}])
    expect(condition(next, "Stalled")).toMatchObject({ status: "True", reason: "RolledBack" })
  })

  test("a retry is another operation, with another name and nothing approved; the first stands in the history", () => {
    const next = decide({ generation: 2, status: over, members, annotations: { [retryAnnotation]: "g2" } })
    expect([next.status.operation?.id, stamped(next)]).toEqual(["g2_2", { "n/a": v2 }])
    expect(next.status.history.map(({ id, phase }) => `${id} ${phase}`)).toEqual(["g2 RolledBack", "g1 Complete"])
    // The annotation is still there, but is about an operation that is over.
    const again = { ...next.status, operation: { ...next.status.operation!, phase: "RolledBack" as const } }
    const still = decide({
      generation: 2,
      status: again,
      members: { "n/b": dicom() },
      annotations: { [retryAnnotation]: "g2" },
    })
    expect(still.status.operation?.id).toBe("g2_2")
  })

  test("the old image in the spec is complete at once", () => {
    const next = decide({ generation: 3, status: over, members, spec: { defaultImage: v1 } })
    expect([reason(next), stamped(next), next.status.operation?.id]).toEqual(["AllUpToDate", {}, "g3"])
  })
})

test("the history has how many counted, were up to date and failed", () => {
  const members = { "n/a": dicom({ image: v2 }), "n/b": dicom({ image: v2, isUpToDate: false }) }
  const ended = decide({ members, status: decide({ members }).status, now: start + 700 * second }).status
  const next = decide({ members, status: ended, generation: 2, spec: { defaultImage: v3 }, now: start + 800 * second })
  expect(next.status.history).toMatchObject([{ id: "g1", phase: "Complete", total: 2, upToDate: 1, failed: 1 }])
})
