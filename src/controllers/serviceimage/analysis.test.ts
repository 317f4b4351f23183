import { describe, expect, test } from "vitest"
import type { ServiceImageSpecInput, TierStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { placeOf } from "#core/fleet/cohort.ts"
import type { Member } from "#core/fleet/member.ts"
import { formatInstant } from "#lib/instant.ts"
import type { RoundCheck } from "./analysis.ts"
import type { Plan } from "./plan.ts"
import { storyOf } from "./report.ts"
import { condition, decide, dicom, look, second, stamped, start, v2, type World } from "./test-snapshot.ts"

// Steps of one tier that are judged by an analysis: every minute, and two failed checks halt.

type Analysis = NonNullable<NonNullable<ServiceImageSpecInput["tiers"]>[number]["analysis"]>

const analysis: Analysis = {
  interval: "1m",
  threshold: 2,
  metrics: [{ name: "errors", templateRef: { name: "errors" }, thresholdRange: { max: 5 } }],
}

/** An object whose place in the queue is at this percent of it. */
function at(percent: number, fields: Partial<Member> = {}): Member {
  for (let attempt = 0; ; attempt++) {
    const uid = `${percent}-${attempt}`
    const place = (placeOf("serviceimage/web", uid) / 2 ** 32) * 100
    if (place >= percent && place < percent + 1) return dicom({ uid, ...fields })
  }
}
const crowd = { "n/5": at(5), "n/70": at(70) }
const first = { ...crowd, "n/5": { ...crowd["n/5"], image: v2 } }
const all = { ...first, "n/70": { ...crowd["n/70"], image: v2 } }
const ill = { ...crowd, "n/5": { ...crowd["n/5"], image: v2, isUpToDate: false } }

const good: RoundCheck = { name: "errors", verdict: "Good", value: 1.5 }
const bad: RoundCheck = { name: "errors", verdict: "Bad", value: 9, why: "9 is above 5" }
const silent: RoundCheck = { name: "errors", verdict: "NoData", why: "the query found no series" }
const broken: RoundCheck = { name: "errors", verdict: "Error", why: "no connection" }
const forbidden: RoundCheck = { ...broken, why: "aim may not read Secret s", reason: "Forbidden" }
const no: RoundCheck = { name: "gate", verdict: "No", why: "answered 500" }

const spec = (fields: object = {}, more: Partial<ServiceImageSpecInput> = {}): Partial<ServiceImageSpecInput> => ({
  tiers: [{ upgradeTier: "", steps: [{ percent: 10 }], analysis, ...fields }],
  analysisNamespace: "shop",
  ...more,
})

type Looked = Pick<World, "members" | "spec" | "generation"> & { said?: RoundCheck[] }

/** One look after another, each from nothing but the objects and the status of the one before, as after a restart. */
function story(given: Partial<ServiceImageSpecInput> = spec()) {
  let status: Plan["status"] | undefined
  return (seconds: number, { members = first, said, ...more }: Looked = {}) => {
    const see = said && { checks: new Map([["", said]]) }
    const world = { spec: given, ...more, members, now: start + seconds * second, ...(see && { see }) }
    const seen = look({ ...world, ...(status && { status }) })
    const next = decide({ ...world, ...(status && { status }) })
    const told = storyOf(seen.serviceImage, next.status).map(({ type, reason, message }) => [type, reason, message])
    status = next.status
    return { ...next, told }
  }
}

const tierOf = ({ status }: Plan): TierStatus => status.tierStatus[0]!
const reasonOf = (next: Plan) => condition(next, "Complete")!.reason
const keysIn = (next: Plan) => Object.keys(stamped(next))

describe("a step that is judged", () => {
  test("is asked about an interval after it was up to date, and the next begins when the round is good", () => {
    const see = story()
    see(0, { members: crowd })
    const settled = see(7)
    expect(reasonOf(settled)).toBe("Analysing")
    expect(settled).toMatchObject({ asks: [], stamps: [], lookAgainAt: start + 67 * second })
    expect(see(66).asks).toEqual([])
    const due = see(67)
    const round = { tier: "", percent: 10, number: (start + 67 * second) / 1000, sinceMs: 60 * second }
    expect(due.asks).toEqual([round])
    // Until it is answered it is the same question, and no time wakes us: the answer does.
    expect(see(70)).toMatchObject({ asks: [{ ...round, sinceMs: 63 * second }], lookAgainAt: undefined })
    const judged = see(71, { said: [good] })
    expect(keysIn(judged)).toEqual(["n/70"])
    expect(judged.asks).toEqual([])
    expect(tierOf(judged)).toMatchObject({
      step: { percent: 100 },
      analysis: { percent: 10, verdict: "Good", message: "errors 1.5", failedChecks: 0 },
    })
  })

  test("is judged at the last step too, before the tier is complete", () => {
    const see = story()
    see(0, { members: crowd })
    see(7)
    see(67, { said: [good] })
    expect(reasonOf(see(80, { members: all }))).toBe("Analysing")
    expect(see(140, { members: all }).asks).toMatchObject([{ percent: 100 }])
    const end = see(141, { members: all, said: [good] })
    expect(reasonOf(end)).toBe("AllUpToDate")
    expect(end.lookAgainAt).toBeUndefined()
    // Complete is at rest: nothing is asked any more.
    expect(see(1000, { members: all })).toMatchObject({ asks: [], lookAgainAt: undefined })
  })

  test("is judged throughout its soak, and waits for both", () => {
    const see = story(spec({ steps: [{ percent: 10, soakSeconds: 150 }] }))
    see(0, { members: crowd })
    expect(reasonOf(see(0))).toBe("Soaking")
    const once = see(60, { said: [good] })
    expect(condition(once, "Complete")).toMatchObject({
      reason: "Soaking",
      message: expect.stringMatching(/errors 1.5$/),
    })
    expect(once).toMatchObject({ stamps: [], lookAgainAt: start + 120 * second })
    const twice = see(120, { said: [bad] })
    expect(reasonOf(twice)).toBe("BadMetric")
    // The soak is over, and the last round was not good.
    expect(see(150)).toMatchObject({ asks: [], stamps: [] })
    expect(keysIn(see(180, { said: [good] }))).toEqual(["n/70"])
  })

  test("without steps is the whole tier", () => {
    const see = story(spec({ steps: undefined }))
    see(0, { members: crowd })
    expect(reasonOf(see(0, { members: all }))).toBe("Analysing")
    expect(reasonOf(see(60, { members: all, said: [good] }))).toBe("AllUpToDate")
  })

  test("is not judged where an operation finds every object on its image already", () => {
    expect(reasonOf(story()(0, { members: all }))).toBe("AllUpToDate")
  })

  test("is not judged twice where the next step adds no object", () => {
    const see = story(spec({ steps: [{ percent: 10 }, { percent: 50 }] }))
    see(0, { members: crowd })
    see(0)
    const next = see(60, { said: [good] })
    expect(keysIn(next)).toEqual(["n/70"])
    expect(tierOf(next).step).toEqual({ percent: 100 })
  })

  test("begins again when it was not up to date in between", () => {
    const see = story()
    see(0, { members: crowd })
    see(0)
    expect(reasonOf(see(60, { said: [bad] }))).toBe("BadMetric")
    expect(reasonOf(see(90, { members: ill }))).toBe("WaitingForHealth")
    expect(reasonOf(see(100))).toBe("Analysing")
    expect(see(120).asks).toEqual([])
    expect(see(160).asks).toMatchObject([{ percent: 10 }])
    // What was counted against the image stays counted.
    expect(tierOf(see(160, { said: [bad] })).analysis?.failedChecks).toBe(2)
  })
})

describe("what is found", () => {
  /** The first step, up to date since 0, after rounds that found this. */
  function rounds(found: RoundCheck[][], given = spec()) {
    const see = story(given)
    see(0, { members: crowd })
    see(0)
    let next = see(1)
    for (const [index, said] of found.entries()) next = see(60 * (index + 1), { said })
    return { see, next }
  }

  test("bad: counts, and the step waits", () => {
    const { next } = rounds([[bad]])
    expect(condition(next, "Complete")).toMatchObject({
      reason: "BadMetric",
      message: "default tier: 1 of 2 up to date at step 10%; errors: 9 is above 5 (failed check 1 of 2)",
    })
    expect(next).toMatchObject({ stamps: [], lookAgainAt: start + 120 * second })
    expect(next.told).toContainEqual([
      "Warning",
      "BadMetric",
      "the default tier: errors: 9 is above 5 (failed check 1)",
    ])
  })

  test("bad as often as threshold says: the rollout halts, says which value and limit, and asks no more", () => {
    const { see, next } = rounds([[bad], [good, bad]])
    const says = {
      reason: "BadMetric",
      message: "default tier at step 10%: errors: 9 is above 5 (failed check 2 of 2)",
    }
    expect(condition(next, "Halted")).toMatchObject({ status: "True", ...says })
    expect(condition(next, "Stalled")).toMatchObject({ status: "True", ...says })
    expect(next.told).toEqual([["Warning", "BadMetric", says.message]])
    // Objects that change do not lift it.
    expect(condition(see(130, { members: ill }), "Halted")).toMatchObject(says)
    const later = see(9000)
    expect(condition(later, "Halted")).toMatchObject(says)
    expect(later).toMatchObject({ asks: [], stamps: [], lookAgainAt: undefined })
  })

  test("a good round in between takes no failed check back", () => {
    const { next } = rounds([[bad], [silent], [bad]])
    expect(condition(next, "Halted")).toMatchObject({ reason: "BadMetric" })
  })

  test("with onFailure: Rollback what was changed goes back, and nothing more is asked", () => {
    const { see, next } = rounds([[bad], [bad]], spec({}, { onFailure: "Rollback" }))
    expect(next.status.operation).toMatchObject({
      phase: "RollingBack",
      cause: expect.stringContaining("9 is above 5"),
    })
    expect(see(300)).toMatchObject({ asks: [], tiers: [{ judging: undefined }] })
  })

  test("a hook that says no counts as well", () => {
    const { next } = rounds([[good, no], [no]])
    expect(condition(next, "Halted")).toMatchObject({
      reason: "HookSaidNo",
      message: expect.stringContaining("gate: answered 500"),
    })
  })

  test("no data: it waits, halts at the deadline, and goes on when there is some", () => {
    const { see, next } = rounds([[silent]], spec({ progressDeadlineSeconds: 120 }))
    expect(condition(next, "Complete")).toMatchObject({
      reason: "NoData",
      message: expect.stringContaining("no series"),
    })
    expect(condition(see(120, { said: [silent] }), "Halted")).toBeUndefined()
    const over = see(180, { said: [silent] })
    expect(condition(over, "Halted")).toMatchObject({ reason: "NoData" })
    expect(over.lookAgainAt).toBe(start + 240 * second)
    expect(see(240).asks).toMatchObject([{ percent: 10 }])
    const back = see(240, { said: [good] })
    expect(condition(back, "Halted")).toBeUndefined()
    expect(keysIn(back)).toEqual(["n/70"])
  })

  test("an error: it waits for as long as that lasts, and a person is asked for after four in a row", () => {
    const { see, next } = rounds([[broken], [broken], [broken]])
    expect(condition(next, "Complete")).toMatchObject({
      reason: "MetricError",
      message: expect.stringContaining("no connection"),
    })
    expect(condition(next, "Stalled")).toMatchObject({ status: "False" })
    const stalled = see(240, { said: [broken] })
    expect(condition(stalled, "Stalled")).toMatchObject({ status: "True", reason: "MetricError" })
    expect(condition(stalled, "InProgress")).toMatchObject({ status: "True" })
    expect(condition(stalled, "Halted")).toBeUndefined()
    const healed = see(300, { said: [good] })
    expect(condition(healed, "Stalled")).toMatchObject({ status: "False" })
    expect(keysIn(healed)).toEqual(["n/70"])
  })

  test("an error that does not pass by itself: a person is asked for at once", () => {
    const { next } = rounds([[forbidden]])
    expect(condition(next, "Stalled")).toMatchObject({
      reason: "MetricError",
      message: expect.stringContaining("aim may not read"),
    })
  })

  test("another analysis, or another image, is another judgement", () => {
    const { see } = rounds([[bad], [bad]])
    const patient = spec({ analysis: { ...analysis, threshold: 5 } })
    const again = see(200, { spec: patient, generation: 2 })
    expect(condition(again, "Halted")).toBeUndefined()
    expect(again.asks).toMatchObject([{ percent: 10 }])
    expect(tierOf(see(200, { spec: patient, generation: 2, said: [bad] })).analysis).toMatchObject({ failedChecks: 1 })
    const other = see(260, { spec: { ...patient, defaultImage: "shop/web:3" }, generation: 3 })
    expect(tierOf(other).analysis).toBeUndefined()
  })
})

describe("what was found of an image lasts", () => {
  /** Another tier makes it another operation; the judged one keeps its image. */
  const other = { upgradeTier: "other", priority: -1 }

  function failed(given = spec()) {
    const see = story(given)
    see(0, { members: crowd })
    see(0)
    see(60, { said: [bad] })
    expect(condition(see(120, { said: [bad] }), "Halted")).toMatchObject({ reason: "BadMetric" })
    return see
  }

  test("when another tier gets another image, which is a new operation", () => {
    const see = failed()
    const next = see(130, { spec: { ...spec(), tiers: [...spec().tiers!, other] }, generation: 2 })
    expect(next.status.operation?.id).toBe("g2")
    expect(condition(next, "Halted")).toMatchObject({ reason: "BadMetric" })
    expect(next.stamps).toEqual([])
  })

  test("when the judgement is not over yet: the new operation does not find the tier done", () => {
    const see = story(spec({ steps: undefined }))
    see(0, { members: crowd })
    expect(reasonOf(see(0, { members: all }))).toBe("Analysing")
    const tiers = [...spec({ steps: undefined }).tiers!, other]
    const next = see(30, { spec: { ...spec(), tiers }, generation: 2, members: all })
    expect(condition(next, "Complete")).toMatchObject({ status: "False", reason: "Analysing" })
    expect(next.asks).toEqual([])
    expect(see(60, { spec: { ...spec(), tiers }, generation: 2, members: all }).asks).toMatchObject([{ percent: 100 }])
  })

  test("when the tier loses its objects", () => {
    const see = failed()
    expect(condition(see(130, { members: {} }), "Halted")).toMatchObject({ reason: "BadMetric" })
  })

  test("and a tier that was complete is reopened without another judgement", () => {
    const see = story(spec({ steps: undefined }))
    see(0, { members: crowd })
    see(0, { members: all })
    expect(reasonOf(see(60, { members: all, said: [good] }))).toBe("AllUpToDate")
    see(1000, { members: first })
    const again = see(1010, { members: all })
    expect([reasonOf(again), again.asks]).toEqual(["AllUpToDate", []])
  })

  test("no data takes nothing back, with onFailure: Rollback too", () => {
    const see = story(spec({ progressDeadlineSeconds: 60 }, { onFailure: "Rollback" }))
    see(0, { members: crowd })
    see(0)
    see(60, { said: [silent] })
    const over = see(120, { said: [silent] })
    expect(condition(over, "Halted")).toMatchObject({ reason: "NoData" })
    expect(over.status.operation?.phase).toBe("Halted")
  })

  test("while a step soaks, a round that is due changes no word of the status", () => {
    const see = story(spec({ steps: [{ percent: 10, soakSeconds: 600 }] }))
    see(0, { members: crowd })
    see(0)
    const judged = see(60, { said: [good] })
    expect(condition(see(120), "Complete")!.message).toBe(condition(judged, "Complete")!.message)
  })
})

describe("what changes in the middle of a judgement", () => {
  test("other steps in the spec do not let objects pass that no round found good", () => {
    const see = story()
    see(0, { members: crowd })
    see(0)
    expect(reasonOf(see(60, { said: [bad] }))).toBe("BadMetric")
    // The object that is being judged is in the first of these too, which was never a step.
    const finer = spec({ steps: [{ percent: 8 }, { percent: 20 }] })
    const edited = see(70, { spec: finer, generation: 2 })
    expect([edited.stamps, tierOf(edited).step?.percent]).toEqual([[], 20])
    expect(see(130, { spec: finer, generation: 2 }).asks).toMatchObject([{ percent: 20 }])
    expect(keysIn(see(130, { spec: finer, generation: 2, said: [good] }))).toEqual(["n/70"])
  })

  test("a time without data ends when the step is not up to date, and so does the halt", () => {
    const see = story(spec({ progressDeadlineSeconds: 60 }))
    see(0, { members: crowd })
    see(0)
    see(60, { said: [silent] })
    expect(condition(see(120, { said: [silent] }), "Halted")).toMatchObject({ reason: "NoData" })
    expect(condition(see(130, { members: crowd }), "Halted")).toBeUndefined()
    const again = see(140)
    expect([condition(again, "Halted"), reasonOf(again)]).toEqual([undefined, "Analysing"])
    expect(condition(see(200, { said: [silent] }), "Halted")).toBeUndefined()
    expect(condition(see(260, { said: [silent] }), "Halted")).toMatchObject({ reason: "NoData" })
  })

  test("a pause stops the stamps and not the judgement, as with a soak", () => {
    const see = story()
    see(0, { members: crowd })
    see(0)
    const paused = { spec: { ...spec(), paused: true }, generation: 2 }
    expect(see(60, paused).asks).toMatchObject([{ percent: 10 }])
    const judged = see(60, { ...paused, said: [good] })
    expect([reasonOf(judged), judged.stamps, tierOf(judged).analysis?.verdict]).toEqual(["Paused", [], "Good"])
    expect(keysIn(see(90, { generation: 3 }))).toEqual(["n/70"])
  })
})

describe("two tiers that are judged at once", () => {
  const both: Partial<ServiceImageSpecInput> = {
    analysisNamespace: "shop",
    onFailure: "Rollback",
    tiers: ["a", "b"].map(upgradeTier => ({ upgradeTier, analysis, progressDeadlineSeconds: 60 })),
  }
  const members = Object.fromEntries(["a", "b"].map(tier => [`n/${tier}`, dicom({ uid: tier, tier, image: v2 })]))
  const before = Object.fromEntries(
    Object.entries(members).map(([key, each]) => [key, { ...each, image: "shop/web:1" }]),
  )

  /** The last of these looks: what each tier is found to be, a minute apart. */
  function last(rounds: Record<string, RoundCheck[]>[]): Plan {
    const looks = [{ members: before }, { members }, ...rounds.map(checks => ({ members, checks }))]
    let status: Plan["status"] | undefined
    let next: Plan | undefined
    for (const [index, { members, ...found }] of looks.entries()) {
      const see = "checks" in found ? { checks: new Map(Object.entries(found.checks)) } : {}
      const now = start + Math.max(0, index - 1) * 60 * second
      next = decide({ spec: both, members, now, see, ...(status && { status }) })
      status = next.status
    }
    return next!
  }

  test("each has its own round, and a tier that is found good waits for the other", () => {
    const due = last([{}])
    expect(due.asks).toMatchObject([{ tier: "a" }, { tier: "b" }])
    const one = last([{ a: [good] }])
    expect(one.asks).toMatchObject([{ tier: "b" }])
    expect(condition(one, "Complete")).toMatchObject({ status: "False", reason: "Analysing" })
  })

  test("a tier without data does not hide that the image of the other failed: that is taken back", () => {
    const failed = last([
      { a: [silent], b: [bad] },
      { a: [silent], b: [bad] },
    ])
    expect(failed.status.operation).toMatchObject({ phase: "RollingBack", cause: expect.stringContaining("tier b") })
  })
})

test("a tier without an analysis keeps nothing of one, and asks nothing", () => {
  const see = story(spec({ analysis: undefined }))
  const begun = see(0, { members: crowd })
  expect(begun.asks).toEqual([])
  expect(tierOf(begun)).not.toHaveProperty("analysis")
  expect(keysIn(see(1))).toEqual(["n/70"])
})

test("an interval is at least ten seconds", () => {
  const see = story(spec({ analysis: { ...analysis, interval: "1s" } }))
  see(0, { members: crowd })
  expect(see(0).lookAgainAt).toBe(start + 10 * second)
  expect(tierOf(see(10, { said: [good] })).analysis?.checkedAt).toBe(formatInstant(start + 10 * second))
})

test("an analysis without a namespace is refused where a schema did not", () => {
  const next = decide({ spec: { ...spec(), analysisNamespace: undefined } as never, members: crowd })
  expect(condition(next, "Invalid")).toMatchObject({
    reason: "InvalidTiers",
    message: expect.stringContaining("spec.analysisNamespace"),
  })
})
