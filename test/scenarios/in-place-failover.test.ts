import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { pods } from "#controllers/in-place/resources.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { type InPlaceKind, imageOf, isHeld, v1, v2, v3 } from "#test/support/in-place-story.ts"
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

describe("a template that a failover changes, without any admission policy", () => {
  const policy = { apply: "Template", templateShare: "1%" }
  const retargeted = async (kind: InPlaceKind, options: { spec?: Json; annotations?: Record<string, string> } = {}) => {
    const story = await sideBySide({ kind, hasNoPolicies: true, policy, ...options })
    const { world, registries } = story
    const before = await story.pods()
    registries.setFault(v1, refused)
    story.failOver()
    return { story, world, before }
  }
  /** A pod of its own that cannot pull: lost, and made again. */
  const lose = async (story: Awaited<ReturnType<typeof retargeted>>["story"]) => {
    const [first] = await story.pods()
    await story.world.client.delete(pods, first!.metadata)
  }
  const isRetargeted = async (story: Awaited<ReturnType<typeof retargeted>>["story"]) =>
    imageOf((await story.workload()).spec.template) === mirrored(v1)

  for (const kind of ["Deployment", "StatefulSet", "DaemonSet"] as const)
    test(`a ${kind}: the same write holds it, and no pod is replaced`, async () => {
      const { story, world, before } = await retargeted(kind)
      lose(story).catch(() => {})
      await world.until("the template is changed", () => isRetargeted(story), "10m")
      const changed = world.history.find(
        ({ object }) => object.kind === kind && imageOf(object.spec.template) === mirrored(v1),
      )!.object
      expect([changed.metadata.labels?.[heldMark], isHeld(changed)]).toEqual(["in-place", true])
      await story.free("1h")
      await world.settle("2m")
      const olds = new Set(before.slice(1).map(({ metadata }) => metadata.uid))
      const after = await story.pods()
      expect(after.filter(({ metadata }) => olds.has(metadata.uid))).toHaveLength(2)
      expect(after).toHaveLength(3)
    })

  test("under InPlaceOnly a Deployment that its owner has paused keeps its template, and its pod is repaired", async () => {
    const annotations = { [strategyAnnotation]: "InPlaceOnly" }
    const { story, world } = await retargeted("Deployment", { annotations })
    await story.patch({ spec: { paused: true } })
    lose(story).catch(() => {})
    // The pod that cannot pull is repaired all the same.
    const isRepaired = async () => (await story.pods()).some(pod => imageOf(pod) === mirrored(v1))
    await world.until("the pod is repaired", isRepaired, "10m")
    await world.settle("5m")
    expect([await isRetargeted(story), isHeld(await story.workload())]).toEqual([false, false])
  })
})
