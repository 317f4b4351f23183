import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { type HeapOptions, IndexedHeap } from "#lib/indexed-heap.ts"
import type { Strategy } from "../in-place/names.ts"
import { type LostPod, lostWithOther, type Trace } from "../pods/trace.ts"
import { isStopped } from "./checks.ts"
import type { Member } from "./member.ts"
import type { Entry, Standing, State } from "./standing.ts"

/** What the spec says of one tier, with every default resolved. */
export type TierRule = {
  readonly name: string
  readonly image: string
  readonly deadlineMs: number
  /** How long an object that this operation stamped must have been up to date before it counts as done. */
  readonly settleMs: number
  /** Rising; the last one takes in every object. One per step. */
  readonly cohortEnds: readonly number[]
  /** While rolling back: the image of objects that had none before. */
  readonly fallback?: string | undefined
  /** How pods get the image, where the tier says that. */
  readonly strategy?: Strategy | undefined
}

/** Objects that count for completion, each in one place: `failed` ones are neither stale nor waiting any more. */
export type Counts = Readonly<
  Record<"total" | "stale" | "waiting" | "settling" | "done" | "failed", number> & {
    /** Of `settling`: this process has just met them, and does not know yet since when they have been up to date. */
    guessed: number
    /** Have the image: done, settling, waiting, or failed with it. */
    stamped: number
    /** Of these: their pods cannot pull it. */
    unpullable: number
    /** Of these: a container with the image keeps crashing since the stamp. */
    crashing: number
    /** Have no place for the image, or no health that can be determined: the target is wrong for them. */
    invalid: number
  }
>

/** A tier as a plan sees it. Reading it costs the same for ten objects and a hundred thousand. */
export type TierView = {
  readonly rule: TierRule
  readonly total: number
  readonly updated: number
  readonly upToDate: number
  /** Existed when the operation started, and were not up to date. Objects created later do not raise it. */
  readonly toUpdate: number
  readonly unmanaged: number
  readonly counted: Counts
  /** Stamped and not done, and not failed either, counted or not: what maxConcurrent limits. */
  readonly underWay: number
  /** Counted objects that this operation stamped in this very tier, which says so: the tier has started. */
  readonly begun: number
  /** Stamped and not up to date, before their deadline. */
  readonly waiting: number
  /** Counted objects that were up to date and no longer are, for longer than a moment. */
  readonly regressed: number
  /** Of these: past their deadline too. */
  readonly regressedAndFailed: number
  /** Of these: this operation stamped them, so that its image may be the cause. */
  readonly regressedWithStamp: number
  /** Counted objects that this operation stamped, that were up to date, and may become so again. */
  readonly lapsed: number
  /** Managed objects that do not count yet: created since the start and never available. */
  readonly newcomers: number
  /** Counted objects that missed their deadline, by what their owner wants that to mean. */
  readonly halting: number
  readonly ignored: number
  /** Of `halting` and `ignored`: those that failed before their deadline. */
  readonly early: number
  readonly troubles: readonly {
    readonly reason: FailureReason
    readonly count: number
    /** Of the first example, in the words of the server or of the pod. */
    readonly message: string
    examples(limit: number): string[]
  }[]
  /** Whether any object has this trouble. */
  has(trouble: FailureReason): boolean
  /** Pods on lost nodes that may run another image than their object's. */
  readonly lostPods: number
  lostExamples(limit: number): LostPod[]
  haltingExamples(limit: number): string[]
  regressedExamples(limit: number): string[]
  /** Why the target is wrong for an object: the message of the first that has a problem. */
  invalidExample(): string | undefined
  /** Waiting objects before their deadline, the earliest deadline first. */
  waitingExamples(limit: number): string[]
  /** The field managers that restore other images; `anAdmissionWebhook` where our own write comes back changed. */
  contestants(limit: number): string[]
  /** Counted objects that the steps up to this one take in: the first in the queue where the share has no object. */
  cohort(step: number): Counts
  /** Of these, the objects that this step added. */
  increment(step: number): Counts
  /** Objects with an image that is not the target and may be stamped now, in the order of the queue. */
  stale(limit: number, step: number): Candidate[]
  /** Whether the steps up to this one take in the object. */
  takesIn(object: Pick<Candidate, "key" | "cohort">, step: number): boolean
  /** Objects that never had an image. */
  blank(limit: number): Candidate[]
}

export const anAdmissionWebhook = "an admission webhook"

export type Candidate = {
  readonly key: string
  readonly member: Member
  /** The image it must have. */
  readonly to: string
  /** How many pods stamping it disturbs. */
  readonly pods: number
  readonly cohort: number
}

