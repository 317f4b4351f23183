import { expect, test } from "vitest"
import { rollbackAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { autoscalers, canaries, deployments, services } from "#controllers/canary/resources.ts"
import { countRequests } from "#test/support/counted-requests.ts"
import { autoscalerOf, bad, image, oamStory } from "#test/support/oam-story.ts"
import { throughGateway } from "#test/support/traffic.ts"
import { trafficSplits } from "#test/support/traffic-splits.ts"

// Revisions of an OAM component: each is a workload of its own, which the runtime makes with size 0 and writes to
// constantly. The Canary gives requests to the new one step by step, and the numbers of pods follow.

const imagesOf = (all: Json[]) => [...new Set(all.map(({ spec }) => spec.containers[0].image as string))]

test("the first revision goes to full size without a proof, and nothing else is done to it", async () => {
  const story = await oamStory({ size: 4 })
  const { status } = await story.canary()
  expect(status).toMatchObject({ phase: "Succeeded", canaryWeight: 0, history: [] })
  expect(status.run).toBeUndefined()
  expect(story.weights()).toEqual([0])
  expect(await story.sizes()).toEqual([4])
})

test("a new revision: sizes follow the weight, no request fails, and it is ready to be upgraded again", async () => {
  const story = await oamStory({ size: 4 })
  const { world, traffic } = story
  await world.advance("30s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await world.advance("30s")
  await story.revise(image(2))
  const at = async (weight: number) => {
    await world.until(`weight ${weight}`, async () => (await story.canary()).status.canaryWeight === weight, "10m")
    await world.advance("30s")
    return story.sizes()
  }
  expect(await at(25)).toEqual([3, 1])
  expect(await at(50)).toEqual([2, 2])
  await story.ended(1)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 4])
  expect(imagesOf(await story.pods())).toEqual([image(2)])
  expect(story.weights()).toEqual([0, 25, 50, 100, 0])
  expect((await story.canary()).status.history[0]).toMatchObject({
    result: "Promoted",
    source: { workload: "web-v1" },
    target: { workload: "web-v2" },
  })
  await story.revise(image(3))
  await story.ended(2)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 0, 4])
  const { failures, errors } = clients.record()
  expect({ failures, errors }).toEqual({ failures: [], errors: 0 })
})

test("a bad revision: the one before has its pods and all requests again, and the bad one waits without pods", async () => {
  const story = await oamStory({ size: 4 })
  const { world, traffic, says } = story
  await world.advance("30s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  says.checks = bad
  await story.revise(image(2))
  await story.until("Failed")
  await world.advance("2m")
  expect(await story.sizes()).toEqual([4, 0])
  expect(story.weights()).toEqual([0, 25, 0])
  expect(imagesOf(await story.pods())).toEqual([image(1)])
  expect(clients.record().failures).toEqual([])
  const { status } = await story.canary()
  expect(status.history[0]).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  expect(status.conditions.find(({ type }: Json) => type === "Stalled").reason).toBe("Rejected")
  // Its author corrects it.
  says.checks = [{ name: "rate", verdict: "Good", value: 100 }]
  await story.revise(image(3))
  await story.ended(2)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 0, 4])
})

test("Services and workloads are the runtime's: nothing is paused, marked or taken over", async () => {
  const story = await oamStory({ size: 2 })
  await story.revise(image(2))
  await story.ended(1)
  await story.world.advance("1m")
  for (const { metadata, spec } of await story.world.list(deployments)) {
    expect([metadata.name, spec.paused, metadata.ownerReferences]).toEqual([metadata.name, undefined, undefined])
    expect(Object.keys(metadata.labels)).toEqual(["app.oam.dev/component", "app.oam.dev/revision"])
  }
  const names = (await story.world.list(services)).map(({ metadata }) => metadata.name as string)
  expect(names.filter(name => name.startsWith("shop")).sort()).toEqual(["shop", "shop-canary", "shop-primary"])
  expect(await story.world.list(canaries)).toHaveLength(1)
})

