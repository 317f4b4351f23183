import { describe, expect, test } from "vitest"
import { pods } from "#controllers/alternateimagesource/resources.ts"
import { imageOf, v1, v2, v3 } from "#test/support/in-place-story.ts"
import {
  allPicked,
  containerOf,
  identity,
  imagesOver,
  mirrored,
  nonePicked,
  refused,
  sideBySide,
} from "#test/support/side-by-side-story.ts"

// S32: an update in place and the failover of a pull do not change a pod at the same time, and a pod that is pulled
// from an equivalent repository is on the image it stands for.

describe("a pod that an update in place works on", () => {
  async function changedAndWaiting() {
    const story = await sideBySide({ annotations: nonePicked })
    const { world, registries } = story
    const name = await story.addWaiting()
    await story.setImage({ web: v2 })
    const hasImage = () => ["node-0", "node-1", "node-2"].every(node => story.imageOn(node, v2) !== undefined)
    await world.until("the agents have pulled", hasImage, "2m")
    await world.settle("10s")
    registries.setFault(v2, refused)
    await story.patch(allPicked)
    await world.until("it is changed", async () => imageOf(await story.pod(name)) === v2, "2m")
    // Before, it was of the old version, and would have been failed over in that.
    story.failOver()
    return { story, name }
  }

  test("is not failed over: the update decides about it", async () => {
    const { story, name } = await changedAndWaiting()
    await story.world.until("it is left", async () => (await story.reason()) === "UpdatedInPlace", "2m")
    expect((await story.says("UpdateFailed")).message).toContain(`${name}: ImagePullFailed`)
    await story.world.settle("5m")
    // It went back to what it was made with, which has an equivalent.
    expect(imagesOver(story, name)).toEqual([v1, v2, v1, mirrored(v1)])
    story.registries.setFault(v2, undefined)
    await story.setImage({ web: v3 })
    await story.free("1h")
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v3, v3, v3, v3])
  })
})

describe("a pod that is made from the old template during a hold", () => {
  for (const kind of ["Deployment", "StatefulSet"] as const)
    test(`of a ${kind} is failed over in its own version, and updated from there`, async () => {
      const story = await sideBySide({ kind, annotations: nonePicked })
      const { world, registries } = story
      await story.setImage({ web: v2 })
      await story.says("Partitioned")
      registries.setFault(v1, refused)
      story.failOver()
      const known = new Set((await story.pods()).map(({ metadata }) => metadata.uid))
      await world.client.delete(pods, (await story.pods())[0]!.metadata)
      const found = async () => (await story.pods()).find(({ metadata }) => !known.has(metadata.uid))
      await world.until("its replacement runs", async () => containerOf((await found()) ?? {}) !== "", "10m")
      const { name, uid } = (await found())!.metadata
      await story.patch(allPicked)
      await story.free("1h")
      expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v2, v2, v2])
      expect(imagesOver(story, name, uid)).toEqual([v1, mirrored(v1), v2])
    })
})

describe("a pod that a failover has just changed", () => {
  test("is left alone by an update in place until it has started, and is then updated", async () => {
    const story = await sideBySide()
    const before = await story.pods()
    story.slowMirror(30)
    story.failOver()
    const name = await story.addWaiting()
    await story.world.until(
      "it is sent to the mirror",
      async () => imageOf(await story.pod(name)) === mirrored(v1),
      "5m",
    )
    await story.setImage({ web: v2 })
    await story.free("1h")
    await story.world.settle("1m")
    const started = story.world.history.find(
      ({ object }) => object.kind === "Pod" && object.metadata.name === name && containerOf(object) !== "",
    )
    expect(imageOf(started!.object)).toBe(mirrored(v1))
    expect(imagesOver(story, name)).toEqual([v1, mirrored(v1), v2])
    const after = await story.pods()
    expect(after.map(pod => imageOf(pod))).toEqual([v2, v2, v2, v2])
    expect(after.filter(({ metadata }) => metadata.name !== name).map(identity)).toEqual(before.map(identity))
  })

  test("is updated after a minute, if it has not started by then", async () => {
    const story = await sideBySide()
    story.registries.setFault(mirrored(v1), refused)
    story.failOver()
    const name = await story.addWaiting()
    await story.world.until(
      "it is sent to the mirror",
      async () => imageOf(await story.pod(name)) === mirrored(v1),
      "5m",
    )
    const at = story.world.clock.now()
    await story.setImage({ web: v2 })
    await story.world.until("it is changed", async () => imageOf(await story.pod(name)) === v2, "5m")
    expect(story.world.clock.now() - at).toBeGreaterThan(50_000)
    await story.free("1h")
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v2, v2, v2, v2])
  })
})

test("a pod that runs an equivalent image is on the image it stands for: changing the image back restarts nothing", async () => {
  const story = await sideBySide({ annotations: nonePicked })
  story.failOver()
  const name = await story.addWaiting()
  await story.world.until("it runs", async () => containerOf(await story.pod(name)) !== "", "5m")
  const before = await story.pods()
  expect(imageOf(await story.pod(name))).toBe(mirrored(v1))
  await story.setImage({ web: v2 })
  await story.says("Partitioned")
  await story.setImage({ web: v1 })
  await story.patch(allPicked)
  await story.free("1h")
  await story.world.settle("5m")
  expect((await story.pods()).map(containerOf)).toEqual(before.map(containerOf))
  expect(imagesOver(story, name)).toEqual([v1, mirrored(v1)])
})
