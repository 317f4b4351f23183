import type { WorkloadNote } from "#core/in-place/marks.ts"
import {
  both,
  type Change,
  imagesOf,
  type PodTemplate,
  type Touched,
  untouched,
  withoutHash,
} from "#core/in-place/template.ts"
import { hash32 } from "#lib/hash.ts"
import type { Workload } from "./facts.ts"
import type { Reason } from "./plan.ts"

/** `old`: the template before the change, where there is one. */
export function makeNote(
  workload: Workload,
  old: PodTemplate | undefined,
  reason: Reason,
  message: string,
): WorkloadNote {
  const before = noteOf(workload)
  const touched = before?.touched ?? untouched
  const images = imagesOf(workload.template)
  const were = old ? imagesOf(old) : images
  const changed = [...images].filter(([name, image]) => were.has(name) && were.get(name) !== image)
  const isFlipped = changed.length === 0
  return {
    operation: operationOf(workload),
    reason,
    message,
    touched,
    from: isFlipped && before ? before.from : Object.fromEntries(changed.map(([name]) => [name, were.get(name)!])),
    to: isFlipped && before ? before.to : Object.fromEntries(changed),
    ...(before?.fence !== undefined && { fence: before.fence }),
    ...(before?.failed !== undefined && { failed: before.failed }),
    ...(before?.back !== undefined && { back: before.back }),
  }
}

/** Of this hold: what is left of an earlier one says nothing. */
export const noteOf = (workload: Workload): WorkloadNote | undefined =>
  isOfHold(workload, workload.note?.operation) ? workload.note : undefined

export const isOfHold = ({ hold }: Workload, operation: string | undefined): boolean =>
  operation?.startsWith(`${hold?.generation}-`) === true

/** The same target under the same hold is the same operation. */
export const operationOf = ({ hold, template }: Workload) => `${hold?.generation}-${short(withoutHash(template))}`

export const short = (value: unknown) =>
  hash32(JSON.stringify(sorted(value)))
    .toString(16)
    .padStart(8, "0")

/** A server returns fields in its own order. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(sorted)
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  )
}

export function union(before: Touched | undefined, change: Change): Touched {
  return both(before ?? untouched, change.is === "InPlace" ? change : untouched)
}

export const isWithin = (touched: Touched, recorded: Touched) =>
  (["containers", "labels", "annotations", "restarts"] as const).every(key =>
    (touched[key] ?? []).every(each => recorded[key]?.includes(each)),
  )
