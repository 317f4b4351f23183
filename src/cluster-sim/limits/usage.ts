import { parseInstant } from "#lib/instant.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import { pieces, podTotal, type Quantities, quantities } from "./quantities.ts"

/** How much one object uses of the ResourceQuotas of its namespace, by kind, as the server's evaluators count it. */

type Place = Pick<ServedKind, "group" | "plural">

/** Kinds that quotas also count by their bare name. */
const bare = new Set([
  "configmaps",
  "persistentvolumeclaims",
  "pods",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "services",
])

const countName = ({ group, plural }: Place) => (group ? `count/${plural}.${group}` : `count/${plural}`)

/** Resources of pods that a quota names with or without the prefix `requests.`. */
const computed = ["cpu", "memory", "ephemeral-storage"]

const isExtended = (name: string) => name.includes("/")

/** The usage of this object, by the names that a quota may limit. */
export function usageOf(kind: Place, object: Json, nowMs: number): Quantities {
  const counted: Quantities = { [countName(kind)]: pieces(1) }
  if (kind.group !== "") return counted
  if (kind.plural === "pods") return isCharged(object, nowMs) ? { ...counted, ...podUsage(object) } : counted
  if (bare.has(kind.plural)) counted[kind.plural] = pieces(1)
  if (kind.plural === "services") Object.assign(counted, serviceUsage(object))
  if (kind.plural === "persistentvolumeclaims") Object.assign(counted, claimUsage(object))
  return counted
}

/** A pod that has ended, or whose grace period is over, uses nothing any more. */
function isCharged({ metadata, status }: Json, nowMs: number): boolean {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return false
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return true
  return nowMs <= (parseInstant(deletionTimestamp) ?? nowMs)
}

const podUsage = (pod: Json): Quantities => ({
  pods: pieces(1),
  ...computeUsage(podTotal(pod, "requests"), podTotal(pod, "limits")),
})

/** Requests and limits by the names that quotas use. */
function computeUsage(requests: Quantities, limits: Quantities): Quantities {
  const usage: Quantities = {}
  for (const [name, quantity] of Object.entries(requests)) {
    if (computed.includes(name) || name.startsWith("hugepages-")) usage[name] = quantity
    if (computed.includes(name) || name.startsWith("hugepages-") || isExtended(name))
      usage[`requests.${name}`] = quantity
  }
  for (const name of computed) if (limits[name]) usage[`limits.${name}`] = limits[name]
  return usage
}

function serviceUsage({ spec = {} }: Json): Quantities {
  const ports: Json[] = spec.ports ?? []
  const isBalanced = spec.type === "LoadBalancer"
  const open =
    spec.type === "NodePort" || (isBalanced && spec.allocateLoadBalancerNodePorts !== false)
      ? ports.length
      : isBalanced
        ? ports.filter(({ nodePort }) => nodePort).length
        : 0
  return { "services.loadbalancers": pieces(isBalanced ? 1 : 0), "services.nodeports": pieces(open) }
}

function claimUsage({ spec = {}, metadata }: Json): Quantities {
  const { storage } = quantities(spec.resources?.requests)
  const storageClass = metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? spec.storageClassName
  const usage: Quantities = storage ? { "requests.storage": storage } : {}
  if (!storageClass) return usage
  const prefix = `${storageClass}.storageclass.storage.k8s.io`
  usage[`${prefix}/persistentvolumeclaims`] = pieces(1)
  if (storage) usage[`${prefix}/requests.storage`] = storage
  return usage
}

/** Whether a quota that limits this name counts objects of this kind. */
export function countsKind(name: string, kind: Place): boolean {
  if (name === countName(kind)) return true
  if (kind.group !== "") return false
  if (name === kind.plural) return bare.has(name)
  if (kind.plural === "services") return name === "services.loadbalancers" || name === "services.nodeports"
  if (kind.plural === "persistentvolumeclaims")
    return name === "requests.storage" || name.includes(".storageclass.storage.k8s.io/")
  if (kind.plural !== "pods") return false
  const resource = name.replace(/^(requests|limits)\./, "")
  return computed.includes(resource) || resource.startsWith("hugepages-") || /^requests\..*\//.test(name)
}

const scopes: Record<string, (pod: Json, values: readonly string[], operator: string) => boolean> = {
  Terminating: ({ spec }) => spec.activeDeadlineSeconds !== undefined,
  NotTerminating: ({ spec }) => spec.activeDeadlineSeconds === undefined,
  BestEffort: pod => isBestEffort(pod),
  NotBestEffort: pod => !isBestEffort(pod),
  PriorityClass({ spec: { priorityClassName: name = "" } }, values, operator) {
    if (operator === "Exists") return name !== ""
    if (operator === "DoesNotExist") return name === ""
    return operator === "In" ? values.includes(name) : !values.includes(name)
  },
  CrossNamespacePodAffinity: ({ spec }) =>
    ["podAffinity", "podAntiAffinity"].some(field => {
      const { requiredDuringSchedulingIgnoredDuringExecution: must = [], ...rest } = spec.affinity?.[field] ?? {}
      const may = (rest.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((each: Json) => each.podAffinityTerm)
      return [...must, ...may].some(term => term.namespaces?.length > 0 || term.namespaceSelector)
    }),
}

const isBestEffort = ({ spec }: Json) =>
  [...(spec.containers ?? []), ...(spec.initContainers ?? [])].every(({ resources = {} }: Json) =>
    [...Object.entries(resources.requests ?? {}), ...Object.entries(resources.limits ?? {})].every(
      ([name]) => name !== "cpu" && name !== "memory",
    ),
  )

/** Whether an object is in a quota's scopes. Only pods have scopes here. */
export function isInScope({ spec = {} }: Obj, kind: Place, object: Json): boolean {
  const named = [
    ...(spec.scopes ?? []).map((scopeName: string) => ({ scopeName, operator: "Exists", values: [] })),
    ...(spec.scopeSelector?.matchExpressions ?? []),
  ]
  if (named.length === 0) return true
  if (kind.group !== "" || kind.plural !== "pods") return false
  return named.every(({ scopeName, operator, values = [] }) => scopes[scopeName]?.(object, values, operator) ?? false)
}

/** The compute resources that every container must name once a quota limits them. */
const explicit = new Set(["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"])

/** The resources that a quota requires and a pod's containers do not name, in the server's words. */
export function missingFor(pod: Json, limited: readonly string[]): string | undefined {
  const required = limited.filter(name => explicit.has(name))
  const missing = new Map<string, string[]>()
  for (const { name, resources = {} } of [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])]) {
    const given = computeUsage(quantities(resources.requests), quantities(resources.limits))
    for (const resource of required)
      if (!given[resource]) missing.set(resource, [...(missing.get(resource) ?? []), name])
  }
  if (missing.size === 0) return undefined
  const parts = [...missing].sort(([a], [b]) => (a < b ? -1 : 1))
  return `must specify ${parts.map(([resource, names]) => `${resource} for: ${names.sort().join(",")}`).join("; ")}`
}
