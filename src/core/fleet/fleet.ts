import { type FailureReason, upgradeTierLabel } from "#api/v1alpha1/serviceimage/index.ts"
import { IndexedHeap } from "#lib/indexed-heap.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { compareVersions } from "#lib/resource-version.ts"
import { type Hold, Holds, namespaceOf, type Refusal, type Scope, scopeName } from "../holds.ts"
import type { ImageRecord } from "../image/record.ts"
import { sameImage } from "../image/reference.ts"
import { type Crash, isLooping, settlesAt } from "../pods/steady.ts"
import { crashOf, diagnose, lostWithOther, type Trace } from "../pods/trace.ts"
import { cohortOf, placeOf } from "./cohort.ts"
import { Contests, changedInSameWrite, isHolding, isTold } from "./contests.ts"
import { hasImage, type Member } from "./member.ts"
import { byDeadline, Entry, podsOf, type Standing, Tier, type TierRule, type TierView } from "./tier.ts"

/** Objects in no tier, in the order of their names. */
export type Unmatched = Pick<IndexedHeap, "size" | "has" | "firstItems">

export type { Candidate, Counts, TierRule, TierView } from "./tier.ts"
export { anAdmissionWebhook } from "./tier.ts"

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
  /** There is only this one look. A state without a time counts from the stamp, since no later look could date it. */
  readonly isStill?: boolean
}

type Obstacle = Pick<Hold<FailureReason>, "since" | "retryAt"> & {
  reason: FailureReason | undefined
  message: string | undefined
}

/**
 * The fleet of one ServiceImage, counted. Each event moves one object from one set of counts to another, so that
 * deciding never scans. `advance` lets deadlines and holds fall due; nothing else depends on time.
 */
export class Fleet {
  #rules: FleetRules
  readonly #tiers = new Map<string, Tier>()
  readonly #entries = new Map<string, Entry>()
  readonly #byNamespace = new Map<string, Set<string>>()
  #unmatched = new IndexedHeap()
  readonly #holds = new Holds<FailureReason>()
  readonly #contests = new Contests()
  #retries = new IndexedHeap()
  #deadlines = new IndexedHeap(byDeadline)
  /** Became or stopped being well since the last look. Events have no time, so the next look dates them. */
  readonly #undated = new Set<Entry>()
  /** Came from elsewhere since the last look. */
  readonly #arrived = new Set<Entry>()
  #now: Instant
  readonly #cleanAt: Instant
  readonly #isStill: boolean
  /** The objects that existed at the start are all listed: an object first seen after this comes to this fleet now. */
  #isListed = false

  constructor(rules: FleetRules, now: Instant, { cleanAt = 0, isStill = false }: FleetHistory = {}) {
    this.#rules = rules
    this.#now = now
    this.#cleanAt = cleanAt
    this.#isStill = isStill
    for (const rule of rules.tiers) this.#tiers.set(rule.name, new Tier(rule))
  }

