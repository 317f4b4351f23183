import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { type ObjectCheck, objectChecks } from "#core/fleet/checks.ts"
import type { Candidate } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import type { Standing } from "#core/fleet/standing.ts"
import { countOf } from "#core/fleet/tiers.ts"
import { blockedReasons } from "#core/in-place/own-hold.ts"
import type { Judging } from "./analysis.ts"
import type { JudgedTier } from "./judge.ts"
import type { Snapshot } from "./plan.ts"
import type { Fence, Intent } from "./stamps.ts"
import type { Shares } from "./trust.ts"

/** A rollout whose tiers are judged. */
export type Rollout = {
  readonly seen: Pick<Snapshot, "serviceImage" | "fence" | "conflicts">
  readonly active: readonly JudgedTier[]
}

/** What is left for the next object of a tier. */
export type Turn = {
  readonly tier: JudgedTier
  readonly fence: Pick<Fence, "unsure" | "busy" | "outdated">
  readonly shares: Shares
  /** How many more objects of the tier may be on their way. */
  room: number
  /** How many more pods may be disturbed. */
  pods: number
}

/** An object that waits for its turn. */
type Waiting = Pick<Candidate, "key" | "pods" | "cohort"> & {
  readonly member: Pick<Member, "namespace" | "resourceVersion">
}

type Effect = {
  /** It keeps objects from being stamped. Other checks are reported and stop nothing. */
  readonly stops?: true
  /** An object that never had an image gets one all the same. */
  readonly sparesNew?: true
}
type RolloutCheck = Effect & { readonly of: "Rollout"; readonly name: string; applies(rollout: Rollout): boolean }
type TierCheck = Effect & {
  readonly of: "Tier"
  readonly name: string
  applies(tier: JudgedTier, rollout: Pick<Rollout, "active">): boolean
}
type TurnCheck = Effect & {
  readonly of: "Turn"
  readonly name: string
  /** By the order of the queue, before the stamp is declared, or between that and the stamp. */
  readonly when: "Queue" | "Declare" | "Stamp"
  applies(turn: Turn, object: Waiting): boolean
}
type Check = ObjectCheck | RolloutCheck | TierCheck | TurnCheck

/**
 * The rules of a rollout, in order. The first that applies decides, and it is the one that is named: for an object by
 * `aim why`, for a tier and for the whole rollout by their conditions. A new rule is an entry here, and words for it:
 *
 * - Object and Turn: explain/serviceimage/why-standing.ts
 * - Tier: judge.ts, and why-standing.ts if it stops objects
 * - Rollout: plan.ts, and why-standing.ts if it stops objects
 */
export const checks = [
  // unmanaged, upToDate, settling, waiting, unwritable, refused, takenBack, contested: in core/fleet/checks.ts
  ...objectChecks,

  { of: "Rollout", name: "paused", stops: true, applies: ({ seen }) => seen.serviceImage.spec.paused },
  {
    of: "Rollout",
    name: "halted",
    stops: true,
    sparesNew: true,
    applies: ({ active }) => active.some(tier => tier.halt),
  },
  {
    // Nothing becomes complete while a write that we do not know of may still arrive.
    of: "Rollout",
    name: "fencing",
    applies: ({ seen: { fence, serviceImage } }) =>
      (fence.unsure.size > 0 || fence.isBehind) && !wasComplete(serviceImage),
  },
  { of: "Rollout", name: "conflict", applies: ({ seen }) => seen.conflicts !== undefined },
  { of: "Rollout", name: "complete", applies: ({ active }) => active.length === 0 },

  {
    of: "Tier",
    name: "priority",
    stops: true,
    sparesNew: true,
    applies: (tier, { active }) => !tier.isComplete && !active.includes(tier),
  },
  { of: "Tier", name: "regressed", applies: tier => tier.isRegressed },
  { of: "Tier", name: "heldBack", stops: true, sparesNew: true, applies: tier => tier.isHeldBack },
  { of: "Tier", name: "approval", stops: true, sparesNew: true, applies: tier => tier.isAwaitingApproval },
  { of: "Tier", name: "preCaching", stops: true, sparesNew: true, applies: tier => tier.preCaching !== undefined },
  { of: "Tier", name: "forbidden", applies: ({ view }) => view.has("Forbidden") },
  { of: "Tier", name: "contests", applies: ({ view }) => view.has("Contested") },
  { of: "Tier", name: "failedWrites", applies: ({ view }) => view.has("WriteFailed") },
  { of: "Tier", name: "blockedInPlace", applies: ({ view }) => blockedReasons.some(reason => view.has(reason)) },
  { of: "Tier", name: "reopened", applies: tier => tier.isReopened },
  {
    // A step that soaks and was good so far, or was not judged yet, says how long it soaks.
    of: "Tier",
    name: "judging",
    stops: true,
    sparesNew: true,
    applies: ({ judging, soaksUntil }) =>
      judging !== undefined && !judging.isGood && (soaksUntil === undefined || isAgainst(judging)),
  },
  { of: "Tier", name: "soaking", stops: true, sparesNew: true, applies: tier => tier.soaksUntil !== undefined },
  { of: "Tier", name: "stamped", applies: ({ view, step }) => view.cohort(step).stale === 0 },
  {
    of: "Tier",
    name: "full",
    applies: ({ maxConcurrent, view }) =>
      maxConcurrent !== undefined && view.underWay >= countOf(maxConcurrent, view.total),
  },

  {
    of: "Turn",
    name: "step",
    when: "Queue",
    stops: true,
    sparesNew: true,
    applies: ({ tier: { view, step } }, object) => !view.takesIn(object, step),
  },
  {
    of: "Turn",
    name: "concurrency",
    when: "Stamp",
    stops: true,
    sparesNew: true,
    applies: ({ room }) => room <= 0,
  },
  {
    // An object without pods costs nothing. Otherwise the bucket must not be empty; a large object may overdraw it.
    of: "Turn",
    name: "pace",
    when: "Stamp",
    stops: true,
    sparesNew: true,
    applies: (turn, object) => object.pods > 0 && turn.pods < 1,
  },
  { of: "Turn", name: "fence", when: "Declare", stops: true, applies: ({ fence }, object) => isTaken(fence, object) },
  {
    of: "Turn",
    name: "namespace",
    when: "Declare",
    stops: true,
    applies: ({ shares }, { member }) => !shares.hasRoom(member.namespace),
  },
  // So many are declared at once. An object further back in the queue has no intent yet, and nothing else stops it.
  { of: "Turn", name: "batch", when: "Queue", stops: true, applies: () => true },
] as const satisfies readonly Check[]

