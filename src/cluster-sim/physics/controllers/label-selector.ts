import type { Json } from "../../object.ts"

type Labels = Readonly<Record<string, string>> | undefined

/** Whether a `metav1.LabelSelector` chooses these labels. Absent chooses nothing, empty everything. */
export function selects(selector: Json, labels: Labels): boolean {
  if (!selector) return false
  const has = labels ?? {}
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (has[key] !== value) return false
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const value = Object.hasOwn(has, key) ? has[key] : undefined
    if (operator === "In" && (value === undefined || !values.includes(value))) return false
    if (operator === "NotIn" && value !== undefined && values.includes(value)) return false
    if (operator === "Exists" && value === undefined) return false
    if (operator === "DoesNotExist" && value !== undefined) return false
  }
  return true
}

export const isEmptySelector = (selector: Json) =>
  !selector || (isEmpty(selector.matchLabels) && isEmpty(selector.matchExpressions))

const isEmpty = (value: Json) => !value || Object.keys(value).length === 0
