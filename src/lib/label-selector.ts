/** metav1.LabelSelector. */
export type LabelSelector = {
  matchLabels?: Readonly<Record<string, string>> | undefined
  matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] | undefined }[] | undefined
}

/** Whether an object with these labels is selected. As in Kubernetes, no selector selects nothing and an empty one all. */
export function selects(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined = {},
): boolean {
  if (!selector) return false
  const labelAt = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined)
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labelAt(key) !== value) return false
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const value = labelAt(key)
    const isIn = value !== undefined && values.includes(value)
    if (operator === "In" && !isIn) return false
    if (operator === "NotIn" && isIn) return false
    if (operator === "Exists" && value === undefined) return false
    if (operator === "DoesNotExist" && value !== undefined) return false
  }
  return true
}

export const isEmptySelector = (selector: LabelSelector | undefined) =>
  Object.keys(selector?.matchLabels ?? {}).length === 0 && (selector?.matchExpressions ?? []).length === 0

/** As `kubectl -l` takes it: `service=dicom,tier in (a,b),!old`. */
export function formatSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`)
  const others = matchExpressions.map(({ key, operator, values = [] }) => {
    if (operator === "Exists") return key
    if (operator === "DoesNotExist") return `!${key}`
    return `${key} ${operator === "In" ? "in" : "notin"} (${values.join(",")})`
  })
  return [...equal, ...others].join(",")
}
