import type { ContainerRecreateRequest, ContainerState } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { Wiring } from "#runtime/controller.ts"
import { type ContainerRuntime, type ContainerStatus, type Recorded, recordedBy } from "#runtime/cri/index.ts"
import { createRecreateMetrics, type RecreateMetrics } from "./metrics.ts"
import { StopPace } from "./pace.ts"
import type { StopState } from "./plan.ts"

/** What all requests of a node share. */
export type World = Pick<Wiring, "clock" | "log" | "signal" | "enqueue" | "enqueueAfter"> & {
  node: string
  runtime: ContainerRuntime
  request(key: string): ContainerRecreateRequest | undefined
  pace: StopPace
  /** What the runtime showed at the last look, by request and container. */
  looks: Map<string, Map<string, Look>>
  /** Stops that this process has begun. Losing them costs a repeated stop of the same container. */
  stops: Map<string, StopState>
  metrics: RecreateMetrics
}

/** A container as the runtime shows it; `recorded` only where it runs and belongs to the pod. */
export type Look = { is: "Running"; recorded: Recorded } | { is: "Ended" } | { is: "Foreign" }

export const openWorld = (
  { clock, log, signal, enqueue, enqueueAfter, metrics }: Wiring,
  node: { name: string; runtime: ContainerRuntime },
  stopsPerMinute: number,
  request: World["request"],
): World => ({
  clock,
  log,
  signal,
  enqueue,
  enqueueAfter,
  node: node.name,
  runtime: node.runtime,
  request,
  pace: new StopPace(clock, stopsPerMinute),
  looks: new Map(),
  stops: new Map(),
  metrics: createRecreateMetrics(metrics),
})

export const stopKey = ({ metadata: { namespace, name, uid } }: ContainerRecreateRequest, container: string) =>
  `${namespace}/${name}/${uid}/${container}`

/** The runtime's ID: the API writes `containerd://ID`. */
export const runtimeId = (containerID: string) => containerID.replace(/^[a-z0-9.-]+:\/\//, "")

/** Looks at the recorded containers of a request that are not finished: one call for each. */
export async function lookAt(world: World, key: string, request: ContainerRecreateRequest): Promise<void> {
  const looks = new Map<string, Look>()
  for (const state of request.status?.containerRecreateStates ?? []) {
    if (state.phase === "Succeeded" || state.phase === "Failed") continue
    if (world.stops.get(stopKey(request, state.name))?.is === "UnderWay") continue
    const status = await world.runtime.containerStatus(runtimeId(state.containerID))
    looks.set(state.name, judge(status, state, request))
  }
  world.looks.set(key, looks)
}

/** A container counts only if the kubelet's own labels say that it belongs to the pod of the request. */
function judge(
  status: ContainerStatus | undefined,
  { name }: ContainerState,
  { metadata: { namespace }, spec, status: recordedStatus }: ContainerRecreateRequest,
): Look {
  if (!status) return { is: "Ended" }
  const recorded = recordedBy(status)
  const isOurs =
    recorded &&
    recorded.podUid === recordedStatus?.podUID &&
    recorded.podNamespace === namespace &&
    recorded.podName === spec.podName &&
    status.name === name
  if (!isOurs) return { is: "Foreign" }
  return status.state === "Exited" ? { is: "Ended" } : { is: "Running", recorded }
}
