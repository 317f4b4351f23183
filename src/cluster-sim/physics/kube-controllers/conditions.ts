import type { Json, Obj } from "../../object.ts"

export type Condition = {
  type: string
  status: "True" | "False" | "Unknown"
  reason?: string
  message?: string
  lastUpdateTime?: string
  lastTransitionTime?: string
  lastProbeTime?: string
}

export const findCondition = (conditions: Json, type: string): Condition | undefined =>
  conditions?.find((condition: Condition) => condition.type === type)

export const withoutCondition = (conditions: readonly Condition[], type: string): Condition[] =>
  conditions.filter(condition => condition.type !== type)

/** As the workload controllers do it: a condition with a new status or reason moves to the end of the list. */
export function withCondition(conditions: readonly Condition[], condition: Condition): Condition[] {
  const current = findCondition(conditions, condition.type)
  if (current?.status === condition.status && current.reason === condition.reason) return [...conditions]
  const kept =
    current?.status === condition.status && current.lastTransitionTime
      ? { ...condition, lastTransitionTime: current.lastTransitionTime }
      : condition
  return [...withoutCondition(conditions, condition.type), kept]
}

export const isFinished = ({ status }: Obj) =>
  status?.conditions?.some(
    ({ type, status }: Condition) => (type === "Complete" || type === "Failed") && status === "True",
  ) ?? false
