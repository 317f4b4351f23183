import { expect, test } from "vitest"
import { answer, type Matcher } from "#cluster-sim/faults/faults.ts"
import { createInPlaceController } from "#controllers/in-place/controller.ts"
import { deployments } from "#controllers/in-place/resources.ts"
import { settingAnnotations } from "#core/in-place/names.ts"
import { type InPlaceOptions, inPlaceStory, v1, v2 } from "#test/support/in-place-story.ts"
import { measured } from "#test/support/measured.ts"
import type { ProcessOptions } from "#test/support/scenario.ts"

// What the manager exports on /metrics while it updates workloads in place.

async function storyMeasured(options: InPlaceOptions = {}, process?: ProcessOptions) {
  const story = await inPlaceStory({ ...options, isAlone: true })
  const manager = measured(story.world, [createInPlaceController()])
  story.world.run(manager.controllers, process)
  await story.world.settle("5s")
  const shown = async (name: string) =>
    (await manager.shown(`in_place_${name}`)).map(line => line.replace("in_place_", "").replace("kind=Deployment,", ""))
  return { story, manager, shown }
}

test("an update from the hold to the release: what is held, every pod with its time, and what is left", async () => {
  const { story, manager, shown } = await storyMeasured({ hasGate: true })
  expect(await manager.has("in_place_held{")).toBe(false)
  const before = story.world.clock.now() / 1000
  await story.setImage({ web: v2 })
  const updating = "held{namespace=default,reason=Updating} 1"
  await story.world.until("a pod is being updated", async () => (await shown("held")).includes(updating))
  const [oldest] = await manager.shown("in_place_oldest_held")
  expect(oldest).toContain("{namespace=default,kind=Deployment}")
  expect(Number(oldest!.split(" ")[1])).toBeGreaterThanOrEqual(before)
  const pods = (await shown("pods{")).map(line => Number(line.split(" ")[1]))
  expect(pods.reduce((sum, each) => sum + each, 0)).toBe(3)

  await story.free()
  await story.world.settle("1m")
  expect(await shown("released")).toEqual(["released_total{reason=Completed} 1"])
  expect(await shown("pod_updates")).toEqual(["pod_updates_total{result=Updated} 3"])
  expect(await shown("budget")).toEqual(["budget_answers_total{answer=Allowed} 3"])
  expect(await shown("pod_step_seconds_count")).toEqual([
    "pod_step_seconds_count{step=Drain} 3",
    "pod_step_seconds_count{step=Restart} 3",
  ])
  for (const gauge of ["held{", "oldest_held_timestamp_seconds{", "pods{"])
    expect(await manager.has(`in_place_${gauge}`)).toBe(false)
})

test("a pod that crashes and goes back is counted by its reason, and the workload is shown as failed", async () => {
  const { story, shown } = await storyMeasured({ spec: { minReadySeconds: 5 } })
  story.registries.push(v2, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
  await story.setImage({ web: v2 })
  await story.says("UpdateFailed", "30m")
  await story.world.settle("1m")
  expect(await shown("held")).toEqual(["held{namespace=default,reason=UpdateFailed} 1"])
  expect(await shown("pod_updates")).toEqual([
    "pod_updates_total{result=Reverted} 1",
    "pod_updates_total{result=CrashLoop} 1",
  ])
  await story.setImage({ web: v1 })
  await story.free()
  await story.world.settle("1m")
  expect(await shown("released")).toEqual(["released_total{reason=Completed} 1"])
})

test("a workload that waits for its budget is shown so", async () => {
  const { story, shown } = await storyMeasured()
  await story.world.apply({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "web", namespace: "default" },
    spec: { minAvailable: 3, selector: { matchLabels: { app: "web" } } },
  })
  await story.world.settle("10s")
  await story.setImage({ web: v2 })
  await story.says("BudgetSpent")
  await story.world.settle("1s")
  expect(await shown("held")).toEqual(["held{namespace=default,reason=BudgetSpent} 1"])
  expect(await shown("budget_answers")).toEqual([])
})

test("a workload whose writes the server refuses is shown with that, whatever its annotation says", async () => {
  const isPod: Matcher = ({ method, path }) => method === "PATCH" && path.includes("/pods/")
  const { story, shown } = await storyMeasured({}, { faults: [answer(isPod, 422, { reason: "Invalid" })] })
  await story.setImage({ web: v2 })
  await story.world.settle("1m")
  expect(await shown("held")).toEqual(["held{namespace=default,reason=Refused} 1"])
})

test("a partition is no long hold; a deleted workload ends its series", async () => {
  const { story, manager, shown } = await storyMeasured({ annotations: { [settingAnnotations.partition]: "2" } })
  await story.setImage({ web: v2 })
  await story.says("Partitioned")
  await story.world.settle("1m")
  expect(await shown("held")).toEqual(["held{namespace=default,reason=Partitioned} 1"])
  expect(await manager.has("in_place_oldest_held_timestamp_seconds{")).toBe(false)
  expect((await shown("pods{")).sort()).toEqual([
    "pods{namespace=default,state=Stale} 2",
    "pods{namespace=default,state=Updated} 1",
  ])
  await story.world.client.delete(deployments, { name: "web", namespace: "default" })
  await story.world.settle("1m")
  for (const gauge of ["held{", "pods{"]) expect(await manager.has(`in_place_${gauge}`)).toBe(false)
  expect(await shown("released")).toEqual([])
})
