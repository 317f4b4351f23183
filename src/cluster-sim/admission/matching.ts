import { isEmptySelector, type LabelSelector, selects } from "#lib/label-selector.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import { type Attributes, isNamespaces } from "./attributes.ts"

/** `matchConstraints` of a policy and `matchResources` of a binding. */
export type MatchResources = {
  resourceRules?: readonly ResourceRule[]
  excludeResourceRules?: readonly ResourceRule[]
  namespaceSelector?: LabelSelector
  objectSelector?: LabelSelector
  matchPolicy?: "Exact" | "Equivalent"
}

type ResourceRule = {
  apiGroups?: readonly string[]
  apiVersions?: readonly string[]
  resources?: readonly string[]
  resourceNames?: readonly string[]
  operations?: readonly string[]
  scope?: "*" | "Cluster" | "Namespaced"
}

/** What matching reads besides the request. */
export type Surroundings = {
  /** Other versions under which the objects of a kind are served. */
  equivalents(kind: ServedKind): readonly ServedKind[]
  /** A namespace; throws the server's 404 where there is none. */
  namespace(name: string): Obj
}

/** The kind under which the request matches: its own, or an equivalent one. Undefined: it does not match. */
export function matched(
  constraints: MatchResources,
  request: Attributes,
  { equivalents, namespace }: Surroundings,
): ServedKind | undefined {
  const { namespaceSelector = {}, objectSelector = {}, matchPolicy, resourceRules = [] } = constraints
  const { served, object, old } = request
  const isSelected =
    isEmptySelector(objectSelector) ||
    [object, old].some(each => each !== null && selects(objectSelector, each.metadata?.labels))
  if (!isSelected) return undefined
  const others = matchPolicy === "Exact" ? [] : equivalents(served)
  if (matchingKind(constraints.excludeResourceRules ?? [], request, others)) return undefined
  const found = resourceRules.length === 0 ? served : matchingKind(resourceRules, request, others)
  // Checked last: a missing namespace matters only to requests that match otherwise.
  return found && isInNamespace(namespaceSelector, request, namespace) ? found : undefined
}

function isInNamespace(selector: LabelSelector, request: Attributes, namespace: Surroundings["namespace"]): boolean {
  const { served, namespace: name, operation, object } = request
  if (isEmptySelector(selector) || (name === "" && !isNamespaces(served))) return true
  const isOwn = isNamespaces(served) && request.subresource === "" && operation !== "DELETE"
  const labels = isOwn ? object.metadata?.labels : namespace(name).metadata.labels
  return selects(selector, labels)
}

function matchingKind(
  rules: readonly ResourceRule[],
  request: Attributes,
  others: readonly ServedKind[],
): ServedKind | undefined {
  return [request.served, ...others].find(kind => rules.some(rule => fits(rule, request, kind)))
}

const includes = (list: readonly string[] = [], word: string) => list.includes("*") || list.includes(word)

function fits(rule: ResourceRule, request: Attributes, kind: ServedKind): boolean {
  const { operation, namespace, subresource, name } = request
  const isClusterWide = namespace === "" || isNamespaces(kind)
  const { scope = "*", resourceNames = [] } = rule
  return (
    (scope === "*" || (scope === "Cluster") === isClusterWide) &&
    includes(rule.operations, operation) &&
    includes(rule.apiGroups, kind.group) &&
    includes(rule.apiVersions, kind.version) &&
    (rule.resources ?? []).some(each => isResource(each, kind.plural, subresource)) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  )
}

/** `pods`, `pods/status`, `pods/*`, `*` or `*` with a subresource. */
function isResource(text: string, plural: string, subresource: string): boolean {
  const [resource = "", sub = ""] = text.split(/\/(.*)/, 2)
  return (resource === "*" || resource === plural) && (sub === "*" || sub === subresource)
}

/** The parameters of a policy that a binding names. */
export type ParamRef = {
  name?: string
  namespace?: string
  selector?: LabelSelector
  parameterNotFoundAction?: "Allow" | "Deny"
}

/** A binding that cannot be used, in the server's words. */
export class ConfigurationError extends Error {}

/**
 * The parameters for a request; the policy is evaluated once for each. Null means that the policy or its binding has no
 * parameters. An empty list means that nothing is evaluated.
 */
export function paramsFor(
  ref: ParamRef | undefined,
  kind: ServedKind | undefined,
  request: Attributes,
  list: (kind: ServedKind, namespace: string | undefined) => readonly Obj[],
): readonly Json[] {
  if (!kind || !ref) return [null]
  if (kind.namespaced && !ref.namespace && request.namespace === "")
    throw new ConfigurationError(
      "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
    )
  if (!kind.namespaced && ref.namespace)
    throw new ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
  const all = list(kind, kind.namespaced ? ref.namespace || request.namespace : undefined)
  const found = ref.name
    ? all.filter(({ metadata }) => metadata.name === ref.name)
    : all.filter(({ metadata }) => selects(ref.selector, metadata.labels))
  if (found.length === 0 && ref.parameterNotFoundAction === "Deny")
    throw new ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
  return found
}
