import { expect, test } from "vitest"
import { isWatch, stale } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import {
  containers,
  Deployments,
  deployment,
  digest,
  type FailoverStory,
  failover,
  hub,
  pushEverywhere,
  quay,
  source,
  workload,
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

test("an image that takes long to pull is waited for: the kubelet's message meanwhile is about the former repository", async () => {
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
  // With Recreate there are moments without a failing pod.
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

/** From the first pull that failed until the last container that is there has started, in seconds. */
function took({ world }: FailoverStory): number {
  const pods = world.history.filter(({ object }) => object.kind === "Pod")
  const statusOf = ({ object }: (typeof pods)[number]) => object.status?.containerStatuses?.[0]?.state ?? {}
  const failed = pods.find(each => /ErrImagePull/.test(statusOf(each).waiting?.reason))
  const started = new Map<string, number>()
  for (const each of pods)
    if (statusOf(each).running && !started.has(each.object.metadata.uid)) started.set(each.object.metadata.uid, each.at)
  return (Math.max(...started.values()) - failed!.at) / 1000
}

test("with the default policy pods run within seconds where our own question shows the same failure", async () => {
  for (const fault of ["refused", "500", "404"]) {
    const story = await failover({ description: `registries: {quay.io: {fault: ${fault}}}` })
    await story.world.apply(source(), deployment("demo", `${quay}:1`))
    await story.untilRunning(3)
    expect(took(story), fault).toBeLessThanOrEqual(4) // the simulated registry takes a second of it
  }
})

test("where it shows another picture, the failure has to last", async () => {
  const story = await failover({
    description: "registries: {quay.io: {fault: refused}}",
    says: () => ({ ok: true, digest: digest("1"), mediaType: "" }),
  })
  await story.world.apply(source(), deployment("demo", `${quay}:1`))
  await story.untilRunning(3)
  expect(took(story)).toBeGreaterThan(20)
})

test("a registry that hiccups for two seconds has no pod switched, whenever in it a pull comes", async () => {
  for (let at = 0; at <= 2000; at += 100) {
    const story = await failover()
    pushEverywhere(story.registries, "1")
    await story.world.apply(source())
    await story.world.advance("5s")
    story.registries.setFault("quay.io", { kind: "refused" })
    const hiccup = story.world.clock.after(2000, () => story.registries.setFault("quay.io", undefined))
    await story.world.advance(`${at}ms`)
    await story.world.apply(deployment("demo", `${quay}:1`))
    expect(await story.untilRunning(3), `${at} ms`).toEqual(Array(3).fill(`${quay}:1`))
    await story.world.settle()
    expect(await story.target("demo"), `${at} ms`).not.toHaveProperty("switches")
    hiccup()
  }
})

test("twenty pods of one node, more than its kubelet pulls at once: none waits for the kubelet's next try", async () => {
  const story = await failover({ description: "registries: {quay.io: {fault: refused}}", nodes: 1 })
  pushEverywhere(story.registries, "1", [hub])
  await story.world.apply(source(), deployment("demo", `${quay}:1`, { spec: { replicas: 20 } }))
  expect(await story.untilRunning(20)).toEqual(Array(20).fill(`${hub}:1`))
  const pods = story.world.history.filter(({ object }) => object.kind === "Pod")
  const isHeld = (status: Json) => /QPS/.test(status?.containerStatuses?.[0]?.state?.waiting?.message ?? "")
  const held = new Set(pods.filter(({ object }) => isHeld(object.status)).map(({ object }) => object.metadata.uid))
  expect(held.size).toBeGreaterThan(5)
  expect(new Set(pods.map(({ object }) => object.metadata.uid)).size).toBe(20)
  expect(took(story)).toBeLessThanOrEqual(6)
})

test("no pod is patched twice, however late the watch delivers the patch", async () => {
  const story = await failover({ description: "registries: {quay.io: {fault: refused}}", isIdle: true })
  const { world } = story
  world.run([story.controller()], { faults: [stale(isWatch, world.clock, 2000)], seesLateByMs: 2000 })
  await world.apply(source(), deployment("demo", `${quay}:1`), deployment("other", `${quay}:2`))
  await story.untilRunning(6)
  await world.settle()
  const patches = (world.record.failovers ?? []).filter(({ path }) => /\/pods\//.test(path))
  expect(patches.map(({ revision }) => revision === undefined)).toEqual(Array(6).fill(false))
})

test("a template that was changed does not have a StatefulSet's pod replaced that was just repaired", async () => {
  const story = await failover({ description: "registries: {quay.io: {fault: refused}}" })
  const { world } = story
  await world.apply(source({ policy: { apply: "Template" } }), workload("StatefulSet", "db", `${quay}:1`))
  expect(await story.untilRunning(3)).toEqual(Array(3).fill(`${hub}:1`))
  await world.settle("15m")
  const pods = world.history.filter(({ object }) => object.kind === "Pod").map(({ object }) => object.metadata.uid)
  expect(new Set(pods).size).toBe(3)
  const [set] = await world.list({
    group: "apps",
    version: "v1",
    plural: "statefulsets",
    kind: "StatefulSet",
    namespaced: true,
  })
  expect(set?.spec.template.spec.containers[0].image).toBe(`${hub}:1`)
  expect(set?.status).toMatchObject({
    updatedReplicas: 3,
    readyReplicas: 3,
    currentRevision: set?.status.updateRevision,
  })
  expect(await story.condition("Ready")).toMatchObject({
    status: "True",
    reason: "Switched",
    message: `1 of 1: statefulset/db basic-demo from ${hub} (the workload was changed)`,
  })
})
