import { expect, test } from "vitest"
import {
  containers,
  Deployments,
  deployment,
  digest,
  failover,
  hub,
  quay,
  source,
} from "#test/support/failover-story.ts"

// Stories of registries that fail, in virtual time, with pods that really try to pull.

test("a registry that is down is passed by, in place: the same pods, and the workload as it was", async () => {
  const { untilRunning, pods, target, world } = await failover({
    description: "registries: {quay.io: {fault: refused}}",
  })
  await world.apply(source(), deployment("demo3-basic-demo", `${quay}:1`))
  await world.until("three pods", async () => (await pods()).length === 3)
  const uids = (await pods()).map(({ metadata }) => metadata.uid)
  expect(await untilRunning(3, "10m")).toEqual(Array(3).fill(`${hub}:1`))
  expect((await pods()).map(({ metadata }) => metadata.uid)).toEqual(uids)
  await world.settle()
  expect(await target("demo3-basic-demo")).toMatchObject({ currentRepository: hub, switches: [{ pods: 3 }] })
})

test("an image that takes long to pull is waited for: what the kubelet tells meanwhile is about the repository before", async () => {
  const { world, registries, untilRunning, target } = await failover({
    description: "registries: {quay.io: {fault: refused}}",
  })
  registries.setSpeed("docker.io", { bytesPerSecond: 150_000 }) // five and a half minutes
  const equivalentRepositories = [quay, hub, "ghcr.io/demo/app"]
  await world.apply(source({ imageSourceReplacements: [{ equivalentRepositories }] }), deployment("slow", `${quay}:1`))
  expect(await untilRunning(3)).toEqual(Array(3).fill(`${hub}:1`))
  await world.settle()
  expect((await target("slow"))?.switches).toHaveLength(1)
})

test("nothing outside its namespace is touched, whatever it is called", async () => {
  const { world, pods } = await failover({ description: "registries: {quay.io: {fault: refused}}" })
  const elsewhere = deployment("demo", `${quay}:1`, { metadata: { namespace: "other" }, spec: { replicas: 1 } })
  await world.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "other" } },
    source(),
    elsewhere,
    deployment("demo", `${quay}:1`, { spec: { replicas: 1 } }),
  )
  const isThere = async () => (await pods()).some(({ status }) => status.phase === "Running")
  await world.until("one to run", isThere)
  await world.advance("10m")
  const images = (await pods()).map(({ metadata, spec }) => [metadata.namespace, spec.containers[0].image])
  expect(Object.fromEntries(images)).toEqual({ default: `${hub}:1`, other: `${quay}:1` })
})

test("a container that has run is left alone: another image would restart it", async () => {
  const { world, registries, pods, target, untilRunning } = await failover()
  registries.push(`${quay}:1`, { digest: digest("1"), exits: { afterMs: 600_000, exitCode: 1 } })
  registries.push(`${hub}:1`, { digest: digest("1") })
  const pod = { containers: [{ ...containers(`${quay}:1`).containers[0], imagePullPolicy: "Always" }] }
  await world.apply(source(), deployment("demo", `${quay}:1`, { pod, spec: { replicas: 1 } }))
  await untilRunning(1)
  registries.setFault("quay.io", { kind: "refused" })
  const reason = async () => (await pods())[0]?.status.containerStatuses[0].state.waiting?.reason
  await world.until("it to fail", async () => (await reason()) === "ImagePullBackOff")
  await world.advance("30m")
  expect((await pods())[0]?.spec.containers[0].image).toBe(`${quay}:1`)
  expect(await target("demo")).not.toHaveProperty("switches")
})

test("a template that was changed in vain does not go back to what was bad", async () => {
  const { world, untilReason } = await failover({
    description: "registries: {quay.io: {fault: refused}, docker.io: {fault: refused}}",
    says: () => ({ ok: true, digest: digest("1"), mediaType: "" }),
  })
  // With Recreate there are moments in which nobody fails.
  const spec = { strategy: { type: "Recreate" } }
  await world.apply(source({ policy: { apply: "Template" } }), deployment("demo", `${quay}:1`, { spec }))
  await untilReason("AllSourcesDown")
  await world.advance("3h")
  const templates = world.history
    .filter(({ object }) => object.kind === "Deployment")
    .map(({ object }) => object.spec.template.spec.containers[0].image)
  expect([...new Set(templates)]).toEqual([`${quay}:1`, `${hub}:1`])
  expect((await world.get(Deployments, "demo", "default")).spec.template.spec.containers[0].image).toBe(`${hub}:1`)
})
