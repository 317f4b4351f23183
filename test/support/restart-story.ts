import { agentControllers, usualLimits } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { everyPart, type Json, openRegistries, type SimulatedNode } from "#cluster-sim/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { type CallFault, loggedRuntime } from "./runtime-log.ts"
import { type ProcessOptions, scenario, type World } from "./scenario.ts"

// One pod on one simulated node: its kubelet starts again what the agent stops through the node's container runtime.

const pods = core("pods", "Pod")
export const requests = resourceOf(ContainerRecreateRequest)
const namespace = "default"
const nodeName = "node-a"
const host = "registry.example.com"

export type Restarts = World & {
  runtime: SimulatedNode["runtime"]
  /** The controller's half. */
  manager(options?: ProcessOptions): ReturnType<World["run"]>
  /** The agent of the pod's node. */
  agent(options?: ProcessOptions & { stopsPerMinute?: number; fault?: CallFault | undefined }): ReturnType<World["run"]>
  request(name: string, spec?: Json): Promise<void>
  of(name: string): Promise<Json>
  /** Waits until the request is complete. */
  completed(name: string, within?: string): Promise<Json>
  /** By default the pod of the requests. */
  pod(name?: string): Promise<Json>
  /** What the agents asked of the runtime for containers, in order: `stopContainer app-0 30`, `execSync app-0 9 drain`. */
  readonly calls: readonly string[]
  /** Containers that were stopped, in order: `app-0` is the first container of that name, `app-1` the next. */
  stopped(): string[]
  /** Containers whose stop began before any request had it in its status. */
  readonly unannounced: readonly string[]
}

export type PodOptions = {
  name?: string
  containers?: Record<string, { preStop?: Json; isStubborn?: boolean }>
  graceSeconds?: number
  hasGate?: boolean
}

export async function restarts(options: PodOptions = {}): Promise<Restarts> {
  const { containers = { app: {}, sidecar: {} } } = options
  const registries = openRegistries(0)
  for (const [name, { isStubborn = false }] of Object.entries(containers))
    registries.push(`${host}/${name}:1`, { ignoresTerm: isStubborn })
  const world = await scenario({ parts: everyPart({ nodes: [{ name: nodeName }], registries }) })
  await world.apply(crdOf(ContainerRecreateRequest) as Json)
  await world.advance("1s")
  await world.apply(podOf({ ...options, containers }))
  const pod = (name = "web-0") => world.get(pods, name, namespace)
  await world.until("the pod runs", async () => (await pod()).status.phase === "Running")
  const { runtime } = world.cluster.node(nodeName)!

  const story: Restarts = {
    ...world,
    runtime,
    ...listenTo(runtime, world),
    manager: options => world.run([createContainerRecreateRequestController()], options),
    agent({ stopsPerMinute = usualLimits.stopsPerMinute, fault, ...options } = {}) {
      const connection = runtime.connectMounted()
      // The calls of a process end with it.
      const dies = { ...options.dies, onDeath: () => connection.close() }
      const log = { world, node: { name: nodeName, uid: "" }, agent: () => process, fault }
      const logged = loggedRuntime(connection, log)
      const process = world.run(agentControllers({ name: nodeName, runtime: logged }, { stopsPerMinute }), {
        ...options,
        dies,
      })
      return process
    },
    request: (name, fields = {}) =>
      world.apply({
        apiVersion: ContainerRecreateRequest.apiVersion,
        kind: ContainerRecreateRequest.kind,
        metadata: { name, namespace },
        spec: { podName: "web-0", containers: [{ name: "app" }], ...fields },
      }),
    of: name => world.get(requests, name, namespace),
    async completed(name, within = "10m") {
      const isComplete = async () => (await story.of(name)).status?.phase === "Completed"
      await world.until(`request ${name} to be complete`, isComplete, within)
      return story.of(name)
    },
    pod,
    stopped: () => story.calls.filter(call => call.startsWith("stop")).map(call => call.split(" ")[1]!),
  }
  return story
}

/** What arrives at the runtime, by the names of containers. */
function listenTo(runtime: SimulatedNode["runtime"], { history }: World) {
  const calls: string[] = []
  const unannounced: string[] = []
  runtime.onCall(({ method, id = "", graceSeconds, timeoutSeconds, command = [] }) => {
    if (method !== "stopContainer" && method !== "execSync") return
    const { name, restartCount } = runtime.containers.find(id) ?? { name: id, restartCount: "?" }
    const label = `${name}-${restartCount}`
    calls.push([method, label, graceSeconds ?? timeoutSeconds, ...command].join(" "))
    if (method === "stopContainer" && !isAnnounced(history, id)) unannounced.push(label)
  })
  return { calls, unannounced }
}

/** Whether a request has ever had the beginning of this stop in its status. */
const isAnnounced = (history: World["history"], id: string) =>
  history.some(({ object }) =>
    object.status?.containerRecreateStates?.some(
      ({ containerID, stopTime }: Json) => containerID === `containerd://${id}` && stopTime !== undefined,
    ),
  )

/** A pod of the node. */
export const podOf = ({ name = "web-0", containers = {}, graceSeconds = 30, hasGate }: PodOptions): Json => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: graceSeconds,
    containers: Object.entries(containers).map(([name, { preStop }]) => ({
      ...{ name, image: `${host}/${name}:1` },
      ...(preStop && { lifecycle: { preStop } }),
    })),
    ...(hasGate && { readinessGates: [{ conditionType: readinessGate }] }),
  },
})
