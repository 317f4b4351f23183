import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { clip, withoutControls } from "#lib/text.ts"
import { fieldOf, generationOf, type TargetObject } from "../workloads/object-facts.ts"
import { holdOf, parseHold, parseNote } from "./marks.ts"
import {
  heldMark,
  inPlaceAnnotation,
  inPlaceHolder,
  inPlaceStrategies,
  type Strategy,
  strategies,
  strategyAnnotation,
} from "./names.ts"

/**
 * The hold in a write of aim's own: the write that changes a template stops the native controller too. It needs no
 * admission policy, and says the same as the policy would. A write of aim's own never releases.
 */

/** What a write that changes the template of a workload has to know of it. */
export type InPlaceFacts = {
  readonly generation: number
  /** As its own annotation says. */
  readonly strategy: Strategy | undefined
  /** Held already, by whichever part of aim: a workload has one hold at a time. */
  readonly isHeld: boolean
  /** Its owner has stopped its controller, and that is never touched. */
  readonly isStopped: boolean
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
  "UpdateFailed",
  "NotInPlace",
  "NoBudget",
  "InvalidAnnotation",
  "FellBackToRollingUpdate",
] as const satisfies readonly FailureReason[]
export type BlockedReason = (typeof blockedReasons)[number]

/** How the native controller of a kind is stopped, and whether its owner has done so. */
type Stop = {
  isStopped(spec: unknown): boolean
  /** The part of the spec that stops it. */
  readonly spec: object
}

const stops: Readonly<Record<string, Stop>> = {
  Deployment: { isStopped: spec => fieldOf(spec, "paused") === true, spec: { paused: true } },
}

/** Can workloads of this kind be updated in place? */
export const isHoldable = (kind: string): boolean => Object.hasOwn(stops, kind)

export const isInPlace = (strategy: Strategy | undefined): boolean =>
  strategy !== undefined && inPlaceStrategies.includes(strategy)

/** Undefined for kinds that cannot be held. `image`: that of the container, in the template. */
export function readInPlace(
  kind: string,
  object: TargetObject,
  { container, image }: { container: string; image: string },
): InPlaceFacts | undefined {
  if (!isHoldable(kind)) return undefined
  const annotations = fieldOf(object.metadata, "annotations")
  const written = fieldOf(annotations, strategyAnnotation)
  const isHeld = isHeldNow(object)
  return {
    generation: generationOf(object),
    strategy: strategies.find(each => each === written),
    isHeld,
    isStopped: !isHeld && stops[kind]!.isStopped(fieldOf(object, "spec")),
    blocked: isHeld ? blockedBy(annotations, container, image) : undefined,
    takenBack: takenBackFrom(annotations, container, image),
  }
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
  { generation, strategy, isHeld, isStopped }: InPlaceFacts,
  wanted: Strategy | undefined,
): HoldFields {
  const isRecreated = wanted === "Recreate" && strategy === undefined
  const annotations = wanted === undefined || isRecreated || wanted === strategy ? {} : { [strategyAnnotation]: wanted }
  if (isHeld || isStopped || !isInPlace(wanted ?? strategy)) return { annotations }
  return {
    annotations: { ...annotations, [heldMark]: holdOf(String(generation)).join("") },
    labels: { [heldMark]: inPlaceHolder },
    spec: stops[kind]!.spec,
  }
}
