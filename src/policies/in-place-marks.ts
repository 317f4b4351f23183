import { heldMark, inPlaceHolder, inPlaceStrategies, strategyAnnotation } from "#core/in-place/names.ts"
import type { ResourceRule } from "./policy.ts"

/** What the policies of updates in place ask about a workload, in CEL. */

export const annotation = (object: string, name: string) => `${object}.metadata.?annotations[?'${name}'].orValue('')`
const label = (object: string, name: string) => `${object}.metadata.?labels[?'${name}'].orValue('')`

export const held = (object: string) => annotation(object, heldMark)
export const hasHold = (object: string) => `${held(object)} != ''`
/** `kubectl rollout undo` may bring back the annotation of long ago: without the label it holds nothing. */
export const isHeld = (object: string) => `(${hasHold(object)} && ${label(object, heldMark)} != '')`

/** A hold of ours begins so. */
const holdBegins = `{"by":"${inPlaceHolder}",`

export const isInPlace = `${annotation("object", strategyAnnotation)} in [${inPlaceStrategies.map(each => `'${each}'`).join(", ")}]`
export const hasNewTemplate = "object.spec.template != oldObject.spec.template"
export const isNotHeldByAnother = `!${isHeld("oldObject")} || ${held("oldObject")}.startsWith('${holdBegins}')`

const key = heldMark.replace("/", "~1")

/** A list of operations that writes annotation and label. An object that is matched here has annotations. */
export const markWith = (text: string) =>
  [
    [
      `(has(object.metadata.labels) ? [JSONPatch{op: 'add', path: '/metadata/labels/${key}', value: '${inPlaceHolder}'}]`,
      `[JSONPatch{op: 'add', path: '/metadata/labels', value: {'${heldMark}': '${inPlaceHolder}'}}])`,
    ].join(" : "),
    `[JSONPatch{op: 'add', path: '/metadata/annotations/${key}', value: ${text}}]`,
  ].join(" + ")

/** How one kind is held: when, what is written into the annotation, and what stops its controller. */
export type KindHold = {
  readonly resource: string
  readonly conditions: Readonly<Record<string, string>>
  /** The last one is `held`, the text of the annotation. */
  readonly variables: Readonly<Record<string, string>>
  /** A list of operations. */
  readonly stop: string
}

/** The kinds that are updated in place, and not their status or scale. */
export const inPlaceWorkloads = (...operations: ResourceRule["operations"]): ResourceRule => ({
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["deployments", "statefulsets", "daemonsets"],
  operations,
  scope: "Namespaced",
})
