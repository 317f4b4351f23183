import type { Reason } from "#api/v1alpha1/clusterupgrade/index.ts"
import { nameOf } from "./delivered.ts"
import type { DeliveredObject, Observation, Trouble } from "./transport.ts"

/** What one look at a cluster says about what a run delivered there. */
export type Judgement =
  /** The look did not come about. It changes no state. */
  | { is: "Unknown"; cause: Reason; message: string }
  /** Some of it is not there. */
  | { is: "Absent" }
  /** Something there is not as it was sent. */
  | { is: "Differs"; message: string }
  | { is: "Working"; message: string }
  /** This one look shows every object as it was sent, and ready. */
  | { is: "Settled"; proof: string }
  | { is: "Failed"; cause: Reason; message: string }

/** Judges one observation of a delivery. What has failed counts before what is missing, and that before what works. */
export function judgeObservation(observation: Observation, objects: readonly DeliveredObject[]): Judgement {
  if (observation.bundle === "Absent") return { is: "Absent" }
  if (observation.bundle === "Leaving")
    return { is: "Unknown", cause: "Upgrading", message: "an earlier delivery is leaving" }
  let differs: string | undefined
  let works: string | undefined
  let isAbsent = false
  for (const [index, { manifest }] of objects.entries()) {
    const name = nameOf(manifest)
    const seen = observation.objects[index] ?? { is: "Unknown" as const, message: "nothing is known of it" }
    if (seen.is === "Refused") {
      const cause = seen.reason === "AdmissionDenied" || seen.reason === "Forbidden" ? seen.reason : "Refused"
      return { is: "Failed", cause, message: `${name}: ${seen.message}` }
    }
    if (seen.is === "Contested") return { is: "Failed", cause: "Contested", message: `${name}: ${seen.message}` }
    if (seen.is === "Absent") isAbsent = true
    else if (seen.is === "Unknown") works ??= `${name}: ${seen.message}`
    else if (seen.verdict.is === "Stalled")
      return { is: "Failed", cause: "Stalled", message: `${name}: ${seen.verdict.reason}: ${seen.verdict.message}` }
    else if (seen.verdict.is === "Differs") differs ??= `${name}: ${seen.verdict.message}`
    else if (seen.verdict.is === "Leaving") works ??= `${name} is being deleted`
    else if (seen.verdict.is === "Waiting") works ??= `${name}: ${seen.verdict.reason}: ${seen.verdict.message}`
  }
  if (isAbsent) return { is: "Absent" }
  if (differs !== undefined) return { is: "Differs", message: differs }
  if (works !== undefined) return { is: "Working", message: works }
  return {
    is: "Settled",
    proof: `${objects.length === 1 ? "1 object" : `${objects.length} objects`} ready in one look`,
  }
}

/** What a failure on the way says of a cluster: it is not a failure of the cluster. */
export function judgeTrouble({ is, message }: Trouble): Judgement {
  if (is === "Undeliverable") return { is: "Failed", cause: "Undeliverable", message }
  const isSaid = is === "Forbidden" || is === "BadCredential" || is === "UnknownCluster"
  return { is: "Unknown", cause: isSaid ? is : "Unreachable", message }
}
