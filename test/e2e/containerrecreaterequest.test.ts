import { beforeAll, expect, onTestFinished, test } from "vitest"
import { agentControllers, runAgent } from "#agent/index.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { rulesFor } from "#cli/manifests/rules.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { connect } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { connectRuntime } from "#runtime/cri/index.ts"
import { runManager } from "#runtime/manager.ts"
import { systemRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import {
  floor,
  type Json,
  kubeconfigFor,
  onRealNode,
  quickEnd,
  realNode,
  serviceAccountAccess,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"

// Containers of a real kubelet are restarted through a real containerd. Manager and agent have the rights that their
// code declares and no others.

const { plural, apiVersion, kind } = ContainerRecreateRequest
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
let image: string

beforeAll(async () => {
  const definition = crdOf(ContainerRecreateRequest)
  await floor().api.apply(`${crds}/${definition.metadata.name}`, definition)
  await until("the kind is served", () => floor().api.find(`/apis/${apiVersion}/${plural}`))
  image = (await floor().pushImage("restart:v1")).reference
})

const surroundings = { clock: systemClock, random: systemRandom, log: silentLogger }
const connectRuntimeOfNode = () => connectRuntime({ socketPath: floor().containerdSocket })

async function accountTransport(namespace: string, name: string, permissions: Parameters<typeof rulesFor>[0]) {
  const access = await serviceAccountAccess(namespace, name, rulesFor(permissions))
  return (await connect({ kubeconfig: kubeconfigFor(access) })).transport
}

function ending(start: (signal: AbortSignal) => Promise<number>) {
  const stop = new AbortController()
  const ended = start(stop.signal)
  const end = async () => {
    stop.abort()
    await ended
  }
  onTestFinished(end)
  return end
}

/** A namespace with a manager; an agent is started by the test. */
async function begin() {
  const namespace = await uniqueNamespace()
  const manager = createContainerRecreateRequestController()
  const transport = await accountTransport(namespace, "manager", manager.permissions)
  ending(signal => runManager({ ...surroundings, transport, controllers: [manager], leaderElect: false, signal }))
  const { api } = floor()
  const pod = () => api.get(`/api/v1/namespaces/${namespace}/pods/web`)
  const requests = `/apis/${apiVersion}/namespaces/${namespace}/${plural}`
  let agents = 0
  return {
    namespace,
    pod,
    async agent() {
      const node = { name: realNode, runtime: connectRuntimeOfNode() }
      const permissions = agentControllers(node).flatMap(controller => controller.permissions)
      const transport = await accountTransport(namespace, `agent-${agents++}`, permissions)
      return ending(signal => runAgent({ ...surroundings, node, transport, signal, graceMs: 0 }))
    },
    async start(containers: Json[], spec: Json = {}) {
      const all = containers.map(container => ({ image, ...container }))
      await api.create(`/api/v1/namespaces/${namespace}/pods`, {
        metadata: { name: "web" },
        spec: { ...onRealNode, ...quickEnd, containers: all, ...spec },
      })
      return until("the pod is ready", async () => {
        const found = await pod()
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
    completed: (name: string) =>
      until(`request ${name} is complete`, async () => {
        const found = await api.get(`${requests}/${name}`)
        return found.status?.phase === "Completed" ? found : undefined
      }),
  }
}

const containerOf = ({ status }: Json, name: string): Json =>
  status.containerStatuses.find((container: Json) => container.name === name)
const readyOf = ({ status }: Json): Json => status.conditions.find(({ type }: Json) => type === "Ready")
const shell = (script: string) => ["/bin/sh", "-c", script]
const polite = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"
const stubborn = "trap '' TERM; while :; do sleep 1; done"

test("one of two containers is restarted; the pod, its volumes and the other container stay", async () => {
  const story = await begin()
  await story.agent()
  const script = `echo start >>/data/starts; echo "starts $(wc -l </data/starts)"; ls /mark; touch /mark; cat /data/hook; ${polite}`
  const app = {
    name: "app",
    command: shell(script),
    volumeMounts: [{ name: "data", mountPath: "/data" }],
    lifecycle: { preStop: { exec: { command: shell("echo preStop >/data/hook") } } },
  }
  const before = await story.start([app, { name: "sidecar" }], { volumes: [{ name: "data", emptyDir: {} }] })
  await story.request("restart", ["app"])
  const request = await story.completed("restart")
  expect(readyOf(request)).toMatchObject({ status: "True", reason: "Succeeded" })
  const after = await story.pod()
  expect(containerOf(after, "app")).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 0 } } })
  expect(containerOf(after, "sidecar")).toEqual(containerOf(before, "sidecar"))
  expect([after.metadata.uid, after.status.podIP]).toEqual([before.metadata.uid, before.status.podIP])
  expect(request.status.containerStatusSnapshot).toMatchObject([
    { name: "app", ready: true, restartCount: 1, containerID: containerOf(after, "app").containerID },
  ])
  const log = await floor().kubectlRun("logs", "-n", story.namespace, "web", "-c", "app")
  // The volume is the same, the files of the container are new, and preStop ran before it ended.
  expect(log).toContain("starts 2")
  expect(log).toContain("preStop")
  expect(log).not.toMatch(/^\/mark$/m)
})

test("the grace period is kept to the second, and ordered containers come one after the other", async () => {
  const story = await begin()
  await story.agent()
  await story.start([{ name: "stubborn", command: shell(stubborn) }, { name: "next" }])
  const strategy = { orderedRecreate: true, terminationGracePeriodSeconds: 4 }
  await story.request("restart", ["stubborn", "next"], { strategy })
  const { status } = await story.completed("restart")
  expect(status.containerRecreateStates.map(({ phase }: Json) => phase)).toEqual(["Succeeded", "Succeeded"])
  const pod = await story.pod()
  const { terminated } = containerOf(pod, "stubborn").lastState
  expect(terminated.exitCode).toBe(137)
  const [first, second] = status.containerRecreateStates.map(({ stopTime }: Json) => Date.parse(stopTime))
  const tookMs = Date.parse(terminated.finishedAt) - first
  // finishedAt is in whole seconds.
  expect(tookMs).toBeGreaterThan(2900)
  expect(tookMs).toBeLessThan(5500)
  expect(second).toBeGreaterThan(Date.parse(containerOf(pod, "stubborn").state.running.startedAt))
})

test("an agent killed during a stop: the next one ends it for the same container, with what is left", async () => {
  const story = await begin()
  const kill = await story.agent()
  const before = await story.start([{ name: "stubborn", command: shell(stubborn) }])
  await story.request("restart", ["stubborn"], { strategy: { terminationGracePeriodSeconds: 8 } })
  await until("the stop has begun", async () => (await story.of("restart")).status?.containerRecreateStates[0].stopTime)
  await kill()
  expect(containerOf(await story.pod(), "stubborn").state).toHaveProperty("running")
  await story.agent()
  const { status } = await story.completed("restart")
  expect(status.containerRecreateStates[0]).toMatchObject({
    phase: "Succeeded",
    containerID: containerOf(before, "stubborn").containerID,
  })
  const { restartCount, lastState } = containerOf(await story.pod(), "stubborn")
  expect(restartCount).toBe(1)
  const tookMs = Date.parse(lastState.terminated.finishedAt) - Date.parse(status.containerRecreateStates[0].stopTime)
  expect(tookMs).toBeGreaterThan(6900)
  expect(tookMs).toBeLessThan(11_000)
})

test("preStop sleep runs, and a second restart reports the kubelet's back-off", async () => {
  const story = await begin()
  await story.agent()
  const lifecycle = { preStop: { sleep: { seconds: 3 } } }
  await story.start([{ name: "app", command: shell(polite), lifecycle }], { terminationGracePeriodSeconds: 20 })
  await story.request("first", ["app"])
  const { status } = await story.completed("first")
  const { finishedAt } = containerOf(await story.pod(), "app").lastState.terminated
  expect(Date.parse(finishedAt) - Date.parse(status.containerRecreateStates[0].stopTime)).toBeGreaterThan(1900)
  await story.request("second", ["app"])
  const waiting = await until("the back-off is reported", async () => {
    const ready = readyOf(await story.of("second"))
    return ready?.reason === "WaitingForBackOff" ? ready : undefined
  })
  expect(waiting.message).toMatch(/waits with its start until \d{4}-/)
  expect(readyOf(await story.completed("second")).status).toBe("True")
})

test("what needs another object is reported within a second", async () => {
  const story = await begin()
  await story.start([{ name: "app" }], { initContainers: [{ name: "setup", image, command: ["true"] }] })
  await floor().api.create(`/api/v1/namespaces/${story.namespace}/pods`, {
    metadata: { name: "waiting" },
    spec: { schedulerName: "none", containers: [{ name: "app", image }] },
  })
  const began = Date.now()
  await story.request("wrong", ["nothing"])
  await story.request("init", ["setup"])
  await story.request("missing", ["app"], { podName: "nothing" })
  await story.request("unscheduled", ["app"], { podName: "waiting" })
  expect(readyOf(await story.completed("wrong")).message).toContain("write one of app")
  expect(readyOf(await story.completed("init")).reason).toBe("InitContainer")
  expect(readyOf(await story.completed("missing")).reason).toBe("PodNotFound")
  expect(readyOf(await story.completed("unscheduled")).reason).toBe("PodNotScheduled")
  expect(Date.now() - began).toBeLessThan(3000)
})