test.each(["PodSpecWorkload", "ContainerizedWorkload"] as const)(
  "a %s: its Deployment is found by its owner",
  async kind => {
    const story = await oamStory({ size: 2, kind })
    await story.revise(image(2))
    await story.ended(1)
    await story.world.advance("1m")
    expect(await story.sizes()).toEqual([0, 2])
    expect((await story.canary()).status.history[0]).toMatchObject({ target: { workload: "web-v2" } })
  },
)

test("an autoscaler scales the source during the run, and then the new revision, by one write", async () => {
  const story = await oamStory({ size: 4 })
  const { world } = story
  await world.apply(autoscalerOf("web", "web-v1"))
  await world.advance("1m")
  await story.revise(image(2))
  await world.until("half", async () => (await story.canary()).status.canaryWeight === 50, "10m")
  await world.advance("30s")
  // Its pods are the autoscaler's to count, so none are given up before the promotion.
  expect(await story.sizes()).toEqual([4, 2])
  await story.ended(1)
  await world.advance("1m")
  const { metadata, spec } = await world.get(autoscalers, "web", "default")
  expect(spec.scaleTargetRef.name).toBe("web-v2")
  expect([spec.behavior, metadata.annotations]).toEqual([undefined, undefined])
  expect((await story.sizes())[0]).toBe(0)
  const moves = world.history.flatMap(({ object }) =>
    object.kind === "HorizontalPodAutoscaler" ? [object.spec.scaleTargetRef.name as string] : [],
  )
  expect(moves.filter((name, index) => name !== moves[index - 1])).toEqual(["web-v1", "web-v2"])
})

test("another revision during a run: the first run goes back, and the next one begins at the source", async () => {
  const story = await oamStory({ size: 4 })
  const { world, traffic } = story
  await world.advance("30s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await story.revise(image(2))
  await world.until("half", async () => (await story.canary()).status.canaryWeight === 50, "10m")
  await world.advance("20s")
  await story.revise(image(3))
  await world.until("back", async () => (await story.canary()).status.history.length === 1, "10m")
  // Requests went back when the source had all of its pods again.
  const { status } = await story.canary()
  expect(status.history[0]).toMatchObject({ result: "Superseded", reason: "Restarted" })
  expect((await story.sizes()).slice(0, 2)).toEqual([4, 0])
  await story.ended(2)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 0, 4])
  expect(clients.record().failures).toEqual([])
})

test("the author goes back during a run: it is cancelled, and the source has its pods again", async () => {
  const story = await oamStory({ size: 4 })
  await story.revise(image(2))
  await story.world.until("half", async () => (await story.canary()).status.canaryWeight === 50, "10m")
  await story.backTo(1)
  await story.ended(1)
  await story.world.advance("1m")
  expect(await story.sizes()).toEqual([4, 0])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Cancelled", reason: "Reverted" })
})

test("back to an earlier revision is a run too: its source is the one that answers", async () => {
  const story = await oamStory({ size: 2 })
  await story.revise(image(2))
  await story.ended(1)
  await story.world.advance("1m")
  expect(await story.sizes()).toEqual([0, 2])
  await story.backTo(1)
  await story.ended(2)
  await story.world.advance("1m")
  expect(await story.sizes()).toEqual([2, 0])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Promoted", source: { workload: "web-v2" } })
})

test("a revision with the same template has nothing to prove: its pods take the place of the others", async () => {
  const story = await oamStory({ size: 3 })
  const { world, traffic } = story
  await world.advance("30s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await story.revise(image(1))
  await world.until("it answers alone", async () => (await story.sizes()).join() === "0,3", "10m")
  await world.advance("1m")
  expect((await story.canary()).status).toMatchObject({ phase: "Succeeded", history: [] })
  expect(clients.record().failures).toEqual([])
})

test("the target is deleted during a run: everything goes back to the source", async () => {
  const story = await oamStory({ size: 4 })
  const { world } = story
  await story.revise(image(2))
  await world.until("half", async () => (await story.canary()).status.canaryWeight === 50, "10m")
  story.stopRuntime()
  await story.delete(2)
  await story.until("Failed")
  await world.advance("1m")
  expect(await story.sizes()).toEqual([4])
  expect(story.weights()).toEqual([0, 25, 50, 0])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "RolledBack", reason: "TargetMissing" })
})

