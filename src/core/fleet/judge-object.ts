import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { hasRejected, isOpen, type Proof, provesOther } from "../canary/proof.ts"
import type { Holds } from "../holds.ts"
import type { ImageRecord } from "../image/record.ts"
import { sameImage } from "../image/reference.ts"
import { mustKeepTemplate } from "../in-place/own-hold.ts"
import { type Crash, isLooping, settlesAt } from "../pods/steady.ts"
import { crashOf, diagnose, lostWithOther, type Trace } from "../pods/trace.ts"
import { checkOf } from "./checks.ts"
import { cohortOf } from "./cohort.ts"
import type { Contests } from "./contests.ts"
import { hasImage, type Member } from "./member.ts"
import type { Entry, Standing } from "./standing.ts"
import type { TierRule } from "./tier.ts"

export type FleetRules = {
  /** The ServiceImage, as decisions name it. */
  readonly by: string
  /** Its uid. A ServiceImage re-created under the same name is another one, and may reuse operation ids. */
  readonly uid: string
  /** The operation's id: it separates our own stamps from the changes of others. */
  readonly operation: string
  readonly tiers: readonly TierRule[]
  /** Objects created later never gate completion until they are Deployed. */
  readonly startedAt: Instant
  /** Reverses the operation: objects that it changed get their old image back, and no other object counts. */
  readonly isRollback: boolean
}

/** What is known of the time before a fleet is first looked at. */
export type FleetHistory = {
  /** The time of an earlier status that counted no object of this operation as failed. */
  readonly cleanAt?: Instant | undefined
  /** When an earlier status called a tier complete with its present image, by the tier's name. */
  readonly completedAt?: ReadonlyMap<string, Instant>
  /** There is only this one look. A state without a time counts from the stamp, since no later look could date it. */
  readonly isStill?: boolean
}

type Obstacles = { readonly holds: Holds<FailureReason>; readonly contests: Contests }

/**
 * Finds out how one object stands: which image it must have, whether it runs that, since when, and what is in the way.
 * Writes to its standing alone.
 */
export class ObjectJudge {
  rules: FleetRules
  now: Instant
  /** The objects that existed at the start are all listed: an object first seen after this comes to this fleet now. */
  isListed = false
  readonly #cleanAt: Instant
  readonly #completedAt: ReadonlyMap<string, Instant>
  readonly #isStill: boolean
  readonly #holds: Holds<FailureReason>
  readonly #contests: Contests

  constructor(
    rules: FleetRules,
    now: Instant,
    { holds, contests, cleanAt = 0, completedAt = new Map(), isStill = false }: FleetHistory & Obstacles,
  ) {
    this.rules = rules
    this.now = now
    this.#cleanAt = cleanAt
    this.#completedAt = completedAt
    this.#isStill = isStill
    this.#holds = holds
    this.#contests = contests
  }

  /** Finds the facts about an object, and the first check that applies to them. */
  judge(entry: Entry, rule: TierRule): void {
    const { member, standing } = entry
    this.#find(entry, rule)
    const check = checkOf(standing, member)
    standing.check = check
    const obstacle = check?.obstacle?.(standing, member, this.rules.startedAt)
    if (!obstacle) return
    const deadline = obstacle.since + (obstacle.isFinal ? 0 : rule.deadlineMs)
    standing.deadline = deadline
    standing.isFailed = obstacle.isFinal === true || deadline <= this.now
    standing.isEarly = obstacle.isFinal === true
    standing.changesAt = standing.isFailed ? undefined : deadline
    standing.isHeld = obstacle.retryAt > this.now
    standing.trouble = obstacle.reason ?? (standing.isFailed ? "Contested" : undefined)
    standing.words = obstacle.message
  }

