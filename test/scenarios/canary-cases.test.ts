import { describe, expect, test } from "vitest"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { autoscalers, canaries, deployments, replicaSets } from "#controllers/canary/resources.ts"
import { heldMark } from "#core/in-place/names.ts"
import { core } from "#runtime/resource.ts"
import { keepAlive } from "#test/simulation/fates.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, uidsOf, v1, v2, v3 } from "#test/support/canary-story.ts"

// Cases at the edge that a Canary of a Deployment has to get right: test/repository/canary-cases.test.ts names them all.

const imageOf = (pod: Json) => pod.spec.containers[0].image as string
const imagesOf = async (story: CanaryStory) => (await story.pods()).map(imageOf)
const conditionOf = ({ status }: Json, type: string) => status?.conditions?.find((each: Json) => each.type === type)
const results = ({ status }: Json) => status.history.map(({ result, reason }: Json) => `${result} ${reason}`)

const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
const judged = { analysis: { interval: "1m", threshold: 1, stepWeights: [34, 67], metrics } }
const good = [{ name: "request-success-rate", verdict: "Good" as const, value: 100 }]
const bad = [{ name: "request-success-rate", verdict: "Bad" as const, value: 50, why: "50 is below 99" }]

async function adopted(options: CanaryOptions = {}): Promise<CanaryStory> {
  const story = await canaryStory(options)
  story.says.checks = good
  await story.until("Initialized")
  await story.world.settle("10s")
  return story
}

const atFirstWeight = (story: CanaryStory) => story.world.until("a weight", () => story.weights().includes(34), "1h")
const patched = (story: CanaryStory, body: Json) => story.world.patch(deployments, "web", body, "default")
const until = (story: CanaryStory, what: string, isSo: (canary: Json) => boolean) =>
  story.world.until(what, async () => isSo(await story.canary()), "1h")

describe("the target changes", () => {
  test("while it is handed over: the swap is finished, and the next run follows", async () => {
    const story = await adopted()
    await story.setImage(v2)
    await story.until("Finalising")
    await story.setImage(v3)
    await until(story, "the second run", ({ status }) => status.history.length === 2)
    await story.world.settle("2m")
    expect(await imagesOf(story)).toEqual([v3, v3, v3])
    expect((await story.canary()).status.history[0]).toMatchObject({ result: "Promoted" })
  })

  test("to a template that is still in the history: the old ReplicaSet does not get in the way", async () => {
    const story = await adopted()
    for (const image of [v2, v1]) {
      await story.setImage(image)
      await until(story, `${image} runs`, ({ status }) => status.run?.target.images[0] === image)
      await story.until("Succeeded")
      await story.world.settle("1m")
      expect(await imagesOf(story)).toEqual([image, image, image])
    }
    expect((await story.deployment()).status).toMatchObject({ updatedReplicas: 3, replicas: 3 })
    expect(results(await story.canary())).toEqual(["Promoted Promoted", "Promoted Promoted"])
  })

  test("to a fix after a failed run: the fix is judged by itself", async () => {
    const story = await adopted({ spec: judged })
    story.says.checks = bad
    await story.setImage(v2)
    await story.until("Failed")
    await story.world.settle("2m")
    story.says.checks = good
    await story.setImage(v3)
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(await imagesOf(story)).toEqual([v3, v3, v3])
    expect(results(await story.canary())).toEqual(["Promoted Promoted", "RolledBack AnalysisFailed"])
  })
})

test("two Canaries of one target: the second is refused, and the first goes on", async () => {
  const story = await adopted()
  const { spec } = await story.canary()
  await story.world.apply({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "z-other", namespace: "default" },
    spec,
  })
  const other = () => story.world.get(canaries, "z-other", "default")
  await story.world.until(
    "it is refused",
    async () => conditionOf(await other(), "Stalled")?.reason === "Conflict",
    "1m",
  )
  expect(conditionOf(await other(), "Stalled").message).toContain("Canary web has the same target")
  await story.setImage(v2)
  await story.until("Succeeded")
  expect(story.weights()).toEqual([0, 34, 67, 100, 0])
})

test("hooks that have passed are not called again by the next process", async () => {
  const webhooks = (["confirm-rollout", "pre-rollout", "confirm-promotion"] as const).map(type => ({
    ...{ type, name: "gate" },
    url: "http://gate.default/",
  }))
  const analysis = { interval: "1m", threshold: 2, stepWeights: [34, 67], webhooks }
  for (const at of [9, 12, 15, 20]) {
    const story = await canaryStory({ spec: { analysis }, isAlone: true })
    keepAlive(story.world.clock, given => story.run(given), {
      dies: { after: nth(isDecision, at) },
      successor: { dies: { after: nth(isDecision, 5) } },
    })
    await story.until("Initialized")
    await story.setImage(v2)
    await story.until("Succeeded", "2h")
    const calls = story.calls()
    expect([at, calls.toSorted()]).toEqual([at, ["confirm-promotion gate", "confirm-rollout gate", "pre-rollout gate"]])
  }
})

