import { expect, test } from "vitest"
import { deployment, failover, hub, quay, source } from "#test/support/failover-story.ts"

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