test("the source is deleted during a run: what is left answers everything, and grows to full size", async () => {
  const story = await oamStory({ size: 4 })
  const { world } = story
  await story.revise(image(2))
  await world.until("a quarter", async () => (await story.canary()).status.canaryWeight === 25, "10m")
  await world.advance("20s")
  await story.delete(1)
  await world.until("all requests", () => story.weights().includes(100), "5m")
  await story.ended(1)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([4])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Promoted" })
})

test("the source is deleted, and what is left is bad: it stays, and a person is told", async () => {
  const story = await oamStory({ size: 4 })
  const { world, says } = story
  await story.revise(image(2))
  await world.until("a quarter", async () => (await story.canary()).status.canaryWeight === 25, "10m")
  await world.advance("20s")
  says.checks = bad
  await story.delete(1)
  await story.until("Failed")
  await world.advance("5m")
  expect((await story.sizes())[0]).toBeGreaterThan(0)
  expect(story.weights().at(-1)).toBe(100)
  const { conditions } = (await story.canary()).status
  expect(conditions.find(({ type }: Json) => type === "Stalled")).toMatchObject({
    status: "True",
    reason: "SourceMissing",
  })
})

test("the source is deleted during a run, and then another revision comes: it is proven against what is left", async () => {
  const story = await oamStory({ size: 4 })
  const { world } = story
  await story.revise(image(2))
  await world.until("a quarter", async () => (await story.canary()).status.canaryWeight === 25, "10m")
  await world.advance("20s")
  await story.delete(1)
  await world.until("all requests", () => story.weights().includes(100), "5m")
  await story.revise(image(3))
  await story.ended(2)
  await world.advance("1m")
  expect((await story.sizes())[0]).toBe(0)
  const { history } = (await story.canary()).status
  expect(history[1]).toMatchObject({ result: "Superseded" })
  expect(history[0]).toMatchObject({
    result: "Promoted",
    source: { workload: "web-v2" },
    target: { workload: "web-v3" },
  })
})

test("the workload that answers is restarted: no run begins, and the Services follow its pods", async () => {
  const story = await oamStory({ size: 4 })
  const { world } = story
  await story.restart(1)
  await world.advance("5m")
  const { status } = await story.canary()
  expect(status).toMatchObject({ phase: "Succeeded", history: [] })
  expect(status.run).toBeUndefined()
  expect(await story.sizes()).toEqual([4])
  expect(await story.selected("shop-primary")).toHaveLength(4)
})

test("the source is restarted during a run: the Services follow its pods, and the run goes on", async () => {
  const story = await oamStory({ size: 4 })
  const { world } = story
  await story.revise(image(2))
  await world.until("a quarter", async () => (await story.canary()).status.canaryWeight === 25, "10m")
  await story.restart(1)
  await world.advance("20s")
  expect((await story.selected("shop-primary")).length).toBeGreaterThan(0)
  await story.ended(1)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 4])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Promoted" })
})

test("the workload that answers is deleted between runs: the next revision gets pods without a proof", async () => {
  const story = await oamStory({ size: 2 })
  story.stopRuntime()
  await story.delete(1)
  await story.world.advance("30s")
  story.startRuntime()
  await story.revise(image(2))
  await story.world.until("it has a pod", async () => (await story.sizes()).at(-1) === 1, "5m")
  await story.world.advance("1m")
  expect(await story.selected("shop-primary")).toHaveLength(1)
})

test("the workload that sourceRef names is deleted during a run: what is left answers everything", async () => {
  const sourceRef = { apiVersion: "apps/v1", kind: "Deployment" as const, name: "web-v1" }
  const story = await oamStory({ size: 2, spec: { sourceRef } })
  const { world } = story
  await story.revise(image(2))
  await world.until("a quarter", async () => (await story.canary()).status.canaryWeight === 25, "10m")
  await story.delete(1)
  await story.ended(1)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([2])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Promoted" })
})

