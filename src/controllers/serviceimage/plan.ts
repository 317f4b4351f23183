import type {
  OldEndpoints,
  Operation,
  Reason,
  ServiceImage,
  ServiceImageStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import type { TierView, Unmatched } from "#core/fleet/fleet.ts"
import { lastGoodImage } from "#core/fleet/operation.ts"
import { earliest, type Instant, parseInstant } from "#lib/instant.ts"
import { counted, nameSome } from "#lib/text.ts"
import type { Round, RoundCheck } from "./analysis.ts"
import { type RolloutCheckName, rolloutChecks } from "./checks.ts"
import { endpointsDueAt, endpointsSentence } from "./endpoints.ts"
import { describeTier, type Halt, type JudgedTier, judgeTiers } from "./judge.ts"
import { type JobWrite, jobWrites, type PreCacheSight, preCached } from "./pre-cache.ts"
import { type Allowance, choose, type Fence, intend, type Queue, type Stamp } from "./stamps.ts"
import { statusOf, type Verdict } from "./status.ts"

/** Everything a decision is made from. The fleet is counted, never listed: deciding costs the same at any size. */
export type Snapshot = {
  serviceImage: ServiceImage
  operation: Operation
  /** Why the spec as a whole cannot be carried out. */
  problem: { reason: Reason; message: string; retryAt?: Instant | undefined } | undefined
  /** What we know of the target's objects: nothing, or all of them. Nothing is concluded from a partial list. */
  target: { state: "Missing" } | { state: "Unreadable"; message: string } | { state: "Synced" }
  tiers: readonly TierView[]
  unmatched: Unmatched
  /** Objects that an older ServiceImage manages, and its name. */
  conflicts: { count: number; with: string } | undefined
  /** Undefined where the spec does not ask for it and no job is left of it. */
  preCache: PreCacheSight | undefined
  /** What is known of Services that lead to another version, since the rollout is complete. */
  endpoints?: OldEndpoints | undefined
  /** What was found in the rounds that are due, by tier. */
  checks?: ReadonlyMap<string, readonly RoundCheck[]> | undefined
  /** How many pods may be disturbed right now without exceeding `pace`, and when there may be one more. */
  pace: { pods: number; readyAt: Instant }
  fence: Fence
  /** When time alone changes the fleet: a deadline, or a refused write to be tried again. */
  fleetChangesAt: Instant | undefined
  now: Instant
}

export type Plan = {
  status: ServiceImageStatus // what the user is told, always
  /** The status must be written before anything else is: it declares the stamps. */
  declares: boolean
  /** What is declared once the status is written: objects, and the version each may be written at. */
  intents: ReadonlyMap<string, string>
  /** Objects to touch: a write that nothing waits for any more may still reach them. */
  touches: readonly string[]
  stamps: readonly Stamp[] // in order; stopping after any of them is safe
  /** ImagePullJobs that bring images to nodes before their tier. */
  jobs: readonly JobWrite[]
  /** Rounds that are due. The same plan with their checks in the snapshot says what they mean. */
  asks: readonly Round[]
  /** When the endpoints of Services are looked at; it holds back nothing. */
  endpointsAt?: Instant | undefined
  /** The tiers as they were judged, for metrics and explanations. */
  tiers: readonly JudgedTier[]
  /** The tiers at work: those of the highest unfinished priority, or of the lowest during a rollback. */
  active: readonly JudgedTier[]
  /** The stamps that are declared or will be next, and what the others wait for. */
  queue: Queue
  lookAgainAt?: Instant | undefined // when the passing of time alone would change this plan
}

/** Decides the next step of one rollout. The same snapshot always gives the same plan. */
export function plan(seen: Snapshot): Plan {
  const impossible = invalid(seen) ?? kindMissing(seen) ?? unreadable(seen)
  if (impossible) return impossiblePlan(seen, impossible)
  const { phase } = seen.operation
  return phase === "RollingBack" || phase === "RolledBack" ? planBack(seen) : planForward(seen)
}

function planForward(seen: Snapshot): Plan {
  const judged = judgeTiers(seen)
  const next = new Set(activeOf(seen, judged))
  const tiers = judged.map(tier => (next.has(tier) ? preCached(tier, seen) : tier))
  const rollout = { seen, tiers, active: tiers.filter((_, index) => next.has(judged[index]!)) }
  const verdict = verdictOn(rollout, forward) ?? rolling(rollout.active)
  return concluded(rollout, verdict, tiers, { newImage: newDeploymentImage, reason: "Stamped" })
}

/**
 * The tiers of the highest unfinished priority. A finished tier whose objects have lost their health holds back the
 * tiers after it, as long as there are any. Once all tiers are complete, so is the operation.
 */
function activeOf({ operation }: Snapshot, tiers: readonly JudgedTier[]): JudgedTier[] {
  const isOver = operation.phase === "Complete" || tiers.every(tier => tier.isComplete)
  const unfinished = tiers.filter(tier => !tier.isComplete || (!isOver && tier.isRegressed))
  return unfinished.filter(tier => tier.priority === unfinished[0]?.priority)
}

/**
 * Restores what the operation changed, the lowest priority first. An object that does not become healthy is reported,
 * but stops nothing.
 */
function planBack(seen: Snapshot): Plan {
  const tiers = judgeTiers(seen).map(
    (tier): JudgedTier => ({
      ...tier,
      isComplete: false,
      isReopened: false,
      isRegressed: false,
      isHeldBack: false,
      isAwaitingApproval: false,
      halt: undefined,
      soaksUntil: undefined,
      judging: undefined,
      step: tier.steps.length - 1,
    }),
  )
  const unfinished = tiers.filter(({ view }) => view.counted.stale > 0 || view.counted.waiting > 0).reverse()
  const active = unfinished.filter(tier => tier.priority === unfinished[0]?.priority)
  const rollout = { seen, tiers, active }
  const history = seen.serviceImage.status?.history ?? []
  const newImage = (tier: JudgedTier) => lastGoodImage(history, tier.name) ?? newDeploymentImage(tier)
  const verdict = verdictOn(rollout, backward) ?? back(rollout)
  return concluded(rollout, verdict, [...tiers].reverse(), { newImage, reason: "RolledBack" })
}

type Judged = { readonly seen: Snapshot; readonly tiers: readonly JudgedTier[]; readonly active: readonly JudgedTier[] }

/** The words for each check of the rollout; undefined where another says more. */
type Verdicts = Record<RolloutCheckName, (rollout: Judged) => Verdict | undefined>

function verdictOn(rollout: Judged, verdicts: Verdicts): Verdict | undefined {
  for (const check of rolloutChecks) {
    const verdict = check.applies(rollout) ? verdicts[check.name](rollout) : undefined
    if (verdict) return verdict
  }
  return undefined
}

/** Chooses the stamps, tier by tier in the order given. */
function concluded(
  { seen, tiers, active }: Judged,
  verdict: Verdict,
  order: readonly JudgedTier[],
  { newImage, reason }: Pick<Allowance, "newImage" | "reason">,
): Plan {
  const { fence, fleetChangesAt, pace, now } = seen
  const queue = intend(order, { rollout: { seen, active }, newImage, reason, pods: pace.pods, fence })
  const { stamps, intents, declares } = choose(queue.intents, fence)
  const judged = active.flatMap(({ judging }) => judging ?? [])
  const soaks = active.flatMap(tier => [tier.soaksUntil, tier.preCaching?.endsAt])
  const rounds = judged.flatMap(({ dueAt }) => (dueAt > now ? [dueAt] : []))
  // A rollback waits for no images: the old ones were there.
  const jobs = jobWrites(seen, reason === "RolledBack" ? [] : tiers)
  // While the pace delays an object, another look is due as soon as one more pod is allowed.
  const isHeldBack = active.some(tier => tier.view.cohort(tier.step).stale > 0) && !seen.serviceImage.spec.paused
  const paceAt = isHeldBack && pace.readyAt > now ? pace.readyAt : undefined
  const status = statusOf(seen, verdict, inflightOf(fence, intents), { tiers, active, newImage, jobs })
  const endpointsAt = verdict.isComplete ? endpointsDueAt(status.completedAt, seen.endpoints, now) : undefined
  return {
    status,
    endpointsAt,
    declares,
    intents,
    touches: [...fence.unsure],
    stamps,
    jobs,
    asks: judged.flatMap(({ ask }) => ask ?? []),
    tiers,
    active,
    queue,
    lookAgainAt: earliest(fleetChangesAt, paceAt, verdict.lookAgainAt, ...soaks, ...rounds),
  }
}

function impossiblePlan(seen: Snapshot, verdict: Verdict): Plan {
  const lookAgainAt = earliest(seen.fleetChangesAt, verdict.lookAgainAt)
  const intents = new Map<string, string>()
  const status = statusOf(seen, verdict, inflightOf(seen.fence, intents), undefined)
  const touches = [...seen.fence.unsure]
  const queue = { intents: [], turns: [] }
  const none = { stamps: [], jobs: [], asks: [], tiers: [], active: [] }
  return { status, declares: false, intents, touches, ...none, queue, lookAgainAt }
}

/** Every object that a write may be under way to, in a fixed order. */
const inflightOf = ({ unsure, busy }: Fence, intents: ReadonlyMap<string, string>) =>
  [...new Set([...unsure, ...busy, ...intents.keys()])].sort()

function invalid({ problem }: Snapshot): Verdict | undefined {
  return problem && { ...problem, isStalled: true, also: "Invalid", lookAgainAt: problem.retryAt }
}

function kindMissing({ serviceImage, target }: Snapshot): Verdict | undefined {
  const { apiVersion, kind } = serviceImage.spec.target
  if (target.state !== "Missing") return undefined
  const message = `the cluster does not serve ${kind} in ${apiVersion}; the rollout starts when it does`
  return { reason: "KindNotFound", message, also: "TargetKindMissing" }
}

function unreadable({ target }: Snapshot): Verdict | undefined {
  return target.state === "Unreadable"
    ? { reason: "ListFailed", message: target.message, isInProgress: true }
    : undefined
}

/** Where nothing is left to do, the rollout is complete, paused or not. */
const paused = ({ active }: Judged): Verdict | undefined =>
  active.length === 0
    ? undefined
    : { reason: "Paused", message: "spec.paused is true; nothing is stamped until it is false", also: "Paused" }

/** A short outage of a registry must not roll back a whole fleet. */
const earlyHaltMs = 30_000

function halted({ seen: { serviceImage, operation, now }, active }: Judged): Verdict {
  const halts = active.flatMap(tier => tier.halt ?? [])
  const halt = halts.find(isOfImage) ?? halts[0]!
  if (serviceImage.spec.onFailure !== "Rollback" || !isOfImage(halt)) return stopped(halt)
  const haltedAt = parseInstant(
    serviceImage.status?.conditions.find(({ type, status }) => type === "Halted" && status === "True")
      ?.lastTransitionTime,
  )
  const backAt = halt.isEarly ? (haltedAt ?? now) + earlyHaltMs : now
  if (backAt > now) return { ...stopped(halt), lookAgainAt: backAt }
  return {
    reason: "RollingBack",
    message: `${halt.message}; taking back what operation ${operation.id} changed`,
    phase: "RollingBack",
    cause: halt.message,
    isInProgress: true,
    also: "Halted",
    lookAgainAt: now,
  }
}

/** Images that are not there yet are no failure of what was stamped, and missing data says nothing about it. */
const isOfImage = ({ reason }: Halt): boolean => reason !== "PreCacheIncomplete" && reason !== "NoData"

const stopped = ({ reason, message }: { reason: Reason; message: string }): Verdict => ({
  reason,
  message,
  phase: "Halted",
  isStalled: true,
  also: "Halted",
})

function fencing({ seen: { fence } }: Judged): Verdict {
  const { unsure, isBehind } = fence
  const some = nameSome([...unsure].slice(0, 2), unsure.size)
  const message = isBehind ? "seeing what another leader did last" : `making sure that no late write reaches ${some}`
  return { reason: "WaitingForFence", message, isInProgress: true }
}

function conflicting({ seen: { conflicts } }: Judged): Verdict {
  const { count, with: other } = conflicts!
  return {
    reason: "ClaimedByAnother",
    message: `the ServiceImage ${other} has ${counted(count, "object")} of these; narrow spec.target.selector`,
    isInProgress: true,
    isStalled: true,
    also: "Conflict",
  }
}

function complete({ seen: { unmatched, serviceImage, endpoints }, tiers }: Judged): Verdict {
  const of = (count: (view: TierView) => number) => sum(tiers, tier => count(tier.view))
  const left =
    unmatched.size > 0
      ? `; ${unmatched.size} in no tier are left alone (${nameSome(unmatched.firstItems(2), unmatched.size)})`
      : ""
  const rest =
    newcomersSentence(tiers, serviceImage.spec.paused) + lostSentence(tiers) + endpointsSentence(endpoints) + left
  const done = { isComplete: true, phase: "Complete", degraded: degradedSentence(tiers) } as const
  if (of(view => view.total) === 0)
    return { ...done, reason: "NoObjects", message: `no object matches the target${rest}` }
  const total = of(view => view.counted.total)
  if (total === 0) return { ...done, reason: "NoObjects", message: `no objects existed at the start${rest}` }
  const upToDate = of(view => view.counted.done + view.counted.settling)
  // Complete is about the operation. Objects that are not up to date now are counted separately, never as "n of m".
  const others = [
    [of(view => view.counted.failed - view.regressedAndFailed), "failed and ignored"],
    [of(view => view.regressed), "regressed since"],
    [of(view => view.counted.waiting + view.regressedAndFailed - view.regressed), "not up to date at the moment"],
  ] as const
  const told = others.flatMap(([count, words]) => (count > 0 ? [`${count} ${words}`] : []))
  const all = told.length === 0 ? `${upToDate} of ${total} objects are up to date` : `${upToDate} up to date`
  return { ...done, reason: "AllUpToDate", message: `${[all, ...told].join("; ")}${rest}` }
}

/** Newcomers gate nothing before they were available once, so they are counted separately. */
function newcomersSentence(tiers: readonly JudgedTier[], isPaused: boolean): string {
  const newcomers = sum(tiers, tier => tier.view.newcomers)
  if (newcomers === 0) return ""
  const isOne = newcomers === 1
  return isPaused
    ? `; ${newcomers} created since ${isOne ? "gets its" : "get their"} image when spec.paused is false`
    : `; ${newcomers} created since ${isOne ? "is" : "are"} being updated`
}

/** Objects that were up to date and no longer are. */
function degradedSentence(tiers: readonly JudgedTier[]): string | undefined {
  const regressed = sum(tiers, tier => tier.view.regressed)
  if (regressed === 0) return undefined
  const total = sum(tiers, tier => tier.view.counted.total)
  const names = nameSome(tiers.flatMap(tier => tier.view.regressedExamples(2)).slice(0, 2), regressed)
  const why = tiers.flatMap(tier => tier.view.troubles.map(({ count, reason }) => `${count} ${reason}`)).slice(0, 3)
  const causes = why.length > 0 ? ` (${why.join(", ")})` : ""
  return `${regressed} of ${total} objects lost their health after they were up to date${causes}: ${names}`
}

/** A node that no longer answers may still run its pods: the one thing that "complete" cannot promise. */
function lostSentence(tiers: readonly JudgedTier[]): string {
  const lost = sum(tiers, tier => tier.view.lostPods)
  if (lost === 0) return ""
  const some = tiers.flatMap(tier => tier.view.lostExamples(2)).slice(0, 2)
  const who = nameSome(
    some.map(({ key, node }) => `${key} on ${node}`),
    lost,
  )
  return `; ${counted(lost, "pod")} on lost nodes may still run another image (${who})`
}

function rolling(active: readonly JudgedTier[]): Verdict {
  // A metric that cannot be asked for before a person acts is said first: it is what the rollout stands at.
  const order = active.toSorted((a, b) => Number(needsPerson(b)) - Number(needsPerson(a)))
  const said = order.map(tier => describeTier(tier, { active }))
  const first = said.find(({ reason }) => reason !== "AwaitingApproval") ?? said[0]!
  const isStalled = first.reason === "MetricError" && order.some(needsPerson)
  return {
    reason: first.reason,
    message: said.map(each => each.message).join("; "),
    isInProgress: true,
    ...(isStalled && { isStalled }),
  }
}

const needsPerson = ({ judging }: JudgedTier): boolean => judging?.kept?.needsPerson ?? false

function back({ seen: { operation }, tiers, active }: Judged): Verdict {
  const { id, cause = "" } = operation
  const [total, done] = [sum(tiers, tier => tier.view.counted.total), sum(tiers, tier => tier.view.counted.done)]
  const failed = sum(tiers, tier => tier.view.counted.failed)
  const trouble = failed > 0 ? `; ${failed} ${failed === 1 ? "does" : "do"} not become healthy with it` : ""
  const common = { cause, also: "Halted" } as const
  if (active.length > 0) {
    const message = `${cause}; ${done} of ${counted(total, "object")} changed by operation ${id} ${done === 1 ? "is" : "are"} back${trouble}`
    return { ...common, reason: "RollingBack", message, phase: "RollingBack", isInProgress: true }
  }
  const message = `${cause}; ${total === 1 ? "the one object" : `all ${total} objects`} changed by operation ${id} ${total === 1 ? "is" : "are"} back${trouble}. The spec still names the new image: change it, or run aim resume to try again`
  return { ...common, reason: "RolledBack", message, phase: "RolledBack", isStalled: true }
}

const forward: Verdicts = { paused, halted, fencing, conflict: conflicting, complete }
/** Nothing halts a rollback, and it concerns only objects that the operation changed. */
const nothing = () => undefined
const backward: Verdicts = { paused, halted: nothing, fencing, conflict: nothing, complete: back }

/** The last image that completed in this tier; on its very first rollout, the one being rolled out. */
const newDeploymentImage = ({ before, image, isComplete }: JudgedTier) =>
  isComplete ? image : before?.newDeploymentImage || image

const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0)
