import { namesOf } from "#api/names.ts"
import { holdBegins, holdOf, noteBeginning } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, inPlaceHolder } from "#core/in-place/names.ts"
import {
  added,
  annotation,
  entry,
  hasNewTemplate,
  held,
  isHeld,
  isInPlace,
  isReleased,
  isRewritten,
  type Stop,
} from "./hold-marks.ts"
import type { ResourceRule } from "./policy.ts"

/** What the policies of updates in place ask about a workload, in CEL. */

const isNotHeldByAnother = `!${isHeld("oldObject")} || ${held("oldObject")}.startsWith('${holdBegins}')`

const canary = namesOf("Canary")

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
  // The Deployment of a run of a Canary belongs to that run.
  "not-of-a-run": `!object.metadata.?ownerReferences.orValue([]).exists(each, each.kind == '${canary.kind}' && each.apiVersion.startsWith('${canary.group}/'))`,
})

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
