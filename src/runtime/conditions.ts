import type { Instant } from "./clock.ts"
import { timestamp } from "./times.ts"

/** metav1.Condition. */
export type Condition = {
  type: string
  status: "True" | "False" | "Unknown"
  /** The generation this was observed for: older than the object's own, it says nothing about the present spec. */
  observedGeneration?: number
  /** When the status last changed; a new reason or message does not count. */
  lastTransitionTime: string
  reason: string
  message: string
}

/** What the API server takes as a message. */
const messageMax = 32_768

/**
 * The conditions with this one set: a new list, sorted by type, so that the same facts are always the same bytes and a
 * status without news is recognised as such. The given list stays as it is.
 */
export function setCondition(
  conditions: readonly Condition[] = [],
  condition: Omit<Condition, "lastTransitionTime">,
  now: Instant,
): Condition[] {
  const before = conditionOf(conditions, condition.type)
  const message =
    condition.message.length > messageMax
      ? `${condition.message.slice(0, messageMax - 1).toWellFormed()}…`
      : condition.message
  const after: Condition = {
    ...condition,
    message,
    lastTransitionTime: before?.status === condition.status ? before.lastTransitionTime : timestamp(now),
  }
  const others = conditions.filter(({ type }) => type !== condition.type)
  return [...others, after].sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0))
}

/** Several at once. */
export const setConditions = (
  conditions: readonly Condition[] | undefined,
  wanted: readonly Omit<Condition, "lastTransitionTime">[],
  now: Instant,
): Condition[] => wanted.reduce((all, condition) => setCondition(all, condition, now), [...(conditions ?? [])])

export const removeCondition = (conditions: readonly Condition[] = [], type: string): Condition[] =>
  conditions.filter(condition => condition.type !== type)

export const conditionOf = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find(condition => condition.type === type)

/** True, and said of this generation of the object rather than of an earlier spec. */
export function isTrueFor(conditions: readonly Condition[] | undefined, type: string, generation: number): boolean {
  const condition = conditionOf(conditions, type)
  return condition?.status === "True" && (condition.observedGeneration ?? -1) >= generation
}
