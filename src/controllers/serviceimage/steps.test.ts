import { describe, expect, test } from "vitest"
import { approvedAnnotation, type TierStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { formatApproval } from "#core/fleet/approval.ts"
import { placeOf } from "#core/fleet/cohort.ts"
import type { Member } from "#core/fleet/member.ts"
import type { Trace } from "#core/pods/trace.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Plan } from "./plan.ts"
import { condition, decide, dicom, second, stamped, start, v1, v2, type World } from "./test-snapshot.ts"

// Steps, soaks, approvals, budgets and early halts of one tier.

/** An object whose place in the queue is at this percent of it. */
function at(percent: number, fields: Partial<Member> = {}): Member {
  for (let attempt = 0; ; attempt++) {
    const uid = `${percent}-${attempt}`
    const place = (placeOf("serviceimage/web", uid) / 2 ** 32) * 100
    if (place >= percent && place < percent + 1) return dicom({ uid, ...fields })
  }
}
type Members = Record<string, Member>
const oneTier = (fields: object) => ({ spec: { tiers: [{ upgradeTier: "", ...fields }] } })
const steps = [{ percent: 10, soakSeconds: 100 }, { percent: 50 }]
const crowd: Members = { "n/5": at(5), "n/20": at(20), "n/40": at(40), "n/70": at(70), "n/90": at(90) }
const done = (...keys: string[]) => Object.fromEntries(keys.map(key => [key, { ...crowd[key]!, image: v2 }]))
const waiting = (...keys: string[]) =>
  Object.fromEntries(keys.map(key => [key, { ...crowd[key]!, image: v2, isUpToDate: false }]))
const who = (next: Plan) => Object.keys(stamped(next)).sort()
const tierOf = ({ status }: Plan): TierStatus => status.tierStatus[0]!
const reasonOf = (next: Plan) => condition(next, "Complete")!.reason

/** One look after another, each from the status of the one before. */
function story(world: World) {
  let status: Plan["status"] | undefined
  return (seconds: number, members: Members, more: World = {}) => {
    const next = decide({ ...world, ...more, members, now: start + seconds * second, ...(status && { status }) })
    status = next.status
    return next
  }
}

describe("steps", () => {
  test("are none where an operation finds every object on its image already: there is nothing to soak", () => {
    const see = story(oneTier({ steps }))
    expect(reasonOf(see(0, done("n/5", "n/20", "n/40", "n/70", "n/90")))).toBe("AllUpToDate")
  })

  test("go through shares of the queue, and a last one below all is followed by all", () => {
    const see = story(oneTier({ steps: [{ percent: 10 }, { percent: 50 }] }))
    expect(who(see(0, crowd))).toEqual(["n/5"])
    expect(who(see(1, { ...crowd, ...waiting("n/5") }))).toEqual([])
    expect(who(see(2, { ...crowd, ...done("n/5") }))).toEqual(["n/20", "n/40"])
    const rest = see(3, { ...crowd, ...done("n/5", "n/20", "n/40") })
    expect(who(rest)).toEqual(["n/70", "n/90"])
    expect(tierOf(rest).step).toEqual({ percent: 100 })
    expect(reasonOf(see(4, { ...crowd, ...done("n/5", "n/20", "n/40", "n/70", "n/90") }))).toBe("AllUpToDate")
  })

  test("take the first in the queue alone where the share would be no object", () => {
    const few = { "n/70": at(70), "n/90": at(90), "n/40": at(40) }
    const see = story(oneTier({ steps: [{ percent: 1 }, { percent: 5 }, { percent: 50 }] }))
    expect(who(see(0, few))).toEqual(["n/40"])
    // Steps 5 % and 50 % have the same single object.
    expect(who(see(1, { ...few, "n/40": { ...few["n/40"], image: v2 } }))).toEqual(["n/70", "n/90"])
  })

  test("are reported only for tiers that have some", () => {
    expect(tierOf(decide(oneTier({}))).step).toBeUndefined()
    expect(tierOf(decide({ ...oneTier({ steps }), members: crowd })).step).toEqual({ percent: 10 })
  })

  test("begin again with another image", () => {
    const see = story(oneTier({ steps: [{ percent: 10 }] }))
    see(0, { ...crowd, ...done("n/5") })
    const other = { ...oneTier({ steps: [{ percent: 10 }], image: v1 }), generation: 2 }
    expect(who(see(1, { ...crowd, ...done("n/5", "n/20") }, other))).toEqual(["n/5"])
  })
})

describe("a soak", () => {
  test("starts when the step is up to date, holds the next one back, and says until when", () => {
    const see = story(oneTier({ steps }))
    see(0, { ...crowd, ...waiting("n/5") })
    const soaking = see(7, { ...crowd, ...done("n/5") })
    expect(reasonOf(soaking)).toBe("Soaking")
    expect(who(soaking)).toEqual([])
    expect(tierOf(soaking).step).toEqual({ percent: 10, upToDateAt: formatInstant(start + 7 * second) })
    expect(soaking.lookAgainAt).toBe(start + 107 * second)
    expect(who(see(106, { ...crowd, ...done("n/5") }))).toEqual([])
    expect(who(see(107, { ...crowd, ...done("n/5") }))).toEqual(["n/20", "n/40"])
  })

  test("survives a restart, since it stands in the status; and starts anew when the step is not up to date any more", () => {
    const see = story(oneTier({ steps }))
    see(0, { ...crowd, ...done("n/5") })
    // Every look here is made from nothing but the status and the objects, as after a restart.
    expect(tierOf(see(50, { ...crowd, ...done("n/5") })).step?.upToDateAt).toBe(formatInstant(start))
    expect(reasonOf(see(60, { ...crowd, ...waiting("n/5") }))).toBe("WaitingForHealth")
    expect(who(see(110, { ...crowd, ...done("n/5") }))).toEqual([])
    expect(who(see(209, { ...crowd, ...done("n/5") }))).toEqual([])
    expect(who(see(210, { ...crowd, ...done("n/5") }))).toEqual(["n/20", "n/40"])
  })

  test("of a step that adds no object is passed", () => {
    const few = { "n/5": at(5), "n/90": at(90) }
    const see = story(oneTier({ steps: [{ percent: 10 }, { percent: 50, soakSeconds: 1000 }] }))
    expect(who(see(0, { ...few, "n/5": { ...few["n/5"], image: v2 } }))).toEqual(["n/90"])
  })

  test("after the last step comes before Complete", () => {
    const see = story(oneTier({ steps: [{ percent: 100, soakSeconds: 60 }] }))
    const all = { "n/a": at(5, { image: v2 }) }
    see(0, { "n/a": at(5) })
    expect(reasonOf(see(0, all))).toBe("Soaking")
    expect(reasonOf(see(30, all))).toBe("Soaking")
    expect(reasonOf(see(60, all))).toBe("AllUpToDate")
  })

  test("is not waited for where a tier has no objects, and neither is an approval", () => {
    const tier = { steps: [{ percent: 100, soakSeconds: 60 }], requireApproval: true }
    expect(reasonOf(decide({ ...oneTier(tier), members: {} }))).toBe("NoObjects")
  })
})

describe("an approval", () => {
  const world = { ...oneTier({ requireApproval: true }), members: { "n/a": dicom(), "n/b": dicom() } }
  const approved = (operation: string, tiers = [""]) => ({ [approvedAnnotation]: formatApproval({ operation, tiers }) })

  test("is waited for before the tier starts, and is for one operation and its tiers", () => {
    expect([reasonOf(decide(world)), who(decide(world))]).toEqual(["AwaitingApproval", []])
    expect(who(decide({ ...world, annotations: approved("g1") }))).toEqual(["n/a", "n/b"])
    expect(who(decide({ ...world, annotations: approved("g0") }))).toEqual([])
    expect(who(decide({ ...world, annotations: approved("g1", ["early"]) }))).toEqual([])
    expect(who(decide({ ...world, annotations: { [approvedAnnotation]: "yes" } }))).toEqual([])
  })

  test("is not needed by a tier where there is nothing to do", () => {
    expect(reasonOf(decide({ ...world, members: { "n/a": dicom({ image: v2 }) } }))).toBe("AllUpToDate")
  })

  test("is not needed by a tier that was complete and is open again, however long putting it right takes", () => {
    const see = story(world)
    const many = { "n/a": dicom({ image: v2 }), "n/b": dicom({ image: v2 }), "n/c": dicom({ image: v2 }) }
    expect(reasonOf(see(0, many))).toBe("AllUpToDate")
    const slow = { see: { pace: { pods: 1, readyAt: start } } }
    const first = see(1, { ...many, "n/b": dicom(), "n/c": dicom() }, slow)
    expect([reasonOf(first), who(first)]).toEqual(["TierReopened", ["n/b"]])
    const second = see(2, { ...many, "n/c": dicom() }, slow)
    expect([reasonOf(second), who(second)]).toEqual(["TierReopened", ["n/c"]])
  })

  test("a tier that is open again halts like any other", () => {
    const see = story(oneTier({ failureBudget: 0 }))
    const many = { "n/a": dicom({ image: v2 }), "n/b": dicom({ image: v2 }), "n/c": dicom({ image: v2 }) }
    see(0, many)
    see(1, { ...many, "n/b": dicom(), "n/c": dicom() })
    const failed = { "n/b": dicom({ image: v2, isUpToDate: false }), "n/c": dicom() }
    expect(reasonOf(see(700, { ...many, ...failed }))).toBe("FailureBudgetSpent")
  })

  test("one tier that waits for it does not hold back another of its priority", () => {
    const tiers = [{ upgradeTier: "early", requireApproval: true }, { upgradeTier: "" }]
    expect(who(decide({ spec: { tiers } }))).toEqual(["n/d1", "n/d2"])
  })
})

describe("a failure budget", () => {
  const late = start + 601 * second
  const failing = (count: number, of: number, more: Partial<Member> = {}) =>
    Object.fromEntries(
      Array.from({ length: of }, (_, index) => [
        `n/${index}`,
        dicom({ image: v2, isUpToDate: index >= count, ...(index < count && more) }),
      ]),
    )
  const begun = (world: World) => decide(world).status
  const verdict = (failureBudget: number | string | undefined, members: Members) => {
    const world = { ...oneTier({ failureBudget }), members }
    return reasonOf(decide({ ...world, status: begun(world), now: late }))
  }
  const cases: Record<string, { budget: number | string | undefined; members: Members; reason: string }> = {
    "unset allows everything but that all fail": { budget: undefined, members: failing(9, 10), reason: "AllUpToDate" },
    "0 allows none": { budget: 0, members: failing(1, 10), reason: "FailureBudgetSpent" },
    "a number allows so many": { budget: 2, members: failing(2, 10), reason: "AllUpToDate" },
    "and no more": { budget: 2, members: failing(3, 10), reason: "FailureBudgetSpent" },
    "a percentage rounds up": { budget: "11%", members: failing(2, 10), reason: "AllUpToDate" },
    "but not further": { budget: "11%", members: failing(3, 10), reason: "FailureBudgetSpent" },
    "0 % is none": { budget: "0%", members: failing(1, 10), reason: "FailureBudgetSpent" },
    "does not count unmanaged objects": {
      budget: 0,
      members: failing(3, 10, { isUnmanaged: true }),
      reason: "AllUpToDate",
    },
    "does not count objects that came later and were never deployed": {
      budget: 0,
      members: failing(3, 10, { createdAt: start + 1, isDeployed: false }),
      reason: "AllUpToDate",
    },
  }
  for (const [name, { budget, members, reason }] of Object.entries(cases))
    test(name, () => expect(verdict(budget, members)).toBe(reason))
})

describe("AllFailed", () => {
  const unpullable: Trace = {
    pods: 1,
    troubles: [{ reason: "ImagePullFailed", message: "no such tag", isTentative: false, images: [v2], pods: 1 }],
    crashes: [],
    steadyAt: 0,
    lost: [],
  }
  const fleetOf = (stamped: number, of: number) =>
    Object.fromEntries(
      Array.from({ length: of }, (_, index) => [
        `n/${index}`,
        index < stamped ? dicom({ image: v2, isUpToDate: false }) : dicom(),
      ]),
    )
  const sickAmong = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`n/${index}`, unpullable]))
  const see = (stamped: number, of: number, sick: number, more: World = {}) =>
    reasonOf(
      decide({ ...oneTier({ maxConcurrent: 5 }), members: fleetOf(stamped, of), traces: sickAmong(sick), ...more }),
    )

  test("five of many that cannot pull, and none that can, are enough at once", () => {
    expect(see(4, 100, 4)).not.toBe("AllFailed")
    expect(see(5, 100, 5)).toBe("AllFailed")
    expect(see(5, 100, 4)).not.toBe("AllFailed") // one is not known yet
  })

  test("where there are fewer, all of them are", () => {
    expect(see(2, 3, 2)).not.toBe("AllFailed")
    expect(see(3, 3, 3)).toBe("AllFailed")
    const step = { ...oneTier({ steps: [{ percent: 10 }] }), members: { ...crowd, ...waiting("n/5") } }
    expect(reasonOf(decide({ ...step, traces: { "n/5": unpullable } }))).toBe("AllFailed")
  })

  test("one that succeeded shows that it can be done", () => {
    const members = { ...fleetOf(6, 100), "n/5": dicom({ image: v2 }) }
    expect(see(0, 0, 5, { members })).not.toBe("AllFailed")
  })

  test("five of many that fail otherwise are enough at their deadline", () => {
    const world = { ...oneTier({ maxConcurrent: 5 }), members: fleetOf(5, 100) }
    const status = decide(world).status
    expect(reasonOf(decide({ ...world, status, now: start + 599 * second }))).not.toBe("AllFailed")
    expect(reasonOf(decide({ ...world, status, now: start + 600 * second }))).toBe("AllFailed")
  })

  test("a step is judged by those it added", () => {
    const tier = { ...oneTier({ steps: [{ percent: 10 }, { percent: 50 }] }) }
    const members = { ...crowd, ...done("n/5"), ...waiting("n/20", "n/40") }
    const traces = { "n/20": unpullable, "n/40": unpullable }
    expect(reasonOf(decide({ ...tier, members, traces }))).toBe("AllFailed")
  })
})

test("pods on lost nodes are named in the message of Complete", () => {
  const trace: Trace = { pods: 2, troubles: [], crashes: [], steadyAt: 0, lost: [{ images: [v1], count: 2, examples: [{ key: "n/web-1", node: "a" }, { key: "n/web-2", node: "a" }] }] } // biome-ignore format: a row
  const next = decide({ ...oneTier({}), members: { "n/d": dicom({ image: v2 }) }, traces: { "n/d": trace } })
  expect(condition(next, "Complete")).toMatchObject({ status: "True" })
  expect(condition(next, "Complete")!.message).toMatch(
    /2 pods on lost nodes may still run another image \(n\/web-1 on a/,
  )
  expect(next.status.lostPods).toBe(2)
})
