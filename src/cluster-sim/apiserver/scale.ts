import { apiVersionOf } from "#runtime/resource.ts"
import type { Json, Obj } from "../object.ts"
import { kindText } from "../schema/go-text.ts"
import type { ServedKind } from "./kind.ts"
import { badRequest, cause, invalid } from "./refusals.ts"

/** The paths of the replicas in all built-in kinds that scale. */
const builtIn: NonNullable<ServedKind["scale"]> = {
  spec: ".spec.replicas",
  status: ".status.replicas",
  selector: ".spec.selector",
}

const pathsIn = (kind: ServedKind) => (kind.isCustom && kind.scale) || builtIn

/** The path of the desired replicas in objects of a kind. */
export const replicasPath = (kind: ServedKind) => steps(pathsIn(kind).spec)

/** The Scale of an object: what `kubectl scale` and autoscalers see of it. */
export function scaleOf(kind: ServedKind, object: Obj): Json {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const paths = pathsIn(kind)
  const selector = paths.selector && at(object, paths.selector)
  const replicas = at(object, paths.spec)
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, ...(namespace && { namespace }), uid, resourceVersion, creationTimestamp },
    spec: { ...(replicas !== undefined && replicas !== 0 && { replicas }) },
    status: {
      replicas: at(object, paths.status) ?? 0,
      ...(selector && { selector: typeof selector === "string" ? selector : selectorText(selector) }),
    },
  }
}

/** The object with the replicas of a Scale. */
export function withScale(kind: ServedKind, object: Obj, scale: Json): Json {
  const name = scale.metadata?.name ?? object.metadata.name
  const replicas = scale.spec?.replicas ?? 0
  if (typeof replicas !== "number")
    throw badRequest(
      `Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal ${typeof replicas} into Go struct field ScaleSpec.spec.replicas of type int32`,
    )
  if (replicas < 0)
    throw invalid({ group: "autoscaling", kind: "Scale" }, name, [
      cause.invalid("spec.replicas", replicas, "must be greater than or equal to 0"),
    ])
  const changed = put(object, replicasPath(kind), replicas)
  const resourceVersion = scale.metadata?.resourceVersion
  return {
    ...changed,
    metadata: { ...changed.metadata, resourceVersion: resourceVersion || object.metadata.resourceVersion },
  }
}

/** An applied Scale as a configuration of the object that it scales. */
export function appliedScale(kind: ServedKind, scale: Json): Json {
  if (scale?.apiVersion !== "autoscaling/v1" || scale.kind !== "Scale")
    throw badRequest(`invalid object type: ${kindText(scale)}`)
  const { name, namespace } = scale.metadata ?? {}
  const header = {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: { name, ...(namespace && { namespace }) },
  }
  const replicas = scale.spec?.replicas
  return replicas === undefined ? header : put(header, replicasPath(kind), replicas)
}

const steps = (path: string) => path.split(".").filter(step => step !== "")

const at = (object: Json, path: string): Json => steps(path).reduce((node, step) => node?.[step], object)

function put(node: Json, [step, ...rest]: string[], value: Json): Json {
  if (step === undefined) return value
  return { ...node, [step]: put(node?.[step], rest, value) }
}

/** A LabelSelector as text, as the status of a Scale has it. */
function selectorText({ matchLabels = {}, matchExpressions = [] }: Json): string {
  const labels = Object.entries<string>(matchLabels).map(([key, value]) => [key, `${key}=${value}`] as const)
  const words: Record<string, string> = { In: " in ", NotIn: " notin " }
  const expressions = matchExpressions.map(({ key, operator, values = [] }: Json) => {
    if (operator === "Exists") return [key, key]
    if (operator === "DoesNotExist") return [key, `!${key}`]
    return [key, `${key}${words[operator] ?? operator}(${[...values].sort().join(",")})`]
  })
  return [...labels, ...expressions]
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, text]) => text)
    .join(",")
}
