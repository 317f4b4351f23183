import { expect, test } from "vitest"
import { createLag } from "#cluster-sim/faults/lag.ts"
import type { Json } from "#cluster-sim/index.ts"
import { deployments } from "#controllers/in-place/resources.ts"
import { settingAnnotations } from "#core/in-place/names.ts"
import {
  type InPlaceStory,
  identity,
  imageOf,
  inPlaceStory,
  isRolledOut,
  v1,
  v2,
} from "#test/support/in-place-story.ts"
import { begun, expectUpdated, imagesOf, statusOf } from "./in-place-sets.ts"

// What happens to a pod or to its node after the pod was changed. It says nothing of the image.

const rollback = { [settingAnnotations.onFailure]: "Rollback" }
const partition = (keeps: string) => ({ [settingAnnotations.partition]: keeps })
const changed = async (story: InPlaceStory) => (await story.pods()).find(pod => imageOf(pod) === v2)!
const keepsNone = { metadata: { annotations: { [settingAnnotations.partition]: null } } }

test("the node of a proven pod is lost for half an hour, and another process takes over: the pod stays updated", async () => {
  const annotations = { ...partition("2"), ...rollback }
  const story = await inPlaceStory({ kind: "DaemonSet", annotations, isAlone: true })
  const before = await story.pods()
  const first = story.update()
  await story.setImage({ web: v2 })
  await story.says("Partitioned")
  await story.world.settle("10s")
  const { nodeName } = (await changed(story)).spec
  story.machines.stopKubelet(nodeName)
  await story.world.advance("15m")
  first.die()
  story.update()
  await story.world.advance("15m")
  expect(await story.note()).toMatchObject({ reason: "Partitioned" })
  expect(imagesOf(await story.pods())).toEqual([v1, v1, v2])
  story.machines.startKubelet(nodeName)
  await story.world.settle("1m")
  await story.patch(keepsNone)
  await story.free()
  await expectUpdated(story, before, v2)
})

test("the node of a pod that is not proven yet is lost: it is waited for, and named", async () => {
  const story = await inPlaceStory({ kind: "DaemonSet", annotations: rollback, spec: { minReadySeconds: 10 } })
  const before = await story.pods()
  await begun(story)
  const { nodeName } = (await changed(story)).spec
  story.machines.stopKubelet(nodeName)
  expect((await story.says("NodeNotReady", "30m")).message).toContain(nodeName)
  await story.world.advance("30m")
  expect(await story.note()).toMatchObject({ reason: "NodeNotReady" })
  expect(imagesOf(await story.pods())).toEqual([v1, v1, v2])
  story.machines.startKubelet(nodeName)
  await story.free()
  await expectUpdated(story, before, v2)
})

test("another process takes over while the node is lost: what it cannot see proven is no failure", async () => {
  const story = await inPlaceStory({ kind: "DaemonSet", annotations: rollback, isAlone: true })
  const before = await story.pods()
  const first = story.update()
  await begun(story)
  const { nodeName } = (await changed(story)).spec
  story.machines.stopKubelet(nodeName)
  await story.world.advance("20m")
  first.die()
  story.update()
  await story.world.advance("20m")
  expect(await story.note()).toMatchObject({ reason: "NodeNotReady" })
  story.machines.startKubelet(nodeName)
  await story.free()
  await expectUpdated(story, before, v2)
})

test("a proven pod of a Deployment that is ended for want of memory, again and again: it keeps its image", async () => {
  const story = await inPlaceStory({ annotations: { ...partition("2"), ...rollback } })
  const before = await story.pods()
  await story.setImage({ web: v2 })
  await story.says("Partitioned")
  await story.world.advance("15m")
  for (let times = 0; times < 6; times++) {
    story.machines.endContainer(await changed(story), "web", { exitCode: 137, reason: "OOMKilled" })
    await story.world.advance("3m")
  }
  expect(statusOf(await changed(story)).restartCount).toBeGreaterThan(4)
  expect((await story.note())?.failed).toBeUndefined()
  expect(imagesOf(await story.pods())).toEqual([v1, v1, v2])
  await story.world.client.patch(
    deployments,
    { name: "web", namespace: "default" },
    { type: "merge", body: keepsNone as Json },
  )
  await story.free()
  await story.world.settle("5m")
  expect((await story.pods()).map(identity)).toEqual(before.map(identity))
  expect(imagesOf(await story.pods())).toEqual([v2, v2, v2])
})

test("an image that crashes after the flip and before the release: the workload goes back to the template that was kept", async () => {
  // Without minReadySeconds, and with a Deployment controller that is slow to see the flip.
  const lag = createLag()
  const story = await inPlaceStory({ annotations: rollback, lags: { "deployment-controller": lag } })
  lag.behind(30_000, ["ReplicaSet"])
  story.registries.push(v2, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
  const before = await story.pods()
  await story.setImage({ web: v2 })
  const flipped = async () =>
    (await story.sets()).some(set => set.spec.replicas > 0 && imageOf(set.spec.template) === v2)
  await story.world.until("the ReplicaSet has the new template", flipped)
  await story.free("30m")
  expect(await story.note()).toMatchObject({ reason: "RolledBack", from: { web: v1 }, to: { web: v2 } })
  await story.world.settle("5m")
  expect((await story.pods()).map(identity)).toEqual(before.map(identity))
  expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
  expect(isRolledOut(await story.deployment())).toBe(true)
})
