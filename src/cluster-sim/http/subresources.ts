import { formatInstant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Clock } from "#runtime/clock.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { badRequest, conflict } from "../apiserver/refusals.ts"
import type { Name } from "../apiserver/storage.ts"
import type { Auth } from "../auth/index.ts"
import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Answer, json, text } from "./answer.ts"
import { deleteOptions } from "./query.ts"
import { requestToken } from "./token-request.ts"

export type SubresourceCall = {
  storage: ServerStorage
  clock: Clock
  auth: Auth
  kind: ServedKind
  name: Name
  method: string
  query: URLSearchParams
  userAgent: string | undefined
  body: Json
}

/** Subresources other than status and scale. Undefined: there is no such subresource. */
export function callSubresource(subresource: string, call: SubresourceCall): Answer | undefined {
  const { method } = call
  if (subresource === "log" && method === "GET") return log(call)
  if (["exec", "attach", "portforward"].includes(subresource)) return noStreams(subresource, call)
  if (method !== "POST") return undefined
  if (subresource === "eviction") return evict(call)
  if (subresource === "binding") return bind(call)
  if (subresource === "token") return requestToken(call)
  return undefined
}

function log({ storage, kind, name, query }: SubresourceCall): Answer {
  const pod = storage.get(kind, name)
  const containers: Json[] = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])]
  const asked = query.get("container") || containers[0]?.name
  if (!containers.some(({ name: each }) => each === asked))
    throw badRequest(`container ${asked} is not valid for pod ${name.name}`)
  return text(
    `cluster-sim: container ${asked} of pod ${name.namespace}/${name.name} is simulated; it writes no logs.\n`,
  )
}

function noStreams(what: string, { storage, kind, name }: SubresourceCall): Answer {
  storage.get(kind, name)
  throw badRequest(
    `cluster-sim: ${what} needs a real container, and those of pod ${name.namespace}/${name.name} are simulated`,
  )
}

/** Deletes a pod if every budget that covers it allows one fewer. */
function evict({ storage, clock, kind, name, body }: SubresourceCall): Answer {
  const pod = storage.get(kind, name)
  const options = deleteOptions(new URLSearchParams(), body?.deleteOptions ?? {})
  const budgets = storage.kind("policy/v1", "PodDisruptionBudget")
  const isDone = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed" || pod.metadata.deletionTimestamp
  const covering = budgets
    ? storage
        .list(budgets, { namespace: name.namespace })
        .items.filter(({ spec }) => selects(spec?.selector, pod.metadata.labels))
    : []
  if (!isDone && covering.length > 1)
    throw new StatusError(
      500,
      "InternalError",
      "Internal error occurred: This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
      { causes: [] },
    )
  const [budget] = covering
  if (!isDone && budgets && budget) {
    const allowed = budget.status?.disruptionsAllowed ?? 0
    if (allowed <= 0) throw budgetSpent(budget)
    if (!options.dryRun) {
      const disruptedPods = { ...budget.status?.disruptedPods, [pod.metadata.name]: formatInstant(clock.now()) }
      const status = { ...budget.status, disruptionsAllowed: allowed - 1, disruptedPods }
      storage.update(budgets, { ...budget, status }, { ...own, subresource: "status" })
    }
  }
  if (!isDone && !options.dryRun) markDisrupted(storage, kind, pod, formatInstant(clock.now()))
  storage.delete(kind, name, { ...options, ...own })
  return json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }, 201)
}

/** Sets the condition that shows the pod's controller that the pod did not fail by itself. */
function markDisrupted(
  storage: SubresourceCall["storage"],
  kind: SubresourceCall["kind"],
  pod: Obj,
  now: string,
): void {
  const others = (pod.status?.conditions ?? []).filter(({ type }: Json) => type !== "DisruptionTarget")
  const why = { reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" }
  const target = { type: "DisruptionTarget", status: "True", lastProbeTime: null, lastTransitionTime: now, ...why }
  const status = { ...pod.status, conditions: [...others, target] }
  storage.update(kind, { ...pod, status }, { ...own, subresource: "status" })
}

/** Options of the server's own writes during an eviction. */
const own = { fieldManager: "kube-apiserver", asksNoPolicy: true }

function budgetSpent(budget: Obj): StatusError {
  const { name } = budget.metadata
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {}
  return new StatusError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", {
    causes: [
      {
        reason: "DisruptionBudget",
        message: `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
        field: "",
      },
    ],
  })
}

/** The scheduler's decision: a node for a pod that has none. */
function bind({ storage, clock, kind, name, body }: SubresourceCall): Answer {
  const pod = storage.get(kind, name)
  const node = body?.target?.name
  if (!node) throw new StatusError(500, "", "target.name: Required value")
  if (pod.metadata.deletionTimestamp)
    throw conflict(
      { group: "", plural: "pods/binding" },
      name.name,
      `pod ${name.name} is being deleted, cannot be assigned to a host`,
    )
  if (pod.spec?.nodeName)
    throw conflict(
      { group: "", plural: "pods/binding" },
      name.name,
      `pod ${name.name} is already assigned to node ${JSON.stringify(pod.spec.nodeName)}`,
    )
  const conditions = (pod.status?.conditions ?? []).filter(({ type }: Json) => type !== "PodScheduled")
  const lastTransitionTime = formatInstant(clock.now())
  const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime }
  const annotations = { ...pod.metadata.annotations, ...body?.metadata?.annotations }
  const bound = {
    ...pod,
    metadata: { ...pod.metadata, ...(Object.keys(annotations).length > 0 && { annotations }) },
    spec: { ...pod.spec, nodeName: node },
    status: { ...pod.status, conditions: [...conditions, scheduled] },
  }
  storage.update(kind, bound, { subresource: "binding", fieldManager: "kube-scheduler" })
  return json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }, 201)
}
