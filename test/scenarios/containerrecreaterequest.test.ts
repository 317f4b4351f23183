import { describe, expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import type { Json } from "#cluster-sim/index.ts"
import { core } from "#runtime/resource.ts"
import { podOf, type Restarts, requests, restarts } from "#test/support/restart-story.ts"

const pods = core("pods", "Pod")
const gateOf = ({ status }: Json): Json | undefined =>
  status?.conditions?.find(({ type }: Json) => type === readinessGate)
const readyOf = ({ status }: Json) => status.conditions.find(({ type }: Json) => type === "Ready")
const containerID = ({ status }: Json) => status.containerStatuses[0].containerID
const both = { containers: [{ name: "app" }, { name: "sidecar" }] }

async function begin(...options: Parameters<typeof restarts>): Promise<Restarts> {
  const story = await restarts(...options)
  story.manager()
  story.agent()
  return story
}

test("one of two containers is restarted, and nothing else of the pod changes", async () => {
  const story = await begin()
  const before = await story.pod()
  await story.request("restart")
  const request = await story.completed("restart")
  const after = await story.pod()
  expect(readyOf(request)).toMatchObject({ status: "True", reason: "Succeeded" })
  expect(request.status).toMatchObject({
    phase: "Completed",
    nodeName: "node-a",
    podUID: before.metadata.uid,
    containerRecreateStates: [{ name: "app", phase: "Succeeded", isKilled: true, containerID: containerID(before) }],
    containerStatusSnapshot: [{ name: "app", ready: true, restartCount: 1, containerID: containerID(after) }],
  })
  expect(after.metadata.uid).toBe(before.metadata.uid)
  expect(after.spec).toEqual(before.spec)
  expect(after.status.podIP).toBe(before.status.podIP)
  expect(containerID(after)).not.toBe(containerID(before))
  expect(after.status.containerStatuses[1]).toEqual(before.status.containerStatuses[1])
  expect(story.stopped()).toEqual(["app-0"])
})

test("a request costs at most four writes, and one more for each further container", async () => {
  const writes = async (spec: Json) => {
    const story = await begin()
    await story.request("restart", spec)
    await story.completed("restart")
    await story.advance("1m")
    return story.history.filter(({ object }) => object.kind === "ContainerRecreateRequest").length - 1
  }
  expect(await writes({})).toBeLessThanOrEqual(4)
  expect(await writes(both)).toBeLessThanOrEqual(5)
  expect(await writes({ ...both, strategy: { orderedRecreate: true } })).toBeLessThanOrEqual(5)
})

test("ordered: the next container is stopped when the one before is ready again", async () => {
  const story = await begin()
  await story.request("restart", { ...both, strategy: { orderedRecreate: true } })
  await story.until("the second stop", () => story.stopped().length === 2)
  expect((await story.pod()).status.containerStatuses[0]).toMatchObject({ name: "app", restartCount: 1, ready: true })
  await story.completed("restart")
  expect(story.stopped()).toEqual(["app-0", "sidecar-0"])
})

test("preStop is the one that the kubelet wrote on the container, and its time counts", async () => {
  const story = await begin({
    containers: { app: { preStop: { sleep: { seconds: 5 } }, isStubborn: true } },
    graceSeconds: 12,
  })
  const asked = story.clock.now()
  await story.request("restart")
  await story.until("the stop", () => story.stopped().length === 1)
  expect(story.clock.now() - asked).toBeGreaterThanOrEqual(5000)
  expect(story.calls).toContain("stopContainer app-0 7")
  await story.completed("restart")
})

test("preStop exec runs in the container, for as long as the grace period lasts", async () => {
  const story = await begin({ containers: { app: { preStop: { exec: { command: ["drain", "now"] } } } } })
  await story.request("restart", { strategy: { terminationGracePeriodSeconds: 9 } })
  await story.completed("restart")
  expect(story.calls.filter(call => /exec|stop/.test(call))).toEqual([
    "execSync app-0 9 drain now",
    "stopContainer app-0 9",
  ])
})

test("a second request for the same container joins the first, one for another container follows", async () => {
  const story = await begin({ containers: { app: { isStubborn: true }, sidecar: {} }, graceSeconds: 20 })
  await story.request("first")
  await story.until("the stop", () => story.stopped().length === 1)
  await story.request("second", both)
  await story.advance("1s")
  expect(readyOf(await story.of("second"))).toMatchObject({ reason: "Queued" })
  const second = await story.completed("second")
  expect(readyOf(second).reason).toBe("Succeeded")
  expect(readyOf(await story.of("first")).reason).toBe("Succeeded")
  expect(story.stopped()).toEqual(["app-0", "sidecar-0"])
})

test("a forced second request does not join", async () => {
  const story = await begin({ containers: { app: {} } })
  await story.request("first")
  await story.request("second", { strategy: { forceRecreate: true } })
  await story.completed("second")
  expect(story.stopped()).toEqual(["app-0", "app-1"])
})

test("a second restart soon after waits for the kubelet's back-off, and says until when", async () => {
  const story = await begin()
  await story.request("first")
  await story.completed("first")
  await story.request("second")
  await story.until("the back-off", async () => readyOf(await story.of("second"))?.reason === "WaitingForBackOff")
  expect(readyOf(await story.of("second")).message).toMatch(/app: the kubelet waits with its start until 2026-01-01T/)
  expect(readyOf(await story.completed("second")).status).toBe("True")
})

test("a node without an agent: AgentMissing after a minute, and nothing is stopped later", async () => {
  const story = await restarts()
  story.manager()
  await story.request("restart")
  await story.advance("59s")
  expect(readyOf(await story.of("restart")).reason).toBe("WaitingForAgent")
  const request = await story.completed("restart", "5s")
  expect(readyOf(request)).toMatchObject({ status: "False", reason: "AgentMissing" })
  story.agent()
  await story.advance("5m")
  expect(story.stopped()).toEqual([])
})

test("the limit of a node: the request is answered as waiting, and goes on later", async () => {
  const story = await restarts()
  story.manager()
  story.agent({ stopsPerMinute: 1 })
  await story.request("restart", both)
  await story.advance("10s")
  expect(readyOf(await story.of("restart"))).toMatchObject({ reason: "WaitingForLimit" })
  await story.advance("45s")
  expect(story.stopped()).toEqual(["app-0"])
  expect(readyOf(await story.completed("restart")).reason).toBe("Succeeded")
  expect(story.stopped()).toEqual(["app-0", "sidecar-0"])
})

test("the deadline fails what is unfinished", async () => {
  const story = await begin({ containers: { app: { isStubborn: true }, sidecar: {} }, graceSeconds: 60 })
  await story.request("restart", { ...both, activeDeadlineSeconds: 10 })
  const request = await story.completed("restart", "11s")
  expect(readyOf(request)).toMatchObject({ status: "False", reason: "DeadlineExceeded" })
  expect(request.status.containerRecreateStates.map(({ phase }: Json) => phase)).toEqual(["Failed", "Failed"])
  await story.advance("10m")
  expect(story.stopped()).toEqual(["app-0"])
})

test("an agent killed during a stop: the next one repeats it for the same ID, with what is left", async () => {
  const story = await restarts({ containers: { app: { isStubborn: true } }, graceSeconds: 30 })
  story.manager()
  const first = story.agent()
  await story.request("restart")
  await story.until("the stop", () => story.stopped().length === 1)
  await story.advance("10s")
  first.die()
  await story.advance("5s")
  story.agent()
  expect(readyOf(await story.completed("restart")).reason).toBe("Succeeded")
  expect(story.calls.filter(call => call.startsWith("stop"))).toEqual([
    "stopContainer app-0 30",
    "stopContainer app-0 15",
  ])
})

test("the gate: not ready before and during, ready after; also when the request is deleted half-way", async () => {
  const story = await begin({ hasGate: true })
  const gate = async () =>
    (await story.pod()).status.conditions?.find(({ type }: Json) => type === readinessGate)?.status
  await story.until("the gate of a new pod to be True", async () => (await gate()) === "True", "5s")
  await story.request("restart", { strategy: { unreadyGracePeriodSeconds: 5 } })
  await story.advance("4s")
  expect(await gate()).toBe("False")
  expect(story.stopped()).toEqual([])
  await story.completed("restart")
  expect(story.stopped()).toEqual(["app-0"])
  await story.advance("1s")
  expect(await gate()).toBe("True")

  await story.request("another", { strategy: { unreadyGracePeriodSeconds: 60 } })
  await story.advance("2s")
  expect(await gate()).toBe("False")
  await story.client.delete(requests, { name: "another", namespace: "default" })
  await story.advance("2s")
  expect(await gate()).toBe("True")
})

describe("S26: a pod that was created again under the same name is not the one of the request", () => {
  // The request drains its pod, or an agent is stopping a container of it, when the pod is replaced.
  const moments: Record<string, { seconds: number; hasAgent: boolean }> = {
    "while it drains": { seconds: 600, hasAgent: true },
    "while a container is stopped": { seconds: 1, hasAgent: true },
    "before an agent has answered": { seconds: 1, hasAgent: false },
  }
  for (const [moment, { seconds, hasAgent }] of Object.entries(moments))
    for (const isManagerAway of [false, true])
      test(`${moment}${isManagerAway ? ", the manager being away" : ""}`, async () => {
        const containers = { app: { isStubborn: true }, sidecar: {} }
        const story = await restarts({ containers, hasGate: true, graceSeconds: 60 })
        const manager = story.manager()
        if (hasAgent) story.agent()
        await story.until("the pod is ready", async () => gateOf(await story.pod())?.status === "True")
        const first = await story.pod()
        await story.request("restart", { strategy: { unreadyGracePeriodSeconds: seconds } })
        await story.until("it is under way", async () => gateOf(await story.pod())?.status === "False")
        await story.advance("10s")
        const stopped = story.stopped()
        if (isManagerAway) manager.die()
        await story.client.delete(pods, { name: "web-0", namespace: "default" })
        await story.until("it is gone", async () => (await story.list(pods)).length === 0)
        await story.apply(podOf({ containers, hasGate: true, graceSeconds: 60 }))
        await story.until("it runs again", async () => (await story.pod()).status?.phase === "Running")
        if (!hasAgent) story.agent()
        if (isManagerAway) story.manager()
        const { status } = await story.completed("restart")
        await story.advance("2m")
        const second = await story.pod()
        expect(second.metadata.uid).not.toBe(first.metadata.uid)
        expect(readyOf({ status })).toMatchObject({ status: "False", reason: "PodGone" })
        expect(status.podUID).toBe(first.metadata.uid)
        expect(second.status.containerStatuses.map(({ restartCount }: Json) => restartCount)).toEqual([0, 0])
        // A stop of the first pod's container may be repeated, for its ID.
        const ids = new Set(
          story.record.calls!.filter(({ method }) => method === "stopContainer").map(call => call.podUid),
        )
        ids.delete("")
        expect([...ids]).toEqual(stopped.length > 0 ? [first.metadata.uid] : [])
        const gates = story.history.flatMap(({ object }) =>
          object.metadata.uid === second.metadata.uid ? (gateOf(object)?.status ?? []) : [],
        )
        expect(new Set(gates)).toEqual(new Set(["True"]))
      })
})

test("a request is deleted when its time to live has passed", async () => {
  const story = await begin()
  await story.request("restart", { ttlSecondsAfterFinished: 30 })
  await story.completed("restart")
  await story.advance("29s")
  expect(await story.list(requests)).toHaveLength(1)
  await story.advance("2s")
  expect(await story.list(requests)).toHaveLength(0)
})

test("a container of another pod is never stopped, whatever the status says", async () => {
  const story = await restarts()
  await story.apply(podOf({ name: "db-0", containers: { app: {} } }))
  await story.until("the other pod runs", async () => (await story.pod("db-0")).status.phase === "Running")
  const manager = story.manager()
  await story.request("restart")
  await story.until("it is handed over", async () => (await story.of("restart")).status?.phase === "Recreating")
  manager.die()
  const { status } = await story.of("restart")
  const [recorded] = status.containerRecreateStates
  const forged = { ...recorded, containerID: containerID(await story.pod("db-0")) }
  await story.client.patch(
    requests,
    { name: "restart", namespace: "default" },
    { type: "merge", body: { status: { containerRecreateStates: [forged] } } },
    { subresource: "status" },
  )
  story.agent()
  const answer = async () => (await story.of("restart")).status.containerRecreateStates[0]
  await story.until("the agent answers", async () => (await answer()).phase !== "Pending")
  expect(await answer()).toMatchObject({
    phase: "Failed",
    message: `${forged.containerID} is not a container of this pod`,
  })
  expect(story.stopped()).toEqual([])
})

test("one wrong request does not delay another", async () => {
  const story = await begin()
  await story.request("wrong", { podName: "nowhere" })
  await story.request("restart")
  await story.advance("1s")
  expect(readyOf(await story.of("wrong"))).toMatchObject({ reason: "PodNotFound", status: "False" })
  expect(readyOf(await story.completed("restart", "5s")).status).toBe("True")
})
