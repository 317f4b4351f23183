import type { Json, Obj } from "../../object.ts"

/** Whether a pod may be on a node by its nodeSelector and its required node affinity. */
export function fitsNode(spec: Json, node: Obj): boolean {
  const labels = node.metadata.labels ?? {}
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) if (labels[key] !== value) return false
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (!required) return true
  return (required.nodeSelectorTerms ?? []).some((term: Json) => fitsTerm(term, node))
}

function fitsTerm({ matchExpressions = [], matchFields = [] }: Json, { metadata }: Obj): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false // an empty term chooses no node
  return (
    matchExpressions.every((requirement: Json) => meets(requirement, metadata.labels?.[requirement.key])) &&
    matchFields.every((requirement: Json) => meets(requirement, metadata.name))
  )
}

function meets({ operator, values = [] }: Json, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value)
    case "NotIn":
      return value === undefined || !values.includes(value)
    case "Exists":
      return value !== undefined
    case "DoesNotExist":
      return value === undefined
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0])
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return false
  }
}

/** The first taint with one of these effects that none of the tolerations covers. */
export const untolerated = (
  taints: readonly Json[] | undefined,
  tolerations: readonly Json[],
  effects: string[],
): Json =>
  taints?.find(taint => effects.includes(taint.effect) && !tolerations.some(toleration => covers(toleration, taint)))

function covers(toleration: Json, taint: Json): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false
  if (toleration.key && toleration.key !== taint.key) return false
  if (toleration.operator === "Exists") return true
  return Boolean(toleration.key) && (toleration.value ?? "") === (taint.value ?? "")
}