describe("objects of a run are deleted", () => {
  test("the new revision's Deployment: requests are the source's, and the run has failed (TargetMissing)", async () => {
    const story = await adopted()
    const before = uidsOf(await story.pods())
    await story.setImage(v2)
    await atFirstWeight(story)
    const { target } = (await story.canary()).status.run
    await story.world.client.delete(deployments, { name: target.workload, namespace: "default" })
    await story.until("Failed")
    await story.world.settle("2m")
    expect(story.weights().at(-1)).toBe(0)
    expect(uidsOf(await story.pods())).toEqual(before)
    expect(results(await story.canary())).toEqual(["RolledBack TargetMissing"])
  })

  test("the running revision: the new one is the only one left, and nothing of it goes (SourceMissing)", async () => {
    const story = await adopted({ spec: judged })
    await story.setImage(v2)
    await atFirstWeight(story)
    const { source } = (await story.canary()).status.run
    const old = (await story.sets()).find(({ metadata }) => metadata.labels["pod-template-hash"] === source.hash)
    await story.world.client.delete(replicaSets, old!.metadata as never, { propagationPolicy: "Background" } as never)
    story.says.checks = bad
    await until(story, "it needs a person", canary => conditionOf(canary, "Stalled")?.reason === "SourceMissing")
    await story.world.settle("10m")
    const images = await imagesOf(story)
    expect(new Set(images)).toEqual(new Set([v2]))
    expect(conditionOf(await story.canary(), "Stalled")).toMatchObject({ status: "True", reason: "SourceMissing" })
  })
})

describe("pods that cannot be", () => {
  test("no node takes them (Unschedulable): the weight is held, and at the deadline everything is given back", async () => {
    const story = await adopted({ spec: { progressDeadlineSeconds: 120 } })
    const before = uidsOf(await story.pods())
    await patched(story, { spec: { template: { spec: { nodeSelector: { disk: "none" } } } } })
    await until(story, "the reason", ({ status }) => status.run?.reason === "Unschedulable")
    await story.until("Failed")
    await story.world.settle("2m")
    expect(story.weights()).toEqual([0])
    expect(uidsOf(await story.pods())).toEqual(before)
    expect(results(await story.canary())).toEqual(["RolledBack DeadlineExceeded"])
  })

  test("a quota has no room for them (QuotaExceeded): the message names it", async () => {
    const story = await adopted({ spec: { progressDeadlineSeconds: 120 } })
    const before = uidsOf(await story.pods())
    await story.world.apply({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "few", namespace: "default" },
      spec: { hard: { pods: "3" } },
    })
    await story.world.settle("10s")
    await story.setImage(v2)
    await until(story, "the reason", ({ status }) => status.run?.reason === "QuotaExceeded")
    expect((await story.canary()).status.run.message).toContain("few")
    await story.until("Failed")
    await story.world.settle("2m")
    expect(uidsOf(await story.pods())).toEqual(before)
  })
})

describe("the size of the workload", () => {
  test("an autoscaler at its maximum bounds the running revision, and not both", async () => {
    const story = await adopted({ hasPolicy: true, measure: () => 160 })
    await story.world.apply({
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "web", namespace: "default" },
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
        minReplicas: 3,
        maxReplicas: 3,
        metrics: [
          { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } },
        ],
      },
    })
    await story.world.settle("1m")
    await story.setImage(v2)
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(await imagesOf(story)).toEqual([v2, v2, v2])
    expect((await story.world.get(autoscalers, "web", "default")).spec).toMatchObject({
      minReplicas: 3,
      maxReplicas: 3,
    })
  })

  test("GitOps writes the replicas again and again during a run: they are the running revision's, and two writers never fight", async () => {
    const story = await adopted()
    await story.setImage(v2)
    for (const replicas of [4, 3, 5, 3]) {
      await patched(story, { spec: { replicas } })
      await story.world.advance("25s")
    }
    await story.until("Succeeded")
    await story.world.settle("2m")
    expect(await imagesOf(story)).toEqual([v2, v2, v2])
    expect((await story.deployment()).spec.replicas).toBe(3)
    expect(results(await story.canary())).toEqual(["Promoted Promoted"])
  })
})

test("another version of the controller starts: nothing runs for what did not change", async () => {
  const story = await canaryStory({ isAlone: true })
  const first = story.run()
  await story.until("Initialized")
  await story.world.settle("10s")
  const before = uidsOf(await story.pods())
  first.die()
  for (let starts = 0; starts < 2; starts++) {
    const next = story.run()
    await story.world.settle("5m")
    next.die()
  }
  const { status } = await story.canary()
  expect([status.phase, status.run, status.history]).toEqual(["Initialized", undefined, []])
  expect(uidsOf(await story.pods())).toEqual(before)
})

test("a node is lost in the middle of a step: pods of the source that are down do not fail the new revision", async () => {
  const story = await adopted({ spec: judged })
  await story.setImage(v2)
  await atFirstWeight(story)
  const pods = await story.pods()
  const node = pods.find(pod => imageOf(pod) === v1)!.spec.nodeName as string
  await story.world.client.delete(core("nodes", "Node", false), { name: node })
  await story.until("Succeeded", "2h")
  await story.world.settle("2m")
  const { status } = await story.canary()
  expect([status.history[0].result, status.failedChecks]).toEqual(["Promoted", 0])
  expect(await imagesOf(story)).toEqual([v2, v2, v2])
})

test("held after a failure: new pods are of the old image, and kubectl rollout resume is its owner's decision", async () => {
  const story = await adopted({ spec: judged })
  story.says.checks = bad
  await story.setImage(v2)
  await story.until("Failed")
  await story.world.settle("2m")
  await patched(story, { spec: { replicas: 4 } })
  const [lost] = await story.pods()
  await story.world.client.delete(core("pods", "Pod"), lost!.metadata as never)
  await story.world.settle("2m")
  expect(await imagesOf(story)).toEqual([v1, v1, v1, v1])
  await patched(story, { spec: { paused: null } })
  await story.world.until("it is rolled out", async () => (await imagesOf(story)).every(image => image === v2), "10m")
  await story.world.settle("2m")
  expect(await imagesOf(story)).toEqual([v2, v2, v2, v2])
  const { status } = await story.canary()
  expect(status.run).toBeUndefined()
  expect([undefined, "canary"]).toContain((await story.deployment()).metadata.labels?.[heldMark])
})
