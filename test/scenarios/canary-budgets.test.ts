import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { canaries, deployments } from "#controllers/canary/resources.ts"
import { podDisruptionBudgets } from "#runtime/resource.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, v1, v2 } from "#test/support/canary-story.ts"

// A PodDisruptionBudget binds what a Canary takes away, as it binds evictions: ready pods never fall below it.

const budget = (spec: Json, ...apps: string[]): Json => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "shop", namespace: "default" },
  spec: { ...spec, selector: { matchExpressions: [{ key: "app", operator: "In", values: apps }] } },
})

/** Another workload, whose image does not exist yet. */
const api: Json = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "api", namespace: "default" },
  spec: {
    replicas: 2,
    strategy: { type: "Recreate" },
    selector: { matchLabels: { app: "api" } },
    template: {
      metadata: { labels: { app: "api" } },
      spec: { containers: [{ name: "api", image: "registry.example.com/missing:1" }] },
    },
  },
}

async function adopted(options: CanaryOptions, ...objects: Json[]): Promise<CanaryStory> {
  const story = await canaryStory(options)
  await story.until("Initialized")
  await story.world.apply(...objects)
  await story.world.settle("10s")
  return story
}

const isReady = ({ status, metadata }: Json) =>
  !metadata.deletionTimestamp &&
  (status?.conditions ?? []).some(({ type, status: is }: Json) => type === "Ready" && is === "True")
const imageOf = (pod: Json) => pod.spec.containers[0].image as string
const countOf = async (story: CanaryStory, image: string) =>
  (await story.pods()).filter(pod => isReady(pod) && imageOf(pod) === image).length

const said = async (story: CanaryStory) => {
  const { status } = await story.canary()
  const { reason, message } = status.conditions.find(({ type }: Json) => type === "Ready")
  const stalled = status.conditions.find(({ type }: Json) => type === "Stalled").status
  return { phase: status.phase, reason, message, stalled }
}
const untilSpent = (story: CanaryStory) =>
  story.world.until("the budget is spent", async () => (await said(story)).reason === "BudgetSpent", "30m")

/** The fewest ready pods of these applications, from a moment on. */
function fewestReady({ world }: CanaryStory, from: number, ...apps: string[]): number {
  const ready = new Map<string, boolean>()
  let fewest = Number.POSITIVE_INFINITY
  for (const [index, { type, object }] of (world.history as unknown as { type: string; object: Json }[]).entries()) {
    if (object.kind !== "Pod" || !apps.includes(object.metadata.labels?.app)) continue
    ready.set(object.metadata.uid, type !== "DELETED" && isReady(object))
    if (index >= from) fewest = Math.min(fewest, [...ready.values()].filter(Boolean).length)
  }
  return fewest
}

const repair = ({ world }: CanaryStory) =>
  world.patch(
    deployments,
    "api",
    { spec: { template: { spec: { containers: [{ name: "api", image: v1 }] } } } },
    "default",
  )

describe("a Deployment under a budget with another workload that is down", () => {
  const shop = budget({ minAvailable: 4 }, "web", "api")

  test("promoted: the pods of before stay until the budget lets them go, and the reason names it", async () => {
    const story = await adopted({}, api, shop)
    await story.setImage(v2)
    await untilSpent(story)
    const from = story.world.history.length
    await story.world.advance("20m")
    expect(await said(story)).toEqual({
      phase: "Finalising",
      reason: "BudgetSpent",
      message: "PodDisruptionBudget shop wants 4 ready pods, and 3 would be left",
      stalled: "False",
    })
    expect([await countOf(story, v1), await countOf(story, v2)]).toEqual([3, 3])
    await repair(story)
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(await countOf(story, v2)).toBe(3)
    expect(fewestReady(story, from, "web", "api")).toBeGreaterThanOrEqual(4)
  })

  test("rolled back: requests go back at once, and its pods when the budget lets them", async () => {
    const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
    const analysis = { interval: "1m", threshold: 1, stepWeights: [34, 67], metrics }
    const story = await adopted({ spec: { analysis } }, api, shop)
    await story.setImage(v2)
    await story.world.until("a weight", () => story.weights().includes(34))
    story.says.checks = [{ name: "request-success-rate", verdict: "Bad", value: 50, why: "50 is below 99" }]
    await untilSpent(story)
    await story.world.advance("20m")
    expect(story.weights().at(-1)).toBe(0)
    expect(await said(story)).toMatchObject({ phase: "Failed", reason: "BudgetSpent" })
    expect(await countOf(story, v2)).toBeGreaterThan(0)
    await repair(story)
    await story.world.until("they are gone", async () => (await countOf(story, v2)) === 0, "10m")
    const { status } = await story.canary()
    expect(status.history[0]).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  })

  test("deleted: the budget is waited for, and not for ever", async () => {
    const story = await adopted({ spec: { progressDeadlineSeconds: 300 } }, api, shop)
    await story.setImage(v2)
    await story.world.until("a weight", () => story.weights().includes(34))
    await story.remove()
    await story.world.advance("4m")
    expect(await said(story)).toMatchObject({ phase: "Terminating", reason: "BudgetSpent" })
    expect(await countOf(story, v2)).toBeGreaterThan(0)
    await story.world.until("the Canary is gone", async () => !(await story.world.list(canaries)).length, "10m")
    await story.world.settle("1m")
    expect([await countOf(story, v1), await countOf(story, v2)]).toEqual([3, 0])
  })
})

for (const spec of [{ maxUnavailable: 0 }, { minAvailable: "100%" }, { minAvailable: 3 }, { minAvailable: 5 }])
  test(`a Deployment under ${JSON.stringify(spec)} of its own is promoted, and all its pods are ready throughout`, async () => {
    const story = await adopted({}, budget(spec, "web"))
    const from = story.world.history.length
    await story.setImage(v2)
    await story.until("Succeeded")
    await story.world.settle("1m")
    expect(await countOf(story, v2)).toBe(3)
    expect(fewestReady(story, from, "web")).toBe(3)
  })

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  describe(`a ${kind}`, () => {
    test("under a budget that lets no pod go: none goes, and the run goes on when one may", async () => {
      const story = await adopted({ kind }, budget({ minAvailable: 3 }, "web"))
      const from = story.world.history.length
      await story.setImage(v2)
      await untilSpent(story)
      await story.world.settle("5m")
      expect(await said(story)).toMatchObject({
        phase: "Progressing",
        message: "PodDisruptionBudget shop wants 3 ready pods, and 2 would be left",
        stalled: "False",
      })
      expect(fewestReady(story, from, "web")).toBe(Number.POSITIVE_INFINITY)
      await story.world.patch(podDisruptionBudgets, "shop", { spec: { minAvailable: 2 } }, "default")
      await story.until("Succeeded")
      await story.world.settle("1m")
      expect(await countOf(story, v2)).toBe(3)
      expect(fewestReady(story, from, "web")).toBe(2)
    })

    test("under such a budget for longer than the deadline: the run fails, and no pod was touched", async () => {
      const story = await adopted({ kind }, budget({ minAvailable: 3 }, "web"))
      await story.setImage(v2)
      const { status } = await story.until("Failed")
      expect(status.run ?? status.history[0]).toMatchObject({ reason: "DeadlineExceeded" })
      await story.world.settle("2m")
      expect(await countOf(story, v1)).toBe(3)
    })
  })
