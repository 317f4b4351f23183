import { sharePattern, zeroPattern } from "#core/in-place/hold.ts"
import { setHoldOf } from "#core/in-place/marks.ts"
import { everyOrdinal } from "#core/in-place/names.ts"
import { held, isHeld, isReleased, type Stop } from "./hold-marks.ts"
import type { KindHold } from "./in-place-marks.ts"

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

/** A hold that was lost in between is not put back: the native controller is at work. */
const stopOf = (stop: Pick<Stop, "isStopped" | "isOwners">): Stop => ({
  ...stop,
  isAgain: `${isHeld("oldObject")} && ${stop.isStopped("oldObject")} && !${isReleased(stop)}`,
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
  stop: stopOf({
    isStopped: isPartitioned,
    isOwners: `${typeOf("object")} == 'OnDelete' || ${partitionOf("object")} != 0`,
  }),
  variables: {
    ...kept,
    isStopped: isPartitioned("object"),
    type: `variables.isStopped ? (variables.saved.contains('"type":"OnDelete"') ? 'OnDelete' : 'RollingUpdate') : ${typeOf("object")}`,
    // The server judges the partition of the hold and not this one, so one that it would refuse is not kept.
    partition: `variables.isStopped || ${partitionOf("object")} < 0 ? variables.saved.find('"partition":[0-9]+') : ${field("partition")}`,
    rolling: `variables.type != 'RollingUpdate' || !${rolling}.hasValue() ? '' : ',"rollingUpdate":{' + ${joined("variables.partition", field("maxUnavailable"))} + '}'`,
    held: heldText(`'"type":"' + variables.type + '"' + variables.rolling`),
  },
  stops: [
    `(${rolling}.hasValue() ? [JSONPatch{op: 'add', path: '/spec/updateStrategy/rollingUpdate/partition', value: ${everyOrdinal}}]`,
    `: [JSONPatch{op: 'add', path: '/spec/updateStrategy/rollingUpdate', value: {'partition': ${everyOrdinal}}}])`,
    "+ [JSONPatch{op: 'add', path: '/spec/updateStrategy/type', value: 'RollingUpdate'}]",
  ].join(" "),
}

/** A number of pods, or a share of them. */
const isAmount = (value: string) =>
  `(type(${value}) == int ? ${value} >= 0 : string(${value}).matches('${sharePattern}'))`

/** `usual`: what the server fills in. */
const amount = (name: string, usual: number) => `${rolling}.?${name}.orValue(dyn(${usual}))`
const [unavailable, surge] = [amount("maxUnavailable", 1), amount("maxSurge", 0)]
const isZero = (value: string) => `string(${value}).matches('${zeroPattern}')`

const isOnDelete = (object: string) => `(${typeOf(object)} == 'OnDelete')`

const isValid = `${rolling}.hasValue() && ${isAmount(unavailable)} && ${isAmount(surge)} && ${isZero(unavailable)} != ${isZero(surge)}`

/**
 * The rest of the strategy stays where it is: under `OnDelete` it has no effect. The server does not judge it there, so
 * a block that it would refuse at the release is not kept. Where such a block comes with the first change, nothing is
 * held, and the server refuses the write as it would without us.
 */
export const daemonSetHold: KindHold = {
  resource: "daemonsets",
  stop: stopOf({ isStopped: isOnDelete, isOwners: `${isOnDelete("object")} || !(${isValid})` }),
  variables: {
    ...kept,
    isValid,
    rolling: `variables.isValid ? '"rollingUpdate":{' + ${joined(field("maxUnavailable"), field("maxSurge"))} + '}' : variables.saved.find('"rollingUpdate":{[^}]*}')`,
    held: heldText(joined(`'"type":"RollingUpdate"'`, "variables.rolling")),
  },
  stops: "[JSONPatch{op: 'add', path: '/spec/updateStrategy/type', value: 'OnDelete'}]",
}
