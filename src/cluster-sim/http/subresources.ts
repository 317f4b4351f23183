import { formatInstant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { badRequest, conflict } from "../apiserver/refusals.ts"
import type { Name } from "../apiserver/storage.ts"
import type { Auth } from "../auth/index.ts"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Answer, json, text } from "./answer.ts"
import { evict } from "./eviction.ts"
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
