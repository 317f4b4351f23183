import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { controllerOf } from "#core/pods/pod-facts.ts"
import type { DisruptionBudget, RestartPod, RestartRequest } from "#core/pods/restart.ts"
import { parseInstant } from "#lib/instant.ts"
import type { LabelSelector } from "#lib/label-selector.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { standingOf } from "#runtime/standing.ts"

/** The label of requests that one restart made. */
export const restartLabel = "autoimagemanager.io/restart"

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = any

/** The pods of a workload, also where a ReplicaSet is between them. */
export function podsOf(
  target: KubeObject | undefined,
  pods: Iterable<KubeObject>,
  replicaSets: Iterable<KubeObject> = [],
): KubeObject[] {
  const { uid } = target?.metadata ?? {}
  if (uid === undefined) return []
  const owners = new Set([uid])
  for (const { metadata } of replicaSets) if (controllerOf(metadata) === uid) owners.add(metadata.uid ?? "")
  return [...pods].filter(({ metadata }) => metadata.uid === uid || owners.has(controllerOf(metadata)))
}

/** How many pods a workload should have. */
export function wantedOf(target: KubeObject | undefined): number {
  const { kind, spec, status } = (target ?? {}) as Json
  if (kind === "Pod") return 1
  if (kind === "DaemonSet") return status?.desiredNumberScheduled ?? 0
  return target ? (spec?.replicas ?? 1) : 0
}

export function readPod(object: KubeObject): RestartPod {
  const { metadata } = object
  const { status } = object as Json
  const ready = (status?.conditions ?? []).find(({ type }: Json) => type === "Ready")
  return {
    name: metadata.name,
    uid: metadata.uid ?? "",
    labels: metadata.labels ?? {},
    isReady: ready?.status === "True",
    isGoing: metadata.deletionTimestamp !== undefined || ["Succeeded", "Failed"].includes(status?.phase),
    createdAt: parseInstant(metadata.creationTimestamp) ?? 0,
  }
}

export type Read = RestartRequest & { reason: string; message: string }

/** A request, and what its controller says of it. For a pod by name, a pod that is gone is a failure. */
export function readRequest(object: KubeObject, id: string, isForPod: boolean): Read {
  const { metadata, spec, status } = object as ContainerRecreateRequest
  const { state, reason, message } = standingOf(object)
  const isGone = !isForPod && goneReasons.has(reason)
  const result =
    status?.phase !== "Completed" ? "Open" : state === "Ready" ? "Succeeded" : isGone ? "PodGone" : "Failed"
  return {
    name: metadata.name,
    pod: spec.podName,
    podUid: status?.podUID,
    isOurs: metadata.labels?.[restartLabel] === id,
    createdAt: parseInstant(metadata.creationTimestamp) ?? 0,
    result,
    reason,
    message,
  }
}

/** The pod went away: its successor has new containers. */
const goneReasons = new Set(["PodGone", "PodNotFound", "PodTerminating", "PodEnded"])

export function readBudget(object: KubeObject): DisruptionBudget {
  const { metadata } = object
  const { spec, status = {} } = object as Json
  return {
    name: metadata.name,
    selector: spec?.selector as LabelSelector | undefined,
    isCurrent: (status.observedGeneration ?? 0) >= (metadata.generation ?? 0),
    disruptionsAllowed: status.disruptionsAllowed ?? 0,
    mayBeDown: (status.expectedPods ?? 0) - (status.desiredHealthy ?? 0),
  }
}

/**
 * Requests as they are known: those of the watch, those that were just made and are not in the watch yet, and those
 * that were deleted since. A request that was deleted before it was complete has failed.
 */
export class KnownRequests {
  readonly #known = new Map<string, Read>()
  readonly #seen = new Set<string>()

  made(request: Read): void {
    if (!this.#seen.has(request.name)) this.#known.set(request.name, request)
  }

  look(current: readonly Read[]): Read[] {
    const names = new Set(current.map(({ name }) => name))
    for (const request of current) {
      this.#known.set(request.name, request)
      this.#seen.add(request.name)
    }
    for (const [name, request] of this.#known) {
      if (names.has(name) || !this.#seen.has(name)) continue
      if (!request.isOurs) this.#known.delete(name)
      else if (request.result === "Open")
        this.#known.set(name, { ...request, result: "Failed", reason: "Deleted", message: "the request was deleted" })
    }
    return [...this.#known.values()]
  }
}
