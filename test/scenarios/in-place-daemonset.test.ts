import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { imageOf, inPlaceStory, isHeld, isRolledOut, v2 } from "#test/support/in-place-story.ts"
import { begun, expectReplaced, expectUpdated, imagesOf, lose, statusOf, tellOfSets, uidsOf } from "./in-place-sets.ts"

// A DaemonSet is held by OnDelete.

tellOfSets("DaemonSet")

const kind = "DaemonSet"
const rolling = (rollingUpdate: Json) => ({ updateStrategy: { type: "RollingUpdate", rollingUpdate } })

describe("in between", () => {
  test("a pod is lost: it comes back with the new image", async () => {
    const story = await inPlaceStory({ kind })
    const before = await story.pods()
    await begun(story)
    await lose(story, before.at(-1)!)
    await story.free()
    await story.world.settle("1m")
    const after = await story.pods()
    expect(imagesOf(after)).toEqual([v2, v2, v2])
    expect(after.filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toHaveLength(2)
    expect(isRolledOut(await story.workload())).toBe(true)
  })

  test("a node is added, and another one is removed", async () => {
    const story = await inPlaceStory({ kind })
    const before = await story.pods()
    await begun(story)
    await story.addNode("node-9")
    await story.removeNode(before.at(-1)!.spec.nodeName)
    await story.free()
    await story.world.settle("2m")
    const after = (await story.pods()).filter(({ metadata }) => !metadata.deletionTimestamp)
    expect(imagesOf(after)).toEqual([v2, v2, v2])
    expect(after.filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toHaveLength(2)
  })
})

describe("what its owner has written", () => {
  for (const [maxUnavailable, most] of [
    [1, 1],
    [2, 2],
    ["50%", 2],
  ] as const)
    test(`maxUnavailable ${maxUnavailable} is the budget, and is there afterwards`, async () => {
      const story = await inPlaceStory({ kind, spec: rolling({ maxUnavailable, maxSurge: 0 }) })
      const before = await story.pods()
      const from = story.world.history.length
      await story.setImage({ web: v2 })
      expect((await story.workload()).spec.updateStrategy.type).toBe("OnDelete")
      await story.free()
      const behind = new Set<string>()
      let down = 0
      for (const { object } of story.world.history.slice(from)) {
        if (object.kind !== "Pod") continue
        behind[statusOf(object)?.image === imageOf(object) ? "delete" : "add"](object.metadata.name)
        down = Math.max(down, behind.size)
      }
      expect(down).toBe(most)
      await expectUpdated(story, before, v2, rolling({ maxUnavailable, maxSurge: 0 }).updateStrategy)
    })

  test("pods that are made before the old ones go: no pod may restart, and the update is a native one", async () => {
    const story = await inPlaceStory({ kind, spec: rolling({ maxUnavailable: 0, maxSurge: 1 }) })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "NoBudget" })
    await expectReplaced(story, before, v2)
    expect((await story.workload()).spec.updateStrategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 })
  })

  test("OnDelete of its own is never touched", async () => {
    const story = await inPlaceStory({ kind, spec: { updateStrategy: { type: "OnDelete" } } })
    await story.patch({ spec: { template: { metadata: { labels: { app: "web" }, annotations: { note: "x" } } } } })
    await story.world.settle("2m")
    const set = await story.workload()
    expect(set.spec.updateStrategy).toEqual({ type: "OnDelete" })
    expect(isHeld(set)).toBe(false)
  })
})
