import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { remember } from "#lib/remember.ts"
import { clip, withoutControls } from "#lib/text.ts"
import { fieldOf, generationOf, type TargetObject } from "../workloads/object-facts.ts"
import { formatNote, parseHold, parseNote, setHoldOf, standingHoldOf } from "./marks.ts"
import {
  everyOrdinal,
  heldMark,
  inPlaceAnnotation,
  inPlaceHolder,
  inPlaceStrategies,
  type Strategy,
  strategies,
  strategyAnnotation,
} from "./names.ts"
import { isAtRest } from "./operation.ts"

/**
 * The hold in a write of aim's own: the write that changes a template stops the native controller too. It needs no
 * admission policy, and says the same as the policy would. A write of aim's own never releases.
 */

/** What a write that changes the template of a workload has to know of it. */
export type HoldFacts = {
  readonly generation: number
  /** As its own annotation says. */
  readonly strategy: Strategy | undefined
  /** Held already, by whichever part of aim: a workload has one hold at a time. */
  readonly isHeld: boolean
  /** Its hold stands again after a rolling update, and stops nothing now. */
  readonly isLent: boolean
  /** What to give back, as the hold keeps it; undefined where its owner has stopped its controller: never touched. */
  readonly original: string | undefined
}

export type InPlaceFacts = HoldFacts & {
  /** Held, and neither between two updates nor lent. */
  readonly isUnderWay: boolean
  /** What keeps the update in place that holds it. */
  readonly blocked: Blocked | undefined
  /** The image that failed, after the update to it was taken back as a whole. */
  readonly takenBack: { readonly image: string; readonly message: string } | undefined
}

export type Blocked = { readonly reason: BlockedReason; readonly message: string }

/** Reasons of an update in place that do not pass by themselves, or may not. */
export const blockedReasons = [
  "ImageUnavailable",
  "BudgetSpent",
  "Partitioned",
  "NodeNotReady",
  "Forbidden",
  "Refused",
  "PodNotReady",
  "UpdateFailed",
  "NotInPlace",
  "NoBudget",
  "InvalidAnnotation",
  "FellBackToRollingUpdate",
] as const satisfies readonly FailureReason[]
export type BlockedReason = (typeof blockedReasons)[number]

/** How the native controller of a kind is stopped, and whether its owner has done so. */
type Stop = {
  /** What to give back; undefined where its owner has stopped its controller. */
  original(spec: unknown): string | undefined
  /** The part of the spec that stops it. */
  readonly spec: object
}

/** As a server would fill it in. */
const defaultStrategy = { type: "RollingUpdate" }
const strategyOf = (spec: unknown) => fieldOf(spec, "updateStrategy") ?? defaultStrategy

const stops: Readonly<Record<string, Stop>> = {
  Deployment: {
    original: spec => (fieldOf(spec, "paused") === true ? undefined : '{"paused":false}'),
    spec: { paused: true },
  },
  /** With `OnDelete` or a partition, its owner decides which pods are replaced. */
  StatefulSet: {
    original(spec) {
      const strategy = strategyOf(spec)
      const isOwners = isOnDelete(strategy) || (fieldOf(fieldOf(strategy, "rollingUpdate"), "partition") ?? 0) !== 0
      return isOwners ? undefined : JSON.stringify(strategy)
    },
    spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: everyOrdinal } } },
  },
  /** The rest of the strategy stays where it is: under `OnDelete` it has no effect. */
  DaemonSet: {
    original: spec => (isOnDelete(strategyOf(spec)) ? undefined : JSON.stringify(strategyOf(spec))),
    spec: { updateStrategy: { type: "OnDelete" } },
  },
}

const isOnDelete = (strategy: unknown) => fieldOf(strategy, "type") === "OnDelete"

/** Workloads of a fleet have few different strategies. */
const share = remember(1000, text => text)
const shared = (text: string | undefined) => (text === undefined ? undefined : share(text))

/** Can workloads of this kind be updated in place? */
export const isHoldable = (kind: string): boolean => Object.hasOwn(stops, kind)

const isInPlace = (strategy: Strategy | undefined): boolean =>
  strategy !== undefined && inPlaceStrategies.includes(strategy)

/** Does a stamp with this strategy leave the pods of the workload to an update in place? */
export const keepsPods = ({ strategy, isHeld, isLent, original }: HoldFacts, wanted: Strategy | undefined): boolean =>
  isInPlace(wanted ?? strategy) && ((isHeld && !isLent) || original !== undefined)

/**
 * Its owner has stopped its controller, so nothing may hold it, and under `InPlaceOnly` its pods are never replaced. Its
 * controller would replace them as soon as its owner lets it: the template must not change. A Canary would prove the
 * change with other pods.
 */
export const mustKeepTemplate = (facts: HoldFacts, wanted: Strategy | undefined, hasCanary = false): boolean =>
  (wanted ?? facts.strategy) === "InPlaceOnly" && (hasCanary || !keepsPods(facts, wanted))

