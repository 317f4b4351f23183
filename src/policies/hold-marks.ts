import { heldMark, inPlaceStrategies, strategyAnnotation } from "#core/in-place/names.ts"

/** What the policies that hold a workload ask about it and write to it, in CEL, whichever part of aim holds. */

export const annotation = (object: string, name: string) => `${object}.metadata.?annotations[?'${name}'].orValue('')`
const label = (object: string, name: string) => `${object}.metadata.?labels[?'${name}'].orValue('')`

export const held = (object: string) => annotation(object, heldMark)
const hasHold = (object: string) => `${held(object)} != ''`
const hasLabel = (object: string) => `${label(object, heldMark)} != ''`
/** `kubectl rollout undo` may bring back the annotation of long ago: without the label it holds nothing. */
export const isHeld = (object: string) => `(${hasHold(object)} && ${hasLabel(object)})`

export const hasNewTemplate = "object.spec.template != oldObject.spec.template"

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
const hasNoMark = `(!(${hasHold("object")}) && !(${hasLabel("object")}))`

/** No writer but the policies changes the annotation of a hold: with another text nothing could be given back. */
export const isRewritten = `${held("object")} != ${held("oldObject")}`

export const added = (list: "labels" | "annotations", name: string, value: string) =>
  `JSONPatch{op: 'add', path: '/metadata/${list}/${name.replace("/", "~1")}', value: ${value}}`

/** A list of operations that makes sure of the list, and writes one entry of it. */
export const entry = (list: "labels" | "annotations", name: string, value: string) =>
  [
    `(has(object.metadata.${list}) ? [${added(list, name, value)}]`,
    `[JSONPatch{op: 'add', path: '/metadata/${list}', value: {'${name}': ${value}}}])`,
  ].join(" : ")

const isPaused = (object: string) => `${object}.spec.?paused.orValue(false)`

/**
 * A Deployment is paused. Its field has no default, so no apply takes it away; `kubectl rollout resume` does, and is the
 * owner's own release. `kubectl replace` takes the pause away together with all marks, and releases nothing.
 */
export const deploymentStop: Stop = {
  isStopped: isPaused,
  isAgain: `${isHeld("oldObject")} && ${isPaused("oldObject")} && ${hasNoMark}`,
  // A pause without our annotation is its owner's, and is never touched.
  isOwners: isPaused("object"),
}

/** A list of operations. */
export const pauses = "[JSONPatch{op: 'add', path: '/spec/paused', value: true}]"

/** The owner asks for updates in place. */
export const isInPlace = `${annotation("object", strategyAnnotation)} in [${inPlaceStrategies.map(each => `'${each}'`).join(", ")}]`
