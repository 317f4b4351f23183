import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { decisionAnnotation, parseDecision } from "#core/image/record.ts"
import { hash32 } from "#lib/hash.ts"
import type { Hold, WorkloadNote } from "./marks.ts"
import { type PodTemplate, withoutHash } from "./template.ts"

type Held = { readonly hold: Hold | undefined }

export const isOfHold = ({ hold }: Held, operation: string | undefined): boolean =>
  operation?.startsWith(`${hold?.generation}-`) === true

/** Of this hold: what is left of an earlier one says nothing. */
export const noteOf = ({ hold, note }: Held & { readonly note: WorkloadNote | undefined }): WorkloadNote | undefined =>
  isOfHold({ hold }, note?.operation) ? note : undefined

/**
 * A standing hold between two updates: with its end, an update leaves a hold of another generation, which no note is
 * about. A change that no part of aim has taken up yet shows only in what the workload's own controller counts.
 */
export const isAtRest = (held: Held & { readonly note: WorkloadNote | undefined }): boolean =>
  held.hold?.isStanding === true && !held.hold.isLent && noteOf(held) === undefined

/** The same target under the same hold is the same operation. */
export const operationOf = ({ hold, template }: { hold: Hold | undefined; template: PodTemplate }) =>
  `${hold?.generation}-${short(withoutHash(template))}`

/** Under whichever hold: the operation is about this very template. */
export const isOfTemplate = (operation: string, template: PodTemplate) =>
  operation.slice(operation.indexOf("-") + 1) === short(withoutHash(template))

type Annotations = Readonly<Record<string, string>>

/** Which operation of a ServiceImage has stamped the workload. */
export const stampOf = (annotations: Annotations): string | undefined => {
  const decision = parseDecision(annotations[decisionAnnotation])
  return decision && `${decision.by} ${decision.operation}`
}

/**
 * The operation by which this template has failed and was rolled back, under this hold or the last one. It is not tried
 * again by itself: a tool that writes the template again and again would restart pods again and again. A person asks for
 * it by annotation, and a ServiceImage by a stamp of another operation.
 */
export function failedBefore({
  note,
  template,
  annotations,
}: {
  note: WorkloadNote | undefined
  template: PodTemplate
  annotations: Annotations
}): string | undefined {
  if (note?.failed === undefined || !isOfTemplate(note.failed, template)) return undefined
  const isAsked = annotations[retryAnnotation] === note.failed || stampOf(annotations) !== note.stamp
  return isAsked ? undefined : note.failed
}

export const short = (value: unknown) =>
  hash32(JSON.stringify(sorted(value)))
    .toString(16)
    .padStart(8, "0")

/** A name of its own for something that belongs to an object, and the same whenever it is made of the same. */
export const nameAfter = (name: string, of: unknown) => `${name.slice(0, 220).replace(/[^a-z0-9]+$/, "")}-${short(of)}`

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