  /** New rules: every object is judged again, and refusals and contests under the old rules are forgotten. */
  renew(rules: FleetRules, now: Instant): void {
    this.#rules = rules
    this.#now = Math.max(this.#now, now)
    this.#tiers.clear()
    for (const rule of rules.tiers) this.#tiers.set(rule.name, new Tier(rule))
    this.#unmatched = new IndexedHeap()
    this.#holds.clear()
    this.#contests.clear()
    this.#retries = new IndexedHeap()
    this.#deadlines = new IndexedHeap(byDeadline)
    this.#undated.clear()
    for (const entry of this.#entries.values()) this.#join(entry)
  }

  get size(): number {
    return this.#entries.size
  }

  /** Objects that match no tier while there is no default image: never stamped, but named. */
  get unmatched(): Unmatched {
    return this.#unmatched
  }

  get(key: string): Member | undefined {
    return this.#entries.get(key)?.member
  }

  /** Where one object stands, to explain it. */
  standing(key: string): Readonly<Standing & { tier: string; place: number }> | undefined {
    const entry = this.#entries.get(key)
    return entry?.tier && { ...entry.standing, place: entry.place, tier: entry.tier.rule.name }
  }

  /** How many pods stamping it disturbs. */
  podsOf(key: string): number {
    const entry = this.#entries.get(key)
    return entry ? podsOf(entry.member, entry.trace) : 0
  }

  refusalOf(key: string): Readonly<Hold<FailureReason>> | undefined {
    const member = this.#entries.get(key)?.member
    return member && this.#holds.on(key, member.namespace)
  }

  /** The object or its namespace was refused, so it must not be written yet. */
  isHeld(key: string): boolean {
    return this.#entries.get(key)?.standing.isHeld ?? false
  }

  namespaces(): IterableIterator<string> {
    return this.#byNamespace.keys()
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys()
  }

  traceOf(key: string): Trace | undefined {
    return this.#entries.get(key)?.trace
  }

  tier(name: string): TierView | undefined {
    return this.#tiers.get(name)
  }

  tiers(): TierView[] {
    return [...this.#tiers.values()]
  }

  /** When time alone changes the state of the fleet. */
  nextChangeAt(): Instant | undefined {
    return earliest(this.#deadlines.first()?.rank, this.#retries.first()?.rank)
  }

  set(key: string, member: Member, trace?: Trace): void {
    this.#set(key, member, trace, false)
  }

  #set(key: string, member: Member, trace: Trace | undefined, isOurStamp: boolean): void {
    const known = this.#entries.get(key)
    if (known && isEcho(member, known.member)) return
    const isSame = known?.member.uid === member.uid
    const wasContested = isSame && known.tier !== undefined && known.standing.isContested
    if (known) this.#leave(known)
    else addTo(this.#byNamespace, member.namespace, key)
    if (known && !isSame) this.#forget(key)
    if (isOurStamp || !wasContested) this.#noteContest(key, member, isOurStamp)
    const entry = isSame ? known : new Entry(key, placeOf(this.#rules.by, member.uid), member)
    entry.member = member
    if (trace) entry.trace = trace
    if (!isSame) this.#entries.set(key, entry)
    if (!isSame && this.#isListed) this.#arrived.add(entry)
    this.#join(entry)
  }

  /** The facts about an object's pods have changed. */
  trace(key: string, trace: Trace | undefined): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#leave(entry)
    entry.trace = trace
    this.#join(entry)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#leave(entry)
    this.#entries.delete(key)
    removeFrom(this.#byNamespace, entry.member.namespace, key)
    this.#forget(key)
  }

  /** The result of our own write. The cache shows it later, and may already show that the object is gone. */
  wrote(key: string, member: Member): void {
    if (this.#entries.get(key)?.member.uid === member.uid) this.set(key, member)
  }

  /** The result of our own stamp: the server accepts writes again. If the image is not in it, admission changed it. */
  stamped(key: string, member: Member): void {
    this.release(key)
    if (this.#entries.get(key)?.member.uid === member.uid) this.#set(key, member, undefined, true)
  }

  advance(now: Instant): void {
    this.#now = Math.max(this.#now, now)
    this.#isListed = true
    for (const entry of this.#arrived) {
      entry.standing.cameAt = this.#now
      if (this.#entries.get(entry.key) === entry) this.#judgeAgain(entry)
    }
    this.#arrived.clear()
    for (const entry of [...this.#undated]) {
      const { standing } = entry
      if (standing.lapsedAt === undated) standing.lapsedAt = this.#now
      if (standing.wellAt === undated) standing.wellAt = this.#now
      this.#judgeAgain(entry)
    }
    for (let due = this.#retries.first(); due && due.rank <= this.#now; due = this.#retries.first()) {
      this.#retries.delete(due.item)
      this.#rejoin(due.item)
    }
    for (let due = this.#deadlines.first(); due && due.rank <= this.#now; due = this.#deadlines.first()) {
      this.#deadlines.delete(due.item)
      this.#judgeAgain(due.item)
    }
  }

  /**
   * Stops trying for a while, for one object or for a namespace, since a missing grant concerns all of it. Each wait is
   * longer, or `waitMs`. Otherwise ten thousand objects in a namespace without a grant would be ten thousand refused
   * writes a minute.
   */
  refuse(scope: Scope, why: Refusal<FailureReason>, waitMs?: number): void {
    const retryAt = this.#holds.add(scope, why, this.#now, waitMs)
    this.#retries.set(scopeName(scope), retryAt)
    this.#rejoin(scopeName(scope))
  }

  /** One write is tried where the last ones failed. The other objects of the namespace wait for its result. */
  awaits(namespace: string): void {
    const retryAt = this.#holds.extend({ namespace }, this.#now + answerMsMost)
    if (retryAt === undefined) return
    this.#retries.set(scopeName({ namespace }), retryAt)
    this.#rejoin(scopeName({ namespace }))
  }

  /** A write succeeded: earlier refusals of the object or its namespace no longer hold. */
  release(key: string): void {
    this.#end(key)
    this.retry(this.#entries.get(key)?.member.namespace ?? "")
  }

  /** A namespace may be tried again now, after a grant or an answered write of ours. */
  retry(namespace: string): void {
    this.#end(scopeName({ namespace }))
  }

  #end(scope: string): void {
    if (!this.#holds.delete(scope)) return
    this.#retries.delete(scope)
    this.#rejoin(scope)
  }

  #forget(key: string): void {
    this.#holds.delete(key)
    this.#contests.delete(key)
    this.#retries.delete(key)
  }

  #rejoin(scope: string): void {
    const namespace = namespaceOf(scope)
    const keys = namespace === undefined ? [scope] : (this.#byNamespace.get(namespace) ?? [])
    for (const key of keys) {
      const entry = this.#entries.get(key)
      if (entry) this.#judgeAgain(entry)
    }
  }

  #judgeAgain(entry: Entry): void {
    this.#leave(entry)
    this.#join(entry)
  }

  #tierOf(member: Member): Tier | undefined {
    return this.#tiers.get(member.labels[upgradeTierLabel] ?? "") ?? this.#tiers.get("")
  }

  #join(entry: Entry): void {
    const { key, member, standing } = entry
    entry.tier = undefined
    if (member.isDeleting) return
    const tier = this.#tierOf(member)
    if (!tier) {
      this.#unmatched.set(key, 0)
      return
    }
    this.#judge(entry, tier.rule)
    if (standing.lapsedAt === undated || standing.wellAt === undated) this.#undated.add(entry)
    if (standing.changesAt !== undefined && standing.changesAt !== undated)
      this.#deadlines.set(entry, standing.changesAt)
    // The object has its image, whichever writer gave it: earlier refusals are over.
    if (standing.state !== "Stale" && standing.state !== "Blank" && this.#holds.delete(key)) this.#retries.delete(key)
    // Contests are rare. Without any, the keys of a whole fleet need not be looked up.
    const contest = this.#contests.size > 0 ? this.#contests.get(key) : undefined
    // A refusal has a retry time of its own. The contest's time applies when the refusal is over.
    if (contest && contest.retryAt > this.#now && !this.#holds.has(key)) this.#retries.set(key, contest.retryAt)
    entry.tier = tier
    tier.add(entry)
  }

  #leave(entry: Entry): void {
    this.#unmatched.delete(entry.key)
    this.#deadlines.delete(entry)
    this.#undated.delete(entry)
    entry.tier?.remove(entry)
    entry.tier = undefined
  }

  #judge(entry: Entry, rule: TierRule): void {
    const { key, place, member, trace, standing } = entry
    const { isRollback, startedAt } = this.#rules
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
    standing.isAltered = false
    standing.words = undefined
    standing.lost = 0
    if (member.isUnmanaged || wanted === undefined) return
    // An object that never had an image has nothing to take back.
    standing.isCounted = isRollback ? member.image !== "" : !isNew || member.isDeployed
    standing.isInvalid = member.problem !== undefined || member.healthProblem !== undefined
    if (trace && trace.lost.length > 0) standing.lost = lostWithOther(trace, wanted).count
    if (isOn(member, wanted)) this.#judgeStamped(standing, member, rule, trace)
    else this.#judgeOther(key, standing, member, rule)
  }

  /** Whether it runs the wanted image, since when, and whether that has lasted. */
  #judgeHealth(standing: Standing, { member, trace }: Entry, rule: TierRule, wanted: string | undefined): void {
    const isThere = wanted !== undefined && isOn(member, wanted)
    const isFirst = standing.wanted === ""
    const isSame = standing.wanted === wanted
    const isOurs = isThere && this.#isOurs(member, wanted)
    standing.isOurs = isOurs
    const crash = isOurs ? this.#crashOf(member, trace, wanted) : undefined
    const isWell = isThere && member.isUpToDate && !(crash?.isLoop && !crash.isOver)
    const wasSteady = isSame && standing.isSteady
    // An object that had its image before we first saw it, and not from this operation, has nothing to prove.
    const isProven = wasSteady || (isFirst && !isOurs) || rule.settleMs === 0

    standing.lapsedAt = isThere ? this.#lapseOf(standing, member, rule, { wanted, isWell }) : undefined
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
    standing.isSteady = isWell && (isProven || due <= this.#now)
    standing.settlesAt = isWell && !standing.isSteady ? due : undefined
    standing.changesAt = standing.settlesAt
    if (standing.isSteady) standing.lapsedAt = undefined
  }

  /** Stamped by this operation, or switched to an equivalent repository since it began. */
  #isOurs(member: Member, wanted: string): boolean {
    const { decision } = member
    if (!decision) return false
    return this.#isDecidedHere(decision) || (decision.at >= this.#rules.startedAt && isFailedOver(member, wanted))
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
    const { wanted, isWell, isSteady, isOurs, lapsedAt } = standing
    const crash = isOurs ? this.#crashOf(member, trace, wanted) : undefined
    const loops = crash !== undefined && isLooping(crash, rule.settleMs, this.#now)
    if (isWell && (isSteady || !isOurs || standing.isNew)) return
    if (isWell && !loops) {
      standing.state = "Settling"
      // Any container may exit badly once: it is shown, and the settle time starts again.
      standing.trouble = crash && "Unhealthy"
      return
    }
    const deadline = this.#waitingSince(member, standing) + rule.deadlineMs
    const isLate = deadline <= this.#now
    const found = diagnose(trace, wanted)
    standing.state = "Waiting"
    standing.deadline = deadline
    standing.isFailed = isLate || loops
    standing.isEarly = !isLate && loops
    // A pod that is not ready may be starting: that is no trouble before the deadline, but explains a failure then.
    const isKnown = found && (standing.isFailed || !found.isTentative)
    standing.trouble = isKnown ? found.reason : isLate ? "Timeout" : undefined
    // Scaling and lost nodes make any object unready for a moment. That alone is no regression.
    const regressesAt = lapsedAt === undefined ? undefined : lapsedAt + rule.settleMs
    standing.isRegressed = regressesAt !== undefined && (standing.isFailed || regressesAt <= this.#now)
    const isOverAt = loops && crash.isOver ? crash.at + rule.settleMs : undefined
    standing.changesAt = earliest(
      standing.settlesAt,
      isOverAt,
      isLate ? undefined : deadline,
      standing.isRegressed ? undefined : regressesAt,
    )
    standing.words = found?.message
  }

  /** The object has another image, or none. */
  #judgeOther(key: string, standing: Standing, member: Member, rule: TierRule): void {
    standing.state = member.image === "" ? "Blank" : "Stale"
    standing.isContested = this.#isContested(member, standing.wanted)
    standing.isAltered = standing.isContested && this.#contests.get(key)?.isInSameWrite === true
    const why = this.#obstacle(key, member, standing.isContested)
    if (!why) return
    const deadline = why.since + rule.deadlineMs
    standing.deadline = deadline
    standing.isFailed = deadline <= this.#now
    standing.changesAt = standing.isFailed ? undefined : deadline
    standing.isHeld = why.retryAt > this.#now
    standing.trouble = why.reason ?? (standing.isFailed ? "Contested" : undefined)
    standing.words = why.message
  }

  /** The image an object must have; undefined if this operation does not concern it. */
  #wantedOf(member: Member, rule: TierRule): string | undefined {
    if (!this.#rules.isRollback) return rule.image
    const { decision, image } = member
    if (image === "") return rule.fallback || rule.image
    if (!decision || !this.#isDecidedHere(decision)) return undefined
    // Another image was chosen since, and it stays. Where paths had different images, none is waited for.
    if (!hasImage(member, decision.to)) return undefined
    if (decision.reason === rolledBack) return decision.to
    const before = decision.from || rule.fallback
    // An object created during a rollback already has the image that the others get back.
    return before && !sameImage(before, decision.to) ? before : undefined
  }

  /** What prevents a stamp: no place for the image in the object, a refusal, or another writer that undoes it. */
  #obstacle(key: string, member: Member, isContested: boolean): Obstacle | undefined {
    if (member.problem)
      return {
        reason: "InvalidTarget",
        message: member.problem,
        since: this.#rules.startedAt,
        retryAt: Number.POSITIVE_INFINITY,
      }
    const hold = this.#holds.on(key, member.namespace)
    if (hold) return hold
    const contest = isContested ? this.#contests.get(key) : undefined
    if (!contest || !isHolding(contest)) return undefined
    const message = contest.isInSameWrite
      ? changedInSameWrite
      : `${member.contestedBy ?? "another writer"} puts another image back`
    return { ...contest, reason: isTold(contest) ? "Contested" : undefined, message }
  }

  /**
   * Whether this very operation made the decision. Earlier versions did not record the uid. Such a decision must date
   * from after the operation's start, as far as clocks agree.
   */
  #isDecidedHere({ operation, by, uid, at }: ImageRecord): boolean {
    if (operation !== this.#rules.operation || by !== this.#rules.by) return false
    return uid === undefined ? at >= this.#rules.startedAt - clockSkewMs : uid === this.#rules.uid
  }

  /** We gave it its image in this operation, or its first image, and it now has another one or none. */
  #isContested({ decision, image }: Member, wanted: string): boolean {
    if (!decision || !this.#isDecidedHere(decision)) return false
    return image === "" || (!this.#rules.isRollback && sameImage(decision.to, wanted))
  }

  #noteContest(key: string, member: Member, isInSameWrite: boolean): void {
    const tier = this.#tierOf(member)
    // An object that keeps its image itself contests nothing.
    if (!tier || member.isUnmanaged || hasImage(member, tier.rule.image)) return
    if (this.#isContested(member, tier.rule.image)) this.#contests.note(key, this.#now, isInSameWrite)
  }

  /**
   * An object that was up to date for settleSeconds and regressed gets a fresh deadline: in a rollout of hours there is
   * always one that is scaled, or loses a node.
   */
  #waitingSince(member: Member, { wanted, lapsedAt = 0, cameAt = 0 }: Standing): Instant {
    return Math.max(this.#stampedAt(member, wanted), this.#believable(lapsedAt), cameAt)
  }

  /** The time of our own stamp, else the start of the operation, which gives an earlier stamp a new chance. */
  #stampedAt({ decision }: Member, wanted: string): Instant {
    const stamped = decision && sameImage(decision.to, wanted) ? decision.at : 0
    return Math.max(this.#believable(stamped), this.#rules.startedAt)
  }

  /** Since when a steady object is no longer steady. An object that never was counts from its stamp. */
  #lapseOf(
    before: Standing,
    member: Member,
    rule: TierRule,
    { wanted, isWell }: { wanted: string; isWell: boolean },
  ): Instant | undefined {
    if (before.wanted === "") return this.#toldLapse(member, this.#stampedAt(member, wanted) + rule.deadlineMs)
    if (before.wanted !== wanted) return undefined
    return before.isSteady && !isWell ? undated : before.lapsedAt
  }

  /**
   * For an object first seen now: its own transition time, unless our stamp may have caused it. If it has none and did
   * not count as failed at its deadline, it had been up to date, but only if it was counted here.
   */
  #toldLapse({ unwellSince = 0 }: Member, due: Instant): Instant | undefined {
    const at = unwellSince > due ? unwellSince : this.#isListed ? 0 : this.#cleanAt
    return at > due ? at : undefined
  }

  /** Ignores a time in the future, which is not ours: annotations and conditions belong to the object's owner. */
  #believable(at: Instant): Instant {
    return at <= this.#now + clockSkewMs ? at : 0
  }
}

const undated = Number.POSITIVE_INFINITY

/** Does it have the image that it must have? */
const isOn = (member: Member, wanted: string) => hasImage(member, wanted) || isFailedOver(member, wanted)

/** An AlternateImageSource changed the workload itself to an equivalent of the wanted image, which counts. */
const isFailedOver = (member: Member, wanted: string) =>
  member.decision?.by.startsWith("alternateimagesource/") === true &&
  sameImage(member.decision.from, wanted) &&
  hasImage(member, member.decision.to)

/** The reason in the decision of an object that was taken back. */
export const rolledBack = "RolledBack"

/** Longer than we wait for any answer. */
const answerMsMost = 120_000
const clockSkewMs = 60_000

/** A version older than the one we know: our own write was answered before the cache showed it. */
const isEcho = (member: Member, known: Member) =>
  member.uid === known.uid && compareVersions(member.resourceVersion, known.resourceVersion) < 0

function addTo(sets: Map<string, Set<string>>, name: string, key: string): void {
  const set = sets.get(name)
  if (set) set.add(key)
  else sets.set(name, new Set([key]))
}

function removeFrom(sets: Map<string, Set<string>>, name: string, key: string): void {
  const set = sets.get(name)
  if (set?.delete(key) && set.size === 0) sets.delete(name)
}
