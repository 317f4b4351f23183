import { formatInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import type { Instant } from "./clock.ts"

/** metav1.Condition. */
export type Condition = {
  type: string
  status: "True" | "False" | "Unknown"
  /** The generation this was observed for. If it is older than the object's own, the present spec is not covered. */
  observedGeneration?: number
  /** When the status last changed; a new reason or message does not count. */
  lastTransitionTime: string
  reason: string
  message: string
}

/** The longest message that the API server accepts. */
const messageMax = 32_768

/** A condition before its transition time is known. */
export type Stated<C extends Condition = Condition> = Omit<C, "lastTransitionTime">

/** The condition with its time: the earlier condition's, unless the status differs from it. */
function since<C extends Condition>(conditions: readonly Condition[] | undefined, stated: Stated<C>, now: Instant): C {
  const before = conditionOf(conditions, stated.type as string)
  const lastTransitionTime = before?.status === stated.status ? before.lastTransitionTime : formatInstant(now)
  return { ...stated, message: clip(stated.message as string, messageMax), lastTransitionTime } as C
}

/** States conditions of one generation, one at a time. */
export const conditionWriter =
  <C extends Condition>(observedGeneration: number, now: Instant) =>
  <Type extends C["type"]>(
    before: readonly Condition[] | undefined,
    type: Type,
    isTrue: boolean,
    reason: C["reason"],
    message: string,
  ): C & { type: Type } => {
    const status = isTrue ? "True" : "False"
    return since(before, { type, status, reason, message, observedGeneration } as Stated<C & { type: Type }>, now)
  }

/**
 * The conditions with this one set: a new list, sorted by type, so that the same facts are always the same bytes and an
 * unchanged status is recognised. The given list is not modified.
 */
export function setCondition(conditions: readonly Condition[] = [], stated: Stated, now: Instant): Condition[] {
  const others = conditions.filter(({ type }) => type !== stated.type)
  return [...others, since(conditions, stated, now)].sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0))
}

/** Several at once. */
export const setConditions = (
  conditions: readonly Condition[] | undefined,
  wanted: readonly Stated[],
  now: Instant,
): Condition[] => wanted.reduce((all, condition) => setCondition(all, condition, now), [...(conditions ?? [])])

export const conditionOf = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find(condition => condition.type === type)
