import { isDeepStrictEqual } from "node:util"
import type { Instant } from "#runtime/clock.ts"
import { conditionOf, setConditions } from "#runtime/conditions.ts"
import { carries, type Deployment, type DeploymentManifest, manifestFor } from "./deployment.ts"
import type { Dicom, DicomStatus } from "./dicom.ts"

/** What was seen: one tenant, and the Deployment that has its name, if there is one. */
export type Snapshot = { dicom: Dicom; deployment: Deployment | undefined; now: Instant }

export type Action =
  | { do: "report"; status: DicomStatus } // the state of this tenant, for users and the ServiceImage
  | { do: "apply"; deployment: DeploymentManifest; uid?: string } // uid: the Deployment this was decided from

/** What one condition should be. */
type Verdict = { status: "True" | "False"; reason: string; message: string }

/**
 * Decides the next step of one tenant: the actions, in order; stopping after any of them is safe. The report comes
 * first, so that a crash leaves an explanation behind and "UpToDate" is not shown while the pods are being replaced.
 * The same snapshot always gives the same plan, and a world in order gives an empty one.
 */
export function plan({ dicom, deployment, now }: Snapshot): Action[] {
  if (dicom.isBeingDeleted) return [] // its Deployment goes with it

  const manifest = manifestFor(dicom)
  const isOurs = deployment?.owner?.uid === dicom.uid
  const isTaken = deployment !== undefined && !isOurs
  const isCarried = isOurs && carries(deployment, manifest)

  const actions: Action[] = []
  const status = statusOf(dicom, now, {
    UpToDate: isTaken ? nameTaken(dicom) : upToDate(dicom, isCarried ? deployment : undefined),
    Deployed: deployed(dicom, isOurs ? deployment : undefined),
  })
  if (status) actions.push({ do: "report", status })
  if (dicom.spec.image && !isTaken && !isCarried)
    actions.push({ do: "apply", deployment: manifest, ...(deployment && { uid: deployment.uid }) })
  return actions
}

/** UpToDate: every pod runs the spec. `deployment` is there only if its template says what the Dicom asks for. */
function upToDate({ spec: { image } }: Dicom, deployment: Deployment | undefined): Verdict {
  if (!image) return no("NoImage", "waiting for a ServiceImage to fill in spec.image")
  if (deployment && isRolledOut(deployment)) return yes("RolledOut", `every pod runs ${image}`)
  if (deployment && hasGivenUp(deployment))
    return no("DeadlineExceeded", `the pods do not become available with ${image}; see the events of the Deployment`)
  // No counts in the message: each would cost a write of the status, for every pod of every tenant.
  return no("RollingOut", `moving to ${image}`)
}

/**
 * Whether the Deployment's controller has realized the most recent template.
 *
 *     apply v2        observedGeneration catches up      the new pod is available    the old one is gone
 *     ────┬──────────────────────┬───────────────────────────────┬──────────────────────────┬────────
 *         │ counts still of v1   │ updated 1 < replicas 2        │ replicas 2 > wanted 1    │ rolled out
 */
function isRolledOut({ generation, spec, status }: Deployment): boolean {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status
  return (
    observedGeneration >= generation && // else the counts below are those of the previous template
    replicas === spec.replicas && // there may be more pods than wanted
    replicas === updatedReplicas && // old pods may still be among them
    replicas === availableReplicas // updated pods may not be available yet
  )
}

const hasGivenUp = ({ generation, status: { observedGeneration = 0, conditions = [] } }: Deployment) =>
  observedGeneration >= generation && conditions.some(({ reason }) => reason === "ProgressDeadlineExceeded")

/** Deployed: has been available at least once. Once true it stays true, whatever happens to the Deployment. */
function deployed({ status }: Dicom, deployment: Deployment | undefined): Verdict {
  const wasDeployed = conditionOf(status.conditions, "Deployed")?.status === "True"
  const isAvailable = deployment?.status.conditions?.some(
    ({ type, status }) => type === "Available" && status === "True",
  )
  if (wasDeployed || isAvailable) return yes("HasBeenAvailable", "has been available at least once")
  return no("NotYetAvailable", "has never been available")
}

const nameTaken = ({ name, namespace }: Dicom) =>
  no("NameTaken", `the Deployment ${namespace}/${name} belongs to another owner: delete it, or rename this Dicom`)

const yes = (reason: string, message: string): Verdict => ({ status: "True", reason, message })
const no = (reason: string, message: string): Verdict => ({ status: "False", reason, message })

/** The status to write, or nothing if it already says so. */
function statusOf(
  { generation, status: { observedGeneration, conditions: said } }: Dicom,
  now: Instant,
  verdicts: Record<string, Verdict>,
) {
  const ours = said?.filter(({ type }) => type in verdicts)
  const wanted = Object.entries(verdicts).map(([type, verdict]) => ({
    type,
    ...verdict,
    observedGeneration: generation,
  }))
  const conditions = setConditions(ours, wanted, now) // lastTransitionTime moves only when a status flips
  const isSaid = conditions.every(condition => isDeepStrictEqual(conditionOf(said, condition.type), condition))
  return isSaid && observedGeneration === generation ? undefined : { observedGeneration: generation, conditions }
}
