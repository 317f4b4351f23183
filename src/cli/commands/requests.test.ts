import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { restartFleet } from "#test/support/restart-fleet.ts"
import { printed } from "#test/support/typed.ts"
import { Failure } from "../command.ts"

// get, why and wait of ContainerRecreateRequests, on a simulated cluster with agents.

const request = (name: string, pod: Json, spec: object = {}) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ContainerRecreateRequest",
  metadata: { name, namespace: "shop" },
  spec: { podName: pod.metadata.name, containers: [{ name: "app" }], ...spec },
})

test("wait returns when the containers are ready again, and get and why say that they are", async () => {
  const fleet = await restartFleet({ replicas: 1 })
  const [pod] = (await fleet.pods()) as [Json]
  await fleet.apply(request("first", pod))
  const wait = await fleet.type("aim wait crr/first -n shop --timeout 5m")
  expect(await wait.outcome()).toEqual({
    text: "crr/first -n shop Ready (Succeeded: 1 container recreated)\n",
    exitCode: 0,
  })
  expect(await fleet.restarts()).toEqual([[1, 0]])
  expect(await printed(fleet, "aim get crr -n shop")).toMatch(
    /^NAME +STATE +REASON +POD +NODE +AGE\nfirst +Ready +Succeeded +web-\S+ +node-\d +\d+s\n$/,
  )
  expect(await printed(fleet, "aim get crr/first -n shop -o name")).toBe(
    "containerrecreaterequest.autoimagemanager.io/first\n",
  )
  expect(await printed(fleet, "aim why crr/first -n shop")).toMatch(
    /^Succeeded {2}since .*\n1 container recreated. Every container was recreated and is ready.\n$/,
  )
})

test("why says behind which request one waits, and until when the kubelet waits", async () => {
  const fleet = await restartFleet({ replicas: 1 })
  const [pod] = (await fleet.pods()) as [Json]
  await fleet.apply(request("first", pod))
  await (await fleet.type("aim wait crr/first -n shop")).outcome()
  await fleet.apply(request("second", pod))
  await fleet.advance("1s")
  await fleet.apply(request("third", pod, { containers: [{ name: "sidecar" }] }))
  await fleet.until("the back-off", async () => {
    const found = (await fleet.requests()).find(({ metadata }) => metadata.name === "second")
    return found?.status?.conditions?.[0]?.reason === "WaitingForBackOff"
  })
  expect(await printed(fleet, "aim why crr/second -n shop")).toMatch(
    /^WaitingForBackOff .*\n0 of 1 container recreated on node node-\d; app: the kubelet waits with its start until 2026-\S+ \(clock of the node\). /,
  )
  expect(await printed(fleet, "aim why crr/third -n shop")).toMatch(
    /^Queued .*\nwaits for request second, which is for the same pod. /,
  )
  expect(await printed(fleet, "aim get crr -n shop")).toMatch(
    /first +Ready +Succeeded .*\nsecond +NotReady +WaitingForBackOff .*\nthird +NotReady +Queued /,
  )
})

test("without an agent, wait fails with the reason, and why names the node and what to do", async () => {
  const fleet = await restartFleet({ replicas: 1, hasAgents: false })
  const [pod] = (await fleet.pods()) as [Json]
  await fleet.apply(request("first", pod))
  const wait = await fleet.type("aim wait crr/first -n shop")
  await fleet.advance("20s")
  const node = pod.spec.nodeName
  expect(await printed(fleet, "aim why crr/first -n shop")).toContain(`the agent of node ${node} has not answered yet`)
  expect(await wait.outcome()).toHaveProperty("error", expect.any(Failure))
  const missing = `no agent has answered on node ${node} within 60 s; see: aim manifests agent`
  expect(wait.said).toContain(
    `crr/first -n shop NotReady (WaitingForAgent: the agent of node ${node} has not answered yet)`,
  )
  expect(await printed(fleet, "aim wait crr/first -n shop")).toBe(
    `crr/first -n shop Stalled (AgentMissing: ${missing})`,
  )
  expect(await printed(fleet, "aim why crr/first -n shop")).toMatch(/^AgentMissing /)
  expect(await printed(fleet, "aim why crr/first -n shop")).toContain(missing)
})

test("a request that is not there is missing, with the name that was meant", async () => {
  const fleet = await restartFleet({ replicas: 1, hasAgents: false })
  const [pod] = (await fleet.pods()) as [Json]
  await fleet.apply(request("first", pod))
  for (const command of ["get", "wait"])
    expect(await printed(fleet, `aim ${command} crr/frist -n shop`)).toBe(
      "there is no ContainerRecreateRequest frist in namespace shop; did you mean crr/first?",
    )
  expect(await printed(fleet, "aim why crr/frist -n shop")).toBe(
    "there is no ContainerRecreateRequest frist in namespace shop; did you mean first?",
  )
})
