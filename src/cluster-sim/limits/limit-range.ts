import { formatQuantity, type Quantity } from "#lib/quantity.ts"
import type { Json, Obj } from "../object.ts"
import { podTotal, type Quantities, quantities } from "./quantities.ts"

/** What the LimitRanges of a namespace do to its new pods and claims, in the words of the server's LimitRanger. */

/** The pod with the defaults of all LimitRanges, and an annotation that lists them. */
export const withDefaults = (pod: Json, ranges: readonly Obj[]): Json => ranges.reduce(withDefaultsOf, pod)

function withDefaultsOf(pod: Json, range: Obj): Json {
  const defaults = defaultsOf(range)
  const notes: string[] = []
  const merged = (prefix: string) => (container: Json) => {
    const { container: next, added } = mergedContainer(container, defaults)
    for (const [what, names] of added)
      if (names.length > 0) notes.push(`${names.sort().join(", ")} ${what} for ${prefix} ${container.name}`)
    return next
  }
  const { spec, metadata } = pod
  const containers = (spec.containers ?? []).map(merged("container"))
  const initContainers = spec.initContainers?.map(merged("init container"))
  if (notes.length === 0) return pod
  const annotations = {
    ...metadata.annotations,
    "kubernetes.io/limit-ranger": `LimitRanger plugin set: ${notes.join("; ")}`,
  }
  return {
    ...pod,
    metadata: { ...metadata, annotations },
    spec: { ...spec, ...(initContainers && { initContainers }), containers },
  }
}

type Defaults = { limits: Record<string, string>; requests: Record<string, string> }

function defaultsOf({ spec }: Obj): Defaults {
  const found: Defaults = { limits: {}, requests: {} }
  for (const { type, default: limits, defaultRequest } of spec?.limits ?? [])
    if (type === "Container") {
      Object.assign(found.limits, limits)
      Object.assign(found.requests, defaultRequest)
    }
  return found
}

function mergedContainer(container: Json, { limits, requests }: Defaults) {
  const own = container.resources ?? {}
  const missing = (which: "limits" | "requests", defaults: Record<string, string>) =>
    Object.keys(defaults).filter(name => own[which]?.[name] === undefined)
  const added = [
    ["request", missing("requests", requests)],
    ["limit", missing("limits", limits)],
  ] as const
  if (added.every(([, names]) => names.length === 0)) return { container, added }
  const resources = {
    ...own,
    ...(Object.keys(limits).length > 0 && { limits: { ...limits, ...own.limits } }),
    ...(Object.keys(requests).length > 0 && { requests: { ...requests, ...own.requests } }),
  }
  return { container: { ...container, resources }, added }
}

/** Why a LimitRange refuses a pod; undefined if it does not. */
export function podRefusal(pod: Json, { spec }: Obj): string | undefined {
  const problems: string[] = []
  for (const limit of spec?.limits ?? []) {
    if (limit.type === "Container")
      for (const { resources } of [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])])
        problems.push(...violations(limit, quantities(resources?.requests), quantities(resources?.limits)))
    if (limit.type === "Pod") problems.push(...violations(limit, podTotal(pod, "requests"), podTotal(pod, "limits")))
  }
  return aggregate(problems)
}

/** Why a LimitRange refuses a claim; undefined if it does not. */
export function claimRefusal(claim: Json, { spec }: Obj): string | undefined {
  const requests = quantities(claim.spec?.resources?.requests)
  const problems: string[] = []
  for (const { type, min, max } of spec?.limits ?? []) {
    if (type !== "PersistentVolumeClaim") continue
    for (const [name, enforced] of Object.entries(quantities(min)))
      problems.push(...minimum({ type, name, enforced, request: requests[name], limit: undefined }))
    for (const [name, enforced] of Object.entries(quantities(max)))
      problems.push(...maximumOfRequest({ type, name, enforced, request: requests[name], limit: undefined }))
  }
  return aggregate(problems)
}

const aggregate = (problems: readonly string[]): string | undefined => {
  const distinct = [...new Set(problems)]
  return distinct.length > 1 ? `[${distinct.join(", ")}]` : distinct[0]
}

function violations({ type, min, max, maxLimitRequestRatio }: Json, requests: Quantities, limits: Quantities) {
  const each = (list: Json, check: (bound: Bound) => string[]) =>
    Object.entries(quantities(list)).flatMap(([name, enforced]) =>
      check({ type, name, enforced, request: requests[name], limit: limits[name] }),
    )
  return [...each(min, minimum), ...each(max, maximum), ...each(maxLimitRequestRatio, ratio)]
}

type Bound = {
  type: string
  name: string
  enforced: Quantity
  request: Quantity | undefined
  limit: Quantity | undefined
}

function minimum({ type, name, enforced, request, limit }: Bound): string[] {
  const begin = `minimum ${name} usage per ${type} is ${formatQuantity(enforced)}`
  if (!request) return [`${begin}.  No request is specified`]
  if (request.nano < enforced.nano) return [`${begin}, but request is ${formatQuantity(request)}`]
  if (limit && limit.nano < enforced.nano) return [`${begin}, but limit is ${formatQuantity(limit)}`]
  return []
}

function maximum(bound: Bound): string[] {
  const { type, name, enforced, request, limit } = bound
  const begin = `maximum ${name} usage per ${type} is ${formatQuantity(enforced)}`
  if (!limit) return [`${begin}.  No limit is specified`]
  if (limit.nano > enforced.nano) return [`${begin}, but limit is ${formatQuantity(limit)}`]
  return request ? maximumOfRequest(bound) : []
}

function maximumOfRequest({ type, name, enforced, request }: Bound): string[] {
  const begin = `maximum ${name} usage per ${type} is ${formatQuantity(enforced)}`
  if (!request) return [`${begin}.  No request is specified`]
  return request.nano > enforced.nano ? [`${begin}, but request is ${formatQuantity(request)}`] : []
}

function ratio({ type, name, enforced, request, limit }: Bound): string[] {
  const begin = `${name} max limit to request ratio per ${type} is ${formatQuantity(enforced)}`
  if (!request || request.nano === 0n) return [`${begin}, but no request is specified or request is 0`]
  if (!limit || limit.nano === 0n) return [`${begin}, but no limit is specified or limit is 0`]
  const is = Number(limit.nano) / Number(request.nano)
  return is * 1000 > Number(enforced.nano) / 1e6 ? [`${begin}, but provided ratio is ${is.toFixed(6)}`] : []
}
