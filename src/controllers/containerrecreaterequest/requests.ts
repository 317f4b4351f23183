import type { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { keyOf } from "#runtime/resource.ts"

type Requests = Pick<Cache<Held<ContainerRecreateRequest>>, "get" | "keysBy">

/** The pod of a request: `namespace/name`. */
export const podKeyOf = ({ metadata: { namespace }, spec: { podName } }: ContainerRecreateRequest) =>
  keyOf({ namespace, name: podName })

export const requestIndexes = { pod: ({ object }: Held<ContainerRecreateRequest>) => [podKeyOf(object)] }

/** The requests for a pod that are not complete, in the order of their turns. */
export function openFor(requests: Requests, podKey: string): ContainerRecreateRequest[] {
  return [...requests.keysBy("pod", podKey)]
    .map(key => requests.get(key)!.object)
    .filter(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase !== "Completed")
    .sort((a, b) => turnOf(a).localeCompare(turnOf(b)))
}

/** The same for one pod: a request that recorded another pod of this name does not concern it. */
export const openForPod = (requests: Requests, podKey: string, uid: string) =>
  openFor(requests, podKey).filter(({ status }) => (status?.podUID ?? uid) === uid)

/** A request that was handed over keeps its turn; the others come by age. */
const turnOf = ({ metadata: { creationTimestamp = "", name }, status }: ContainerRecreateRequest) =>
  `${status?.phase === "Recreating" ? 0 : 1} ${creationTimestamp} ${name}`

/** The request that comes before this one for the pod that is there now. */
export function aheadOf(requests: Requests, request: ContainerRecreateRequest, uid: string): string | undefined {
  const [first] = openForPod(requests, podKeyOf(request), uid)
  return first && first.metadata.name !== request.metadata.name ? first.metadata.name : undefined
}
