import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { formatNote, type WorkloadNote } from "./marks.ts"
import { gateReason, heldMark, inPlaceAnnotation } from "./names.ts"

/** What gives a held workload back, written by the controller or by a person: each is a merge patch. */

/** It is its own controller's again. The label stays until everything else is given back. */
export const releaseOf = (resourceVersion: string, note: WorkloadNote, spec: object) => ({
  metadata: { resourceVersion, annotations: { [heldMark]: null, [inPlaceAnnotation]: formatNote(note) } },
  spec,
})

/**
 * The update is over, and the hold stays for the next one. `held`: the text of the annotation. The stop is not touched.
 */
export const settleOf = (resourceVersion: string, note: WorkloadNote, held: string) => ({
  metadata: {
    resourceVersion,
    annotations: { [heldMark]: held, [inPlaceAnnotation]: formatNote({ ...note, isStanding: true }) },
  },
})

/** Its own controller goes on, and afterwards the hold stands again. `held` says so. */
export const lendOf = (resourceVersion: string, note: WorkloadNote, held: string, spec: object) => ({
  metadata: { resourceVersion, annotations: { [heldMark]: held, [inPlaceAnnotation]: formatNote(note) } },
  spec,
})

export const unmarkOf = (resourceVersion: string) => ({ metadata: { resourceVersion, labels: { [heldMark]: null } } })

/** The readiness gate of a pod, for a strategic patch of its status. */
export const gateOf = (
  { uid, resourceVersion }: { uid: string; resourceVersion: string },
  isOpen: boolean,
  now: Instant,
) => ({
  metadata: { uid, resourceVersion },
  status: {
    conditions: [
      {
        type: readinessGate,
        status: isOpen ? "True" : "False",
        lastTransitionTime: formatInstant(now),
        reason: isOpen ? "NotDisturbed" : gateReason,
        message: "",
      },
    ],
  },
})
