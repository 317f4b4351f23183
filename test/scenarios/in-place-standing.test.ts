import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { pods } from "#controllers/in-place/resources.ts"
import { parseHold } from "#core/in-place/marks.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { identity, imageOf, inPlaceStory, isHeld, isRolledOut, v1, v2, v3 } from "#test/support/in-place-story.ts"
import { begin, expectAtRest, isStopped, kinds } from "./in-place-standing.ts"

// A server without the policies: a person holds a workload, and the hold stays between updates (decision 89).

const uidsOf = (found: readonly Json[]) => found.map(({ metadata }) => metadata.uid).sort()

for (const kind of kinds)
  describe(`a ${kind} behind a standing hold`, () => {
    test("two updates in a row: the same pods, and the hold stays", async () => {
      const { story, before } = await begin({ kind })
      for (const image of [v2, v3, v1]) {
        await story.setImage({ web: image })
        await story.says("Completed")
        await expectAtRest(story, image)
        expect((await story.pods()).map(identity)).toEqual(before.map(identity))
        expect(isRolledOut(await story.workload())).toBe(true)
      }
      const ever = new Set(
        story.world.history.flatMap(({ object }) => (object.kind === "Pod" ? [object.metadata.uid] : [])),
      )
      expect(ever.size).toBe(before.length)
      expect(await story.jobs()).toEqual([])
    })

    test("nothing is written while it rests", async () => {
      const { story } = await begin({ kind })
      await story.world.settle("1m")
      const from = story.world.history.length
      await story.world.advance("1h")
      const written = story.world.history.slice(from).filter(({ object }) => object.kind !== "Lease")
      expect(written.filter(({ object }) => object.metadata.name === "web")).toEqual([])
    })

    test("the same image again after one that failed: it is tried anew", async () => {
      const { story, before } = await begin({ kind, spec: { minReadySeconds: 5 } })
      story.registries.push(v2, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
      await story.setImage({ web: v2 })
      await story.says("UpdateFailed", "30m")
      await story.setImage({ web: v1 })
      await story.says("Completed", "30m")
      await expectAtRest(story, v1)
      // Under the name of the operation before, its pods would count as failed from the beginning.
      await story.setImage({ web: v2 })
      await story.world.until("a pod is changed again", async () => (await imagesOf(story)).includes(v2), "5m")
      await story.setImage({ web: v1 })
      await expectAtRest(story, v1)
      expect((await story.pods()).map(identity)).toEqual(before.map(identity))
    })

    test("another field: its own controller does it, and then the hold stands again", async () => {
      const { story, before, strategy } = await begin({ kind })
      await story.change({ spec: { containers: [{ name: "web", env: [{ name: "A", value: "1" }] }] } })
      await story.says("NotInPlace")
      await expectAtRest(story, v1)
      expect((await story.pods()).filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toEqual([])
      // And the next image goes in place.
      const after = await story.pods()
      await story.setImage({ web: v2 })
      await story.says("Completed")
      await expectAtRest(story, v2)
      expect((await story.pods()).map(identity)).toEqual(after.map(identity))
      await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
      const free = await story.free()
      expect([free.spec.paused ?? false, free.spec.updateStrategy]).toEqual([false, strategy])
    })

    test("an image and then a field in the middle: no pod stays on another image", async () => {
      const { story } = await begin({ kind })
      await story.setImage({ web: v2 })
      await story.world.until("one pod is changed", async () => (await imagesOf(story)).includes(v2))
      await story.change({ spec: { containers: [{ name: "web", image: v3, env: [{ name: "A", value: "1" }] }] } })
      await expectAtRest(story, v3)
    })

    test("under InPlaceOnly another field waits for a person", async () => {
      const { story, before } = await begin({ kind, annotations: { [strategyAnnotation]: "InPlaceOnly" } })
      await story.change({ spec: { priorityClassName: "system-node-critical" } })
      await story.says("NotInPlace")
      expect(isStopped(await story.workload())).toBe(true)
      await story.change({ spec: { priorityClassName: null } })
      await expectAtRest(story, v1)
      expect((await story.pods()).map(identity)).toEqual(before.map(identity))
    })

    test("its opt-in is removed: everything is given back", async () => {
      const { story, before, strategy } = await begin({ kind })
      await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
      const free = await story.free()
      await story.world.settle("1m")
      expect([free.spec.paused ?? false, free.spec.updateStrategy]).toEqual([false, strategy])
      expect(uidsOf(await story.pods())).toEqual(uidsOf(before))
    })

    test("the stop is taken away with another image: a rolling update, which says so", async () => {
      const { story, before } = await begin({ kind })
      const template = { spec: { containers: [{ name: "web", image: v2 }] } }
      const own = {
        Deployment: { paused: false },
        StatefulSet: { updateStrategy: { rollingUpdate: { partition: 0 } } },
        DaemonSet: { updateStrategy: { type: "RollingUpdate" } },
      }[kind]
      const body = { spec: { template, ...own } }
      await story.world.client.patch(story.resource, { name: "web", namespace: "default" }, { type: "strategic", body })
      await story.free()
      expect(await story.note()).toMatchObject({ reason: "FellBackToRollingUpdate" })
      await story.world.until("it is rolled out", async () => isRolledOut(await story.workload()))
      await story.world.settle("2m")
      expect((await story.pods()).filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toEqual([])
    })

    test("a pod is lost while it rests: it comes back with the present image", async () => {
      const { story } = await begin({ kind })
      await story.setImage({ web: v2 })
      await story.says("Completed")
      await expectAtRest(story, v2)
      const [pod] = await story.pods()
      await story.world.client.delete(pods, pod!.metadata)
      await story.world.until("it is whole again", async () => isRolledOut(await story.workload()))
      await expectAtRest(story, v2)
    })

    test("its annotation is lost while it rests: it is given back, and not taken for a pause of its owner", async () => {
      const { story, strategy } = await begin({ kind })
      await story.setImage({ web: v2 })
      await story.says("Completed")
      await expectAtRest(story, v2)
      await story.patch({ metadata: { annotations: { [heldMark]: null } } })
      const free = await story.free()
      expect(free.spec.paused ?? false).toBe(false)
      if (kind !== "Deployment") expect(free.spec.updateStrategy).toEqual(strategy)
    })

    test("the policies come later: the next change is theirs, and no hold stays", async () => {
      const { story, before, strategy } = await begin({ kind })
      await story.world.apply(...story.policies)
      await story.setImage({ web: v2 })
      const free = await story.free()
      expect([free.spec.paused ?? false, free.spec.updateStrategy]).toEqual([false, strategy])
      expect((await story.pods()).map(identity)).toEqual(before.map(identity))
      expect(await story.note()).toMatchObject({ reason: "Completed" })
    })

    test("a hold is lent, and its owner stops it meanwhile: that stays", async () => {
      const { story } = await begin({ kind })
      await story.change({ spec: { containers: [{ name: "web", env: [{ name: "A", value: "1" }] }] } })
      await story.world.until("the hold is lent", async () => holdOf(await story.workload())?.isLent === true)
      const stops = {
        Deployment: { paused: true },
        StatefulSet: { updateStrategy: { rollingUpdate: { partition: 2 } } },
      }
      const stop = { ...stops, DaemonSet: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } }[kind]
      await story.patch({ spec: stop })
      await story.world.advance("10m")
      expect((await story.workload()).spec).toMatchObject(
        kind === "DaemonSet" ? { updateStrategy: { type: "OnDelete" } } : stop,
      )
    })
  })

const holdOf = ({ metadata }: Json) => parseHold(metadata.annotations?.[heldMark])
const imagesOf = async (story: { pods(): Promise<Json[]> }) => (await story.pods()).map(pod => imageOf(pod))

describe("a Deployment behind a standing hold", () => {
  test("is scaled while it rests, to none and back, and gets another image meanwhile", async () => {
    const { story } = await begin({})
    await story.patch({ spec: { replicas: 5 } })
    await story.world.until("five pods are ready", async () => isRolledOut(await story.workload()))
    await expectAtRest(story, v1)
    await story.patch({ spec: { replicas: 0 } })
    await story.world.until("no pod is left", async () => (await story.pods()).length === 0)
    await story.setImage({ web: v2 })
    await story.world.settle("1m")
    await story.patch({ spec: { replicas: 2 } })
    await story.world.until("two pods are ready", async () => isRolledOut(await story.workload()))
    await expectAtRest(story, v2)
    const made = story.world.history.filter(({ object }) => object.kind === "Pod" && object.spec.nodeName)
    expect(made.at(-1)?.object.spec.containers[0].image).toBe(v2)
  })

  test("kubectl rollout resume while it rests is the owner's release", async () => {
    const { story, before } = await begin({})
    await story.patch({ spec: { paused: null } })
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "FellBackToRollingUpdate" })
    expect(uidsOf(await story.pods())).toEqual(uidsOf(before))
    await story.setImage({ web: v2 })
    await story.world.until("it is rolled out", async () => isRolledOut(await story.workload()))
    await story.world.settle("2m")
    expect((await story.pods()).filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toEqual([])
  })

  test("is replaced by its manifest: the hold is over, and nothing is stopped", async () => {
    const { story } = await begin({})
    await story.replace(v2)
    await story.world.until("it is rolled out", async () => isRolledOut(await story.workload()))
    const free = await story.free()
    await story.world.settle("2m")
    expect(free.spec.paused ?? false).toBe(false)
    expect(await imagesOf(story)).toEqual([v2, v2, v2])
  })
})

test("a DaemonSet whose block is changed while it rests gets that block back", async () => {
  const { story } = await begin({ kind: "DaemonSet" })
  await story.patch({ spec: { updateStrategy: { rollingUpdate: { maxUnavailable: 2 } } } })
  await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
  const { spec } = await story.free()
  expect(spec.updateStrategy).toMatchObject({ type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } })
})

test("without a hold, and without policies, an update is a native one", async () => {
  const story = await inPlaceStory({ hasNoPolicies: true })
  const before = await story.pods()
  await story.setImage({ web: v2 })
  await story.world.until("it is rolled out", async () => isRolledOut(await story.workload()))
  await story.world.settle("2m")
  expect(isHeld(await story.workload())).toBe(false)
  expect((await story.pods()).filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toEqual([])
})
