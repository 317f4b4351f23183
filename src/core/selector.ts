/** metav1.LabelSelector. */
export type LabelSelector = {
  matchLabels?: Record<string, string> | undefined
  matchExpressions?:
    | { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] | undefined }[]
    | undefined
}

/** Whether an object with these labels is meant. No selector, or an empty one, means every object. */
export function selects(selector: LabelSelector | undefined, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) if (labels[key] !== value) return false
  for (const { key, operator, values = [] } of selector?.matchExpressions ?? []) {
    const value = labels[key]
    const isIn = value !== undefined && values.includes(value)
    if (operator === "In" && !isIn) return false
    if (operator === "NotIn" && isIn) return false
    if (operator === "Exists" && value === undefined) return false
    if (operator === "DoesNotExist" && value !== undefined) return false
  }
  return true
}
