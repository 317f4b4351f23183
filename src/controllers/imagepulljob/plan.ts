import type { ImagePullJob, Reason } from "#api/v1alpha1/imagepulljob/index.ts"
import type { JobView } from "#core/pulls/board.ts"
import { parallelismOf } from "#core/pulls/parallelism.ts"
import { fetchedOnNodes } from "#core/pulls/transfer.ts"
import { earliest, type Instant, parseInstant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { counted, nameSome } from "#lib/text.ts"

/** Everything a decision about one job is made from. */
export type Snapshot = {
  readonly job: ImagePullJob
  /** Undefined where the image cannot be read. */
  readonly view: JobView | undefined
  /** Nothing is concluded from incomplete lists. */
  readonly isListed: boolean
  readonly isOver: boolean
  readonly credentials: { is: "None" | "Found" } | { is: "Bad"; reason: Reason; message: string }
  readonly registry: { host: string; inFlight: number; limit: number; risesAt: Instant | undefined }
  /** When a status was last written by this process; 0 before. */
  readonly reportedAt: Instant
  readonly now: Instant
}

export type Verdict = { readonly reason: Reason; readonly message: string; readonly isReady?: true; isStuck?: true }

export type Plan = {
  /** How many more nodes may begin, as far as the registry's budget lets them. */
  readonly wants: number
  readonly verdict: Verdict
  /** The job ends with this verdict. */
  readonly ends?: true
  readonly deletes?: true
  /** Nodes that were asked before this instant and have not answered count as failed. */
  readonly unansweredBefore?: Instant
  readonly lookAgainAt?: Instant | undefined
}

/** What is reported once so many nodes have begun. */
export const verdictAfter = ({ verdict }: Plan, started: number): Verdict =>
  started > 0 && verdict.reason === "RegistryBusy"
    ? { reason: "Pulling", message: verdict.message.replace(/;.*$/, "") }
    : verdict

/** How long a node has to say anything at all. */
const answerMs = 60_000
/** Counts alone are not reported more often, and no later. */
const reportMs = 5000
const reportAtLeastMs = 30_000
const listingMs = 1000
const secretMs = 15_000

/** Decides the next step of one job. The same snapshot always gives the same plan. */
export function plan(snapshot: Snapshot): Plan {
  for (const check of [listing, over, unreadable, badSecret, tooLate, done, noNodes, paused]) {
    const found = check(snapshot)
    if (found) return withTimes(snapshot, found)
  }
  return withTimes(snapshot, pulling(snapshot))
}

type Check = (snapshot: Snapshot) => Plan | undefined

const hold = (reason: Reason, message: string, lookAgainAt?: Instant): Plan => ({
  wants: 0,
  verdict: { reason, message },
  lookAgainAt,
})
const stuck = (reason: Reason, message: string, lookAgainAt?: Instant): Plan => ({
  wants: 0,
  verdict: { reason, message, isStuck: true },
  lookAgainAt,
})

const listing: Check = ({ isListed, now }) =>
  isListed ? undefined : hold("Listing", "nodes and NodeImages are being read", now + listingMs)

/** Only its time to live is left. */
const over: Check = ({ isOver, job, now }) => {
  if (!isOver) return undefined
  const ttl = job.spec.completionPolicy.ttlSecondsAfterFinished
  const endedAt = parseInstant(job.status?.completionTime)
  const verdict: Verdict = { reason: "Completed", message: "" }
  if (ttl === undefined || endedAt === undefined) return { wants: 0, verdict }
  const goesAt = endedAt + ttl * 1000
  return goesAt <= now ? { wants: 0, verdict, deletes: true } : { wants: 0, verdict, lookAgainAt: goesAt }
}

const unreadable: Check = ({ view, job }) =>
  view ? undefined : stuck("InvalidImage", `${job.spec.image} cannot be read as an image`)

const badSecret: Check = ({ credentials, now }) =>
  credentials.is === "Bad" ? stuck(credentials.reason, credentials.message, now + secretMs) : undefined

const tooLate: Check = snapshot => {
  const { job, view, now } = snapshot
  const endsAt = deadlineOf(job)
  if (endsAt === undefined || endsAt > now || isSettled(view!)) return undefined
  const seconds = job.spec.completionPolicy.activeDeadlineSeconds
  const message = `${standing(view!)} after ${seconds} s; what is on the nodes stays`
  return { ...stuck("DeadlineExceeded", message), ends: true }
}

const done: Check = ({ job, view }) => {
  const { desired, Failed, failures } = view!
  if (!isSettled(view!)) return undefined
  const isForEver = job.spec.completionPolicy.type === "Never"
  const ends = isForEver ? {} : ({ ends: true } as const)
  if (Failed === 0) {
    const reason = isForEver ? "Present" : "Completed"
    return {
      wants: 0,
      verdict: {
        reason,
        message: `${counted(desired, "node")} ${desired === 1 ? "has" : "have"} the image`,
        isReady: true,
      },
      ...ends,
    }
  }
  const names = nameSome(
    failures.slice(0, 3).map(({ node, reason }) => `${node} (${reason})`),
    Failed,
  )
  return {
    ...stuck("BackoffLimitExceeded", `${standing(view!)}; ${counted(Failed, "node")} failed: ${names}`),
    ...ends,
  }
}

const noNodes: Check = ({ job, view }) => {
  const { desired, unknown } = view!
  if (desired > 0) return undefined
  return unknown.length > 0 ? nodeUnknown(view!) : hold("NoNodes", selectsNothing(job))
}

function selectsNothing({ metadata: { namespace }, spec: { selector, podSelector } }: ImagePullJob): string {
  if (podSelector) return `no pod of ${namespace} with the labels of podSelector is on a node`
  return selector ? "no Linux node has the labels of selector" : "the cluster has no Linux node"
}

const paused: Check = ({ job, view }) => {
  const { parallelism } = job.spec
  return parallelism === 0 || parallelism === "0%"
    ? hold("Paused", `${standing(view!)}; parallelism is ${parallelism}`)
    : undefined
}

function pulling({ job, view, registry }: Snapshot): Plan {
  const { desired, Active, Starting, Waiting, startable, unknown, refusal } = view!
  const room = parallelismOf(job.spec.parallelism, desired) - Active - Starting
  const wants = Math.max(0, Math.min(room, startable))
  // Rights that are missing for a moment must not end a job, so the write is tried again.
  if (refusal) return { ...stuck("Refused", `${standing(view!)}; ${refusal.node}: ${refusal.message}`), wants }
  if (unknown.length > 0) return { ...nodeUnknown(view!), wants }
  if (Active + Starting > 0) {
    const fetched = view!.transfer ? `; ${fetchedOnNodes(view!.transfer)}` : ""
    return { ...hold("Pulling", `${standing(view!)}${fetched}`), wants }
  }
  if (wants > 0) {
    const { host, inFlight, limit } = registry
    const message = `${standing(view!)}; ${inFlight} pulls are under way at ${host}, ${limit} are allowed`
    return { ...hold("RegistryBusy", message), wants }
  }
  return hold("NodeNotReady", `${standing(view!)}; ${counted(Waiting, "node")} not ready`)
}

/** The other nodes are given the image all the same. */
const nodeUnknown = (view: JobView) =>
  stuck(
    "NodeUnknown",
    `${standing(view)}; not a Linux node of this cluster: ${view.unknown.join(", ")}; correct selector.names`,
  )

/** When the passing of time alone would change the plan. */
function withTimes(snapshot: Snapshot, found: Plan): Plan {
  const { job, view, isListed, isOver, registry, now } = snapshot
  if (!isListed || isOver || !view || found.ends) return found
  const oldest = view.oldestUnanswered
  const isMissing = oldest !== undefined && oldest + answerMs <= now
  const dueAt = countsDueAt(snapshot)
  const lookAgainAt = earliest(
    found.lookAgainAt,
    deadlineOf(job),
    oldest === undefined || isMissing ? undefined : oldest + answerMs,
    found.wants > 0 ? registry.risesAt : undefined,
    differs(job, view) && dueAt > now ? dueAt : undefined,
  )
  return { ...found, lookAgainAt, ...(isMissing && { unansweredBefore: now - answerMs }) }
}

const differs = ({ status }: ImagePullJob, { Active, Starting, Succeeded, Failed, transfer }: JobView) =>
  status?.active !== Active + Starting ||
  status.succeeded !== Succeeded ||
  status.failed !== Failed ||
  !isSame(status.transfer, transfer)

/**
 * When changed counts are reported. Short pulls cost one report for each wave of nodes, however long the wave takes; once
 * agents report pulls under way, which costs a write for each of them, so does the job.
 */
export function countsDueAt({ job: { spec, status }, view, registry, reportedAt }: Snapshot): Instant {
  if (!view) return reportedAt + reportMs
  const ended = view.Succeeded + view.Failed - (status?.succeeded ?? 0) - (status?.failed ?? 0)
  const wave = Math.min(parallelismOf(spec.parallelism, view.desired), registry.limit)
  return reportedAt + (view.answering > 0 || ended >= Math.max(1, wave) ? reportMs : reportAtLeastMs)
}

function deadlineOf({ spec, status }: ImagePullJob): Instant | undefined {
  const seconds = spec.completionPolicy.activeDeadlineSeconds
  const startedAt = parseInstant(status?.startTime)
  return seconds === undefined || startedAt === undefined ? undefined : startedAt + seconds * 1000
}

/** Every selected node has the image or failed. */
const isSettled = (view: JobView) => view.desired > 0 && openOf(view) === 0 && view.unknown.length === 0

const openOf = ({ Waiting, Starting, Active }: JobView) => Waiting + Starting + Active

const standing = ({ Succeeded, desired }: JobView) =>
  `${Succeeded} of ${counted(desired, "node")} ${desired === 1 ? "has" : "have"} the image`
