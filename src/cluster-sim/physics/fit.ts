import type { Json, Obj } from "../object.ts"

/** Whether a pod's nodeSelector and required node affinity allow a node. */
export function isChosen(spec: Json, node: Obj): boolean {
  const labels = node.metadata.labels ?? {}
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) if (labels[key] !== value) return false
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  return !required || (required.nodeSelectorTerms ?? []).some((term: Json) => isChosenBy(term, node))
}

function isChosenBy({ matchExpressions = [], matchFields = [] }: Json, { metadata }: Obj): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false // an empty term chooses no node
  return (
    matchExpressions.every((rule: Json) => holds(rule, metadata.labels?.[rule.key])) &&
    matchFields.every((rule: Json) => holds(rule, metadata.name))
  )
}

const rules: Record<string, (value: string | undefined, values: string[]) => boolean> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: value => value !== undefined,
  DoesNotExist: value => value === undefined,
  Gt: (value, values) => value !== undefined && Number(value) > Number(values[0]),
  Lt: (value, values) => value !== undefined && Number(value) < Number(values[0]),
}

const holds = ({ operator, values = [] }: Json, value: string | undefined): boolean =>
  rules[operator]?.(value, values) ?? false

/** The first taint with one of these effects that no toleration covers. */
export const untolerated = (taints: readonly Json[] = [], tolerations: readonly Json[], effects: string[]): Json =>
  taints.find(taint => effects.includes(taint.effect) && !tolerations.some(each => tolerates(each, taint)))

export function tolerates({ key, operator = "Equal", value = "", effect }: Json, taint: Json): boolean {
  if (effect && effect !== taint.effect) return false
  if (!key) return operator === "Exists"
  return key === taint.key && (operator === "Exists" || value === (taint.value ?? ""))
}
