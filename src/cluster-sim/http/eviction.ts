import { formatInstant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Clock } from "#runtime/clock.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Name } from "../apiserver/storage.ts"
import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Answer, json } from "./answer.ts"
import { type DeleteRequest, deleteOptions, writeOptions } from "./query.ts"

type Eviction = {
  storage: ServerStorage
  clock: Clock
  kind: ServedKind
  name: Name
  query: URLSearchParams
  userAgent: string | undefined
  body: Json
}

/** Options of the server's own writes during an eviction. */
const own = { fieldManager: "kube-apiserver", asksNoPolicy: true }

/** Deletes a pod if the budget that covers it allows one fewer. With a dry run the answer is all there is. */
export function evict(call: Eviction): Answer {
  const { storage, clock, kind, name } = call
  const options = optionsOf(call)
  const pod = storage.get(kind, name)
  const isGuarded = !isBeyondBudgets(pod)
  if (isGuarded) spendBudget(call, pod, options)
  // Its own deletion checks the preconditions, and an eviction checks them before it writes the condition.
  storage.delete(kind, name, { ...options, ...own, dryRun: true })
  if (!options.dryRun) {
    if (!pod.metadata.deletionTimestamp) markDisrupted(call, pod, formatInstant(clock.now()))
    const { preconditions: _, ...rest } = options
    storage.delete(kind, name, { ...rest, ...own })
  }
  return json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 }, 201)
}

/** A dry run may be asked for in the query, in the body, or in both. */
function optionsOf({ query, body, userAgent }: Eviction): DeleteRequest {
  const options = deleteOptions(new URLSearchParams(), body?.deleteOptions ?? {})
  const { dryRun } = writeOptions("Create", query, { userAgent })
  return { ...options, dryRun: Boolean(dryRun || options.dryRun) }
}

/** A pod that does not serve yet or any more is deleted whatever its budget. */
const isBeyondBudgets = ({ metadata, status }: Obj) =>
  ["Pending", "Succeeded", "Failed"].includes(status?.phase) || metadata.deletionTimestamp !== undefined

function spendBudget({ storage, clock, name }: Eviction, pod: Obj, { dryRun }: DeleteRequest): void {
  const budgets = storage.kind("policy/v1", "PodDisruptionBudget")
  if (!budgets) return
  const covering = storage
    .list(budgets, { namespace: name.namespace })
    .items.filter(({ spec }) => selects(spec?.selector, pod.metadata.labels))
  if (covering.length > 1)
    throw new StatusError(
      500,
      "",
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )
  const [budget] = covering
  if (!budget || isFree(budget, pod)) return
  const allowed = budget.status?.disruptionsAllowed ?? 0
  if ((budget.status?.observedGeneration ?? 0) < (budget.metadata.generation ?? 0)) throw budgetUnknown(budget)
  if (allowed <= 0) throw budgetSpent(budget)
  if (dryRun) return
  const disruptedPods = { ...budget.status?.disruptedPods, [pod.metadata.name]: formatInstant(clock.now()) }
  const status = { ...budget.status, disruptionsAllowed: allowed - 1, disruptedPods }
  storage.update(budgets, { ...budget, status }, { ...own, subresource: "status" })
}

/** A pod that is not ready costs nothing, if its budget says so or has enough healthy pods without it. */
function isFree({ spec, status = {} }: Obj, pod: Obj): boolean {
  const isReady = pod.status?.conditions?.some(({ type, status: is }: Json) => type === "Ready" && is === "True")
  if (isReady) return false
  const { currentHealthy = 0, desiredHealthy = 0 } = status
  return spec?.unhealthyPodEvictionPolicy === "AlwaysAllow" || (desiredHealthy > 0 && currentHealthy >= desiredHealthy)
}

/** Sets the condition that shows the pod's controller that the pod did not fail by itself. */
function markDisrupted({ storage, kind }: Eviction, pod: Obj, now: string): void {
  const others = (pod.status?.conditions ?? []).filter(({ type }: Json) => type !== "DisruptionTarget")
  const why = { reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" }
  const target = { type: "DisruptionTarget", status: "True", lastProbeTime: null, lastTransitionTime: now, ...why }
  const status = { ...pod.status, conditions: [...others, target] }
  storage.update(kind, { ...pod, status }, { ...own, subresource: "status" })
}

const tooMany = (message: string, budget: Obj, why: string, retryAfterSeconds?: number) =>
  new StatusError(429, "TooManyRequests", message, {
    causes: [
      { reason: "DisruptionBudget", message: `The disruption budget ${budget.metadata.name} ${why}`, field: "" },
    ],
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })

function budgetSpent(budget: Obj): StatusError {
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {}
  return tooMany(
    "Cannot evict pod as it would violate the pod's disruption budget.",
    budget,
    `needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
  )
}

/** Its controller has not looked at the budget yet, so what the status says is of another one. */
const budgetUnknown = (budget: Obj) =>
  tooMany(
    "Cannot evict pod as it would violate the pod's disruption budget.",
    budget,
    "is still being processed by the server.",
    10,
  )