test("sourceRef names the workload that answers at first: later it is the one that has the requests", async () => {
  const sourceRef = { apiVersion: "apps/v1", kind: "Deployment" as const, name: "web-v1" }
  const story = await oamStory({ size: 2, spec: { sourceRef } })
  await story.revise(image(2))
  await story.ended(1)
  await story.world.advance("1m")
  expect(await story.sizes()).toEqual([0, 2])
  // It still names the first one, even where that has pods again.
  await story.resize(1, 1)
  await story.revise(image(3))
  await story.ended(2)
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Promoted", source: { workload: "web-v2" } })
})

test("a sourceRef to a workload that is not there is refused", async () => {
  const sourceRef = { apiVersion: "apps/v1", kind: "Deployment" as const, name: "web-v0" }
  const story = await oamStory({ isAlone: true, spec: { sourceRef } })
  story.run()
  const stalled = async () =>
    (await story.canary()).status?.conditions.find(({ type }: Json) => type === "Stalled") as Json | undefined
  await story.world.until("refused", async () => (await stalled())?.reason === "WorkloadMissing", "5m")
  expect((await stalled())?.message).toContain("sourceRef: Deployment web-v0 does not exist or has no pods")
})

for (const at of [25, 100])
  test(`the Canary is deleted at weight ${at}: requests and pods are on one revision, and no request fails`, async () => {
    const story = await oamStory({ size: 4, spec: { scaleDownDelaySeconds: 120 } })
    const { world, traffic } = story
    await world.advance("30s")
    const clients = traffic.send({ perSecond: 20, through: throughGateway })
    await story.revise(image(2))
    await world.until("the weight", () => story.weights().includes(at), "15m")
    await story.remove()
    await world.until("it is gone", async () => (await world.list(canaries)).length === 0, "15m")
    await world.advance("1m")
    expect(await story.sizes()).toEqual([4, 0])
    expect(clients.record().failures).toEqual([])
  })

test("aim rollback after the promotion: the source grows, and then has the requests", async () => {
  const story = await oamStory({ size: 4, spec: { scaleDownDelaySeconds: 600 } })
  const { world, traffic } = story
  await world.advance("30s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await story.revise(image(2))
  await story.until("Finalising")
  await world.advance("30s")
  expect(await story.sizes()).toEqual([2, 4])
  const { id } = (await story.canary()).status.run
  await world.patch(canaries, "web", { metadata: { annotations: { [rollbackAnnotation]: id } } }, "default")
  await story.until("Failed")
  await world.advance("2m")
  expect(await story.sizes()).toEqual([4, 0])
  expect(clients.record().failures).toEqual([])
})

test.each([false, true])(
  "a runtime that writes every second never fights the Canary (it replaces the whole object: %s)",
  async isReplacing => {
    const story = await oamStory({ size: 4, appliesEveryMs: 1000, isReplacing })
    const { world, traffic, says } = story
    await world.advance("30s")
    const clients = traffic.send({ perSecond: 20, through: throughGateway })
    await story.revise(image(2))
    await story.ended(1)
    says.checks = bad
    await story.revise(image(3))
    await story.until("Failed")
    await world.advance("1m")
    expect(await story.sizes()).toEqual([0, 4, 0])
    // Neither a weight nor a size was ever written back.
    expect(story.weights()).toEqual([0, 25, 50, 100, 0, 25, 0])
    const sizesOf = (name: string) =>
      world.history
        .flatMap(({ object }) =>
          object.kind === "Deployment" && object.metadata.name === name ? [object.spec.replicas as number] : [],
        )
        .filter((size, index, all) => size !== all[index - 1])
    expect(sizesOf("web-v2")).toEqual([0, 1, 2, 4, 3, 4])
    expect(clients.record().failures).toEqual([])
  },
)

test("Blue/Green: the source keeps all its pods until the promotion", async () => {
  const analysis = { interval: "1m", threshold: 2, iterations: 2, metrics: [{ name: "rate", query: "1" }] }
  const story = await oamStory({ size: 2, spec: { analysis } })
  await story.revise(image(2))
  await story.world.until("all requests", () => story.weights().includes(100), "10m")
  expect(await story.sizes()).toEqual([2, 2])
  await story.ended(1)
  await story.world.advance("1m")
  expect(await story.sizes()).toEqual([0, 2])
  expect(story.weights()).toEqual([0, 100, 0])
})

test("in a mesh: a TrafficSplit divides the requests where no Gateway is named", async () => {
  const service = { name: "shop", port: 80, targetPort: 8080 }
  const story = await oamStory({ size: 4, spec: { service }, isAlone: true })
  const { world, traffic } = story
  await world.apply(trafficSplits)
  story.run()
  await story.until("Succeeded")
  await story.resize(1, 4)
  const clients = traffic.send({ perSecond: 20, through: { service: "default/shop" }, connections: "fresh" })
  await story.revise(image(2))
  await story.ended(1)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 4])
  expect(story.weights()).toEqual([0, 25, 50, 100, 0])
  expect(world.history.some(({ object }) => object.kind === "HTTPRoute")).toBe(false)
  expect(clients.record().failures).toEqual([])
})

