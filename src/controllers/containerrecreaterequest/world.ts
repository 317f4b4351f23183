import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { Holds } from "#core/holds.ts"
import { podFieldSelector } from "#core/pods/pod-facts.ts"
import { compareVersions } from "#lib/resource-version.ts"
import type { Cache, Projected } from "#runtime/cache/cache.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf, nameOf } from "#runtime/resource.ts"
import { watchGrants } from "../grants.ts"
import { type ContainerRecreateRequestMetrics, createContainerRecreateRequestMetrics } from "./metrics.ts"
import { listsGate, type PodFacts, readPod } from "./pod.ts"
import { openFor } from "./requests.ts"
import { pods } from "./resources.ts"

/** Facts only of pods that a request or our readiness gate concerns: a cluster has many more. */
type Seen = Projected & { readonly facts?: PodFacts }

/** What all requests of a process share. */
export type World = Pick<Wiring, "client" | "clock" | "enqueue" | "enqueueAfter"> & {
  requests: Cache<Held<ContainerRecreateRequest>>
  /** The newest that is known of a pod. */
  pod(podKey: string): PodFacts | undefined
  /** Reads the pod from the server unless it is known. */
  look(podKey: string): Promise<void>
  /** Takes the server's answer to a write of ours, which counts until the watch shows it or something newer. */
  wrote(podKey: string, pod: KubeObject): void
  /** Pods whose readiness gate the server refuses to let us write. */
  holds: Holds<"Forbidden" | "Refused">
  metrics: ContainerRecreateRequestMetrics
}

/** The key under which a pod is looked at for its gate. A request has no `/` at the end. */
export const gateKey = (podKey: string) => `${podKey}/`

export function openWorld(wiring: Wiring, requests: Cache<Held<ContainerRecreateRequest>>): World {
  const { client, clock, enqueue, enqueueAfter } = wiring
  const fetched = new Map<string, PodFacts>()
  const isConcerned = (podKey: string) => openFor(requests, podKey).length > 0
  const project = (object: KubeObject): Seen => {
    const { resourceVersion = "" } = object.metadata
    const isRead = listsGate(object) || isConcerned(keyOf(object.metadata))
    return isRead ? { resourceVersion, facts: readPod(object) } : { resourceVersion }
  }
  const cache = wiring.watch<Seen>(pods, { project, fieldSelector: podFieldSelector })
  const holds: World["holds"] = new Holds()

  cache.subscribe(({ key, before, after }) => {
    const read = fetched.get(key)
    const isShown = after?.facts && read && compareVersions(read.resourceVersion, after.resourceVersion) <= 0
    if (!after || isShown) fetched.delete(key)
    for (const request of openFor(requests, key)) enqueue(keyOf(request.metadata))
    if ((after ?? before)?.facts?.gate) enqueue(gateKey(key))
  })
  // Whatever a request does may be the turn of the next one for the same pod, or the end of a drain.
  requests.subscribe(({ before, after }) => {
    const { namespace, name } = (after ?? before)!.object.metadata
    const podKey = keyOf({ namespace, name: (after ?? before)!.object.spec.podName })
    const others = openFor(requests, podKey).filter(({ metadata }) => metadata.name !== name)
    for (const { metadata } of others) enqueue(keyOf(metadata))
    if ((cache.get(podKey)?.facts ?? fetched.get(podKey))?.gate) enqueue(gateKey(podKey))
    if (others.length === 0 && (!after || after.object.status?.phase === "Completed")) fetched.delete(podKey)
  })
  watchGrants(wiring, namespace => {
    for (const podKey of holds.release(namespace)) enqueue(gateKey(podKey))
  })

  /** What was read from the server counts as long as the cache shows nothing newer. */
  function known(podKey: string): PodFacts | undefined {
    const seen = cache.get(podKey)
    const read = fetched.get(podKey)
    if (!read || !seen) return seen?.facts ?? read
    const isOlder = compareVersions(read.resourceVersion, seen.resourceVersion) < 0
    return isOlder ? seen.facts : read
  }

  return {
    client,
    clock,
    enqueue,
    enqueueAfter,
    requests,
    holds,
    metrics: createContainerRecreateRequestMetrics(wiring.metrics),
    pod: known,
    wrote(podKey, pod) {
      const facts = readPod(pod)
      const seen = cache.get(podKey)
      // The pod was deleted meanwhile: no event would remove its facts again.
      if (!seen && !fetched.has(podKey)) return
      if (!seen?.facts || compareVersions(facts.resourceVersion, seen.resourceVersion) > 0) fetched.set(podKey, facts)
    },
    async look(podKey) {
      if (known(podKey)) return
      try {
        fetched.set(podKey, readPod(await client.get(pods, nameOf(podKey))))
      } catch (error) {
        if (!isFailure(error, "NotFound")) throw error
        fetched.delete(podKey)
      }
    },
  }
}
