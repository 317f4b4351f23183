import { expect, test } from "vitest"
import { canaries } from "#controllers/canary/resources.ts"
import { heldMark } from "#core/in-place/names.ts"
import { type CanaryStory, canaryStory, uidsOf, v1, v2 } from "#test/support/canary-story.ts"

// Where the policy holds a change in the user's own write, nothing of aim stays on the Deployment between runs.

async function expectFree(story: CanaryStory): Promise<void> {
  const { metadata, spec } = await story.deployment()
  expect([metadata.labels?.[heldMark], metadata.annotations?.[heldMark], spec.paused ?? false]).toEqual([
    undefined,
    undefined,
    false,
  ])
}

test("between runs the Deployment has no mark and no pause", async () => {
  const story = await canaryStory({ hasPolicy: true })
  await story.until("Initialized")
  await story.world.settle("1m")
  await expectFree(story)
  const before = uidsOf(await story.pods())
  await story.setImage(v2)
  const { metadata, spec } = await story.deployment()
  expect([metadata.labels[heldMark], spec.paused]).toEqual(["canary", true])
  await story.world.until("the last weight before the promotion", () => story.weights().includes(67))
  expect(uidsOf(await story.pods())).toEqual(expect.arrayContaining(before))
  await story.until("Succeeded")
  await story.world.settle("1m")
  await expectFree(story)
  expect(story.weights()).toEqual([0, 34, 67, 100, 0])
})

test("a change that goes back during a run ends the run and the hold, and no pod was touched", async () => {
  const story = await canaryStory({ hasPolicy: true })
  await story.until("Initialized")
  await story.world.settle("1m")
  const before = uidsOf(await story.pods())
  await story.setImage(v2)
  await story.world.until("a weight", () => story.weights().includes(34))
  await story.setImage(v1)
  await story.until("Initialized")
  await story.world.settle("1m")
  expect(uidsOf(await story.pods())).toEqual(before)
  await expectFree(story)
})

test("a deletion during a run writes the running template back, and then releases", async () => {
  const story = await canaryStory({ hasPolicy: true })
  const { world } = story
  await story.until("Initialized")
  await world.settle("1m")
  const before = uidsOf(await story.pods())
  await story.setImage(v2)
  await world.until("a weight", () => story.weights().includes(34))
  await story.remove()
  await world.until("the Canary is gone", async () => !(await world.list(canaries)).length, "10m")
  await world.settle("2m")
  expect(uidsOf(await story.pods())).toEqual(before)
  expect((await story.deployment()).spec.template.spec.containers[0].image).toBe(v1)
  await expectFree(story)
})