const planned = (rolloutPlan: NonNullable<CanarySpecInput["rolloutPlan"]>) => ({
  analysis: { interval: "1m", threshold: 2 },
  rolloutPlan: { canaryMetric: [{ name: "request-success-rate", metricsRange: { min: 99 } }], ...rolloutPlan },
})

test("by a plan of OAM: its size, its batches one by one, the last one judged too", async () => {
  const story = await oamStory({ isAlone: true, spec: planned({ targetSize: 4, numBatches: 2, batchPartition: 0 }) })
  const { world } = story
  story.run()
  await story.until("Succeeded")
  expect(await story.sizes()).toEqual([4])
  await story.revise(image(2))
  const status = async () => (await story.canary()).status
  await world.until("it waits", async () => (await status()).run?.reason === "GateWaiting", "10m")
  await world.advance("5m")
  expect(await status()).toMatchObject({ canaryWeight: 50, currentBatch: 0, rollingState: "rollingInBatches" })
  expect((await status()).run.message).toContain("rolloutPlan.batchPartition lets no other begin: write 1")
  expect(await story.sizes()).toEqual([2, 2])
  story.change(planned({ targetSize: 4, numBatches: 2, batchPartition: 1 }))
  await world.until("the last batch", async () => (await status()).canaryWeight === 100, "10m")
  await world.advance("10s")
  expect(await status()).toMatchObject({ phase: "Progressing", currentBatch: 1 })
  await story.ended(1)
  await world.advance("1m")
  expect(await story.sizes()).toEqual([0, 4])
})

test("by a plan of OAM: paused holds everything, a bad metric goes back, and a size too small is refused", async () => {
  const story = await oamStory({ size: 4, spec: planned({ numBatches: 2 }) })
  const { world, says } = story
  const status = async () => (await story.canary()).status
  const stalled = async () => (await status()).conditions.find(({ type }: Json) => type === "Stalled")
  story.change(planned({ numBatches: 2, paused: true }))
  await story.revise(image(2))
  await world.advance("5m")
  expect(await story.sizes()).toEqual([4, 0])
  story.change(planned({ targetSize: 2, numBatches: 2 }))
  await world.until("it is refused", async () => (await stalled())?.status === "True", "5m")
  expect((await stalled()).message).toBe(
    "rolloutPlan.targetSize: 2 is less than the 4 pods of web-v1: write at least 4, or scale web-v1 first",
  )
  says.checks = bad
  story.change(planned({ numBatches: 2 }))
  await story.until("Failed")
  await world.advance("2m")
  expect(await story.sizes()).toEqual([4, 0])
  expect((await status()).history[0]).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
})

test("a promotion is at most twelve writes, a weight seven, and nothing is read", async () => {
  const story = await oamStory({ isAlone: true })
  const { world } = story
  const requests = countRequests()
  story.run({ faults: [requests.fault] })
  await story.until("Succeeded")
  await story.resize(1, 4)
  await world.advance("2m")
  requests.taken()
  await story.revise(image(2))
  await story.until("Promoting")
  const weights = requests.taken()
  await story.ended(1)
  await world.advance("5m")
  const promotion = requests.taken()
  expect([weights.reads, promotion.reads]).toEqual([[], []])
  expect({ writes: promotion.writes, most: promotion.writes.length <= 12 }).toMatchObject({ most: true })
  expect({ writes: weights.writes, most: weights.writes.length <= 5 + 7 * 2 }).toMatchObject({ most: true })
})
