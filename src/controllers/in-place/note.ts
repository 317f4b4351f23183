import type { WorkloadNote } from "#core/in-place/marks.ts"
import { noteOf, operationOf } from "#core/in-place/operation.ts"
import { both, type Change, imagesOf, type PodTemplate, type Touched, untouched } from "#core/in-place/template.ts"
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
  const course =
    changed.length === 0 && before
      ? courseAfter(before, images)
      : { from: Object.fromEntries(changed.map(([name]) => [name, were.get(name)!])), to: Object.fromEntries(changed) }
  return {
    operation: operationOf(workload),
    reason,
    message,
    touched,
    ...course,
    ...(before?.fence !== undefined && { fence: before.fence }),
    ...(before?.failed !== undefined && { failed: before.failed }),
    ...(before?.back !== undefined && { back: before.back }),
  }
}

/**
 * The template before is the present one. Either the workload's own controller has taken over the change, or its owner
 * has taken it back: then it goes the other way. A rollback of ours goes on recording what has failed.
 */
function courseAfter({ from, to, back, isTakenBack }: WorkloadNote, images: ReadonlyMap<string, string>) {
  const names = Object.keys(to)
  if (back !== undefined || names.every(name => images.get(name) === to[name]))
    return { from, to, ...(isTakenBack && { isTakenBack }) }
  const now = Object.fromEntries(names.map(name => [name, images.get(name) ?? from[name] ?? ""]))
  return { from: to, to: now, isTakenBack: true as const }
}

export function union(before: Touched | undefined, change: Change): Touched {
  return both(before ?? untouched, change.is === "InPlace" ? change : untouched)
}

export const isWithin = (touched: Touched, recorded: Touched) =>
  (["containers", "labels", "annotations", "restarts"] as const).every(key =>
    (touched[key] ?? []).every(each => recorded[key]?.includes(each)),
  )