const nameOf = (entry: Entry) => entry.key
const heapBy = (name: "queueAt" | "turnAt" | "deadlineAt"): HeapOptions<Entry> => ({
  nameOf,
  positions: {
    get: entry => entry[name],
    set(entry, position) {
      entry[name] = position
    },
    delete() {},
  },
})
export const byDeadline = heapBy("deadlineAt")
const byQueue = heapBy("queueAt")
/** Stale, blank and waiting exclude each other, and share the position. */
const byTurn = heapBy("turnAt")
/** These hold few objects. */
const few: HeapOptions<Entry> = { nameOf }

const nobody = (): { -readonly [K in keyof Counts]: Counts[K] } => ({
  total: 0,
  stale: 0,
  waiting: 0,
  settling: 0,
  done: 0,
  failed: 0,
  guessed: 0,
  stamped: 0,
  unpullable: 0,
  crashing: 0,
  invalid: 0,
})

/** One tier's counts and ordered sets. Every number is kept by `add` and `remove` alone. */
export class Tier implements TierView {
  readonly rule: TierRule
  total = 0
  updated = 0
  upToDate = 0
  toUpdate = 0
  unmanaged = 0
  underWay = 0
  begun = 0
  newcomers = 0
  early = 0
  regressedAndFailed = 0
  regressedWithStamp = 0
  lapsed = 0
  lostPods = 0
  readonly counted = nobody()
  readonly #cohorts: ReturnType<typeof nobody>[]
  /** The counted ones in the order of the queue, kept only where there are steps. */
  readonly #queue = new IndexedHeap(byQueue)
  readonly #stale = new IndexedHeap(byTurn)
  readonly #blank = new IndexedHeap(byTurn)
  readonly #waiting = new IndexedHeap(byTurn)
  readonly #halting = new IndexedHeap(few)
  readonly #ignored = new IndexedHeap(few)
  readonly #lost = new IndexedHeap(few)
  readonly #regressed = new IndexedHeap(few)
  readonly #invalid = new IndexedHeap(few)
  readonly #troubles = new Map<FailureReason, IndexedHeap<Entry>>()

  constructor(rule: TierRule) {
    this.rule = rule
    this.#cohorts = rule.cohortEnds.map(nobody)
  }

  get halting() {
    return this.#halting.size
  }

  get ignored() {
    return this.#ignored.size
  }

  get waiting() {
    return this.#waiting.size
  }

  get regressed() {
    return this.#regressed.size
  }

