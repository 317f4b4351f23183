import { type FailureReason, upgradeTierLabel } from "#api/v1alpha1/serviceimage/index.ts"
import { IndexedHeap } from "#lib/indexed-heap.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { compareVersions } from "#lib/resource-version.ts"
import { sameImage } from "./image-reference.ts"
import type { Member } from "./member.ts"

/** What the spec says of one tier, with every default resolved. */
export type TierRule = { readonly name: string; readonly image: string; readonly deadlineMs: number }

export type FleetRules = {
  readonly tiers: readonly TierRule[]
  /** Objects created later never gate completion until they are Deployed. */
  readonly startedAt: Instant
}

/** Why a stamp was refused, for one object or for all of a namespace, and when to try again. */
export type Hold = { reason: FailureReason; message: string; since: Instant; retryAt: Instant; attempts: number }

/** A tier as a plan sees it. Reading it costs the same for ten objects and a hundred thousand. */
export type TierView = {
  readonly rule: TierRule
  readonly total: number
  readonly updated: number
  readonly upToDate: number
  readonly unmanaged: number
  /** Of those that count for completion, each in one place. `failed` ones are neither stale nor waiting any more. */
  readonly counted: Readonly<Record<"total" | "stale" | "waiting" | "done" | "failed", number>>
  /** On the target and not up to date, deadline not passed, counted or not. */
  readonly settling: number
  /** Counted objects that did not make it in time, by what their owner wants that to mean. */
  readonly halting: number
  readonly ignored: number
  readonly troubles: readonly {
    readonly reason: FailureReason
    readonly count: number
    examples(limit: number): string[]
  }[]
  haltingExamples(limit: number): string[]
  /** Waiting objects whose time is not up, the earliest deadline first. */
  waitingExamples(limit: number): string[]
  /** Objects with an image that is not the target and may be stamped now, in a fixed order. */
  stale(limit: number): Candidate[]
  /** Objects that never had an image. */
  blank(limit: number): Candidate[]
}

export type Candidate = { readonly key: string; readonly member: Member }

type State = "Unmanaged" | "Blank" | "Stale" | "Waiting" | "Done"
type Standing = {
  tier: Tier
  state: State
  isCounted: boolean
  /** When it fails if nothing changes: a waiting object, or one whose stamp is refused. */
  deadline?: Instant
  isFailed?: boolean
  /** A class of failure it is counted under, from the first refusal on, or from its deadline. */
  trouble?: FailureReason
  /** Not to be tried now. */
  isHeld?: boolean
}
type Entry = { member: Member; standing: Standing | undefined }

/**
 * The fleet of one ServiceImage, counted. Each event moves one object from one set of counts to another, so that
 * deciding never scans. `advance` lets deadlines and holds fall due; nothing else depends on time.
 */
export class Fleet {
  readonly #rules: FleetRules
  readonly #tiers = new Map<string, Tier>()
  readonly #entries = new Map<string, Entry>()
  readonly #byNamespace = new Map<string, Set<string>>()
  readonly #unmatched = new Set<string>()
  readonly #holds = new Map<string, Hold>()
  readonly #retries = new IndexedHeap()
  readonly #deadlines = new IndexedHeap()
  #now: Instant

  constructor(rules: FleetRules, now: Instant) {
    this.#rules = rules
    this.#now = now
    for (const rule of rules.tiers) this.#tiers.set(rule.name, new Tier(rule, this.#entries))
  }

  get size(): number {
    return this.#entries.size
  }

  /** Objects that match no tier while there is no default image: never stamped, but named. */
  get unmatched(): ReadonlySet<string> {
    return this.#unmatched
  }

  get(key: string): Member | undefined {
    return this.#entries.get(key)?.member
  }

  namespaces(): IterableIterator<string> {
    return this.#byNamespace.keys()
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys()
  }

  tier(name: string): TierView | undefined {
    return this.#tiers.get(name)
  }

