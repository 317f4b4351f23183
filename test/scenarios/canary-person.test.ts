import { expect, test } from "vitest"
import {
  approvedAnnotation,
  approvedByAnnotation,
  pausedAnnotation,
  retryAnnotation,
  rollbackAnnotation,
} from "#api/v1alpha1/canary/annotations.ts"
import { canaries } from "#controllers/canary/resources.ts"
import { awaitedApprovals } from "#core/canary/gates.ts"
import { formatApproval } from "#core/fleet/approval.ts"
import { type CanaryStory, canaryStory, uidsOf, v2, v3 } from "#test/support/canary-story.ts"

// What a person does to a run: approve, pause, resume, take back.

const annotate = (story: CanaryStory, annotations: Record<string, string | null>) =>
  story.world.patch(canaries, "web", { metadata: { annotations } }, "default")

const awaiting = (story: CanaryStory, words: string[]) =>
  story.world.until(
    `it waits for ${words}`,
    async () => {
      const { run } = (await story.canary()).status
      return run !== undefined && awaitedApprovals(run).join() === words.join()
    },
    "10m",
  )

async function approve(story: CanaryStory, by: string): Promise<void> {
  const { id, checksum, gates } = (await story.canary()).status.run
  const tiers = awaitedApprovals({ gates })
  await annotate(story, {
    [approvedAnnotation]: formatApproval({ operation: id, tiers, checksum }),
    [approvedByAnnotation]: by,
  })
}

test("each approval opens one gate, and an approval of an earlier run opens none", async () => {
  const story = await canaryStory({ spec: { requireApproval: ["Rollout", "TrafficIncrease", "Promotion"] } })
  await story.until("Initialized")
  await story.setImage(v2)
  await story.until("Waiting")
  await awaiting(story, ["Rollout"])
  await approve(story, "ann")
  await awaiting(story, ["TrafficIncrease/34"])
  await story.world.settle("5m")
  expect(story.weights()).toEqual([0])
  await approve(story, "bob")
  await awaiting(story, ["TrafficIncrease/67"])
  expect(story.weights()).toEqual([0, 34])
  await approve(story, "ann")
  await story.until("WaitingPromotion")
  await awaiting(story, ["Promotion"])
  await story.world.advance("5m")
  expect(story.weights()).toEqual([0, 34, 67])
  const { gates } = (await story.canary()).status.run
  expect(gates.filter(({ state }: { state: string }) => state === "Passed")).toMatchObject([
    { name: "Rollout", approvedBy: "ann" },
    { name: "TrafficIncrease", round: 67, approvedBy: "ann" },
  ])
  await approve(story, "bob")
  const { status } = await story.until("Succeeded")
  expect(status.history[0]).toMatchObject({ result: "Promoted", approvedBy: "bob" })

  await story.world.settle("1m")
  const before = uidsOf(await story.pods())
  await story.setImage(v3)
  await story.until("Waiting")
  await story.world.settle("5m")
  const [gate] = (await story.canary()).status.run.gates
  expect(gate).toMatchObject({ name: "Rollout", state: "Waiting", reason: "ApprovalStale" })
  expect(uidsOf(await story.pods())).toEqual(before)
})

test("paused, the weight stays, and resumed it goes on", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  const { id } = (await story.canary()).status.run
  await annotate(story, { [pausedAnnotation]: id })
  await story.world.settle("1h")
  const { status } = await story.canary()
  expect(story.weights()).toEqual([0, 34])
  expect(status.conditions.find(({ type }: { type: string }) => type === "Ready").reason).toBe("Paused")
  await annotate(story, { [pausedAnnotation]: null })
  await story.until("Succeeded")
  expect(story.weights()).toEqual([0, 34, 67, 100, 0])
})

test("taken back while it is paused: the pods of the source stayed, and the template waits for aim resume", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  const { id } = (await story.canary()).status.run
  await annotate(story, { [pausedAnnotation]: id })
  await story.world.settle("1m")
  await annotate(story, { [rollbackAnnotation]: id })
  await story.until("Failed")
  await story.world.settle("5m")
  expect(uidsOf(await story.pods())).toEqual(before)
  expect(story.weights()).toEqual([0, 34, 0])
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "RolledBack", reason: "RolledBackByUser" })
  await annotate(story, { [retryAnnotation]: id })
  await story.until("Succeeded")
  expect((await story.canary()).status.history[0]).toMatchObject({ id: `${id}_2`, result: "Promoted" })
})

test("taken back after promotion: within scaleDownDelaySeconds the pods of before have all requests by one write of the route", async () => {
  const story = await canaryStory({ spec: { scaleDownDelaySeconds: 600 } })
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  await story.setImage(v2)
  await story.until("Finalising")
  await story.world.settle("1m")
  const weights = story.weights().length
  const { id } = (await story.canary()).status.run
  await annotate(story, { [rollbackAnnotation]: id })
  await story.until("Failed")
  await story.world.settle("5m")
  expect(story.weights().slice(weights)).toEqual([100, 0])
  expect(uidsOf(await story.pods())).toEqual(before)
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "RolledBack", reason: "RolledBackByUser" })
})

test("frozen, weight and pods stay until a person takes the run back", async () => {
  const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
  const story = await canaryStory({
    spec: { onFailure: "Freeze", analysis: { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics } },
  })
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  story.says.checks = [{ name: "request-success-rate", verdict: "Bad", value: 50, why: "50 is below 99" }]
  await story.setImage(v2)
  await story.until("Failed")
  await story.world.settle("1h")
  expect(story.weights()).toEqual([0, 34])
  expect(await story.pods()).toHaveLength(5)
  await annotate(story, { [rollbackAnnotation]: (await story.canary()).status.run.id })
  await story.world.settle("5m")
  expect(story.weights()).toEqual([0, 34, 0])
  expect(uidsOf(await story.pods())).toEqual(before)
})
