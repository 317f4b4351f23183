import { describe, expect, test } from "vitest"
import type { Place } from "#core/pods/places.ts"
import { GroupedPlaces } from "#core/pods/places.ts"
import type { Plan } from "./plan.ts"
import type { Job, JobSaid, JobWrite, PreCacheSight } from "./pre-cache.ts"
import { after, condition, decide, fleet, on, second, stamped, start, v2, type World } from "./test-snapshot.ts"

const spec = { preCache: "BeforeTier", preCacheTimeoutSeconds: 60 } as const
const place = (node: string, namespace = "n", ...secrets: string[]): Place => ({ node, namespace, secrets })
const keyOf = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`

/** The pods of the early tier are on these nodes. */
function sight(places: Place[], fields: Partial<PreCacheSight> = {}): PreCacheSight {
  const grouped = new GroupedPlaces()
  grouped.set("x", "early", places)
  return { unknown: undefined, nodesOf: tier => grouped.of(tier), jobs: new Map(), refused: new Map(), ...fields }
}

const two = [place("n1"), place("n2")]
const saying = (said: Partial<JobSaid> = {}): JobSaid => ({
  isReady: false,
  reason: "Pulling",
  message: "",
  succeeded: 0,
  failed: [],
  ...said,
})

/** The jobs that a plan creates, as they are a while later. */
function made(plan: Plan, said: JobSaid | undefined, createdAt = start): Map<string, Job> {
  const jobs = plan.jobs.flatMap(write => (write.do === "create" ? [write] : []))
  return new Map(
    jobs.map(({ namespace, name, spec }) => [
      keyOf({ namespace, name }),
      { namespace, name, uid: name, resourceVersion: "1", createdAt, spec, said },
    ]),
  )
}

const first = decide({ spec, see: { preCache: sight(two) } })
const seconds = (given: number) => ({ now: start + given * second })
const look = (said: Partial<JobSaid> | undefined, world: World = {}, places = two) =>
  decide({
    status: first.status,
    ...world,
    spec: { ...spec, ...world.spec },
    see: { preCache: sight(places, { jobs: made(first, said && saying(said)) }), ...world.see },
  })
const actions = ({ jobs }: Plan) =>
  jobs.map((write: JobWrite) =>
    `${write.do} ${write.do === "delete" ? "" : write.spec.selector.names.join(",")}`.trim(),
  )
const words = (plan: Plan) => ({
  reason: condition(plan, "Complete")!.reason,
  message: condition(plan, "Complete")!.message,
})

describe("a tier whose nodes lack its image", () => {
  test("asks them with one job for each source, and says so before", () => {
    expect(stamped(first)).toEqual({})
    expect(words(first)).toEqual({ reason: "PreCaching", message: "tier early: 1 image on 0 of 2 nodes" })
    expect(first.jobs).toMatchObject([
      { do: "create", namespace: "n", spec: { image: v2, selector: { names: ["n1", "n2"] }, pullSecrets: [] } },
    ])
    expect(first.status.pullJobs).toBe(1)
    expect(first.lookAgainAt).toBe(start + 60 * second)
  })

  const cases: Record<string, { said: Partial<JobSaid> | undefined; message: string }> = {
    "before the job has looked": { said: undefined, message: "1 image on 0 of 2 nodes" },
    "while one pulls": { said: { succeeded: 1 }, message: "1 image on 1 of 2 nodes" },
    "while none has it": {
      said: { reason: "NodeNotReady" },
      message: "1 image on 0 of 2 nodes; n1 (NodeNotReady) and 1 more",
    },
    "when one failed": {
      said: { succeeded: 1, failed: [{ name: "n2", reason: "AgentMissing" }] },
      message: "1 image on 1 of 2 nodes; n2 (AgentMissing)",
    },
    "when a Secret cannot be read": {
      said: { reason: "Forbidden", message: "aim may not read Secret s: run aim grant n --pull-secrets s" },
      message: "1 image on 0 of 2 nodes; aim may not read Secret s: run aim grant n --pull-secrets s",
    },
  }
  for (const [name, { said, message }] of Object.entries(cases))
    test(name, () => {
      const next = look(said)
      expect(words(next)).toEqual({ reason: "PreCaching", message: `tier early: ${message}` })
      expect([stamped(next), next.jobs]).toEqual([{}, []])
    })

  test("starts when all have it, and keeps its jobs until it is complete", () => {
    const next = look({ isReady: true, succeeded: 2 })
    expect(stamped(next)).toEqual({ "n/e1": v2, "n/e2": v2 })
    expect(next.jobs).toEqual([])
    const decision = {
      from: "",
      to: v2,
      reason: "Stamped",
      operation: "g1",
      by: "serviceimage/web",
      uid: "",
      at: start,
      tier: "early",
    }
    const members = { ...fleet, "n/e1": { ...fleet["n/e1"], image: v2, decision } }
    const more = [...two, place("n3")]
    const going = look({ isReady: false, succeeded: 1 }, { members, status: next.status }, more)
    expect([stamped(going), going.jobs]).toEqual([{ "n/e2": v2 }, []])
    // The object was changed in another tier, and has moved here.
    const other = { ...fleet, "n/e1": { ...fleet["n/e1"], image: v2, decision: { ...decision, tier: "" } } }
    const moved = look({ isReady: false, succeeded: 1 }, { members: other, status: next.status })
    expect([stamped(moved), words(moved).reason]).toEqual([{}, "PreCaching"])
    const done = look({ isReady: true, succeeded: 2 }, { members: on(v2, "n/e1", "n/e2"), ...seconds(30) })
    expect(actions(done)).toEqual(["delete"])
  })

  test("halts when the time is over, and starts by itself when they have it", () => {
    const late = { status: first.status, ...seconds(60) }
    const halted = look(
      { failed: [{ name: "n1", reason: "NotFound" }], succeeded: 1 },
      { ...late, spec: { onFailure: "Rollback" } },
    )
    expect(condition(halted, "Halted")).toMatchObject({
      reason: "PreCacheIncomplete",
      message: `tier early: ${v2} is not on 1 of 2 nodes: n1 (NotFound), after 1m`,
    })
    expect(halted.status.operation!.phase).toBe("Halted")
    expect(halted.jobs).toEqual([])
    expect(stamped(look({ isReady: true, succeeded: 2 }, late))).toEqual({ "n/e1": v2, "n/e2": v2 })
  })

  test("starts without them where the spec says so, and says what is missing", () => {
    const next = look(
      { failed: [{ name: "n1", reason: "NotFound" }], succeeded: 1 },
      { ...seconds(60), spec: { preCacheMissing: "Proceed" } },
    )
    expect(stamped(next)).toEqual({ "n/e1": v2, "n/e2": v2 })
    expect(words(next)).toEqual({
      reason: "RollingOut",
      message: "tier early: 0 of 2 up to date, started without the image on 1 of 2 nodes: n1 (NotFound)",
    })
  })
})

describe("the jobs of a tier", () => {
  test("follow its pods: one more node, one less, another source", () => {
    expect(actions(look({}, {}, [...two, place("n3")]))).toEqual(["change n1,n2,n3"])
    expect(actions(look({}, {}, [place("n1")]))).toEqual(["change n1"])
    expect(actions(look({}, {}, [place("n1"), place("n2", "m", "s")]))).toEqual(["change n1", "create n2"].sort())
    expect(actions(look({}, {}, [place("n1", "m")]))).toEqual(["create n1", "delete"])
  })
  test("are not asked for while it is paused or waits for approval, and stay if they are there", () => {
    const preCache = sight(two)
    expect(decide({ spec: { ...spec, paused: true }, see: { preCache } }).jobs).toEqual([])
    const tiers = [{ upgradeTier: "early", priority: 1, requireApproval: true }]
    expect(decide({ spec: { ...spec, tiers }, see: { preCache } }).jobs).toEqual([])
    expect(look({}, { spec: { paused: true } }, [...two, place("n3")]).jobs).toEqual([])
  })
  test("go when the spec no longer wants them, and when it is taken back", () => {
    expect(actions(look({}, { spec: { preCache: "Never" } }))).toEqual(["delete"])
    expect(actions(look({}, { annotations: { "autoimagemanager.io/rollback": "g1" } }))).toEqual(["delete"])
  })
  test("of another operation prove nothing", () => {
    const next = look({ isReady: true, succeeded: 2 }, { generation: 2, spec: { defaultImage: "shop/web:9" } })
    expect(stamped(next)).toEqual({})
    expect(actions(next)).toEqual(["create n1,n2", "delete"])
  })
  test("that the server refuses are named, and time runs from the beginning of the priority", () => {
    const refused = new Map([
      [keyOf(first.jobs[0] as { namespace: string; name: string }), { said: "exceeded quota", retryAt: start }],
    ])
    const see = { preCache: sight(two, { refused }) }
    const next = decide({ spec, status: first.status, see, ...seconds(30) })
    expect(words(next).message).toBe("tier early: 1 image on 0 of 2 nodes; in n: exceeded quota")
    expect(next.lookAgainAt).toBe(start + 60 * second)
    expect(condition(decide({ spec, status: first.status, see, ...seconds(60) }), "Halted")).toBeDefined()
  })
})

describe("nothing is concluded", () => {
  test("while jobs or pods are being read, however late it is", () => {
    const unknown = { words: "pull jobs are being read", isLasting: false }
    const missing = { preCacheMissing: "Proceed" } as const
    const next = look({}, { ...seconds(3600), spec: missing, see: { preCache: sight(two, { unknown }) } })
    expect(words(next)).toEqual({ reason: "PreCaching", message: "tier early: pull jobs are being read" })
    expect([stamped(next), next.jobs]).toEqual([{}, []])
  })
  test("of jobs without the kind; a person is told when the time is over", () => {
    const unknown = { words: "the cluster does not serve ImagePullJob", isLasting: true }
    const see = { preCache: sight(two, { unknown }) }
    const begun = after({ spec, see })
    expect(words(decide({ spec, see, status: begun, ...seconds(59) })).reason).toBe("PreCaching")
    expect(condition(decide({ spec, see, status: begun, ...seconds(60) }), "Halted")!.message).toBe(
      `tier early: ${v2} is not on any node: the cluster does not serve ImagePullJob, after 1m`,
    )
  })
})

test("a tier without pods on nodes has nothing to wait for", () => {
  expect(stamped(decide({ spec, see: { preCache: sight([]) } }))).toEqual({ "n/e1": v2, "n/e2": v2 })
})