  tiers(): TierView[] {
    return [...this.#tiers.values()]
  }

  /** When the passing of time alone changes what the fleet says. */
  nextChangeAt(): Instant | undefined {
    return earliest(this.#deadlines.first()?.rank, this.#retries.first()?.rank)
  }

  set(key: string, member: Member): void {
    const entry = this.#entries.get(key)
    if (entry && isEcho(member, entry.member)) return
    if (entry) this.#leave(key, entry)
    else addTo(this.#byNamespace, member.namespace, key)
    const next: Entry = { member, standing: undefined }
    this.#entries.set(key, next)
    this.#join(key, next)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#leave(key, entry)
    this.#entries.delete(key)
    removeFrom(this.#byNamespace, entry.member.namespace, key)
    this.#holds.delete(key)
    this.#retries.delete(key)
  }

  /** What our own write returned. The cache will say so too, but later; and it may already know the object is gone. */
  wrote(key: string, member: Member): void {
    if (this.#entries.get(key)?.member.uid === member.uid) this.set(key, member)
  }

  advance(now: Instant): void {
    this.#now = Math.max(this.#now, now)
    for (let due = this.#retries.first(); due && due.rank <= this.#now; due = this.#retries.first()) {
      this.#retries.delete(due.key)
      this.#rejoin(due.key)
    }
    for (let due = this.#deadlines.first(); due && due.rank <= this.#now; due = this.#deadlines.first()) {
      this.#deadlines.delete(due.key)
      this.#rejoin(due.key)
    }
  }

  /**
   * Stops trying for a while, for one object or (a missing grant concerns them all) for a namespace; longer each time.
   * Without it, ten thousand objects in a namespace that nobody granted would be ten thousand refused writes a minute.
   */
  hold(scope: { key: string } | { namespace: string }, why: { reason: FailureReason; message: string }): void {
    const name = scopeName(scope)
    const before = this.#holds.get(name)
    const attempts = (before?.attempts ?? 0) + 1
    const retryAt = this.#now + Math.min(holdMsFirst * 2 ** (attempts - 1), holdMsMost)
    this.#holds.set(name, { ...why, since: before?.since ?? this.#now, retryAt, attempts })
    this.#retries.set(name, retryAt)
    this.#rejoin(name)
  }

  /** A write went through: whatever was said about the object or its namespace no longer holds. */
  release(key: string): void {
    this.#end(key)
    this.retry(this.#entries.get(key)?.member.namespace ?? "")
  }

  /** There is reason to try a namespace again now: somebody granted something. */
  retry(namespace: string): void {
    this.#end(scopeName({ namespace }))
  }

  #end(scope: string): void {
    if (!this.#holds.delete(scope)) return
    this.#retries.delete(scope)
    this.#rejoin(scope)
  }

  #rejoin(scope: string): void {
    const keys = scope.startsWith(namespaceScope)
      ? (this.#byNamespace.get(scope.slice(namespaceScope.length)) ?? [])
      : [scope]
    for (const key of keys) {
      const entry = this.#entries.get(key)
      if (!entry) continue
      this.#leave(key, entry)
      this.#join(key, entry)
    }
  }

  #join(key: string, entry: Entry): void {
    const { member } = entry
    if (member.isDeleting) return
    const tier = this.#tiers.get(member.labels[upgradeTierLabel] ?? "") ?? this.#tiers.get("")
    if (!tier) {
      this.#unmatched.add(key)
      return
    }
    entry.standing = this.#judge(key, member, tier)
    const { deadline, isFailed } = entry.standing
    if (deadline !== undefined && !isFailed) this.#deadlines.set(key, deadline)
    tier.add(key, entry.standing, member)
  }

  #leave(key: string, entry: Entry): void {
    this.#unmatched.delete(key)
    this.#deadlines.delete(key)
    entry.standing?.tier.remove(key, entry.standing)
    entry.standing = undefined
  }

  #judge(key: string, member: Member, tier: Tier): Standing {
    const isCounted = member.createdAt <= this.#rules.startedAt || member.isDeployed
    if (member.isUnmanaged) return { tier, state: "Unmanaged", isCounted }
    if (sameImage(member.image, tier.rule.image)) {
      if (member.isUpToDate) return { tier, state: "Done", isCounted }
      const deadline = this.#waitingSince(member, tier.rule) + tier.rule.deadlineMs
      const waiting: Standing = { tier, state: "Waiting", isCounted, deadline }
      return deadline <= this.#now ? { ...waiting, isFailed: true, trouble: "Timeout" } : waiting
    }
    const state = member.image === "" ? "Blank" : "Stale"
    const hold = this.#holds.get(key) ?? this.#holds.get(scopeName({ namespace: member.namespace }))
    if (!hold) return { tier, state, isCounted }
    const deadline = hold.since + tier.rule.deadlineMs
    const [isFailed, isHeld] = [deadline <= this.#now, hold.retryAt > this.#now]
    return { tier, state, isCounted, deadline, isFailed, isHeld, trouble: hold.reason }
  }

  /**
   * The moment of our own stamp; else the start of the operation. A stamp of an earlier operation got a new chance
   * with this one, and a time in the future is not ours (the annotation belongs to the object's owner).
   */
  #waitingSince(member: Member, rule: TierRule): Instant {
    const stamped = member.decision && sameImage(member.decision.to, rule.image) ? member.decision.at : 0
    const believable = stamped <= this.#now + clockSkewMs ? stamped : 0
    return Math.max(believable, this.#rules.startedAt)
  }
}

/** One tier's counts and ordered sets. Every number is kept by `add` and `remove` alone. */
class Tier implements TierView {
  readonly rule: TierRule
  total = 0
  updated = 0
  upToDate = 0
  unmanaged = 0
  settling = 0
  readonly counted = { total: 0, stale: 0, waiting: 0, done: 0, failed: 0 }
  readonly #stale = new IndexedHeap()
  readonly #blank = new IndexedHeap()
  readonly #waiting = new IndexedHeap()
  readonly #halting = new IndexedHeap()
  readonly #ignored = new IndexedHeap()
  readonly #troubles = new Map<FailureReason, IndexedHeap>()
  readonly #entries: ReadonlyMap<string, Entry>

  constructor(rule: TierRule, entries: ReadonlyMap<string, Entry>) {
    this.rule = rule
    this.#entries = entries
  }

  get halting() {
    return this.#halting.size
  }

  get ignored() {
    return this.#ignored.size
  }

  get troubles() {
    return [...this.#troubles]
      .filter(([, keys]) => keys.size > 0)
      .map(([reason, keys]) => ({ reason, count: keys.size, examples: (limit: number) => keys.firstKeys(limit) }))
      .sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1))
  }

  haltingExamples = (limit: number) => this.#halting.firstKeys(limit)
  waitingExamples = (limit: number) => this.#waiting.firstKeys(limit)
  stale = (limit: number) => this.#candidates(this.#stale, limit)
  blank = (limit: number) => this.#candidates(this.#blank, limit)

  #candidates(heap: IndexedHeap, limit: number): Candidate[] {
    return heap.firstKeys(limit).map(key => ({ key, member: this.#entries.get(key)!.member }))
  }

  add(key: string, standing: Standing, { haltsOnFailure }: Member): void {
    this.#count(standing, 1)
    const { state, isCounted, isFailed, isHeld, trouble, deadline } = standing
    if (state === "Stale" && !isHeld) this.#stale.set(key, 0)
    if (state === "Blank" && !isHeld) this.#blank.set(key, 0)
    if (state === "Waiting" && !isFailed) this.#waiting.set(key, deadline!)
    if (trouble) this.#trouble(trouble).set(key, 0)
    if (isFailed && isCounted) (haltsOnFailure ? this.#halting : this.#ignored).set(key, 0)
  }

  remove(key: string, standing: Standing): void {
    this.#count(standing, -1)
    for (const heap of [this.#stale, this.#blank, this.#waiting, this.#halting, this.#ignored]) heap.delete(key)
    if (standing.trouble) this.#troubles.get(standing.trouble)?.delete(key)
  }

  #trouble(reason: FailureReason): IndexedHeap {
    const keys = this.#troubles.get(reason) ?? new IndexedHeap()
    this.#troubles.set(reason, keys)
    return keys
  }

  #count({ state, isCounted, isFailed }: Standing, by: 1 | -1): void {
    if (state === "Unmanaged") {
      this.unmanaged += by
      return
    }
    this.total += by
    if (state === "Waiting" || state === "Done") this.updated += by
    if (state === "Done") this.upToDate += by
    if (state === "Waiting" && !isFailed) this.settling += by
    if (!isCounted) return
    this.counted.total += by
    this.counted[isFailed ? "failed" : state === "Done" ? "done" : state === "Waiting" ? "waiting" : "stale"] += by
  }
}

const holdMsFirst = 15_000
const holdMsMost = 300_000
const clockSkewMs = 60_000

const namespaceScope = "namespace:"
// A colon cannot stand in a namespace or a name, so the two sorts of scope never meet.
const scopeName = (scope: { key: string } | { namespace: string }) =>
  "key" in scope ? scope.key : `${namespaceScope}${scope.namespace}`

/** A version that we have already passed: our own write answered before the cache showed it. */
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
