import {
  approvedAnnotation,
  type FailureReason,
  type Operation,
  type Reason,
  type ServiceImage,
  type TierAnalysisStatus,
  type TierStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import { parseApproval } from "#core/fleet/approval.ts"
import { changedInSameWrite } from "#core/fleet/contests.ts"
import { anAdmissionWebhook, type Counts, type TierView } from "#core/fleet/fleet.ts"
import { budgetOf, type EffectiveTier, effectiveTiers } from "#core/fleet/tiers.ts"
import { sameImage } from "#core/image/reference.ts"
import { blockedReasons } from "#core/in-place/own-hold.ts"
import { formatDuration } from "#lib/duration.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { ownValue } from "#lib/own.ts"
import { nameSome } from "#lib/text.ts"
import { failureOf, goodPercentOf, type Judging, judgeStep, judgingWords, type RoundCheck } from "./analysis.ts"
import { type Rollout, type TierCheckName, tierChecks } from "./checks.ts"

/** A tier, and how far it has come. */
export type JudgedTier = EffectiveTier & {
  view: TierView
  before: TierStatus | undefined
  isComplete: boolean
  /** Was complete with this image, and an object with another image appeared. */
  isReopened: boolean
  /** Complete, and objects that this operation stamped have lost their health since. */
  isRegressed: boolean
  /** An earlier step has lost its health: this one adds no objects until that one is healthy again. */
  isHeldBack: boolean
  halt: Halt | undefined
  /** The current step, since when it is up to date, and until when it soaks. */
  step: number
  upToDateAt: Instant | undefined
  soaksUntil: Instant | undefined
  /** The current step is up to date, and the tier has an analysis. */
  judging: Judging | undefined
  /** What the analysis has found in this operation. */
  found: TierAnalysisStatus | undefined
  isAwaitingApproval: boolean
  /** It waits until its nodes have its image: they are asked for it now or later, and the wait ends then. */
  preCaching: { readonly words: string; readonly isDue: boolean; readonly endsAt?: Instant } | undefined
  /** What it started without, or is about to. */
  lacks: string
}

export type Halt = { reason: Reason; message: string; isEarly?: boolean }

type Status = ServiceImage["status"]

/** What is known of a tier beside its objects. */
type Known = {
  before: TierStatus | undefined
  /** The status is about this operation. */
  isKnown: boolean
  /** What was found of this image is not yet decided, and goes on in a new operation: another tier has another image. */
  isUndecided: boolean
  /** The operation was complete before: what it reopens is not judged again. */
  isOver: boolean
  checks: readonly RoundCheck[] | undefined
  now: Instant
}

type Judged = Pick<
  JudgedTier,
  | "isComplete"
  | "isReopened"
  | "isRegressed"
  | "isHeldBack"
  | "halt"
  | "step"
  | "upToDateAt"
  | "soaksUntil"
  | "judging"
  | "found"
>

export type Seen = {
  serviceImage: ServiceImage
  operation: Operation
  tiers: readonly TierView[]
  /** What was found in the round that is due, by tier. */
  checks?: ReadonlyMap<string, readonly RoundCheck[]> | undefined
  now: Instant
}

/** The tiers in the order in which they are worked. */
export function judgeTiers({ serviceImage, operation, tiers, checks, now }: Seen): JudgedTier[] {
  const { metadata, spec, status } = serviceImage
  const isKnown = status?.operation?.id === operation.id
  const approval = parseApproval(metadata.annotations?.[approvedAnnotation])
  const approved = approval?.operation === operation.id ? approval.tiers : []
  return effectiveTiers(spec).map(tier => {
    const view = tiers.find(each => each.rule.name === tier.name)!
    const before = status?.tierStatus.find(each => each.upgradeTier === tier.name)
    const image = ownValue(operation.images, tier.name) ?? tier.image
    const isUndecided = isKnown || isUndecidedBefore({ ...tier, image }, before, status)
    const isOver = operation.endedAt !== undefined
    const known = { before, isKnown, isUndecided, isOver, checks: checks?.get(tier.name), now }
    const judged = judge({ ...tier, image }, view, known)
    const hasToDo = !judged.isComplete && !judged.isReopened && view.counted.stale > 0
    const isAwaitingApproval = tier.requireApproval && hasToDo && !approved.includes(tier.name)
    return { ...tier, image, view, before, ...judged, isAwaitingApproval, preCaching: undefined, lacks: "" }
  })
}

/** The operation before was judging this tier with the same image, and did not take it back. */
function isUndecidedBefore({ name, image, analysis }: EffectiveTier, before: TierStatus | undefined, status: Status) {
  const { images, phase } = status?.operation ?? {}
  if (!analysis || !before || !images || isTrue(before.conditions, "Complete")) return false
  const was = ownValue(images, name)
  return was !== undefined && sameImage(was, image) && phase !== "RollingBack" && phase !== "RolledBack"
}

/**
 * Once a tier is complete, only an object with a wrong image reopens it. An object that lost its health does not. While
 * the operation goes on, it holds back the tiers that come after: the image may be the cause.
 */
function judge(tier: EffectiveTier, view: TierView, known: Known): Judged {
  const { before, isKnown, isUndecided } = known
  const last = tier.steps.length - 1
  const nothing: Omit<Judged, "isComplete" | "step"> = {
    halt: undefined,
    upToDateAt: undefined,
    soaksUntil: undefined,
    isReopened: false,
    isRegressed: false,
    isHeldBack: false,
    judging: undefined,
    found: isUndecided && tier.analysis ? before?.analysis : undefined,
  }
  const wasComplete = isTrue(before?.conditions, "Complete") && sameImage(before!.newDeploymentImage, tier.image)
  const hasStale = view.counted.stale > 0
  if (wasComplete) {
    const isUnderWay = isKnown && !hasStale
    const halt = isUnderWay && view.regressedWithStamp > 0 ? haltOf(tier, view, last) : undefined
    const isRegressed = halt !== undefined || (isUnderWay && view.lapsed > 0)
    return { ...nothing, isComplete: !hasStale, isReopened: hasStale, isRegressed, halt, step: last }
  }
  // The tier stays reopened until the last of these objects is stamped, which may take a few looks. Its approvals and
  // steps were passed before.
  if (isKnown && hasStale && isSaid(before, "TierReopened"))
    return { ...nothing, isComplete: false, isReopened: true, halt: haltOf(tier, view, last), step: last }
  const { total, done } = view.counted
  // An image that proved bad is not proved good by taking its objects away.
  const halt = total === 0 ? foundAgainst(tier, nothing.found, { isUpToDate: false }) : undefined
  if (halt) return { ...nothing, isComplete: false, halt, step: last }
  // There is nothing to wait for where a tier has no objects, or where an operation finds all of them done.
  if (total === 0 || (!isUndecided && done === total)) return { ...nothing, isComplete: true, step: last }
  return judgeSteps(tier, view, known, nothing)
}

function judgeSteps(
  tier: EffectiveTier,
  view: TierView,
  { before, isUndecided, isOver, checks, now }: Known,
  nothing: Omit<Judged, "isComplete" | "step">,
): Judged {
  const last = tier.steps.length - 1
  const known = isUndecided ? before?.step : undefined
  let step = known
    ? Math.max(
        0,
        tier.steps.findIndex(({ percent }) => percent >= known.percent),
      )
    : 0
  let found = nothing.found
  for (; ; step++) {
    const halt = haltOf(tier, view, step) ?? foundAgainst(tier, found, { isUpToDate: false })
    const { total, stale, waiting, settling, guessed } = view.cohort(step)
    const isHeldBack = step > 0 && view.cohort(step - 1).waiting > 0
    const { percent, soakMs } = tier.steps[step]!
    const since = known?.percent === percent ? parseInstant(known.upToDateAt) : undefined
    if (halt || stale > 0 || waiting > 0 || settling > 0) {
      // A process that has just started sees objects that settle, until it knows their pods. The step goes on where it was.
      const isSeenAnew = !halt && stale === 0 && waiting === 0 && settling === guessed
      return {
        ...nothing,
        found,
        isComplete: false,
        halt,
        step,
        isHeldBack,
        upToDateAt: isSeenAnew ? since : undefined,
      }
    }
    const upToDateAt = since ?? now
    // A step that adds no objects has soaked with the one before.
    const addsNone = step > 0 && view.cohort(step - 1).total === total
    const soaksUntil = addsNone ? now : upToDateAt + soakMs
    const isToJudge = total > 0 && !isOver && !isFoundGood(tier, view, step, found)
    const judging = isToJudge ? judgingOf(tier, { percent, upToDateAt, before: found, checks, now }) : undefined
    if (judging) found = judging.kept
    if (soaksUntil > now || judging?.isGood === false) {
      const soaks = soaksUntil > now ? { soaksUntil } : {}
      const halt = foundAgainst(tier, found, { isUpToDate: judging?.verdict !== undefined })
      return { ...nothing, found, isComplete: false, halt, step, upToDateAt, ...soaks, judging }
    }
    if (step === last) return { ...nothing, found, isComplete: true, step, upToDateAt }
  }
}

/** A step that adds no objects to one that a round found good. Not to the one before: the spec may have got other steps. */
function isFoundGood(
  { analysis, steps }: EffectiveTier,
  view: TierView,
  step: number,
  found: Judged["found"],
): boolean {
  const good = analysis && goodPercentOf(analysis, found)
  const index = steps.findIndex(({ percent }) => percent === good)
  return index >= 0 && index < step && view.cohort(index).total === view.cohort(step).total
}

const judgingOf = ({ analysis, ...tier }: EffectiveTier, step: Parameters<typeof judgeStep>[1]): Judging | undefined =>
  analysis && judgeStep({ ...tier, analysis }, step)

/** A tier whose analysis has failed stays halted, also while its objects change. */
function foundAgainst(
  { analysis, ...tier }: EffectiveTier,
  found: Judged["found"],
  of: Parameters<typeof failureOf>[2],
): Halt | undefined {
  const failure = analysis && failureOf({ ...tier, analysis }, found, of)
  if (!failure) return undefined
  const at = tier.steps.length > 1 ? ` at step ${found!.percent}%` : ""
  return { ...failure, message: `${tierTitle(tier.name)}${at}: ${failure.message}` }
}

/** This many failures, without a single success, are no coincidence. */
const enough = 5

/** What stops a tier. The step is judged by the objects it added: those of earlier steps have proved themselves. */
function haltOf({ name, image, failureBudget }: EffectiveTier, view: TierView, step: number): Halt | undefined {
  const { counted, halting, ignored, early } = view
  const title = tierTitle(name)
  const added = view.increment(step)
  const why = () => view.troubles.map(trouble => `${trouble.count} ${trouble.reason}`).join(", ")
  if (counted.total > 0 && counted.invalid === counted.total)
    return { reason: "WrongTarget", message: `${title}: spec.target fits no object: ${view.invalidExample()}` }
  if (cannotPull(added)) {
    const message = `${title}: none of ${added.unpullable} objects can pull ${image}`
    return { reason: "AllFailed", message, isEarly: true }
  }
  if (allCrash(added)) {
    const message = `${title}: all ${added.crashing} objects that started ${image} crash`
    return { reason: "AllFailed", message, isEarly: true }
  }
  if (allFailed(added)) {
    const message = `${title}: all ${added.failed} objects failed with ${image} (${why()})`
    return { reason: "AllFailed", message, isEarly: early >= added.failed }
  }
  if (halting > 0) {
    const names = nameSome(view.haltingExamples(2), halting)
    const message = `${title}: ${names} failed and failureHaltsUpdate is set (${why()})`
    return { reason: "FailureHaltsUpdate", message, isEarly: early >= halting }
  }
  const budget = failureBudget === undefined ? Number.POSITIVE_INFINITY : budgetOf(failureBudget, counted.total)
  if (ignored > budget) {
    const message = `${title}: ${ignored} of ${counted.total} objects failed, more than failureBudget ${failureBudget} allows (${why()})`
    return { reason: "FailureBudgetSpent", message, isEarly: ignored - early <= budget }
  }
  return undefined
}

const cannotPull = ({ total, stamped, unpullable }: Counts) =>
  unpullable > 0 && unpullable === stamped && unpullable >= Math.min(total, enough)

/** Objects stamped a moment ago have no pods yet, so the crashes count without waiting for the last one. */
const allCrash = ({ total, done, settling, crashing }: Counts) =>
  crashing > 0 && crashing >= Math.min(total, enough) && done === 0 && settling === 0

const allFailed = ({ total, stamped, done, waiting, settling, failed }: Counts) =>
  total > 0 && (failed === total || (stamped >= enough && done === 0 && waiting === 0 && settling === 0))

type Described = { reason: Reason; message: string }
type Words = (tier: JudgedTier, progress: string) => Described

const lostHealth: Words = ({ view }, progress) => {
  const names = nameSome(view.regressedExamples(2), view.regressed)
  const message = `${progress}; ${names || "an earlier step"} lost health, and later steps and tiers wait for that`
  return { reason: "WaitingForHealth", message }
}

const troubleOf = ({ view }: JudgedTier, reason: FailureReason) =>
  view.troubles.find(trouble => trouble.reason === reason)!

/** The words for each check of a tier. */
const wordsFor: Record<TierCheckName, Words> = {
  priority: () => ({ reason: "WaitingForPriority", message: "tiers of a higher priority come first" }),
  regressed: lostHealth,
  heldBack: lostHealth,
  approval: ({ name, view }) => ({
    reason: "AwaitingApproval",
    message: `${tierTitle(name)}: ${view.counted.total} objects wait for aim approve`,
  }),
  preCaching: ({ name, preCaching }) => ({
    reason: "PreCaching",
    message: `${tierTitle(name)}: ${preCaching!.words}`,
  }),
  forbidden: (tier, progress) => ({
    reason: "Forbidden",
    message: `${progress}; ${troubleOf(tier, "Forbidden").count} may not be changed: run aim grant NAMESPACE`,
  }),
  contests(tier, progress) {
    const { count } = troubleOf(tier, "Contested")
    const writers = tier.view.contestants(2)
    const how = writers.every(each => each === anAdmissionWebhook)
      ? `of ${count}: ${changedInSameWrite}`
      : `${writers.join(" and ")} puts another image back on ${count}`
    return { reason: "Contested", message: `${progress}; ${how}` }
  },
  failedWrites(tier, progress) {
    const { examples, count, message } = troubleOf(tier, "WriteFailed")
    const some = nameSome(examples(2), count)
    return { reason: "WriteFailed", message: `${progress}; ${some} cannot be written: ${message}` }
  },
  blockedInPlace({ view }, progress) {
    const found = view.troubles.find(trouble => blockedReasons.some(reason => reason === trouble.reason))!
    const some = nameSome(found.examples(2), found.count)
    return { reason: found.reason, message: `${progress}; ${some} in place: ${found.message}` }
  },
  reopened: ({ view: { counted } }, progress) => ({
    reason: "TierReopened",
    message: `${progress}; ${counted.stale} ${counted.stale === 1 ? "has" : "have"} another image again`,
  }),
  judging(tier, progress) {
    const { analysis, judging } = tier
    const { reason, words } = judgingWords({ ...tier, analysis: analysis! }, judging!)
    return { reason, message: `${progress}; ${words}` }
  },
  soaking: ({ soaksUntil, judging }, progress) => ({
    reason: "Soaking",
    message: `${progress}; soaking until ${formatInstant(soaksUntil!)}${judging?.verdict === "Good" ? `; ${judging.kept!.message}` : ""}`,
  }),
  stamped(tier, progress) {
    const { view, step } = tier
    // No number that changes by itself: each change of the status is a write.
    if (view.cohort(step).waiting === 0)
      return { reason: "Settling", message: `${progress}; done when that has lasted ${settleWords(tier)}` }
    const names = nameSome(view.waitingExamples(2), view.waiting)
    return { reason: "WaitingForHealth", message: `${progress}; waiting for ${names}` }
  },
  full: ({ view: { underWay } }, progress) => ({
    reason: "WaitingForConcurrency",
    message: `${progress}; ${underWay} on their way, as many as maxConcurrent allows`,
  }),
}

/** What a tier waits for. */
export function describeTier(tier: JudgedTier, rollout: Pick<Rollout, "active">): Described {
  const { steps, step } = tier
  const share = steps.length > 1 ? ` at step ${steps[step]!.percent}%` : ""
  const without = tier.lacks === "" ? "" : `, ${startedWithout} ${tier.lacks}`
  const progress = `${progressOf(tier)}${share}${without}`
  const check = tierChecks.find(each => each.applies(tier, rollout))
  return check ? wordsFor[check.name](tier, progress) : { reason: "RollingOut", message: progress }
}

const settleWords = ({ settleSeconds }: JudgedTier) => formatDuration(settleSeconds * 1000)

/** How many of the objects that count are up to date. */
const progressOf = ({ name, view }: Pick<JudgedTier, "name" | "view">) =>
  `${tierTitle(name)}: ${view.counted.done + view.counted.settling} of ${view.counted.total} up to date`

export const startedWithout = "started without the image on"

export const tierTitle = (name: string) => (name === "" ? "default tier" : `tier ${name}`)

const isSaid = (before: TierStatus | undefined, reason: Reason) =>
  before?.conditions.some(each => each.reason === reason) ?? false

export const isTrue = (conditions: readonly { type: string; status: string }[] | undefined, type: string) =>
  conditions?.some(each => each.type === type && each.status === "True") ?? false