type Scope = Check["of"]
type Listed = (typeof checks)[number]
type NameOf<S extends Scope> = Extract<Listed, { of: S }>["name"]
type CheckOf<S extends Scope> = Extract<Check, { of: S }> & { readonly name: NameOf<S> }

export type RolloutCheckName = NameOf<"Rollout">
export type TierCheckName = NameOf<"Tier">
export type TurnCheckName = NameOf<"Turn">
/** What can keep an object from being stamped. */
export type StoppingName = Extract<Listed, { of: "Object" } | { stops: true }>["name"]

const all: readonly Check[] = checks
const only = <S extends Scope>(of: S) => all.filter((check): check is CheckOf<S> => check.of === of)

export const rolloutChecks = only("Rollout")
export const tierChecks = only("Tier")
const gates = [...rolloutChecks, ...tierChecks].filter(check => check.stops)
const turnChecks = only("Turn")
const beforeDeclaring = turnChecks.filter(check => check.when === "Declare")
const beforeStamping = turnChecks.filter(check => check.when === "Stamp")

/** What keeps the objects of a tier from being stamped, whatever their turn. */
export function gateOf(tier: JudgedTier, rollout: Rollout, isNew: boolean): StoppingName | undefined {
  for (const check of gates) if (stopsAt(check, tier, rollout, isNew)) return check.name as StoppingName
  return undefined
}

function stopsAt(check: RolloutCheck | TierCheck, tier: JudgedTier, rollout: Rollout, isNew: boolean): boolean {
  if (!check.stops || (check.sparesNew && isNew)) return false
  return check.of === "Rollout" ? check.applies(rollout) : check.applies(tier, rollout)
}

/** Whether a stamp of the object can be declared. */
export function isDeclarable(turn: Turn, object: Waiting): boolean {
  for (const check of beforeDeclaring) if (check.applies(turn, object)) return false
  return true
}

/** What a declared stamp waits for. */
export function delayOf(turn: Turn, object: Waiting): TurnCheckName | undefined {
  for (const check of beforeStamping) if (check.applies(turn, object)) return check.name
  return undefined
}

/** Everything that is known about one object when its rollout has been planned. */
export type Facts = {
  readonly object: Waiting & { readonly member: Member }
  readonly standing: Standing
  readonly rollout: Rollout
  readonly tier: JudgedTier
  /** What the plan left for objects of its tier. */
  readonly turn: Turn | undefined
  /** Its stamp, if the plan declares one. */
  readonly intent: Pick<Intent, "waitsFor"> | undefined
}

/**
 * The check to name for one object; undefined if it is stamped with this plan. An object that was refused or contested
 * is named so until it has its image, also while it is tried again.
 */
export function checkOn(facts: Facts, list: readonly Check[] = checks): StoppingName | undefined {
  return list.find(check => appliesTo(check, facts))?.name as StoppingName | undefined
}

function appliesTo(check: Check, { object, standing, rollout, tier, turn, intent }: Facts): boolean {
  const isNew = standing.state === "Blank"
  if (check.of === "Object") return check.applies(standing, object.member)
  if (check.of !== "Turn") return stopsAt(check, tier, rollout, isNew)
  if (intent || !turn) return intent?.waitsFor === check.name
  return !(check.sparesNew && isNew) && check.applies(turn, object)
}

const isAgainst = ({ verdict }: Judging) => verdict !== undefined && verdict !== "Good"

/** A write to the object is under way or may still arrive, or our copy of it is known to be old. */
const isTaken = ({ unsure, busy, outdated }: Turn["fence"], { key, member }: Waiting) =>
  unsure.has(key) || busy.has(key) || outdated.get(key) === member.resourceVersion

/** Complete was reported for this very spec. */
function wasComplete({ metadata, status }: ServiceImage): boolean {
  const was = status?.conditions.find(({ type }) => type === "Complete")
  return was?.status === "True" && was.observedGeneration === metadata.generation
}
