import type {
  Condition,
  ConditionType,
  Failure,
  Operation,
  Reason,
  ServiceImage,
  ServiceImageStatus,
  TierStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import { maxExamples, maxExamplesPerTier, maxInflight } from "#api/v1alpha1/serviceimage/index.ts"
import type { Candidate, TierView } from "#core/fleet.ts"
import { sameImage } from "#core/image-reference.ts"
import { recordOperation } from "#core/operation.ts"
import { countOf, type EffectiveTier, effectiveTiers } from "#core/tiers.ts"
import { earliest, formatInstant, type Instant } from "#lib/instant.ts"
import { clip, nameSome } from "#lib/text.ts"
import { since } from "#runtime/conditions.ts"
import { findProblem } from "./validate.ts"

/** Everything a decision is made from. The fleet is counted, never listed: deciding costs the same at any size. */
export type Snapshot = {
  serviceImage: ServiceImage
  operation: Operation
  /** What we know of the target's objects: nothing, or all of them. A partial list concludes nothing. */
  target: { state: "Missing" } | { state: "Unreadable"; message: string } | { state: "Synced" }
  tiers: readonly TierView[]
  unmatched: ReadonlySet<string>
  /** Objects that an older ServiceImage manages, and its name. */
  conflicts: { count: number; with: string } | undefined
  /** How many objects with pods may be stamped right now without exceeding `pace`. */
  paceLeft: number
  /** When time alone changes the fleet: a deadline, or a refused write to be tried again. */
  fleetChangesAt: Instant | undefined
  now: Instant
}

/** One object gets an image, provided it still is what the decision was made from. */
export type Stamp = {
  do: "stamp"
  key: string
  uid: string
  resourceVersion: string
  from: string
  to: string
  reason: Reason
}

export type Plan = {
  stamps: Stamp[] // in order; stopping after any of them is safe
  status: ServiceImageStatus // what the user is told, always
  lookAgainAt?: Instant | undefined // when the passing of time alone would change this plan
}

/** The most stamps one plan asks for; between two batches the world is looked at again. */
const batchSize = maxInflight

/** Decides the next step of one rollout. The same snapshot always gives the same plan. */
export function plan(seen: Snapshot): Plan {
  const impossible = invalid(seen) ?? kindMissing(seen) ?? unreadable(seen)
  if (impossible) return { stamps: [], status: told(seen, impossible), lookAgainAt: seen.fleetChangesAt }

  const tiers = judgeTiers(seen)
  const unfinished = tiers.filter(tier => !tier.isComplete)
  const active = unfinished.filter(tier => tier.priority === unfinished[0]?.priority)
  const verdict =
    paused(seen, active) ?? halted(active) ?? conflicted(seen) ?? complete(seen, tiers, active) ?? rolling(active)

  const stamps = chooseStamps(seen, tiers, active)
  return {
    stamps,
    status: told(seen, verdict, { tiers, active }),
    lookAgainAt: earliest(seen.fleetChangesAt, nextPace(seen, stamps)),
  }
}

/** What is said of the whole rollout. Extra conditions stand only while they hold. */
type Verdict = {
  reason: Reason
  message: string
  phase?: Operation["phase"]
  isComplete?: boolean
  isInProgress?: boolean
  isStalled?: boolean
  also?: Extract<ConditionType, "Halted" | "Paused" | "Invalid" | "Conflict" | "TargetKindMissing">
}

type JudgedTier = EffectiveTier & {
  view: TierView
  before: TierStatus | undefined
  isComplete: boolean
  /** Was complete with this image, and an object with another image appeared. */
  isReopened: boolean
  halt: Verdict | undefined
}

function invalid({ serviceImage }: Snapshot): Verdict | undefined {
  const problem = findProblem(serviceImage.spec)
  return problem && { ...problem, isStalled: true, also: "Invalid" }
}

function kindMissing({ serviceImage, target }: Snapshot): Verdict | undefined {
  const { apiVersion, kind } = serviceImage.spec.target
  if (target.state !== "Missing") return undefined
  const message = `the cluster does not serve ${kind} in ${apiVersion}; the rollout starts when it does`
  return { reason: "KindNotFound", message, isStalled: true, also: "TargetKindMissing" }
}

function unreadable({ target }: Snapshot): Verdict | undefined {
  return target.state === "Unreadable"
    ? { reason: "ListFailed", message: target.message, isInProgress: true }
    : undefined
}

function judgeTiers({ serviceImage, tiers }: Snapshot): JudgedTier[] {
  const before = new Map(serviceImage.status?.tierStatus.map(tier => [tier.upgradeTier, tier]))
  const views = new Map(tiers.map(view => [view.rule.name, view]))
  return effectiveTiers(serviceImage.spec).map(tier => {
    const view = views.get(tier.name)!
    return { ...tier, view, before: before.get(tier.name), ...judge(tier, view, before.get(tier.name)) }
  })
}

/**
 * Once a tier is complete, only an object with a wrong image reopens it. One that merely lost its health does not: the
 * rollout brought it there, and going back to it would hold everybody else for something that is not the rollout's.
 */
function judge(tier: EffectiveTier, view: TierView, before: TierStatus | undefined) {
  const wasComplete = isTrue(before?.conditions, "Complete") && sameImage(before!.newDeploymentImage, tier.image)
  if (wasComplete) {
    const isComplete = view.counted.stale === 0
    return { isComplete, isReopened: !isComplete, halt: undefined }
  }
  const halt = haltOf(tier, view)
  const isComplete = !halt && view.counted.stale === 0 && view.counted.waiting === 0
  return { isComplete, isReopened: false, halt }
}

function haltOf({ name, image }: EffectiveTier, view: TierView): Verdict | undefined {
  const stopped = { phase: "Halted", isStalled: true, also: "Halted" } as const
  const { counted, halting } = view
  if (counted.total > 0 && counted.failed === counted.total) {
    const reasons = view.troubles.map(trouble => `${trouble.count} ${trouble.reason}`).join(", ")
    const message = `${tierTitle(name)}: all ${counted.total} objects failed with ${image} (${reasons})`
    return { ...stopped, reason: "AllFailed", message }
  }
  if (halting === 0) return undefined
  const who = nameSome(view.haltingExamples(2), halting)
  const message = `${tierTitle(name)}: ${who} did not become up to date in time and failureHaltsUpdate is set`
  return { ...stopped, reason: "FailureHaltsUpdate", message }
}

function paused({ serviceImage }: Snapshot, active: readonly JudgedTier[]): Verdict | undefined {
  if (!serviceImage.spec.paused || active.length === 0) return undefined
  return { reason: "Paused", message: "spec.paused is true; nothing is stamped until it is false", also: "Paused" }
}

function conflicted({ conflicts }: Snapshot): Verdict | undefined {
  return (
    conflicts && {
      reason: "ClaimedByAnother",
      message: `${conflicts.count} objects belong to the older ServiceImage ${conflicts.with}; narrow spec.target.selector`,
      isInProgress: true,
      isStalled: true,
      also: "Conflict",
    }
  )
}

function halted(active: readonly JudgedTier[]): Verdict | undefined {
  return active.find(tier => tier.halt)?.halt
}

function complete(
  { unmatched }: Snapshot,
  tiers: readonly JudgedTier[],
  active: readonly JudgedTier[],
): Verdict | undefined {
  if (active.length > 0) return undefined
  const total = sum(tiers, tier => tier.view.total)
  const left =
    unmatched.size > 0
      ? `; ${unmatched.size} in no tier are left alone (${nameSome([...unmatched].slice(0, 2), unmatched.size)})`
      : ""
  const done = { isComplete: true, phase: "Complete" } as const
  if (total === 0) return { ...done, reason: "NoObjects", message: `no object matches the target${left}` }
  if (sum(tiers, tier => tier.view.counted.total) === 0)
    return {
      ...done,
      reason: "NoObjects",
      message: `nobody was there at the start; ${total} came since and are on their way${left}`,
    }
  const ignored = sum(tiers, tier => tier.view.ignored)
  const failed = ignored > 0 ? `; ${ignored} failed and are ignored` : ""
  return {
    ...done,
    reason: "AllUpToDate",
    message: `${sum(tiers, tier => tier.view.upToDate)} of ${total} objects are up to date${failed}${left}`,
  }
}

function rolling(active: readonly JudgedTier[]): Verdict {
  const said = active.map(describeTier)
  return { reason: said[0]!.reason, message: said.map(each => each.message).join("; "), isInProgress: true }
}

function describeTier({ name, view, isReopened, maxConcurrent }: JudgedTier): { reason: Reason; message: string } {
  const { counted, total, upToDate, settling } = view
  const progress = `${tierTitle(name)}: ${upToDate} of ${total} up to date`
  const refused = view.troubles.find(trouble => trouble.reason === "Forbidden")
  if (refused)
    return { reason: "Forbidden", message: `${progress}; ${refused.count} may not be changed: run aim grant NAMESPACE` }
  if (isReopened) return { reason: "TierReopened", message: `${progress}; ${counted.stale} have another image again` }
  if (counted.stale === 0) {
    const who = nameSome(view.waitingExamples(2), settling)
    return { reason: "WaitingForHealth", message: `${progress}; waiting for ${who}` }
  }
  if (maxConcurrent !== undefined && settling >= countOf(maxConcurrent, total))
    return {
      reason: "WaitingForConcurrency",
      message: `${progress}; ${settling} on their way, as many as maxConcurrent allows`,
    }
  return { reason: "RollingOut", message: progress }
}

/**
 * Objects without an image get one at once, whatever their priority: the target if their tier is being rolled out, else
 * the last image that proved itself there. Objects with another image follow in their turn; in a finished tier these
 * are only new ones that were never deployed, which gate nothing and can go at once.
 */
function chooseStamps(seen: Snapshot, tiers: readonly JudgedTier[], active: readonly JudgedTier[]): Stamp[] {
  if (seen.serviceImage.spec.paused) return []
  const isHalted = active.some(tier => tier.halt)
  const stamps: Stamp[] = []
  let paceLeft = seen.paceLeft
  for (const tier of tiers) {
    const isOpen = !isHalted && (tier.isComplete || active.includes(tier))
    let room =
      tier.maxConcurrent === undefined ? Infinity : countOf(tier.maxConcurrent, tier.view.total) - tier.view.settling
    for (const candidate of tier.view.blank(batchSize - stamps.length)) {
      const goesToTarget = isOpen && room > 0
      if (goesToTarget) room--
      stamps.push(stamp(candidate, goesToTarget ? tier.image : newDeploymentImage(tier), "StampedNew"))
    }
    if (!isOpen) continue
    const count = Math.max(0, Math.min(batchSize - stamps.length, room, paceLeft))
    const chosen = tier.view.stale(count)
    paceLeft -= chosen.length
    for (const candidate of chosen) stamps.push(stamp(candidate, tier.image, "Stamped"))
  }
  return stamps
}

const stamp = ({ key, member }: Candidate, to: string, reason: Reason): Stamp => ({
  do: "stamp",
  key,
  uid: member.uid,
  resourceVersion: member.resourceVersion,
  from: member.image,
  to,
  reason,
})

/** While the pace holds objects back, another look is due as soon as one more is allowed. */
function nextPace({ serviceImage, paceLeft, now }: Snapshot, stamps: Stamp[]): Instant | undefined {
  const { podsPerSecond } = serviceImage.spec.pace
  const spent = stamps.filter(each => each.reason === "Stamped").length
  return podsPerSecond > 0 && spent >= Math.floor(paceLeft) && paceLeft < batchSize
    ? now + Math.ceil(1000 / podsPerSecond)
    : undefined
}

/** The last image that completed in this tier; on its very first rollout, the one being rolled out. */
const newDeploymentImage = ({ before, image, isComplete }: JudgedTier) =>
  isComplete ? image : before?.newDeploymentImage || image

/** The status that says all this. Times move only when what they date changes. */
function told(
  seen: Snapshot,
  verdict: Verdict,
  judged?: { tiers: readonly JudgedTier[]; active: readonly JudgedTier[] },
): ServiceImageStatus {
  const { serviceImage, operation, now, unmatched } = seen
  const { generation = 0 } = serviceImage.metadata
  const before = serviceImage.status
  const condition = conditionWriter(generation, now)
  const { isComplete = false, isInProgress = false, isStalled = false, also, reason, message } = verdict
  const conditions: Condition[] = [
    condition(before?.conditions, "Complete", isComplete, reason, clip(message, 256)),
    condition(before?.conditions, "InProgress", isInProgress, reason, clip(message, 256)),
    condition(before?.conditions, "Ready", isComplete, reason, clip(message, 256)),
    condition(
      before?.conditions,
      "Stalled",
      isStalled,
      isStalled ? reason : "NotStalled",
      isStalled ? clip(message, 256) : "",
    ),
    ...(also ? [condition(before?.conditions, also, true, reason, clip(message, 256))] : []),
  ]
  const kept = { ...emptyStatus, ...before, observedGeneration: generation, conditions }
  if (!judged) return kept

  const { tiers, active } = judged
  const currentPriority = active[0]?.priority ?? tiers.at(-1)?.priority ?? 0
  const hasMoved = before?.priorityStartedAt === undefined || before.currentPriority !== currentPriority
  const isNew = before?.operation?.id !== operation.id
  const examples = shareOfExamples(tiers)
  return {
    ...kept,
    progress: `${sum(tiers, tier => tier.view.upToDate)}/${sum(tiers, tier => tier.view.total)}`,
    currentPriority,
    tierStatus: tiers.map(tier => tierStatusOf(tier, active.includes(tier), verdict, examples, condition)),
    unmatched: unmatched.size,
    operation: { ...operation, phase: verdict.phase ?? "InProgress" },
    history:
      isNew && before?.operation
        ? recordOperation(before.history, ended(before.operation, before.completedAt, now))
        : kept.history,
    startedAt: operation.startedAt,
    priorityStartedAt: hasMoved || isNew ? formatInstant(now) : before.priorityStartedAt,
    ...(isComplete && !(isTrue(before?.conditions, "Complete") && !isNew) ? { completedAt: formatInstant(now) } : {}),
  }
}

const ended = (operation: Operation, completedAt: string | undefined, now: Instant) =>
  operation.phase === "Complete"
    ? { ...operation, endedAt: completedAt ?? formatInstant(now) }
    : { ...operation, phase: "Superseded" as const, endedAt: formatInstant(now) }

function tierStatusOf(
  tier: JudgedTier,
  isActive: boolean,
  verdict: Verdict,
  examples: number,
  condition: ReturnType<typeof conditionWriter>,
): TierStatus {
  const { view, before, isComplete, halt } = tier
  const isGoing = isActive && (verdict.isInProgress ?? false)
  const said = isComplete
    ? {
        reason: view.total === 0 ? ("NoObjects" as const) : ("AllUpToDate" as const),
        message: `${view.upToDate} of ${view.total} up to date`,
      }
    : isActive
      ? (halt ?? (isGoing ? describeTier(tier) : verdict))
      : { reason: "WaitingForPriority" as const, message: "tiers of a higher priority come first" }
  const message = plain(said.message)
  return {
    upgradeTier: tier.name,
    newDeploymentImage: newDeploymentImage(tier),
    conditions: [
      condition(before?.conditions, "Complete", isComplete, said.reason, message),
      condition(before?.conditions, "InProgress", isGoing && !isComplete, said.reason, message),
    ],
    total: view.total,
    updated: view.updated,
    upToDate: view.upToDate,
    unmanaged: view.unmanaged,
    ignoredFailures: view.ignored,
    regressed: isComplete ? view.counted.waiting + view.counted.failed : 0,
    failures: failuresOf(view, examples),
  }
}

/** At most three classes, which name at most `examples` objects between them. */
function failuresOf(view: TierView, examples: number): Failure[] {
  let left = examples
  return view.troubles.slice(0, 3).map(({ reason, count, examples: some }) => {
    const named = some(left)
    left -= named.length
    return { reason, scope: count >= view.counted.total ? "All" : "Partial", count, examples: named }
  })
}

/** The largest legal status stays small: many tiers in trouble at once name fewer objects each. */
function shareOfExamples(tiers: readonly JudgedTier[]): number {
  const inTrouble = tiers.filter(tier => tier.view.troubles.length > 0).length
  return inTrouble === 0 ? maxExamplesPerTier : Math.min(maxExamplesPerTier, Math.floor(maxExamples / inTrouble))
}

/** States conditions of one generation; each keeps its time as long as its status stays. */
const conditionWriter =
  (observedGeneration: number, now: Instant) =>
  <Type extends ConditionType>(
    before: Parameters<typeof since>[0],
    type: Type,
    isTrue: boolean,
    reason: Reason,
    message: string,
  ): Condition & { type: Type } =>
    since(before, { type, status: isTrue ? "True" : "False", reason, message, observedGeneration }, now)

const emptyStatus: ServiceImageStatus = {
  observedGeneration: 0,
  conditions: [],
  progress: "",
  currentPriority: 0,
  tierStatus: [],
  unmatched: 0,
  lostPods: 0,
  history: [],
  electionID: "",
  inflight: [],
}

const tierTitle = (name: string) => (name === "" ? "default tier" : `tier ${name}`)
/** A tier's message is one of many, so the schema keeps it to plain, single-byte characters. */
const plain = (message: string) => message.replace(/[^ !#-%'-;=?-[\]-~]/g, "?").slice(0, 128)
const isTrue = (conditions: readonly { type: string; status: string }[] | undefined, type: string) =>
  conditions?.some(each => each.type === type && each.status === "True") ?? false
const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0)
