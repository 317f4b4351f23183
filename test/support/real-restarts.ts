import { agentPermissions, runAgent } from "#agent/index.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { sleep, systemClock } from "#runtime/clock.ts"
import type { Permission } from "#runtime/controller.ts"
import { connectRuntime } from "#runtime/cri/index.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { floor, type Json, onRealNode, quickEnd, realNode, uniqueNamespace, until } from "./floor.ts"
import { surroundings, transportFor, untilTestEnds } from "./in-process.ts"

/** Restarts on the real node: the manager's controller and an agent, each with the rights that its code declares. */

const { plural, apiVersion, kind } = ContainerRecreateRequest
const recording: Permission = { resource: events, verbs: ["create", "patch"] }
/** How soon an agent that ended is started again. */
const againMs = 500

export const containerOf = ({ status }: Json, name: string): Json =>
  status.containerStatuses.find((container: Json) => container.name === name)
export const stateOf = ({ status }: Json, name: string): Json =>
  status.containerRecreateStates.find((state: Json) => state.name === name)

/** Commands of containers. */
export const shell = (script: string) => ["/bin/sh", "-c", script]
export const polite = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
export const stubborn = "trap '' TERM; while :; do sleep 1; done"

const connectNode = () => connectRuntime({ socketPath: floor().containerdSocket })

/** From the beginning of a stop to the end of the container, by the node's clock, as the runtime recorded it. */
export async function tookMs({ containerID, stopTime }: Json): Promise<number> {
  const runtime = connectNode()
  try {
    const ended = await runtime.containerStatus(containerID.replace("containerd://", ""))
    return (ended?.finishedAt ?? 0) - Date.parse(stopTime)
  } finally {
    runtime.close()
  }
}

/** A namespace with a manager; an agent is started by the test. */
export async function beginRestarts(image: string) {
  const namespace = await uniqueNamespace()
  const manager = createContainerRecreateRequestController()
  const transport = await transportFor(namespace, "manager", [...manager.permissions, recording])
  untilTestEnds(signal =>
    runManager({ ...surroundings, transport, controllers: [manager], leaderElect: false, signal }),
  )
  const { api } = floor()
  const pods = `/api/v1/namespaces/${namespace}/pods`
  const pod = (name = "web") => api.get(`${pods}/${name}`)
  const requests = `/apis/${apiVersion}/namespaces/${namespace}/${plural}`
  let agents = 0
  return {
    namespace,
    pod,
    /** Started again whenever it ends by itself, as the kubelet does; the returned function ends it for good. */
    async agent() {
      const transport = await transportFor(namespace, `agent-${agents++}`, agentPermissions)
      return untilTestEnds(async signal => {
        while (!signal.aborted) {
          const node = { name: realNode, runtime: connectNode() }
          await runAgent({ ...surroundings, node, transport, signal, graceMs: 0 })
          await sleep(systemClock, againMs, signal).catch(() => {})
        }
        return 0
      })
    },
    async start(containers: Json[], spec: Json = {}, name = "web") {
      const all = containers.map(container => ({ image, ...container }))
      await api.create(pods, { metadata: { name }, spec: { ...onRealNode, ...quickEnd, containers: all, ...spec } })
      return until("the pod is ready", async () => {
        const found = await pod(name)
        return found.status.containerStatuses?.every(({ ready }: Json) => ready) ? found : undefined
      })
    },
    request: (name: string, containers: string[], spec: Json = {}) =>
      api.create(requests, {
        apiVersion,
        kind,
        metadata: { name },
        spec: { podName: "web", containers: containers.map(each => ({ name: each })), ...spec },
      }),
    of: (name: string) => api.get(`${requests}/${name}`),
    stopHasBegun: (name: string) =>
      until("the stop has begun", async () => {
        const { status } = await api.get(`${requests}/${name}`)
        return status?.containerRecreateStates[0].stopTime
      }),
    completed: (name: string): Promise<Json> =>
      until(`request ${name} is complete`, async () => {
        const found = await api.get(`${requests}/${name}`)
        return found.status?.phase === "Completed" ? found : undefined
      }),
  }
}
