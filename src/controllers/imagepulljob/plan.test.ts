import { expect, test } from "vitest"
import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { failedEnds, stalledReasons } from "#api/v1alpha1/imagepulljob/reasons.ts"
import type { JobView } from "#core/pulls/board.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"

const startTime = "1970-01-01T00:00:00Z"
const now = 100_000

type Spec = Partial<ImagePullJob["spec"]>
const job = (spec: Spec = {}, status: Partial<NonNullable<ImagePullJob["status"]>> = {}): ImagePullJob => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ImagePullJob",
  metadata: { name: "app", namespace: "shop", generation: 1 },
  spec: {
    image: "registry.example.com/app:1",
    pullSecrets: [],
    parallelism: 2,
    pullPolicy: { timeoutSeconds: 600, backoffLimit: 3 },
    completionPolicy: { type: "Always" },
    imagePullPolicy: "IfNotPresent",
    priority: 0,
    ...spec,
  },
  status: {
    observedGeneration: 1,
    conditions: [],
    startTime,
    desired: 4,
    active: 1,
    succeeded: 1,
    failed: 0,
    failedNodes: [],
    message: "",
    summary: "",
    ...status,
  },
})
const view = (fields: Partial<JobView> = {}): JobView => ({
  desired: 4,
  Waiting: 2,
  Starting: 0,
  Active: 1,
  Succeeded: 1,
  Failed: 0,
  startable: 2,
  failures: [],
  retries: [],
  unknown: [],
  oldestUnanswered: undefined,
  answering: 0,
  transfer: undefined,
  ...fields,
})

const atRegistry = { host: "registry.example.com", inFlight: 1, limit: 20, risesAt: undefined }

/** A job in the middle of its work: one node of four pulls, one has the image. */
const calm: Snapshot = {
  job: job(),
  view: view(),
  isListed: true,
  isOver: false,
  credentials: { is: "None" },
  registry: atRegistry,
  reportedAt: 0,
  now,
}
const failure = { node: "n1", reason: "NotFound", message: "not found" }
const ended = { Waiting: 0, Active: 0, startable: 0 }

type Words = Partial<Plan> & { reason: string; isStuck?: true; isReady?: true }

