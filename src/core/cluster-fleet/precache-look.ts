import type { PrecacheState } from "#api/v1alpha1/clusterupgrade/index.ts"
import type { PrecacheObservation } from "./precache-machine.ts"
import type { Observation, Present } from "./transport.ts"

/** What one look says to the machine, and why. */
export type PrecacheLook = { observation: PrecacheObservation; cause?: string; message?: string; isOwn?: boolean }

/** Translates what a cluster shows of the delivery of this attempt into the conditions of the original. */
export function precacheLook(state: PrecacheState, { bundle, objects }: Observation): PrecacheLook {
  const job = objects[2]
  // Objects of another attempt, or of another specification, do not name this one.
  const isOwn = job?.is === "Present" && job.verdict.is !== "Differs" && job.verdict.is !== "Leaving"
  if (state === "NotStarted" || state === "PreparingToStart") {
    if (bundle === "Absent" || isOwn) return { observation: "NoNsFoundOnSpoke", isOwn }
    return { observation: "NsFoundOnSpoke", message: "what an earlier attempt left is still there" }
  }
  if (bundle === "Absent") return { observation: "DependenciesNotPresent" }
  if (bundle === "Leaving") return { observation: "UnforeseenCondition", message: "it is being removed" }
  const refused = objects.find(each => each.is === "Refused")
  if (refused?.is === "Refused") {
    const { reason, message } = refused
    if (reason === "AdmissionDenied" || reason === "Forbidden")
      return { observation: "JobBackoffLimitExceeded", cause: "AdmissionDenied", message }
    if (reason === "KindMissing") return { observation: "JobBackoffLimitExceeded", cause: "AgentMissing", message }
    return { observation: "UnforeseenCondition", message }
  }
  if (objects[0]?.is === "Absent" || objects[1]?.is === "Absent") return { observation: "DependenciesNotPresent" }
  if (job?.is === "Absent") return { observation: "NoJobFoundOnSpoke" }
  if (job?.is !== "Present") return { observation: "UnforeseenCondition", message: "nothing is known of the job" }
  return jobLook(job)
}

function jobLook({ verdict, fields }: Present): PrecacheLook {
  if (verdict.is === "Settled") return { observation: "JobSucceeded" }
  if (verdict.is === "Waiting") return { observation: "JobActive", message: verdict.message }
  if (verdict.is !== "Stalled") return { observation: "UnforeseenCondition", message: "the job was changed" }
  // A job that waits for a person may still succeed before its time is over.
  if (verdict.reason === "ImagesStalled") return { observation: "JobActive", message: verdict.message }
  const messages = Object.entries(fields)
    .filter(([name, value]) => name.startsWith("failed") && typeof value === "string" && value !== "")
    .map(([, value]) => String(value))
  const other = messages.find(message => !message.startsWith("DeadlineExceeded"))
  if (messages.length > 0 && other === undefined) return { observation: "JobDeadline", message: messages[0]! }
  const said = other ?? verdict.message
  const cause = /^([A-Z][A-Za-z]{2,31}): /.exec(said)?.[1]
  return { observation: "JobBackoffLimitExceeded", ...(cause !== undefined && { cause }), message: said }
}
