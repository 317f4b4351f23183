import { expect, test } from "vitest"
import { canaryStory, v2 } from "#test/support/canary-story.ts"
import { printed } from "#test/support/typed.ts"

// approve, pause, resume and rollback of canary/NAME, as they are typed.

test("a run is approved, paused, resumed and taken back by commands", async () => {
  const story = await canaryStory({ spec: { requireApproval: ["Rollout"] } })
  const says = (words: string) => printed(story.world, `aim ${words} canary/web -n default`)
  await story.until("Initialized")
  await story.setImage(v2)
  await story.until("Waiting")
  await story.world.settle("1m")
  expect(await says("approve")).toMatch(/^approved: Rollout of canary\/web, run r\w+ \(to .*web:2\), by .+\n$/)
  await story.world.until("a weight", () => story.weights().includes(34), "10m")
  const { gates } = (await story.canary()).status.run
  expect(gates[0]).toMatchObject({ state: "Passed", approvedBy: expect.stringMatching(/.+/) })
  expect(await says("pause")).toMatch(/^paused: canary\/web, run r\w+\n$/)
  await story.world.settle("1h")
  expect(story.weights()).toEqual([0, 34])
  expect(await says("resume")).toBe("resumed: canary/web\n")
  await story.world.until("the next weight", () => story.weights().includes(67), "10m")
  expect(await says("rollback")).toMatch(/^rolling back: run r\w+ of canary\/web\n$/)
  await story.until("Failed")
  await story.world.settle("5m")
  expect(story.weights()).toEqual([0, 34, 67, 0])
  expect(await says("resume")).toMatch(/^resumed: canary\/web, run r\w+ once more\n$/)
  await story.until("Waiting")
})
