import { agentControllers, usualLimits } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { formatInstant } from "#lib/instant.ts"
import { kubeletAnnotations, kubeletLabels } from "#runtime/cri/index.ts"
import { core, resourceOf } from "#runtime/resource.ts"
import { type FakeRuntime, fakeRuntime } from "./fake-runtime.ts"
import { type ProcessOptions, scenario, type World } from "./scenario.ts"

// One pod on one node, a runtime in memory, and a kubelet that does for this pod what a real one was seen to do.

const pods = core("pods", "Pod")
export const requests = resourceOf(ContainerRecreateRequest)
const namespace = "default"

export type Restarts = World & {
  runtime: FakeRuntime
  /** The controller's half. */
  manager(options?: ProcessOptions): ReturnType<World["run"]>
  /** The agent of the pod's node. */
  agent(options?: ProcessOptions & { stopsPerMinute?: number }): ReturnType<World["run"]>
  request(name: string, spec?: Json): Promise<void>
  of(name: string): Promise<Json>
  /** Waits until the request is complete. */
  completed(name: string, within?: string): Promise<Json>
  pod(): Promise<Json>
  /** IDs of containers that were stopped, in order. */
  stopped(): string[]
  /** IDs whose stop began before any request said so. */
  unannounced: string[]
}

export type PodOptions = {
  containers?: Record<string, { preStop?: Json; isStubborn?: boolean; graceSeconds?: number }>
  hasGate?: boolean
  spec?: Json
}

export async function restarts({ containers = { app: {}, sidecar: {} }, hasGate, spec }: PodOptions = {}) {
  const world = await scenario()
  const { clock } = world
  const runtime = fakeRuntime(clock)
  await world.apply(crdOf(ContainerRecreateRequest) as Json)
  await world.advance("1s")
  await world.apply({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-0", namespace },
    spec: {
      nodeName: "node-a",
      containers: Object.keys(containers).map(name => ({ name, image: "shop/web:1" })),
      ...(hasGate && { readinessGates: [{ conditionType: readinessGate }] }),
      ...spec,
    },
  })
  const { metadata } = await world.get(pods, "web-0", namespace)
  const counts = new Map<string, number>()

  function start(name: string): Json {
    const count = counts.get(name) ?? 0
    const id = `${name}-${count}`
    const { preStop, isStubborn = false, graceSeconds = 30 } = containers[name]!
    runtime.containers.set(id, {
      id,
      name,
      attempt: count,
      state: "Running",
      createdAt: clock.now(),
      labels: {
        [kubeletLabels.podName]: "web-0",
        [kubeletLabels.podNamespace]: namespace,
        [kubeletLabels.podUid]: metadata.uid,
        [kubeletLabels.containerName]: name,
      },
      annotations: {
        [kubeletAnnotations.terminationGracePeriod]: String(graceSeconds),
        ...(preStop && { [kubeletAnnotations.preStop]: JSON.stringify(preStop) }),
      },
      reason: "",
      message: "",
      image: "",
      imageRef: "",
      isStubborn,
    })
    return { state: { running: { startedAt: formatInstant(clock.now()) } }, ready: true, ...statusOf(name, count) }
  }
  const statusOf = (name: string, count: number) => ({
    name,
    image: "shop/web:1",
    imageID: "",
    containerID: `containerd://${name}-${count}`,
    restartCount: count,
  })
  const statuses = new Map(Object.keys(containers).map(name => [name, start(name)]))
  const tell = () =>
    world.client
      .patch(pods, { name: "web-0", namespace }, statusPatch([...statuses.values()]), { subresource: "status" })
      .catch(() => {})
  await tell()

  // Seen on a real kubelet: 0.9 s for the first restart; within ten minutes 10 s for the second, 20 s for the third.
  const restartedAt = new Map<string, number>()
  runtime.onEnd = ({ name, exitCode = 0, attempt }) => {
    const isSoon = clock.now() - (restartedAt.get(name) ?? -Infinity) < 600_000
    const waitMs = isSoon ? 10_000 * 2 ** (attempt - 1) : 900
    const terminated = { exitCode, finishedAt: formatInstant(clock.now()) }
    const message = `back-off ${waitMs / 1000}s restarting failed container=${name} pod=web-0`
    const state = isSoon ? { waiting: { reason: "CrashLoopBackOff", message } } : { terminated }
    statuses.set(name, { state, lastState: { terminated }, ready: false, ...statusOf(name, attempt) })
    void tell()
    const isRestarted = spec?.restartPolicy !== "OnFailure" || exitCode !== 0
    if (!isRestarted) return
    clock.after(waitMs, () => {
      counts.set(name, attempt + 1)
      restartedAt.set(name, clock.now())
      statuses.set(name, start(name))
      void tell()
    })
  }

  const unannounced: string[] = []
  runtime.onStop = id => {
    const isWritten = world.history.some(({ object }) =>
      object.status?.containerRecreateStates?.some(
        ({ containerID, stopTime }: Json) => containerID === `containerd://${id}` && stopTime !== undefined,
      ),
    )
    if (!isWritten) unannounced.push(id)
  }

  const story: Restarts = {
    ...world,
    unannounced,
    runtime,
    manager: options => world.run([createContainerRecreateRequestController()], options),
    agent({ stopsPerMinute = usualLimits.stopsPerMinute, ...options } = {}) {
      const caller = {
        get isDead() {
          return process.isDead
        },
      }
      const node = { name: "node-a", runtime: runtime.connect(caller) }
      const process = world.run(agentControllers(node, { stopsPerMinute }), options)
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
    pod: () => world.get(pods, "web-0", namespace),
    stopped: () => runtime.calls.filter(call => call.startsWith("stop")).map(call => call.split(" ")[1]!),
  }
  return story
}

const statusPatch = (containerStatuses: readonly Json[]) => ({
  type: "merge" as const,
  body: { status: { phase: "Running", containerStatuses } },
})
