import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { revisionLabel, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { imageOf, inPlaceStory, isHeld, isRolledOut, v1, v2, v3 } from "#test/support/in-place-story.ts"
import { host } from "#test/support/pull-story.ts"
import { begun, expectUpdated, imagesOf, labelled, lose, statusOf, tellOfSets, uidsOf } from "./in-place-sets.ts"

// A StatefulSet is held by a partition above every ordinal.

tellOfSets("StatefulSet")

const kind = "StatefulSet"

/** Names of pods in the order in which they got the image. */
function orderOf(history: readonly { object: Json }[], image: string): string[] {
  const changed = history.filter(({ object }) => object.kind === "Pod" && imageOf(object) === image)
  return [...new Set(changed.map(({ object }) => object.metadata.name))]
}

describe("the order", () => {
  test("from the highest ordinal, one after the other has restarted", async () => {
    const story = await inPlaceStory({ kind, replicas: 4 })
    const from = story.world.history.length
    await story.setImage({ web: v2 })
    await story.free()
    const history = story.world.history.slice(from)
    expect(orderOf(history, v2)).toEqual(["web-3", "web-2", "web-1", "web-0"])
    const behind = new Set<string>()
    for (const { object } of history) {
      if (object.kind !== "Pod") continue
      const isBehind = statusOf(object)?.image !== imageOf(object)
      behind[isBehind ? "add" : "delete"](object.metadata.name)
      expect(behind.size).toBeLessThanOrEqual(1)
    }
  })

  for (const [policy, changed] of [
    ["OrderedReady", []],
    ["Parallel", ["web-0", "web-1"]],
  ] as const)
    test(`${policy}: the highest one's node lacks the image`, async () => {
      const story = await inPlaceStory({ kind, spec: { podManagementPolicy: policy } })
      const last = (await story.pods()).at(-1)!
      await story.agents.get(last.spec.nodeName)!.stop()
      const from = story.world.history.length
      await story.setImage({ web: v2 })
      await story.world.advance("2m")
      expect(orderOf(story.world.history.slice(from), v2).sort()).toEqual(changed)
      expect(isHeld(await story.workload())).toBe(true)
    })

  test("in-place-partition keeps no pod when the image is changed back", async () => {
    const story = await inPlaceStory({ kind, annotations: { [settingAnnotations.partition]: "2" } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.says("Partitioned")
    await story.world.settle("10s")
    await story.setImage({ web: v1 })
    await story.free()
    await expectUpdated(story, before, v1)
  })

  test("in-place-partition keeps the lowest, and the status counts the others", async () => {
    const story = await inPlaceStory({ kind, annotations: { [settingAnnotations.partition]: "2" } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.says("Partitioned")
    await story.world.settle("10s")
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v1, v1, v2])
    expect((await story.workload()).status).toMatchObject({ updatedReplicas: 1, currentReplicas: 2 })
    await story.patch({ metadata: { annotations: { [settingAnnotations.partition]: "0" } } })
    await story.free()
    await expectUpdated(story, before, v2)
  })
})

describe("a pod on a broken image is repaired without deleting it", () => {
  const broken = `${host}/web:missing`

  /** A rolling update has made the last pod anew, and waits for it for ever. */
  async function wedged() {
    const story = await inPlaceStory({ kind, annotations: { [strategyAnnotation]: "Recreate" } })
    await story.patch({
      spec: {
        template: {
          spec: {
            containers: [
              { name: "web", image: broken },
              { name: "side", image: `${host}/side:1` },
            ],
          },
        },
      },
    })
    const isStuck = (pod: Json) => statusOf(pod)?.state?.waiting?.reason === "ImagePullBackOff"
    await story.world.until("the last pod is stuck", async () => (await story.pods()).some(isStuck))
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: "InPlaceIfPossible" } } })
    return { story, before: await story.pods() }
  }

  for (const [words, image] of [
    ["by another image", v3],
    ["by the image before", v1],
  ] as const)
    test(words, async () => {
      const { story, before } = await wedged()
      await story.setImage({ web: image })
      await story.free()
      await story.world.settle("1m")
      const after = await story.pods()
      expect(uidsOf(after)).toEqual(uidsOf(before))
      expect(new Set(imagesOf(after))).toEqual(new Set([image]))
      const set = await story.workload()
      expect(isRolledOut(set)).toBe(true)
      expect(new Set(after.map(({ metadata }) => metadata.labels[revisionLabel]))).toEqual(
        new Set([set.status.currentRevision]),
      )
    })
})

describe("in between", () => {
  for (const [when, until] of [
    ["before the first label", begun],
    ["after it", labelled],
  ] as const)
    for (const replicas of [5, 2, 0])
      test(`it is scaled to ${replicas} ${when}`, async () => {
        const story = await inPlaceStory({ kind })
        const before = await story.pods()
        await until(story)
        await story.patch({ spec: { replicas } })
        await story.free()
        await story.world.settle("2m")
        const after = await story.pods()
        const olds = new Set(uidsOf(before))
        expect(after).toHaveLength(replicas)
        expect(after.filter(({ metadata }) => olds.has(metadata.uid))).toHaveLength(Math.min(replicas, 3))
        expect(imagesOf(after)).toEqual(Array(replicas).fill(v2))
        expect(isRolledOut(await story.workload())).toBe(true)
      })

  test("a pod is lost: it comes back with the old image, and is brought along", async () => {
    const story = await inPlaceStory({ kind })
    const before = await story.pods()
    await labelled(story)
    await lose(story, before.at(-1)!)
    await story.free()
    await story.world.settle("1m")
    const after = await story.pods()
    expect(imagesOf(after)).toEqual([v2, v2, v2])
    expect(after.filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toHaveLength(2)
    expect(isRolledOut(await story.workload())).toBe(true)
  })
})

describe("what its owner has written", () => {
  test("maxUnavailable is the budget, and is there afterwards", async () => {
    const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2, partition: 0 } }
    const story = await inPlaceStory({ kind, replicas: 4, spec: { updateStrategy } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    await expectUpdated(story, before, v2, updateStrategy)
  })

  for (const [words, updateStrategy] of Object.entries({
    "a partition": { type: "RollingUpdate", rollingUpdate: { partition: 2 } },
    OnDelete: { type: "OnDelete" },
  }))
    test(`${words} of its own is never touched`, async () => {
      const story = await inPlaceStory({ kind, spec: { updateStrategy } })
      await story.patch({
        spec: { template: { metadata: { labels: { app: "web" }, annotations: { note: "x" } } } },
      })
      await story.world.settle("2m")
      const set = await story.workload()
      expect(set.spec.updateStrategy).toEqual(updateStrategy)
      expect(isHeld(set)).toBe(false)
    })
})
