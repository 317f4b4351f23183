import type { Condition, ConditionType, Phase, ServiceImageStatus, State } from "#api/v1alpha1/serviceimage/index.ts"

/**
 * The state of a rollout, and the condition that it follows from. One function for the status, `aim get` and
 * `kubectl get`. Conditions of an earlier generation must be left out: an old Complete says nothing about a new image.
 */
export function stateOf(
  conditions: readonly Condition[],
  phase: Phase | undefined,
): { state: State; because?: Condition | undefined } {
  const holds = (type: ConditionType) => conditions.find(each => each.type === type && each.status === "True")
  const why = conditions.find(({ type, message }) => type === "Complete" && message !== "")
  const isImpossible = holds("Invalid") ?? holds("Conflict") ?? holds("TargetKindMissing")
  if (!isImpossible && (phase === "RolledBack" || (phase === "RollingBack" && !holds("Paused"))))
    return { state: phase, because: why }
  const degraded = conditions.find(({ type, reason }) => type === "Ready" && reason === "Degraded")
  if (degraded && holds("Complete")) return { state: "Degraded", because: degraded }
  for (const state of ["Halted", "Stalled", "Complete", "Paused", "InProgress"] as const) {
    const found = holds(state)
    // In progress: Complete=False has the more precise reason why it is not done.
    if (found) return { state, because: state === "InProgress" ? (why ?? found) : found }
  }
  return { state: "Waiting", because: why }
}

type TierImage = { readonly image: string; readonly priority: number }

/** The image of the priority being worked, and how many others there are: `web:v2 +1`. */
export function imageInWork(tiers: readonly TierImage[], currentPriority: number): string {
  const images = [...new Set(tiers.map(({ image }) => image))]
  const now = tiers.find(({ priority }) => priority === currentPriority)?.image ?? images[0] ?? ""
  return images.length > 1 ? `${now} +${images.length - 1}` : now
}

/**
 * When the operation of a status ended, if it has: when it was first complete, even if a tier was reopened since. A
 * rollback completes nothing, so its condition dates its end.
 */
export function endOfOperation({
  operation,
  completedAt,
  conditions = [],
}: Partial<Pick<ServiceImageStatus, "operation" | "completedAt" | "conditions">>): string | undefined {
  if (operation?.phase === "RollingBack") return undefined
  if (operation?.phase === "Complete") return operation.endedAt ?? completedAt
  if (operation?.phase !== "RolledBack") return operation?.endedAt
  return conditions.find(({ type, status }) => type === "InProgress" && status === "False")?.lastTransitionTime
}