/** Undefined for kinds that cannot be held. `image`: that of the container, in the template. */
export function readInPlace(
  kind: string,
  object: TargetObject,
  { container, image }: { container: string; image: string },
): InPlaceFacts | undefined {
  if (!isHoldable(kind)) return undefined
  const annotations = fieldOf(object.metadata, "annotations")
  const facts = readHold(kind, object)
  const isWorkedOn = facts.isHeld && isUnderWay(object)
  return {
    ...facts,
    isUnderWay: isWorkedOn,
    blocked: isWorkedOn ? blockedBy(annotations, container, image) : undefined,
    takenBack: takenBackFrom(annotations, container, image),
  }
}

/** Undefined for a workload that does not ask for updates in place itself, and for kinds that cannot be held. */
export function readOptIn(kind: string, object: TargetObject): HoldFacts | undefined {
  const facts = isHoldable(kind) ? readHold(kind, object) : undefined
  return isInPlace(facts?.strategy) ? facts : undefined
}

function readHold(kind: string, object: TargetObject): HoldFacts {
  const written = fieldOf(fieldOf(object.metadata, "annotations"), strategyAnnotation)
  const isHeld = isHeldNow(object)
  return {
    generation: generationOf(object),
    strategy: strategies.find(each => each === written),
    isHeld,
    isLent: isHeld && holdIn(object)?.isLent === true,
    original: isHeld ? undefined : shared(originalOf(kind, fieldOf(object, "spec"))),
  }
}

/** What to give back after a hold; undefined where its owner has stopped its controller, and for other kinds. */
export const originalOf = (kind: string, spec: unknown): string | undefined => stops[kind]?.original(spec)

/** The part of the spec that stops the controller of a kind. */
export const stopOf = (kind: string): object => stops[kind]!.spec

const holdIn = ({ metadata }: TargetObject) => parseHold(fieldOf(fieldOf(metadata, "annotations"), heldMark))

/** The hold is that of an update, or of a change that is about to become one. */
export function isUnderWay(object: TargetObject): boolean {
  if (!isHeldNow(object)) return false
  const hold = holdIn(object)
  const note = parseNote(fieldOf(fieldOf(object.metadata, "annotations"), inPlaceAnnotation))
  return !hold?.isStanding || !(hold.isLent || isAtRest({ hold, note }))
}

/**
 * `kubectl rollout undo` may bring back the annotation of long ago, so the label counts as well: without it nothing is
 * held.
 */
export const isHeldNow = ({ metadata }: TargetObject) =>
  ["annotations", "labels"].every(list => fieldOf(fieldOf(metadata, list), heldMark) !== undefined)

/** What the record of an earlier hold says, or one about another image, is over. */
function blockedBy(annotations: unknown, container: string, image: string): Blocked | undefined {
  const note = parseNote(fieldOf(annotations, inPlaceAnnotation))
  const hold = parseHold(fieldOf(annotations, heldMark))
  if (!note || !hold || !note.operation.startsWith(`${hold.generation}-`) || note.to[container] !== image)
    return undefined
  const reason = blockedReasons.find(each => each === note.reason)
  return reason && { reason, message: shown(note.message) }
}

function takenBackFrom(annotations: unknown, container: string, image: string): InPlaceFacts["takenBack"] {
  const note = parseNote(fieldOf(annotations, inPlaceAnnotation))
  const tried = note?.failed === undefined ? undefined : note.to[container]
  return tried === undefined || tried === image
    ? undefined
    : { image: clip(tried, 1024), message: shown(note!.message) }
}

const messageMost = 256
const shown = (message: string) => clip(withoutControls(message, "?"), messageMost)

/**
 * Holds a workload also between updates: a merge patch, on condition of what was read. Undefined where its owner has
 * stopped its controller.
 */
export function standingHold(kind: string, object: TargetObject): object | undefined {
  const original = originalOf(kind, fieldOf(object, "spec"))
  if (original === undefined) return undefined
  const before = parseNote(fieldOf(fieldOf(object.metadata, "annotations"), inPlaceAnnotation))
  const annotations = {
    [heldMark]: standingHoldOf(original, generationOf(object)),
    // Of an earlier update: without this, a lost annotation would read as a release.
    ...(before && { [inPlaceAnnotation]: formatNote({ ...before, isStanding: true }) }),
  }
  const { resourceVersion } = object.metadata as { resourceVersion?: string }
  return {
    metadata: { resourceVersion, annotations, labels: { [heldMark]: inPlaceHolder } },
    spec: stopOf(kind),
  }
}

export type HoldFields = {
  readonly annotations: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
  readonly spec?: object
}

/**
 * What to write beside a changed template. `wanted`: the strategy of the writer, which becomes the workload's own;
 * without one the workload's own counts.
 */
export function holdFields(
  kind: string,
  { generation, strategy, original }: HoldFacts,
  wanted: Strategy | undefined,
): HoldFields {
  const isRecreated = wanted === "Recreate" && strategy === undefined
  const annotations = wanted === undefined || isRecreated || wanted === strategy ? {} : { [strategyAnnotation]: wanted }
  if (original === undefined || !isInPlace(wanted ?? strategy)) return { annotations }
  return {
    annotations: { ...annotations, [heldMark]: setHoldOf(original, String(generation)).join("") },
    labels: { [heldMark]: inPlaceHolder },
    spec: stops[kind]!.spec,
  }
}
