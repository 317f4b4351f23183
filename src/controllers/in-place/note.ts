import type { WorkloadNote } from "#core/in-place/marks.ts"
import { failedBefore, noteOf, operationOf } from "#core/in-place/operation.ts"
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
  const operation = operationOf(workload)
  const touched = before?.touched ?? untouched
  const images = imagesOf(workload.template)
  const were = old ? imagesOf(old) : images
  const changed = [...images].filter(([name, image]) => were.has(name) && were.get(name) !== image)
  const course =
    before && (changed.length === 0 || before.back === operation)
      ? courseAfter(before, images)
      : { from: Object.fromEntries(changed.map(([name]) => [name, were.get(name)!])), to: Object.fromEntries(changed) }
  return {
    operation,
    reason,
    message,
    touched,
    ...course,
    // It was about the template of that operation.
    ...(before?.fence !== undefined && before.operation === operation && { fence: before.fence }),
    ...failureKept(workload, operation),
  }
}

/** A failure is forgotten with the next template that is neither the one that failed nor the one that takes it back. */
function failureKept(workload: Workload, operation: string): Pick<WorkloadNote, "failed" | "back" | "stamp"> {
  const isBack = noteOf(workload)?.back === operation
  if (!workload.note || !(isBack || failedBefore(workload) !== undefined)) return {}
  const { failed, back, stamp } = workload.note
  return {
    ...(failed !== undefined && { failed }),
    ...(back !== undefined && { back }),
    ...(stamp !== undefined && { stamp }),
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
