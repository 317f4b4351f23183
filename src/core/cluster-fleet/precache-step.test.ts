import { describe, expect, test } from "vitest"
import type { Precache } from "#api/v1alpha1/clusterupgrade/index.ts"
import { precacheLook } from "./precache-look.ts"
import { type PrecacheGiven, stepPrecache } from "./precache-step.ts"
import type { ObjectSeen, Observation, Verdict } from "./transport.ts"

const now = Date.parse("2026-01-01T12:00:00Z")
const at = (state: Precache["state"], rest: Partial<Precache> = {}): Precache => ({
  state,
  since: "2026-01-01T11:59:00Z",
  attempt: 1,
  specHash: "one",
  deadlineSeconds: 600,
  ...rest,
})
const calm: Omit<PrecacheGiven, "precache"> = {
  look: undefined,
  specHash: "one",
  mayBegin: true,
  deadlineSeconds: 600,
  maxAttempts: 3,
  isAskedAgain: false,
  now,
}

const cases: Record<string, { given: Partial<PrecacheGiven> & Pick<PrecacheGiven, "precache">; gives: string }> = {
  begins: { given: { precache: undefined }, gives: "NotStarted 1" },
  "does not begin outside its window": { given: { precache: undefined, mayBegin: false }, gives: "none" },
  "a new specification begins again": { given: { precache: at("Succeeded"), specHash: "two" }, gives: "NotStarted 1" },
  "cleans up first": {
    given: { precache: at("NotStarted"), look: { observation: "NsFoundOnSpoke" } },
    gives: "PreparingToStart 1 CleanUp",
  },
  "finds its own job, and does not clean it up": {
    given: { precache: at("NotStarted"), look: { observation: "NoNsFoundOnSpoke", isOwn: true } },
    gives: "PreparingToStart 1",
  },
  "a failure on the way changes nothing": { given: { precache: at("Active") }, gives: "Active 1" },
  "a namespace that is stuck costs two minutes": {
    given: {
      precache: at("PreparingToStart", { since: "2026-01-01T11:58:00Z" }),
      look: { observation: "NsFoundOnSpoke" },
    },
    gives: "Starting 1",
  },
  "and not less": {
    given: {
      precache: at("PreparingToStart", { since: "2026-01-01T11:58:01Z" }),
      look: { observation: "NsFoundOnSpoke" },
    },
    gives: "PreparingToStart 1",
  },
  "what does not begin in half an hour has no time left": {
    given: { precache: at("Starting", { since: "2026-01-01T11:30:00Z" }) },
    gives: "PrecacheTimeout 1",
  },
  "goes on in the next window": { given: { precache: at("PrecacheTimeout") }, gives: "NotStarted 2" },
  "not before it": { given: { precache: at("PrecacheTimeout"), mayBegin: false }, gives: "PrecacheTimeout 1" },
  "not more often than allowed": {
    given: { precache: at("PrecacheTimeout", { attempt: 3 }) },
    gives: "PrecacheTimeout 3",
  },
  "an error waits for a person": { given: { precache: at("UnrecoverableError") }, gives: "UnrecoverableError 1" },
  "a person may ask for another attempt": {
    given: { precache: at("UnrecoverableError"), isAskedAgain: true },
    gives: "NotStarted 2",
  },
  "success is final": { given: { precache: at("Succeeded"), isAskedAgain: true }, gives: "Succeeded 1" },
}

describe("pre-caching of one cluster", () => {
  for (const [name, { given, gives }] of Object.entries(cases))
    test(name, () => {
      const { precache, does } = stepPrecache({ ...calm, ...given })
      expect(precache ? `${precache.state} ${precache.attempt}${does ? ` ${does}` : ""}` : "none").toBe(gives)
    })
})

const present = (verdict: Verdict, fields = {}): ObjectSeen => ({ is: "Present", verdict, fields })
const settled = present({ is: "Settled" })
const seen = (job: ObjectSeen, bundle: Observation["bundle"] = "Present"): Observation => ({
  at: 0,
  bundle,
  objects: [settled, settled, job],
})
const failed = { is: "Stalled", reason: "ImagesFailed", message: "1 of 2" } as const

const looks: Record<string, { state: Precache["state"]; given: Observation; gives: string }> = {
  "nothing is there": { state: "PreparingToStart", given: seen({ is: "Absent" }, "Absent"), gives: "NoNsFoundOnSpoke" },
  "its own job is there": { state: "PreparingToStart", given: seen(settled), gives: "NoNsFoundOnSpoke" },
  "another attempt is there": {
    state: "PreparingToStart",
    given: seen(present({ is: "Differs", message: "" })),
    gives: "NsFoundOnSpoke",
  },
  "nothing was sent yet": {
    state: "Starting",
    given: seen({ is: "Absent" }, "Absent"),
    gives: "DependenciesNotPresent",
  },
  "the job is missing": { state: "Starting", given: seen({ is: "Absent" }), gives: "NoJobFoundOnSpoke" },
  "the job works": {
    state: "Active",
    given: seen(present({ is: "Waiting", reason: "Pulling", message: "" })),
    gives: "JobActive",
  },
  "the job succeeded": { state: "Active", given: seen(settled), gives: "JobSucceeded" },
  "its time was over": {
    state: "Active",
    given: seen(present(failed, { faileda: "DeadlineExceeded: 600 s", failedb: "DeadlineExceeded: 600 s" })),
    gives: "JobDeadline",
  },
  "one image was refused": {
    state: "Active",
    given: seen(present(failed, { faileda: "DeadlineExceeded: 600 s", failedb: "Denied: 401" })),
    gives: "JobBackoffLimitExceeded Denied",
  },
  "it is denied": {
    state: "Starting",
    given: seen({ is: "Refused", reason: "AdmissionDenied", message: "" }),
    gives: "JobBackoffLimitExceeded AdmissionDenied",
  },
  "the kind is not there": {
    state: "Starting",
    given: seen({ is: "Refused", reason: "KindMissing", message: "" }),
    gives: "JobBackoffLimitExceeded AgentMissing",
  },
  "nothing is known yet": {
    state: "Starting",
    given: seen({ is: "Unknown", message: "" }),
    gives: "UnforeseenCondition",
  },
}

describe("what a look says to the machine", () => {
  for (const [name, { state, given, gives }] of Object.entries(looks))
    test(name, () => {
      const { observation, cause } = precacheLook(state, given)
      expect(cause === undefined ? observation : `${observation} ${cause}`).toBe(gives)
    })
})
