import { expect, test } from "vitest"
import { canaryStory, v2 } from "#test/support/canary-story.ts"
import { image, oamStory } from "#test/support/oam-story.ts"
import { printed, typeInto } from "#test/support/typed.ts"

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

test("revisions of a component: rollback says which one to go back to, and that is what brings it back", async () => {
  const story = await oamStory({ size: 2 })
  const says = async () => {
    const answer = await (await typeInto(story.world, "aim rollback canary/web -n default --dry-run")).atOnce()
    return "error" in answer ? answer.error.message : answer.next
  }
  await story.revise(image(2))
  await story.world.until("a run", async () => (await story.canary()).status.run !== undefined, "10m")
  expect(await says()).toContain("Deployment web-v2 stays without pods: give the component another revision")
  await story.ended(1)
  expect(await says()).toMatch(
    /^canary\/web: run r\w+ was promoted, and workload web-v1 of the revision before has no pods any more: point the component, or targetRef, at that revision, and a run proves it$/,
  )
  await story.backTo(1)
  await story.ended(2)
  await story.world.advance("1m")
  expect(await story.sizes()).toEqual([2, 0])
})
