import type { WorkloadNote } from "#core/in-place/marks.ts"
import type { Episode } from "#runtime/status.ts"
import type { Reason } from "./plan.ts"

/** Reasons that need a person, or that are not what was asked for. */
const warnings = new Set<Reason>([
  "ImageUnavailable",
  "PodNotReady",
  "UpdateFailed",
  "RolledBack",
  "NotInPlace",
  "NoBudget",
  "InvalidAnnotation",
  "FellBackToRollingUpdate",
])

/** Steps that always come, and refusals, of which the refused write itself is reported. */
const unreported = new Set<Reason>(["Fencing", "Pulling", "Forbidden", "Refused"])

/** The turning points of an update. The annotation says how it stands; events say what happened on the way. */
export function report(
  before: WorkloadNote | undefined,
  { operation, reason, message }: WorkloadNote,
): Episode | undefined {
  if (before?.reason === reason && before.operation === operation) return undefined
  if (unreported.has(reason as Reason)) return undefined
  return { type: warnings.has(reason as Reason) ? "Warning" : "Normal", reason, message }
}
