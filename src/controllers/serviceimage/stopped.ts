import { namesOf } from "#api/names.ts"
import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Stopped } from "#core/pods/steady.ts"
import type { Projected } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type KubeObject, keyOf, resourceOf } from "#runtime/resource.ts"

export const containerRecreateRequests = resourceOf(namesOf("ContainerRecreateRequest"))

/** A ContainerRecreateRequest, reduced to the containers that it has stopped. */
type Request = Projected & {
  readonly pod: string
  /** Another pod of the same name is not concerned. */
  readonly podUid: string
  readonly containers: readonly { readonly id: string; readonly name: string }[]
}

export type StoppedContainers = { of(podKey: string, podUid: string): Stopped; close(): void }

/**
 * The containers that ContainerRecreateRequests have stopped, by pod. Where the kind is not installed the list never
 * arrives, and nothing waits for it. Calls back with a pod of which one more was stopped, or whose request is gone.
 */
export function openStopped({ watch }: Pick<Wiring, "watch">, onChange: (podKey: string) => void): StoppedContainers {
  const requests = watch<Request>(containerRecreateRequests, {
    project: readRequest,
    indexes: { pod: ({ pod, containers }) => (containers.length > 0 ? [pod] : []) },
  })
  requests.subscribe(({ before, after }) => {
    const [was, is] = [before?.containers.length ?? 0, after?.containers.length ?? 0]
    if (was !== is) onChange((after ?? before)!.pod)
  })
  return {
    of(podKey, podUid) {
      const found = [...requests.keysBy("pod", podKey)].map(key => requests.get(key)!)
      return new Map(
        found
          .filter(request => request.podUid === podUid)
          .flatMap(({ containers }) => containers.map(({ id, name }) => [id, name])),
      )
    },
    close: () => requests.close(),
  }
}

const none: Request["containers"] = []

/** The agent writes the beginning of a stop before it stops the container: from then on the end is a requested one. */
function readRequest(object: KubeObject): Request {
  const { metadata, spec, status } = object as ContainerRecreateRequest
  const states = (status?.containerRecreateStates ?? []).filter(({ stopTime }) => stopTime !== undefined)
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    pod: keyOf({ namespace: metadata.namespace, name: spec.podName }),
    podUid: status?.podUID ?? "",
    containers: states.length > 0 ? states.map(({ containerID, name }) => ({ id: containerID, name })) : none,
  }
}
