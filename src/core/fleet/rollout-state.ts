import type { Condition, ConditionType, Phase, ServiceImageStatus, State } from "#api/v1alpha1/serviceimage/index.ts"

/**
 * How a rollout stands, and the condition that says so. One function for the status, `aim get` and `kubectl get`.
 * Conditions that are not about the present generation must be left out: an old Complete says nothing about a new image.
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
    // In progress, but why not done: Complete=False says it in finer words.
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
 * When the operation of a status ended, if it has: when it was first complete, also if a tier was reopened since. The end of a rollback is dated
 * by its condition: nothing was completed then.
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
