import { expect, test } from "vitest"
import { canaries, deployments, services } from "#controllers/canary/resources.ts"
import { heldMark } from "#core/in-place/names.ts"
import { canaryStory, uidsOf, v1, v2 } from "#test/support/canary-story.ts"

// A Canary that is deleted leaves a workload that runs on as it is.

for (const weight of [0, 34, 67])
  test(`deleted at weight ${weight}: requests and template go back to the pods that ran, and none restarts`, async () => {
    const story = await canaryStory()
    const { world } = story
    await story.until("Initialized")
    const before = uidsOf(await story.pods())
    await story.setImage(v2)
    await world.until("the weight", () => story.weights().includes(weight))
    await story.remove()
    await world.until("the Canary is gone", async () => !(await world.list(canaries)).length, "10m")
    await world.settle("2m")
    expect(uidsOf(await story.pods())).toEqual(before)
    expect(story.weights().at(-1)).toBe(0)
    const deployment = await story.deployment()
    expect(deployment.spec.template.spec.containers[0].image).toBe(v1)
    expect(deployment.spec.paused ?? false).toBe(false)
    expect(deployment.metadata.labels?.[heldMark]).toBeUndefined()
    expect((await world.list(deployments)).map(({ metadata }) => metadata.name)).toEqual(["web"])
  })

for (const phase of ["Promoting", "Finalising", "Succeeded"])
  test(`deleted when ${phase}: one revision is left, its pods ran before, and nothing is held`, async () => {
    // The last pod comes with the promotion.
    const story = await canaryStory({ spec: { analysis: { interval: "1m", threshold: 2, stepWeights: [34] } } })
    const { world } = story
    await story.until("Initialized")
    await story.setImage(v2)
    await story.until(phase)
    const running = uidsOf(await story.pods())
    await story.remove()
    await world.until("the Canary is gone", async () => !(await world.list(canaries)).length, "10m")
    await world.settle("2m")
    const left = await story.pods()
    expect(left).toHaveLength(3)
    expect(running).toEqual(expect.arrayContaining(uidsOf(left)))
    const deployment = await story.deployment()
    expect(new Set(left.map(pod => pod.spec.containers[0].image))).toEqual(
      new Set([deployment.spec.template.spec.containers[0].image]),
    )
    expect(deployment.spec.paused ?? false).toBe(false)
    expect(deployment.metadata.labels?.[heldMark]).toBeUndefined()
    expect((await world.list(deployments)).map(({ metadata }) => metadata.name)).toEqual(["web"])
  })

test("deleted before any run: Services and route stay, without their owner, and select the pods by the workload's labels", async () => {
  const story = await canaryStory()
  const { world } = story
  await story.until("Initialized")
  const before = uidsOf(await story.pods())
  await story.remove()
  await world.until("the Canary is gone", async () => !(await world.list(canaries)).length, "10m")
  await world.settle("2m")
  expect(uidsOf(await story.pods())).toEqual(before)
  const left = (await world.list(services)).filter(({ metadata }) => metadata.name !== "kubernetes")
  expect(left.map(({ metadata }) => metadata.name).sort()).toEqual(["web", "web-canary", "web-primary"])
  for (const { metadata, spec } of left) {
    expect(metadata.ownerReferences ?? []).toEqual([])
    expect(spec.selector).toEqual({ app: "web" })
  }
  expect((await story.deployment()).spec.paused ?? false).toBe(false)
})