  #find(entry: Entry, rule: TierRule): void {
    const { key, place, member, trace, standing } = entry
    const { isRollback, startedAt } = this.rules
    const wanted = this.#wantedOf(member, rule)
    const isNew = !isRollback && member.createdAt > startedAt
    this.#judgeHealth(standing, entry, rule, wanted)
    standing.state = member.isUnmanaged ? "Unmanaged" : "Done"
    standing.isCounted = false
    standing.isNew = isNew
    standing.cohort = cohortOf(place, rule.cohortEnds)
    standing.wanted = wanted ?? member.image
    standing.deadline = undefined
    standing.isFailed = false
    standing.isEarly = false
    standing.isInvalid = false
    standing.isRegressed = false
    standing.trouble = undefined
    standing.isHeld = false
    standing.isContested = false
    standing.isTakenBack = false
    standing.isRejected = false
    standing.isKept = false
    standing.proof = entry.proof
    standing.hold = undefined
    standing.contest = undefined
    standing.words = undefined
    standing.lost = 0
    if (member.isUnmanaged || wanted === undefined) return
    // An object that never had an image has nothing to take back.
    standing.isCounted = isRollback ? member.image !== "" : !isNew || member.isDeployed
    standing.isInvalid = member.problem !== undefined || member.healthProblem !== undefined
    if (trace && trace.lost.length > 0) standing.lost = lostWithOther(trace, wanted).count
    if (isOn(member, wanted)) this.#judgeStamped(standing, member, rule, trace)
    else this.#judgeOther(key, standing, entry, rule)
  }

  /** Whether it runs the wanted image, since when, and whether that has lasted. */
  #judgeHealth(standing: Standing, { member, trace, proof }: Entry, rule: TierRule, wanted: string | undefined): void {
    const isThere = wanted !== undefined && isOn(member, wanted)
    const isFirst = standing.wanted === ""
    const isSame = standing.wanted === wanted
    const isOurs = isThere && this.#isOurs(member, wanted)
    standing.isOurs = isOurs
    const crash = isOurs ? this.#crashOf(member, trace, wanted) : undefined
    const isWell = isThere && isUpToDate(member, proof, wanted) && !(crash?.isLoop && !crash.isOver)
    const wasSteady = isSame && standing.isSteady
    // An object that had its image before we first saw it, and not from this operation, has nothing to prove.
    const isProven = wasSteady || (isFirst && !isOurs) || rule.settleMs === 0

    standing.lapsedAt = isThere ? this.#lapseOf(standing, member, rule, { wanted, isWell }) : undefined
    if (isWell || !isThere || !isSame) standing.brokeAt = undefined
    else if (standing.isWell && !wasSteady) standing.brokeAt = undated
    const arePodsKnown = trace !== undefined && trace.pods > 0 && trace.steadyAt > 0
    if (isFirst) standing.isWellGuessed = isOurs && !arePodsKnown && member.wellSince === undefined
    if (!isWell) standing.wellAt = undefined
    else if (isFirst) standing.wellAt = isOurs ? this.#toldWell(member, wanted, arePodsKnown) : undefined
    else if (!isSame || !standing.isWell) standing.wellAt = undated
    // The pods were listed after the object, so they are more recent.
    else if (standing.isWellGuessed && arePodsKnown) standing.wellAt = 0
    if (!isWell || arePodsKnown) standing.isWellGuessed = false
    standing.isWell = isWell
    const due = settlesAt({
      upToDateAt: standing.wellAt ?? 0,
      podsSteadyAt: this.#believable(trace?.steadyAt ?? 0),
      minReadyMs: member.minReadyMs ?? 0,
      settleMs: rule.settleMs,
    })
    standing.isSteady = isWell && (isProven || due <= this.now)
    standing.settlesAt = isWell && !standing.isSteady ? due : undefined
    standing.changesAt = standing.settlesAt
    if (standing.isSteady) standing.lapsedAt = undefined
  }

  /** Stamped by this operation, or switched to an equivalent repository since it began. */
  #isOurs(member: Member, wanted: string): boolean {
    const { decision } = member
    if (!decision) return false
    return this.#isDecidedHere(decision) || (decision.at >= this.rules.startedAt && isFailedOver(member, wanted))
  }

  /** What its containers with the image have done since the stamp. */
  #crashOf(member: Member, trace: Trace | undefined, wanted: string): Crash | undefined {
    const crash = crashOf(trace, wanted)
    return crash && (crash.at === 0 || crash.at > this.#stampedAt(member, wanted) - clockSkewMs) ? crash : undefined
  }

  /** For an object first seen now: its own transition time, else its pods', else now. */
  #toldWell(member: Member, wanted: string, arePodsKnown: boolean): Instant {
    const since = this.#believable(member.wellSince ?? 0)
    if (since > 0) return Math.max(since, this.#believable(member.decision?.at ?? 0))
    if (arePodsKnown) return 0
    return this.#isStill ? this.#stampedAt(member, wanted) : undated
  }

  /** The object has its image. */
  #judgeStamped(standing: Standing, member: Member, rule: TierRule, trace: Trace | undefined): void {
    const { wanted, isWell, isSteady, isOurs, lapsedAt, proof } = standing
    const crash = isOurs ? this.#crashOf(member, trace, wanted) : undefined
    const loops = crash !== undefined && isLooping(crash, rule.settleMs, this.now)
    if (isWell && (isSteady || !isOurs || standing.isNew)) return
    if (isWell && !loops) {
      standing.state = "Settling"
      // Any container may exit badly once: it is shown, and the settle time starts again.
      standing.trouble = crash && "Unhealthy"
      return
    }
    const deadline = this.#waitingUntil(member, standing, rule)
    const due = deadline === undated ? undefined : deadline
    const isLate = deadline <= this.now
    const found = diagnose(trace, wanted)
    const blocked = member.inPlace?.blocked
    const isRejected = hasRejected(proof, wanted)
    // The pods that failed have gone back and look well: only the record says that no other pod is going to be touched.
    const isGivenUp = isRejected || blocked?.reason === "UpdateFailed"
    standing.state = "Waiting"
    standing.deadline = due
    standing.isFailed = isLate || loops || isGivenUp
    standing.isEarly = !isLate && (loops || isGivenUp)
    // A pod that is not ready may be starting: that is no trouble before the deadline, but explains a failure then.
    const isKnown = found && (standing.isFailed || !found.isTentative)
    const isOfCanary = isRejected || proof?.state === "Stalled" || (isLate && proof?.state === "Waiting")
    standing.trouble = isOfCanary
      ? "CanaryFailed"
      : (blocked?.reason ?? (isKnown ? found.reason : isLate ? "Timeout" : undefined))
    // Scaling and lost nodes make any object unready for a moment. That alone is no regression.
    const regressesAt = lapsedAt === undefined ? undefined : lapsedAt + rule.settleMs
    standing.isRegressed = regressesAt !== undefined && (standing.isFailed || regressesAt <= this.now)
    const isOverAt = loops && crash.isOver ? crash.at + rule.settleMs : undefined
    standing.changesAt = earliest(
      standing.settlesAt,
      isOverAt,
      isLate ? undefined : due,
      standing.isRegressed ? undefined : regressesAt,
    )
    standing.words = isOfCanary ? proof!.message : (blocked?.message ?? found?.message)
  }

  /** The object has another image, or none. */
  #judgeOther(key: string, standing: Standing, { member, proof }: Entry, { strategy }: TierRule): void {
    standing.state = member.image === "" ? "Blank" : "Stale"
    standing.isTakenBack = this.#isTakenBack(member, standing.wanted)
    standing.isRejected = hasRejected(proof, standing.wanted) && this.#wasGiven(member, standing.wanted)
    standing.isKept = member.inPlace !== undefined && mustKeepTemplate(member.inPlace, strategy, proof !== undefined)
    standing.isContested = this.isContested(member, standing.wanted)
    standing.hold = this.#holds.on(key, member.namespace)
    standing.contest = standing.isContested ? this.#contests.get(key) : undefined
  }

  /** The image an object must have; undefined if this operation does not concern it. */
  #wantedOf(member: Member, rule: TierRule): string | undefined {
    if (!this.rules.isRollback) return rule.image
    const { decision, image } = member
    if (image === "") return rule.fallback || rule.image
    if (!decision || !this.#isDecidedHere(decision)) return undefined
    const before = decision.from || rule.fallback
    // Its update in place took the image back by itself: its pods follow, and are waited for.
    const takenBack = member.inPlace?.takenBack?.image
    const isTakenBack = takenBack !== undefined && sameImage(takenBack, decision.to)
    if (isTakenBack && before && hasImage(member, before)) return before
    // Another image was chosen since, and it stays. Where paths had different images, none is waited for.
    if (!hasImage(member, decision.to)) return undefined
    if (decision.reason === rolledBack) return decision.to
    // An object created during a rollback already has the image that the others get back.
    return before && !sameImage(before, decision.to) ? before : undefined
  }

  /**
   * Whether this very operation made the decision. Earlier versions did not record the uid. Such a decision must date
   * from after the operation's start, as far as clocks agree.
   */
  #isDecidedHere({ operation, by, uid, at }: ImageRecord): boolean {
    if (operation !== this.rules.operation || by !== this.rules.by) return false
    return uid === undefined ? at >= this.rules.startedAt - clockSkewMs : uid === this.rules.uid
  }

  /** We gave it its image in this operation, or its first image, and it now has another one or none. */
  isContested(member: Member, wanted: string): boolean {
    const { decision, image } = member
    if (!decision || !this.#isDecidedHere(decision) || this.#isTakenBack(member, wanted)) return false
    return image === "" || (!this.rules.isRollback && sameImage(decision.to, wanted))
  }

  /** We gave it its image in this operation, and its update in place took the image back: trying again would fail again. */
  #isTakenBack({ decision, inPlace }: Member, wanted: string): boolean {
    if (!inPlace?.takenBack || !sameImage(inPlace.takenBack.image, wanted)) return false
    return this.#wasGiven({ decision }, wanted)
  }

  /** We gave it this image in this operation. */
  #wasGiven({ decision }: Pick<Member, "decision">, wanted: string): boolean {
    if (this.rules.isRollback || !decision) return false
    return this.#isDecidedHere(decision) && sameImage(decision.to, wanted)
  }

  /**
   * An object that was up to date for settleSeconds and regressed gets a fresh deadline: in a rollout of hours there is
   * always one that is scaled, or loses a node.
   */
  #waitingSince(member: Member, { wanted, lapsedAt = 0, cameAt = 0 }: Standing): Instant {
    return Math.max(this.#stampedAt(member, wanted), this.#believable(lapsedAt), cameAt)
  }

  /**
   * An object that was settling when its deadline passed fails if it breaks. A break must last as long as a regression:
   * the next leader's touch alone makes a Deployment not up to date for a moment.
   */
  #waitingUntil(member: Member, standing: Standing, { deadlineMs, settleMs }: TierRule): Instant {
    const { proof } = standing
    // A run under way is progress, and has deadlines of its own: it ends, and then the time counts. At a gate it may wait
    // for ever, which must not hold up other namespaces.
    if (proof?.state === "UnderWay") return undated
    const deadline = Math.max(this.#waitingSince(member, standing), this.#believable(proof?.at ?? 0)) + deadlineMs
    return standing.brokeAt === undefined ? deadline : Math.max(deadline, standing.brokeAt + settleMs)
  }

  /** The time of our own stamp, else the start of the operation, which gives an earlier stamp a new chance. */
  #stampedAt(member: Member, wanted: string): Instant {
    return Math.max(this.#givenAt(member, wanted), this.rules.startedAt)
  }

  /** When we gave it this image, in whichever operation; 0 if we did not. */
  #givenAt({ decision }: Member, wanted: string): Instant {
    return this.#believable(decision && sameImage(decision.to, wanted) ? decision.at : 0)
  }

  /** Since when a steady object is no longer steady. An object that never was counts from its stamp. */
  #lapseOf(
    before: Standing,
    member: Member,
    rule: TierRule,
    { wanted, isWell }: { wanted: string; isWell: boolean },
  ): Instant | undefined {
    if (before.wanted === "") return this.#toldLapse(member, rule, wanted)
    if (before.wanted !== wanted) return undefined
    return before.isSteady && !isWell ? undated : before.lapsedAt
  }

  /**
   * For an object first seen now: its own transition time, unless our stamp may have caused it. The stamp did not cause
   * a change after the deadline, or after the tier was complete, be it in an operation before this one. An object without
   * a time of its own that did not count as failed at its deadline had been up to date, but only if it was counted here.
   */
  #toldLapse(member: Member, rule: TierRule, wanted: string): Instant | undefined {
    const { unwellSince = 0 } = member
    const due = this.#stampedAt(member, wanted) + rule.deadlineMs
    const [cleanAt, completedAt] = this.isListed ? [0, 0] : [this.#cleanAt, this.#completedAt.get(rule.name) ?? 0]
    const wasDone = completedAt > this.#givenAt(member, wanted) && unwellSince > completedAt
    if (wasDone || unwellSince >= due) return unwellSince
    return cleanAt > due ? cleanAt : undefined
  }

  /** Ignores a time in the future, which is not ours: annotations and conditions belong to the object's owner. */
  #believable(at: Instant): Instant {
    return at <= this.now + clockSkewMs ? at : 0
  }
}

/** A time that the next look sets. */
export const undated = Number.POSITIVE_INFINITY

/**
 * A workload with a Canary is up to date when that has promoted the image: before, its counts may be those of the pods
 * that run meanwhile. While a run is about something else, the image has been promoted before.
 */
const isUpToDate = (member: Member, proof: Proof | undefined, wanted: string) =>
  proof && isOpen(proof) ? provesOther(proof, wanted) : member.isUpToDate

/** Does it have the image that it must have? */
const isOn = (member: Member, wanted: string) => hasImage(member, wanted) || isFailedOver(member, wanted)

/** An AlternateImageSource changed the workload itself to an equivalent of the wanted image, which counts. */
const isFailedOver = (member: Member, wanted: string) =>
  member.decision?.by.startsWith("alternateimagesource/") === true &&
  sameImage(member.decision.from, wanted) &&
  hasImage(member, member.decision.to)

/** The reason in the decision of an object that was taken back. */
export const rolledBack = "RolledBack"

const clockSkewMs = 60_000
