import type { WorkloadNote } from "#core/in-place/marks.ts"
import type { Episode } from "#runtime/status.ts"
import type { Reason } from "./plan.ts"

/** Reasons that need a person, or that are not what was asked for. */
const warnings = new Set<Reason>([
  "ImageUnavailable",
  "UpdateFailed",
  "RolledBack",
  "NotInPlace",
  "NoBudget",
  "InvalidAnnotation",
  "FellBackToRollingUpdate",
])

/** The turning points of an update. The annotation says how it stands; events say what happened on the way. */
export function report(
  before: WorkloadNote | undefined,
  { operation, reason, message }: WorkloadNote,
): Episode | undefined {
  if (before?.reason === reason && before.operation === operation) return undefined
  if (reason === "Fencing" || reason === "Pulling") return undefined
  return { type: warnings.has(reason as Reason) ? "Warning" : "Normal", reason, message }
}
