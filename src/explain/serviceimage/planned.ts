import type { Operation, Reason, ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { isInProgress, recordedOperation } from "#core/fleet/operation.ts"
import type { Instant } from "#lib/instant.ts"
import { type Outlook, outlookOf, type Warning, warningsOf } from "./outlook.ts"
import type { Survey, Surveyed } from "./survey.ts"

/** What one rollout does next, from the controllers' own planner. */
export type Planned = {
  name: string
  reason: Reason
  message: string
  progress: string
  operation: Pick<Operation, "id" | "phase" | "images"> & { isNew: boolean; isPinnedLater: boolean }
  /** The operation in progress that a new one would overtake. */
  overtakes?: string
  /** What is stamped next, in this order; `more` of them are not listed. */
  next: { object: string; tier: string; from: string; to: string; reason: Reason; pods: number }[]
  more: number
  outlook: Outlook
  warnings: Warning[]
  /** When time alone changes this plan. */
  lookAgainAt?: Instant
}

/** `most`: how many of the next objects are named. `before`: the object without a change that is only planned. */
export function planned(
  rollout: Surveyed,
  whole: Pick<Survey, "lacksGrant">,
  { most, before }: { most: number; before: ServiceImage | undefined },
): Planned {
  const { serviceImage, plan, snapshot, fleet } = rollout
  const { name } = serviceImage.metadata
  const { reason, message } = plan.status.conditions.find(({ type }) => type === "Complete")!
  const { id, phase, images } = plan.status.operation ?? snapshot.operation
  const isNew = recordedOperation(serviceImage) === undefined
  const overtaken = isNew && before && isInProgress(before) ? before.status?.operation?.id : undefined
  return {
    name,
    reason,
    message,
    progress: plan.status.progress,
    // Only the controller asks registries.
    operation: { id, phase, images, isNew, isPinnedLater: isNew && serviceImage.spec.resolveDigest === "AtStart" },
    ...(overtaken && { overtakes: overtaken }),
    next: plan.stamps.slice(0, most).map(({ key, member, to, reason, pods }) => ({
      object: key,
      tier: fleet?.standing(key)?.tier ?? "",
      from: member.image,
      to,
      reason,
      pods,
    })),
    more: Math.max(0, plan.stamps.length - most),
    outlook: outlookOf(rollout),
    warnings: warningsOf(rollout, whole),
    ...(plan.lookAgainAt !== undefined && { lookAgainAt: plan.lookAgainAt }),
  }
}
