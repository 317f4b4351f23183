import { type FailureReason, upgradeTierLabel } from "#api/v1alpha1/serviceimage/index.ts"
import { IndexedHeap } from "#lib/indexed-heap.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { compareVersions } from "#lib/resource-version.ts"
import type { Proof } from "../canary/proof.ts"
import { type Hold, Holds, namespaceOf, type Refusal, type Scope, scopeName } from "../holds.ts"
import type { Trace } from "../pods/trace.ts"
import { placeOf } from "./cohort.ts"
import { Contests } from "./contests.ts"
import { type FleetHistory, type FleetRules, ObjectJudge, undated } from "./judge-object.ts"
import { hasImage, type Member } from "./member.ts"
import { Entry, type Standing } from "./standing.ts"
import { byDeadline, podsOf, Tier, type TierView } from "./tier.ts"

/** Objects in no tier, in the order of their names. */
export type Unmatched = Pick<IndexedHeap, "size" | "has" | "firstItems">

export { type FleetRules, rolledBack } from "./judge-object.ts"
export type { Candidate, Counts, TierRule, TierView } from "./tier.ts"
export { anAdmissionWebhook } from "./tier.ts"

/**
 * The fleet of one ServiceImage, counted. Each event moves one object from one set of counts to another, so that
 * deciding never scans. `advance` lets deadlines and holds fall due; nothing else depends on time.
 */
export class Fleet {
  readonly #judge: ObjectJudge
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
  /** Called with the key of each object that is judged again or gone: for a picture of the fleet. */
  onJudged: ((key: string) => void) | undefined

  constructor(rules: FleetRules, now: Instant, history: FleetHistory = {}) {
    this.#judge = new ObjectJudge(rules, now, { ...history, holds: this.#holds, contests: this.#contests })
    for (const rule of rules.tiers) this.#tiers.set(rule.name, new Tier(rule))
  }

  /** New rules: every object is judged again, and refusals and contests under the old rules are forgotten. */
  renew(rules: FleetRules, now: Instant): void {
    this.#judge.rules = rules
    this.#judge.now = Math.max(this.#judge.now, now)
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

  /** Trace and proof: of an object that is new here. */
  set(key: string, member: Member, trace?: Trace, proof?: Proof): void {
    this.#set(key, member, { trace, proof }, false)
  }

  #set(
    key: string,
    member: Member,
    { trace, proof }: { trace?: Trace | undefined; proof?: Proof | undefined },
    isOurStamp: boolean,
  ): void {
    const known = this.#entries.get(key)
    if (known && isEcho(member, known.member)) return
    const isSame = known?.member.uid === member.uid
    const wasContested = isSame && known.tier !== undefined && known.standing.isContested
    if (known) this.#leave(known)
    else addTo(this.#byNamespace, member.namespace, key)
    if (known && !isSame) this.#forget(key)
    if (isOurStamp || !wasContested) this.#noteContest(key, member, isOurStamp)
    const entry = isSame ? known : new Entry(key, placeOf(this.#judge.rules.by, member.uid), member)
    entry.member = member
    if (trace) entry.trace = trace
    if (proof) entry.proof = proof
    if (!isSame) this.#entries.set(key, entry)
    if (!isSame && this.#judge.isListed) this.#arrived.add(entry)
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

  /** How the Canary of an object stands; undefined: it has none. */
  proof(key: string, proof: Proof | undefined): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#leave(entry)
    entry.proof = proof
    this.#join(entry)
  }

  proofOf(key: string): Proof | undefined {
    return this.#entries.get(key)?.proof
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#leave(entry)
    this.#entries.delete(key)
    removeFrom(this.#byNamespace, entry.member.namespace, key)
    this.#forget(key)
    this.onJudged?.(key)
  }

  /** The result of our own write. The cache shows it later, and may already show that the object is gone. */
  wrote(key: string, member: Member): void {
    if (this.#entries.get(key)?.member.uid === member.uid) this.set(key, member)
  }

  /** The result of our own stamp: the server accepts writes again. If the image is not in it, admission changed it. */
  stamped(key: string, member: Member): void {
    this.release(key)
    if (this.#entries.get(key)?.member.uid === member.uid) this.#set(key, member, {}, true)
  }

  advance(now: Instant): void {
    this.#judge.now = Math.max(this.#judge.now, now)
    this.#judge.isListed = true
    for (const entry of this.#arrived) {
      entry.standing.cameAt = this.#judge.now
      if (this.#entries.get(entry.key) === entry) this.#judgeAgain(entry)
    }
    this.#arrived.clear()
    for (const key of this.#contests.date(this.#judge.now)) {
      const entry = this.#entries.get(key)
      if (entry) this.#judgeAgain(entry)
    }
    for (const entry of [...this.#undated]) {
      const { standing } = entry
      if (standing.lapsedAt === undated) standing.lapsedAt = this.#judge.now
      if (standing.brokeAt === undated) standing.brokeAt = this.#judge.now
      if (standing.wellAt === undated) standing.wellAt = this.#judge.now
      this.#judgeAgain(entry)
    }
    for (let due = this.#retries.first(); due && due.rank <= this.#judge.now; due = this.#retries.first()) {
      this.#retries.delete(due.item)
      this.#rejoin(due.item)
    }
    for (let due = this.#deadlines.first(); due && due.rank <= this.#judge.now; due = this.#deadlines.first()) {
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
    const retryAt = this.#holds.add(scope, why, this.#judge.now, waitMs)
    this.#retries.set(scopeName(scope), retryAt)
    this.#rejoin(scopeName(scope))
  }

  /** One write is tried where the last ones failed. The other objects of the namespace wait for its result. */
  awaits(namespace: string): void {
    const retryAt = this.#holds.extend({ namespace }, this.#judge.now + answerMsMost)
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
    this.onJudged?.(key)
    if (member.isDeleting) return
    const tier = this.#tierOf(member)
    if (!tier) {
      this.#unmatched.set(key, 0)
      return
    }
    this.#judge.judge(entry, tier.rule)
    const { lapsedAt, brokeAt, wellAt, changesAt } = standing
    if (lapsedAt === undated || brokeAt === undated || wellAt === undated) this.#undated.add(entry)
    if (changesAt !== undefined && changesAt !== undated) this.#deadlines.set(entry, changesAt)
    // The object has its image, whichever writer gave it: earlier refusals are over.
    if (standing.state !== "Stale" && standing.state !== "Blank" && this.#holds.delete(key)) this.#retries.delete(key)
    // Contests are rare. Without any, the keys of a whole fleet need not be looked up.
    const contest = this.#contests.size > 0 ? this.#contests.get(key) : undefined
    // A refusal has a retry time of its own. The contest's time applies when the refusal is over.
    if (contest && contest.retryAt > this.#judge.now && !this.#holds.has(key)) this.#retries.set(key, contest.retryAt)
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

  #noteContest(key: string, member: Member, isInSameWrite: boolean): void {
    const tier = this.#tierOf(member)
    // An object that keeps its image itself contests nothing.
    if (!tier || member.isUnmanaged || hasImage(member, tier.rule.image)) return
    if (this.#judge.isContested(member, tier.rule.image)) this.#contests.note(key, this.#judge.now, isInSameWrite)
  }
}

/** Longer than we wait for any answer. */
const answerMsMost = 120_000

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