  get troubles() {
    return [...this.#troubles]
      .filter(([, heap]) => heap.size > 0)
      .map(([reason, heap]) => ({
        reason,
        count: heap.size,
        message: heap.first()?.item.standing.words ?? "",
        examples: (limit: number) => keysOf(heap, limit),
      }))
      .sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1))
  }

  has = (trouble: FailureReason) => (this.#troubles.get(trouble)?.size ?? 0) > 0
  haltingExamples = (limit: number) => keysOf(this.#halting, limit)
  regressedExamples = (limit: number) => keysOf(this.#regressed, limit)
  waitingExamples = (limit: number) => keysOf(this.#waiting, limit)
  blank = (limit: number) => this.#blank.firstItems(limit).map(candidate)

  invalidExample(): string | undefined {
    const first = this.#invalid.first()?.item.member
    return first && (first.problem ?? first.healthProblem)
  }

  contestants(limit: number): string[] {
    const entries = this.#troubles.get("Contested")?.firstItems(limit) ?? []
    const writers = entries.map(({ member, standing }) =>
      standing.contest?.isInSameWrite ? anAdmissionWebhook : (member.contestedBy ?? "another writer"),
    )
    return [...new Set(writers)]
  }

  lostExamples(limit: number): LostPod[] {
    return this.#lost
      .firstItems(limit)
      .flatMap(({ trace, standing }) => lostWithOther(trace, standing.wanted).examples)
      .slice(0, limit)
  }

  cohort(step: number): Counts {
    if (step >= this.#cohorts.length - 1) return this.counted
    const sum = nobody()
    for (const counts of this.#cohorts.slice(0, step + 1))
      for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += counts[name]
    const first = sum.total === 0 ? this.#queue.first() : undefined
    if (first) count(sum, first.item.standing, 1)
    return sum
  }

  increment(step: number): Counts {
    const isFirst = step === 0 || this.#cohorts.slice(0, step).every(counts => counts.total === 0)
    return isFirst ? this.cohort(step) : this.#cohorts[step]!
  }

  stale(limit: number, step: number): Candidate[] {
    if (step >= this.#cohorts.length - 1) return this.#stale.firstItems(limit).map(candidate)
    if (this.#isWithout(step)) {
      const first = this.#queue.first()
      return first && this.#stale.has(first.item) ? [candidate(first.item)] : []
    }
    const candidates = this.#stale.firstItems(limit).map(candidate)
    return candidates.filter(({ cohort }) => cohort <= step)
  }

  takesIn({ key, cohort }: Pick<Candidate, "key" | "cohort">, step: number): boolean {
    return cohort <= step || (this.#isWithout(step) && this.#queue.first()?.item.key === key)
  }

  /** No object is in the share of these steps: the first in the queue stands for it. */
  #isWithout(step: number): boolean {
    for (let index = 0; index <= step; index++) if (this.#cohorts[index]!.total > 0) return false
    return true
  }

  add(entry: Entry): void {
    const { standing, place, member } = entry
    this.#count(standing, 1)
    if (isBegun(entry, this.rule.name)) this.begun++
    const { state, isCounted, isFailed, trouble, deadline, lost } = standing
    if (state === "Unmanaged") return
    if (standing.isRegressed && isCounted) this.#regressed.set(entry, 0)
    if (standing.isInvalid && isCounted) this.#invalid.set(entry, 0)
    if (isCounted && this.#cohorts.length > 1) this.#queue.set(entry, place)
    if (!isStopped(standing)) (state === "Blank" ? this.#blank : this.#stale).set(entry, place)
    if (state === "Waiting" && !isFailed) this.#waiting.set(entry, deadline ?? Number.POSITIVE_INFINITY)
    if (trouble) this.#trouble(trouble).set(entry, 0)
    if (isFailed && isCounted) (member.haltsOnFailure ? this.#halting : this.#ignored).set(entry, 0)
    if (lost > 0) this.#lost.set(entry, 0)
  }

  remove(entry: Entry): void {
    const { trouble } = entry.standing
    this.#count(entry.standing, -1)
    if (isBegun(entry, this.rule.name)) this.begun--
    const queues = [this.#queue, this.#stale, this.#blank, this.#waiting]
    const heaps = [...queues, this.#halting, this.#ignored, this.#lost, this.#regressed, this.#invalid]
    for (const heap of heaps) heap.delete(entry)
    if (trouble) this.#troubles.get(trouble)?.delete(entry)
  }

  #trouble(reason: FailureReason): IndexedHeap<Entry> {
    const heap = this.#troubles.get(reason) ?? new IndexedHeap(few)
    this.#troubles.set(reason, heap)
    return heap
  }

  #count(standing: Standing, by: 1 | -1): void {
    const { state, isCounted, isNew, isFailed, lost } = standing
    if (state === "Unmanaged") {
      this.unmanaged += by
      return
    }
    this.total += by
    this.lostPods += lost * by
    const isUpToDate = state === "Done" || state === "Settling"
    if (isUpToDate || state === "Waiting") this.updated += by
    if (isUpToDate) this.upToDate += by
    if (state !== "Done" && !isNew) this.toUpdate += by
    if (state === "Settling" || (state === "Waiting" && !isFailed)) this.underWay += by
    if (!isCounted) {
      if (isNew) this.newcomers += by
      return
    }
    if (isFailed && standing.isEarly) this.early += by
    if (standing.isRegressed && isFailed) this.regressedAndFailed += by
    if (standing.isRegressed && standing.isOurs) this.regressedWithStamp += by
    if (standing.lapsedAt !== undefined && standing.isOurs && !isFailed) this.lapsed += by
    count(this.counted, standing, by)
    count(this.#cohorts[standing.cohort]!, standing, by)
  }
}

/** An object may have moved here from another tier. A first image is given to an object whatever its tier does. */
const isBegun = ({ standing, member: { decision } }: Entry, tier: string) =>
  standing.isOurs && standing.isCounted && decision?.tier === tier && decision.reason !== "StampedNew"

const keysOf = (heap: IndexedHeap<Entry>, limit: number) => heap.firstItems(limit).map(nameOf)

const candidate = ({ key, member, trace, standing }: Entry): Candidate => ({
  key,
  member,
  to: standing.wanted,
  pods: podsOf(member, trace),
  cohort: standing.cohort,
})

function count(counts: ReturnType<typeof nobody>, standing: Standing, by: 1 | -1): void {
  const { state, isFailed, trouble } = standing
  counts.total += by
  counts[isFailed ? "failed" : placeOf[state]] += by
  if (state === "Settling" && standing.isWellGuessed) counts.guessed += by
  if (placeOf[state] !== "stale") counts.stamped += by
  if (state === "Waiting" && trouble === "ImagePullFailed") counts.unpullable += by
  if (state === "Waiting" && trouble === "CrashLoop" && standing.isOurs) counts.crashing += by
  if (standing.isInvalid) counts.invalid += by
}

/** Unmanaged objects are never counted. */
const placeOf = {
  Unmanaged: "done",
  Blank: "stale",
  Stale: "stale",
  Waiting: "waiting",
  Settling: "settling",
  Done: "done",
} as const satisfies Record<State, keyof Counts>

/**
 * How many pods a stamp disturbs. An object that was deployed and whose pods we cannot find has at least one. An object
 * that was never deployed has none to disturb, and is not held back.
 */
export function podsOf(member: Member, trace: Trace | undefined): number {
  if (trace && trace.pods > 0) return trace.pods
  if (member.replicas !== undefined) return member.replicas
  return trace && !member.isDeployed ? 0 : 1
}
