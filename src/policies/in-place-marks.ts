import { holdBegins, holdOf, noteBeginning } from "#core/in-place/marks.ts"
import {
  heldMark,
  inPlaceAnnotation,
  inPlaceHolder,
  inPlaceStrategies,
  strategyAnnotation,
} from "#core/in-place/names.ts"
import type { ResourceRule } from "./policy.ts"

/** What the policies of updates in place ask about a workload, in CEL. */

export const annotation = (object: string, name: string) => `${object}.metadata.?annotations[?'${name}'].orValue('')`
const label = (object: string, name: string) => `${object}.metadata.?labels[?'${name}'].orValue('')`

export const held = (object: string) => annotation(object, heldMark)
const hasHold = (object: string) => `${held(object)} != ''`
const hasLabel = (object: string) => `${label(object, heldMark)} != ''`
/** `kubectl rollout undo` may bring back the annotation of long ago: without the label it holds nothing. */
export const isHeld = (object: string) => `(${hasHold(object)} && ${hasLabel(object)})`

const isInPlace = `${annotation("object", strategyAnnotation)} in [${inPlaceStrategies.map(each => `'${each}'`).join(", ")}]`
export const hasNewTemplate = "object.spec.template != oldObject.spec.template"
const isNotHeldByAnother = `!${isHeld("oldObject")} || ${held("oldObject")}.startsWith('${holdBegins}')`

/** How the controller of one kind is stopped. */
export type Stop = {
  /** It replaces no pod. */
  readonly isStopped: (object: string) => string
  /** It is held and was stopped: the stop is written again, also without a new template. */
  readonly isAgain: string
  /** The owner has decided which pods are replaced, and that is never touched. */
  readonly isOwners: string
}

/**
 * A write that takes the annotation away and the stop with it, and leaves the label: the label goes last. A write that
 * takes the label as well is a manifest that replaces the object (`kubectl replace`), and no release.
 */
export const isReleased = ({ isStopped }: Pick<Stop, "isStopped">) =>
  `(${hasLabel("object")} && !(${hasHold("object")}) && !${isStopped("object")})`

/** Neither mark is left. */
export const hasNoMark = `(!(${hasHold("object")}) && !(${hasLabel("object")}))`

const note = (object: string) => annotation(object, inPlaceAnnotation)
const [, , holdEnds] = holdOf("")
const [noteBegins, generation, noteGoesOn] = noteBeginning(
  `${held("oldObject")}.find('[0-9]+${holdEnds}$').find('[0-9]+')`,
)
const isOfHold = (object: string) => `${note(object)}.startsWith('${noteBegins}' + ${generation} + '${noteGoesOn}')`
/** The note has what the hold has changed in pods so far: without it, changed pods would not be taken back. */
const hasLostNote = `(${isOfHold("oldObject")} && !${isOfHold("object")})`

/** The native controller is stopped with this write. */
export const isHolding = ({ isAgain }: Stop) => `${isInPlace} && (${hasNewTemplate} || (${isAgain}))`

/** No writer but the policies changes the annotation of a hold: with another text nothing could be given back. */
const isRewritten = `${held("object")} != ${held("oldObject")}`

/**
 * The marks of a held workload go with its release and with nothing else: the controller finds held workloads by the
 * label, and what to give back in the annotation. They come back even after the opt-in is gone: then the controller
 * gives the workload back.
 */
const hasLostMark = (stop: Stop) =>
  `${isHeld("oldObject")} && !${isReleased(stop)} && (!${isHeld("object")} || ${isRewritten} || ${hasLostNote})`

export const conditionsOf = (stop: Stop) => ({
  "holds-or-marks": `(${isHolding(stop)}) || (${hasLostMark(stop)})`,
  "not-of-its-owner": `${isHeld("oldObject")} || !(${stop.isOwners})`,
  "not-held-by-another": isNotHeldByAnother,
})

const added = (list: "labels" | "annotations", name: string, value: string) =>
  `JSONPatch{op: 'add', path: '/metadata/${list}/${name.replace("/", "~1")}', value: ${value}}`

/** A list of operations that makes sure of the list, and writes one entry of it. */
const entry = (list: "labels" | "annotations", name: string, value: string) =>
  [
    `(has(object.metadata.${list}) ? [${added(list, name, value)}]`,
    `[JSONPatch{op: 'add', path: '/metadata/${list}', value: {'${name}': ${value}}}])`,
  ].join(" : ")

/** A list of operations that writes label, annotation and, where it is lost, the note. */
export const markWith = (text: string) =>
  [
    entry("labels", heldMark, `'${inPlaceHolder}'`),
    entry("annotations", heldMark, text),
    `(${hasLostNote} ? [${added("annotations", inPlaceAnnotation, note("oldObject"))}] : [])`,
  ].join(" + ")

/** How one kind is held: when, what is written into the annotation, and what stops its controller. */
export type KindHold = {
  readonly resource: string
  readonly stop: Stop
  /** The last one is `held`, the text of the annotation. */
  readonly variables: Readonly<Record<string, string>>
  /** A list of operations. */
  readonly stops: string
}

/** The kinds that are updated in place, and not their status or scale. */
export const inPlaceWorkloads = (...operations: ResourceRule["operations"]): ResourceRule => ({
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["deployments", "statefulsets", "daemonsets"],
  operations,
  scope: "Namespaced",
})