const cases: Record<string, { given: Partial<Snapshot>; gives: Words }> = {
  "one more node begins": { given: {}, gives: { wants: 1, reason: "Pulling" } },
  "nothing is concluded before the lists are complete": {
    given: { isListed: false },
    gives: { wants: 0, reason: "Listing", lookAgainAt: now + 1000 },
  },
  "as many as the parallelism allows, in percent of the nodes, rounded up": {
    given: { job: job({ parallelism: "51%" }), view: view({ Active: 0 }) },
    gives: { wants: 2, reason: "RegistryBusy" },
  },
  "a parallelism that was lowered during the run starts no more": {
    given: { job: job({ parallelism: 1 }), view: view({ Active: 2 }) },
    gives: { wants: 0, reason: "Pulling" },
  },
  "a decided node counts before its NodeImage shows it": {
    given: { view: view({ Starting: 1 }) },
    gives: { wants: 0, reason: "Pulling" },
  },
  "paused by 0": { given: { job: job({ parallelism: 0 }) }, gives: { wants: 0, reason: "Paused" } },
  "paused by 0 %": { given: { job: job({ parallelism: "0%" }) }, gives: { wants: 0, reason: "Paused" } },
  "nodes that are left are not ready": {
    given: { view: view({ Active: 0, startable: 0 }) },
    gives: { wants: 0, reason: "NodeNotReady" },
  },
  "the registry is busy, and time alone will allow more": {
    given: { view: view({ Active: 0 }), registry: { host: "r", inFlight: 5, limit: 5, risesAt: now + 7 } },
    gives: { wants: 2, reason: "RegistryBusy", lookAgainAt: now + 7 },
  },
  "all have it": {
    given: { view: view({ ...ended, Succeeded: 4 }) },
    gives: { wants: 0, reason: "Completed", isReady: true, ends: true },
  },
  "all have it, of a job that never ends": {
    given: { job: job({ completionPolicy: { type: "Never" } }), view: view({ ...ended, Succeeded: 4 }) },
    gives: { wants: 0, reason: "Present", isReady: true },
  },
  "some failed": {
    given: { view: view({ ...ended, Succeeded: 3, Failed: 1, failures: [failure] }) },
    gives: { wants: 0, reason: "BackoffLimitExceeded", isStuck: true, ends: true },
  },
  "some failed, of a job that never ends": {
    given: {
      job: job({ completionPolicy: { type: "Never" } }),
      view: view({ ...ended, Succeeded: 3, Failed: 1, failures: [failure] }),
    },
    gives: { wants: 0, reason: "BackoffLimitExceeded", isStuck: true },
  },
  "no node is selected": {
    given: { view: view({ ...ended, desired: 0, Succeeded: 0 }) },
    gives: { wants: 0, reason: "NoNodes" },
  },
  "a name that is no node, when the others are done": {
    given: { view: view({ ...ended, Succeeded: 4, unknown: ["nod-1"] }) },
    gives: { wants: 0, reason: "NodeUnknown", isStuck: true },
  },
  "a name that is no node is reported at once, and the others are given the image": {
    given: { view: view({ unknown: ["nod-1"] }) },
    gives: { wants: 1, reason: "NodeUnknown", isStuck: true },
  },
  "the deadline ends a job that waits for a name that is no node": {
    given: {
      job: job({ completionPolicy: { type: "Always", activeDeadlineSeconds: 100 } }),
      view: view({ ...ended, Succeeded: 4, unknown: ["nod-1"] }),
    },
    gives: { wants: 0, reason: "DeadlineExceeded", isStuck: true, ends: true },
  },
  "the deadline ends a job that selects no node": {
    given: {
      job: job({ completionPolicy: { type: "Always", activeDeadlineSeconds: 100 } }),
      view: view({ ...ended, desired: 0, Succeeded: 0 }),
    },
    gives: { wants: 0, reason: "DeadlineExceeded", isStuck: true, ends: true },
  },
  "the deadline ends it": {
    given: { job: job({ completionPolicy: { type: "Always", activeDeadlineSeconds: 100 } }) },
    gives: { wants: 0, reason: "DeadlineExceeded", isStuck: true, ends: true },
  },
  "just before the deadline it looks again at it": {
    given: { job: job({ completionPolicy: { type: "Always", activeDeadlineSeconds: 101 } }) },
    gives: { wants: 1, reason: "Pulling", lookAgainAt: 101_000 },
  },
  "a job that is done in time is not judged by its deadline": {
    given: {
      job: job({ completionPolicy: { type: "Always", activeDeadlineSeconds: 1 } }),
      view: view({ ...ended, Succeeded: 4 }),
    },
    gives: { wants: 0, reason: "Completed", isReady: true, ends: true },
  },
  "a bad Secret": {
    given: { credentials: { is: "Bad", reason: "SecretMissing", message: "Secret a does not exist" } },
    gives: { wants: 0, reason: "SecretMissing", isStuck: true, lookAgainAt: now + 15_000 },
  },
  "an image that cannot be read": {
    given: { view: undefined },
    gives: { wants: 0, reason: "InvalidImage", isStuck: true },
  },
  "a node that has not answered for a minute": {
    given: { view: view({ oldestUnanswered: now - 60_000 }) },
    gives: { wants: 1, reason: "Pulling", unansweredBefore: now - 60_000 },
  },
  "a node that still has a second to answer": {
    given: { view: view({ oldestUnanswered: now - 59_000 }) },
    gives: { wants: 1, reason: "Pulling", lookAgainAt: now + 1000 },
  },
  "half a wave after the last report, counts wait": {
    given: { view: view({ Succeeded: 2, Waiting: 1, startable: 1 }), reportedAt: now - 1000 },
    gives: { wants: 1, reason: "Pulling", lookAgainAt: now + 29_000 },
  },
  "a wave after the last report, counts are reported when that is five seconds ago": {
    given: { view: view({ Succeeded: 3, Waiting: 0, startable: 0 }), reportedAt: now - 1000 },
    gives: { wants: 0, reason: "Pulling", lookAgainAt: now + 4000 },
  },
  "a wave is no larger than what the registry allows": {
    given: {
      view: view({ Succeeded: 2, Waiting: 1, startable: 1 }),
      registry: { ...atRegistry, limit: 1 },
      reportedAt: now - 1000,
    },
    gives: { wants: 1, reason: "Pulling", lookAgainAt: now + 4000 },
  },
  "while agents report pulls under way, counts and bytes are reported every five seconds": {
    given: {
      view: view({ answering: 1, transfer: { doneBytes: 1, totalBytes: 2, nodes: 1, sharedNodes: 0 } }),
      reportedAt: now - 1000,
    },
    gives: { wants: 1, reason: "Pulling", lookAgainAt: now + 4000 },
  },
  "over, and kept": { given: { isOver: true }, gives: { wants: 0, reason: "Completed" } },
  "over, and its time to live is not": {
    given: {
      isOver: true,
      job: job({ completionPolicy: { type: "Always", ttlSecondsAfterFinished: 101 } }, { completionTime: startTime }),
    },
    gives: { wants: 0, reason: "Completed", lookAgainAt: 101_000 },
  },
  "over, and its time to live as well": {
    given: {
      isOver: true,
      job: job({ completionPolicy: { type: "Always", ttlSecondsAfterFinished: 100 } }, { completionTime: startTime }),
    },
    gives: { wants: 0, reason: "Completed", deletes: true },
  },
}

const words = ({ verdict: { reason, isStuck, isReady }, ...rest }: Plan): Words => ({
  ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
  reason,
  ...(isStuck && { isStuck }),
  ...(isReady && { isReady }),
})
for (const [name, { given, gives }] of Object.entries(cases))
  test(name, () => expect(words(plan({ ...calm, ...given }))).toEqual(gives))

test("a write that the server refused is reported, and the job goes on", () => {
  const refusal = { node: "node-1", message: "the role is being changed" }
  const { verdict, wants, ends } = plan({ ...calm, view: view({ Starting: 1, refusal }) })
  expect(verdict).toMatchObject({ reason: "Refused", isStuck: true, message: expect.stringContaining(refusal.message) })
  expect({ wants, ends }).toEqual({ wants: 0, ends: undefined })
})

test("the words that alerts look for are those that a plan can give, of running jobs and of ended ones", () => {
  const bad = (reason: "SecretMissing" | "SecretInvalid" | "Forbidden") =>
    ({ credentials: { is: "Bad", reason, message: "" } }) as const
  const worlds: Partial<Snapshot>[] = [
    ...Object.values(cases).map(({ given }) => given),
    { view: view({ refusal: { node: "node-1", message: "" } }) },
    ...(["SecretMissing", "SecretInvalid", "Forbidden"] as const).map(bad),
  ]
  const plans = worlds.map(given => plan({ ...calm, ...given })).filter(({ verdict }) => verdict.isStuck)
  const reasonsOf = (some: Plan[]) => new Set(some.map(({ verdict }) => verdict.reason))
  expect(reasonsOf(plans.filter(({ ends }) => !ends))).toEqual(new Set(stalledReasons))
  expect(reasonsOf(plans.filter(({ ends }) => ends))).toEqual(new Set(failedEnds))
})
