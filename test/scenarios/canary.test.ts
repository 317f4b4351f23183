import { expect, test } from "vitest"
import { heldMark } from "#core/in-place/names.ts"
import { type CanaryStory, canaryStory, uidsOf, v1, v2, v3 } from "#test/support/canary-story.ts"

// A Canary over a Deployment in virtual time: the pods that were tested are the pods that stay.

const imageOf = (pod: { spec: { containers: { image: string }[] } }) => pod.spec.containers[0]!.image
const imagesOf = async (story: CanaryStory) => (await story.pods()).map(pod => imageOf(pod as never))
const active = async (story: CanaryStory) => (await story.sets()).filter(({ spec }) => spec.replicas > 0)

test("adoption touches no pod", async () => {
  const story = await canaryStory({ isAlone: true })
  const before = await story.pods()
  story.run()
  const canary = await story.until("Initialized")
  await story.world.settle("1m")
  expect(uidsOf(await story.pods())).toEqual(uidsOf(before))
  expect(canary.status.canaryWeight).toBe(0)
  expect(story.weights()).toEqual([0])
  expect((await story.deployment()).metadata.labels?.[heldMark]).toBe("canary")
})

test("promoted: the very pods that were tested stay, and kubectl sees one Deployment", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  await story.world.settle("10s")
  await story.setImage(v2)
  await story.until("Finalising")
  const tested = (await story.pods()).filter(pod => imageOf(pod as never) === v2)
  expect(tested).toHaveLength(3)
  const canary = await story.until("Succeeded")
  await story.world.settle("1m")
  expect(uidsOf(await story.pods())).toEqual(uidsOf(tested))
  expect(story.weights()).toEqual([0, 34, 67, 100, 0])
  const deployment = await story.deployment()
  expect(deployment.metadata.annotations["deployment.kubernetes.io/revision"]).toBe("2")
  expect(deployment.status).toMatchObject({ replicas: 3, updatedReplicas: 3, availableReplicas: 3 })
  expect(await active(story)).toHaveLength(1)
  expect(canary.status.history[0]).toMatchObject({ result: "Promoted" })
  expect(canary.status.run).toBeUndefined()
})

test("failed by a metric: requests go back, the pods go, and the template waits", async () => {
  const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]
  const story = await canaryStory({
    spec: { analysis: { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics } },
  })
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  story.says.checks = [{ name: "request-success-rate", verdict: "Bad", value: 50, why: "50 is below 99" }]
  await story.setImage(v2)
  await story.until("Failed")
  await story.world.settle("2m")
  const canary = await story.canary()
  expect(story.weights()).toEqual([0, 34, 0])
  expect(uidsOf(await story.pods())).toEqual(before)
  expect(canary.status).toMatchObject({ phase: "Failed", canaryWeight: 0 })
  expect(canary.status.history[0]).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  expect(canary.status.conditions.find(({ type }: { type: string }) => type === "Stalled").reason).toBe("Rejected")
})

test("the template changed during a run: the next one starts from the source", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  await story.setImage(v3)
  await story.until("Succeeded")
  await story.world.settle("1m")
  const { status } = await story.canary()
  expect(status.history.map(({ result }: { result: string }) => result)).toEqual(["Promoted", "Superseded"])
  expect(new Set(await imagesOf(story))).toEqual(new Set([v3]))
})

test("reverted: the run is cancelled, and no pod of the source was touched", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  await story.setImage(v1)
  await story.until("Initialized")
  await story.world.settle("1m")
  expect(uidsOf(await story.pods())).toEqual(before)
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "Cancelled", reason: "Reverted" })
})

test("an image that no node can pull ends the run after its grace, and not after the deadline", async () => {
  const story = await canaryStory()
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  await story.setImage(`${v1.split(":").slice(0, -1).join(":")}:nowhere`)
  await story.until("Failed", "90s")
  await story.world.settle("2m")
  expect((await story.canary()).status.history[0]).toMatchObject({ result: "RolledBack", reason: "ImageUnavailable" })
  expect(uidsOf(await story.pods())).toEqual(before)
  expect(story.weights()).toEqual([0])
})
