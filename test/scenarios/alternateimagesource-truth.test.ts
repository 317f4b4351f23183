import { expect, test } from "vitest"
import {
  Deployments,
  deployment,
  failover,
  ghcr,
  hub,
  pushEverywhere,
  quay,
  source,
} from "#test/support/failover-story.ts"

// What the status says is so: of the image that the workload names now, of workloads that are there, of pods that run.

const quayIsDown = "registries: {quay.io: {fault: refused}}"
const three = { imageSourceReplacements: [{ equivalentRepositories: [quay, hub, ghcr] }] }
const imageNow = (image: string) => ({
  spec: { template: { spec: { containers: [{ name: "basic-demo", image }] } } },
})

test("an incident does not move to another image that the workload is given while repaired pods are still there", async () => {
  const { world, untilRunning, target, condition } = await failover({ description: quayIsDown })
  await world.apply(source(three), deployment("demo", `${quay}:1`))
  expect(await untilRunning(3)).toEqual(Array(3).fill(`${hub}:1`))
  await world.patch(Deployments, "demo", imageNow(`${ghcr}:1`), "default")
  await world.until("the rollout", async () => (await untilRunning(3)).every(image => image === `${ghcr}:1`))
  await world.advance("2h")
  expect(await target("demo")).toMatchObject({ currentRepository: ghcr })
  expect(await target("demo")).not.toHaveProperty("incident")
  expect(await condition("Switched")).toMatchObject({ status: "False" })
  expect(await condition("Ready")).toMatchObject({ status: "True", reason: "Watching" })
})

test("a repaired workload that is deleted leaves nothing behind in the status", async () => {
  const { world, untilRunning, status, condition, pods } = await failover({ description: quayIsDown })
  await world.apply(source(), deployment("demo", `${quay}:1`))
  await untilRunning(3)
  await world.client.delete(Deployments, { name: "demo", namespace: "default" })
  await world.until("the pods to go", async () => (await pods()).length === 0)
  await world.settle()
  expect(await status()).toMatchObject({ targetsAvailable: [], targets: 0, switched: 0, incidents: 0 })
  const told = world.history.flatMap(({ object }) => object.status?.targetsAvailable ?? [])
  expect(new Set(told.map(({ type }) => type.kind)), "not even in between").toEqual(new Set(["deployment"]))
  expect(await condition("Ready")).toMatchObject({ status: "True", reason: "Watching" })
})

test("a repaired pod of a kind that is not read leaves nothing behind either", async () => {
  const { world, untilRunning, status } = await failover({ description: quayIsDown })
  const owner = { apiVersion: "shop.example/v1", kind: "Store", name: "berlin", uid: "7f0c0f0e", controller: true }
  const metadata = { name: "berlin-0", namespace: "default", ownerReferences: [owner] }
  const spec = { containers: [{ name: "basic-demo", image: `${quay}:1` }] }
  await world.apply(source(), { apiVersion: "v1", kind: "Pod", metadata, spec })
  await untilRunning(1)
  await world.settle()
  expect(await status()).toMatchObject({ switched: 1, targetsAvailable: [{ name: "berlin", currentRepository: hub }] })
  await world.client.delete({ group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true }, metadata)
  await world.settle()
  expect(await status()).toMatchObject({ targetsAvailable: [], targets: 0, switched: 0 })
})

test("after the way back, the status says where the pods run from until they are made anew", async () => {
  const { world, registries, untilRunning, target, condition } = await failover({ description: quayIsDown })
  await world.apply(source({ policy: { switchBack: "WhenHealthy" } }), deployment("demo", `${quay}:1`))
  expect(await untilRunning(3)).toEqual(Array(3).fill(`${hub}:1`))
  registries.setFault("quay.io", undefined)
  pushEverywhere(registries, "1")
  await world.until(
    "the way back",
    async () => (await target("demo"))?.switches?.at(-1)?.reason === "SwitchedBack",
    "2h",
  )
  await world.settle()
  expect(await untilRunning(3)).toEqual(Array(3).fill(`${hub}:1`))
  expect(await target("demo")).toMatchObject({ currentRepository: hub })
  expect(await target("demo")).not.toHaveProperty("incident")
  expect(await condition("Switched")).toMatchObject({ status: "True", reason: "SwitchedBack" })
  expect(await condition("Ready")).toMatchObject({ status: "True", reason: "SwitchedBack" })

  const restarted = { spec: { template: { metadata: { annotations: { restarted: "now" } } } } }
  await world.patch(Deployments, "demo", restarted, "default")
  await world.until("new pods", async () => (await untilRunning(3)).every(image => image === `${quay}:1`))
  await world.settle()
  expect(await target("demo")).toMatchObject({ currentRepository: quay })
  expect(await condition("Switched")).toMatchObject({ status: "False" })
  expect(await condition("Ready")).toMatchObject({ status: "True", reason: "Watching" })
})

test("containers that start elsewhere and crash there are reported, and a restart in between does not hide it", async () => {
  const { world, registries, untilReason, condition, target } = await failover({ description: quayIsDown })
  // Nothing is known of the bits, so nothing could be compared: the mirror has others.
  registries.push(`${hub}:1`, { exits: { afterMs: 1000, exitCode: 3 } })
  await world.apply(source(), deployment("demo", `${quay}:1`))
  await untilReason("CrashLoop")
  expect(await condition("Ready")).toMatchObject({ status: "False" })
  expect((await condition("Ready"))!.message).toMatch(
    /deployment\/demo .* crashed there: container basic-demo exited with 3/,
  )
  expect(await condition("Stalled")).toMatchObject({ status: "False" })
  expect(await target("demo")).toMatchObject({ currentRepository: hub })
  await world.advance("1m")
  const { length } = world.history
  await world.advance("20m")
  const later = world.history.slice(length).filter(({ object }) => object.kind === "AlternateImageSource")
  for (const { object } of later)
    expect(object.status.conditions.find((each: { type: string }) => each.type === "Ready").status).toBe("False")
})
