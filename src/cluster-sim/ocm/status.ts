import { celErrorWords, compile } from "#lib/cel.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { parsePath, valuesAt } from "../crd/json-path.ts"
import type { Json } from "../object.ts"

export type Condition = {
  type: string
  status: string
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number
}

/** With this condition in place of the one of its type; the time is kept while the status is the same. */
export function withCondition(
  list: readonly Condition[] = [],
  next: Omit<Condition, "lastTransitionTime">,
  now: Instant,
) {
  const before = list.find(({ type }) => type === next.type)
  const lastTransitionTime = before?.status === next.status ? before.lastTransitionTime : formatInstant(now)
  const condition = { ...next, lastTransitionTime }
  return before ? list.map(each => (each === before ? condition : each)) : [...list, condition]
}

export type ConditionRule = { condition: string; type: string; celExpressions?: string[]; messageExpression?: string }

/** One rule of a manifest over one read of its object. An expression that fails is False, with the error as its message. */
export function evaluateRule(rule: ConditionRule, object: Json): Omit<Condition, "lastTransitionTime"> {
  const result = (status: boolean, reason: string, message: string) => ({
    ...{ type: rule.condition, status: status ? "True" : "False", reason: `ConditionRule${reason}`, message },
  })
  const variables = { object: celValue(object) }
  let isTrue = true
  try {
    for (const expression of rule.celExpressions ?? [])
      isTrue &&= compile(expression, ["object"], { isLenient: true })(variables) === true
  } catch (error) {
    return result(false, "ExpressionError", celErrorWords(error))
  }
  const standard = `Manifest is ${isTrue ? "" : "not "}${rule.condition}`
  if (!rule.messageExpression) return result(isTrue, "Evaluated", standard)
  try {
    const said = compile(rule.messageExpression, ["object", "result"], { isLenient: true })({
      ...variables,
      result: isTrue,
    })
    return result(isTrue, "Evaluated", String(said) || standard)
  } catch (error) {
    return result(isTrue, "Evaluated", celErrorWords(error))
  }
}

/** Whole numbers are integers of CEL. */
function celValue(value: Json): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(celValue)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, celValue(each)]))
}

export type FeedbackRule = { type: string; jsonPaths?: { name: string; path: string }[] }

type FeedbackValue = {
  name: string
  fieldValue: { type: string; string?: string; boolean?: boolean; integer?: number }
}

/** The scalars at the paths of the rules; a path that leads nowhere gives none. */
export function feedbackOf(rules: readonly FeedbackRule[] = [], object: Json): FeedbackValue[] {
  return rules
    .flatMap(({ jsonPaths = [] }) => jsonPaths)
    .flatMap(({ name, path }): FeedbackValue[] => {
      const parsed = parsePath(path)
      const value = parsed && valuesAt(object, parsed)[0]
      if (typeof value === "string") return [{ name, fieldValue: { type: "String", string: value } }]
      if (typeof value === "boolean") return [{ name, fieldValue: { type: "Boolean", boolean: value } }]
      return typeof value === "number" && Number.isInteger(value)
        ? [{ name, fieldValue: { type: "Integer", integer: value } }]
        : []
    })
}
