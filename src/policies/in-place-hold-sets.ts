import { setHoldOf } from "#core/in-place/marks.ts"
import { everyOrdinal } from "#core/in-place/names.ts"
import { hasHold, hasNewTemplate, held, isHeld, type KindHold } from "./in-place-marks.ts"

/**
 * StatefulSets and DaemonSets have no pause. A StatefulSet is held by a partition above every ordinal, a DaemonSet by
 * `OnDelete`. Both fields have defaults, which their creator owns: the first server-side apply after a client-side one
 * puts the default back, and the native controller would replace every pod. So the hold is written again with every
 * update of a held one.
 *
 * What such an update says about the strategy is its owner's wish all the same: it becomes what is given back. A write
 * that takes the annotation away and the hold with it is a release.
 */

const strategy = (object: string) => `${object}.spec.?updateStrategy`
const typeOf = (object: string) => `${strategy(object)}.?type.orValue('RollingUpdate')`
const rolling = `${strategy("object")}.?rollingUpdate`

type Stop = {
  /** Its controller replaces no pod. */
  readonly isStopped: (object: string) => string
  /** Its owner has decided which pods are replaced, and that is never touched. */
  readonly isOwners: string
}

const conditions = ({ isStopped, isOwners }: Stop) => ({
  // A hold that was lost in between is not put back: the native controller is at work.
  "new-template-or-held": `${hasNewTemplate} || (${isHeld("oldObject")} && ${isStopped("oldObject")})`,
  "not-of-its-owner": `${isHeld("oldObject")} || !(${isOwners})`,
  "not-released": `!${isHeld("oldObject")} || ${hasHold("object")} || ${isStopped("object")} || ${hasNewTemplate}`,
})

const [begin, , middle, , end] = setHoldOf("", "")

/** As `parseHold` reads it. */
const heldText = (fields: string) => `'${begin}{' + ${fields} + '}${middle}' + variables.generation + '${end}'`

/**
 * The generation before the first change, and the text from which fields are taken that the hold itself has replaced.
 * Where two policies match, the second finds what the first has written into the new object.
 */
const kept = {
  known: `${isHeld("oldObject")} ? ${held("oldObject")}.find('${middle}[0-9]+${end}$').find('[0-9]+') : ''`,
  generation: "variables.known != '' ? variables.known : string(oldObject.metadata.generation)",
  isOurs: `${held("object")}.startsWith('${begin}') && ${held("object")}.endsWith('${middle}' + variables.generation + '${end}')`,
  saved: `variables.isOurs ? ${held("object")} : ${held("oldObject")}`,
}

/** `"name":3` or `"name":"25%"`, or nothing where the field is absent. */
const field = (name: string) => {
  const value = `${rolling}.?${name}`
  return `(${value}.hasValue() ? '"${name}":' + (type(${value}.value()) == int ? string(${value}.value()) : '"' + string(${value}.value()) + '"') : '')`
}

const joined = (...fields: string[]) => `[${fields.join(", ")}].filter(each, each != '').join(',')`

const partitionOf = (object: string) => `${strategy(object)}.?rollingUpdate.?partition.orValue(0)`
const isPartitioned = (object: string) =>
  `(${typeOf(object)} == 'RollingUpdate' && ${partitionOf(object)} == ${everyOrdinal})`

/** `maxUnavailable` stays as it is: only the partition has to be kept elsewhere, and `OnDelete` if it comes in between. */
export const statefulSetHold: KindHold = {
  resource: "statefulsets",
  conditions: conditions({
    isStopped: isPartitioned,
    isOwners: `${typeOf("object")} == 'OnDelete' || ${partitionOf("object")} != 0`,
  }),
  variables: {
    ...kept,
    isStopped: isPartitioned("object"),
    type: `variables.isStopped ? (variables.saved.contains('"type":"OnDelete"') ? 'OnDelete' : 'RollingUpdate') : ${typeOf("object")}`,
    partition: `variables.isStopped ? variables.saved.find('"partition":[0-9]+') : ${field("partition")}`,
    rolling: `variables.type != 'RollingUpdate' || !${rolling}.hasValue() ? '' : ',"rollingUpdate":{' + ${joined("variables.partition", field("maxUnavailable"))} + '}'`,
    held: heldText(`'"type":"' + variables.type + '"' + variables.rolling`),
  },
  stop: [
    `(${rolling}.hasValue() ? [JSONPatch{op: 'add', path: '/spec/updateStrategy/rollingUpdate/partition', value: ${everyOrdinal}}]`,
    `: [JSONPatch{op: 'add', path: '/spec/updateStrategy/rollingUpdate', value: {'partition': ${everyOrdinal}}}])`,
    "+ [JSONPatch{op: 'add', path: '/spec/updateStrategy/type', value: 'RollingUpdate'}]",
  ].join(" "),
}

const isZero = (name: string) => {
  const value = `${rolling}.?${name}`
  return `!${value}.hasValue() || string(${value}.value()) in ['0', '0%']`
}

const isOnDelete = (object: string) => `${typeOf(object)} == 'OnDelete'`

/**
 * The rest of the strategy stays where it is: under `OnDelete` it has no effect. The server does not judge it there, so
 * a block that it would refuse at the release is not kept: one of both numbers must be zero, and not both.
 */
export const daemonSetHold: KindHold = {
  resource: "daemonsets",
  conditions: conditions({ isStopped: isOnDelete, isOwners: isOnDelete("object") }),
  variables: {
    ...kept,
    isValid: `${rolling}.hasValue() && (${isZero("maxUnavailable")}) != (${isZero("maxSurge")})`,
    rolling: `variables.isValid ? '"rollingUpdate":{' + ${joined(field("maxUnavailable"), field("maxSurge"))} + '}' : variables.saved.find('"rollingUpdate":{[^}]*}')`,
    held: heldText(joined(`'"type":"RollingUpdate"'`, "variables.rolling")),
  },
  stop: "[JSONPatch{op: 'add', path: '/spec/updateStrategy/type', value: 'OnDelete'}]",
}
