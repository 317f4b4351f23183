import { expect, test } from "vitest"
import type { Run } from "#cli/command.ts"
import { run as history } from "#cli/commands/history.ts"
import { run as plan } from "#cli/commands/plan.ts"
import { run as rollback } from "#cli/commands/rollback.ts"
import { run as status } from "#cli/commands/status.ts"
import { run as wait } from "#cli/commands/wait.ts"
import { testWorld } from "#cli/test-world.ts"
import type { Json } from "#cluster-sim/index.ts"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import {
  type InPlaceStory,
  identity,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
  v3,
} from "#test/support/in-place-story.ts"

// What a person types while a Deployment is updated in place.

/** A command on the story's cluster, while its time passes. */
async function type(story: InPlaceStory, run: Run, words: string[], options: object = {}) {
  const { client, clock } = story.world
  const shared = { ...client, close: () => {} }
  const { world, said } = testWorld({ client: shared }, { clock })
  let ended: { text?: string; failure?: string } | undefined
  run({ arguments: words, options: { namespace: "default", timeout: "10m", ...options } }, world).then(
    ({ text }) => (ended = { text }),
    error => (ended = { failure: error.message }),
  )
  await story.world.until(`${words.join(" ")} ends`, () => ended !== undefined, "20m")
  return { ...ended!, said }
}

test("plan, set image, wait: complete when the same pods run it, and never before", async () => {
  const story = await inPlaceStory()
  const before = await story.pods()
  expect((await type(story, plan, ["deploy/web", `web=${v2}`])).text).toContain("deploy/web -n default  in place")
  expect(isHeld(await story.deployment())).toBe(false)
  await story.setImage({ web: v2 })
  const { text, said } = await type(story, wait, ["deploy/web"])
  expect(text).toBe(`deploy/web -n default Complete 3/3 updated (Completed: 3 pods updated in place: ${v2})\n`)
  expect(said.join("\n")).toContain("(Updating")
  const after = await story.pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  expect(after.map(pod => imageOf(pod))).toEqual([v2, v2, v2])
  expect(isRolledOut(await story.deployment())).toBe(true)
})

test("a pod that crashes ends the wait with the reason, and rollback brings the same pods back", async () => {
  const story = await inPlaceStory({ spec: { minReadySeconds: 3 } })
  const before = await story.pods()
  story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
  await story.setImage({ web: v3 })
  const failed = await type(story, wait, ["deploy/web"])
  expect(failed.failure).toMatch(/^deploy\/web -n default Stalled \(UpdateFailed: web-.*CrashLoop/)
  const shown = JSON.parse((await type(story, status, ["deploy/web"], { output: "json" })).text!)
  expect(shown.pods.map(({ state }: { state: string }) => state).sort()).toEqual(["Reverted", "Stale", "Stale"])
  const { text } = await type(story, rollback, ["deploy/web"], { wait: true })
  expect(text).toContain("deploy/web -n default Complete 3/3 updated")
  const after = await story.pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  expect(after.map(pod => imageOf(pod))).toEqual([v1, v1, v1])
})

test("an update that takes itself back ends the wait with RolledBack", async () => {
  const story = await inPlaceStory({
    annotations: { [settingAnnotations.onFailure]: "Rollback" },
    spec: { minReadySeconds: 3 },
  })
  story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
  await story.setImage({ web: v3 })
  expect((await type(story, wait, ["deploy/web"])).failure).toContain(
    "RolledBack 3/3 updated (RolledBack: 3 pods went back",
  )
})

test("a change that is held for good ends the wait, with its path", async () => {
  const story = await inPlaceStory({ annotations: { [strategyAnnotation]: "InPlaceOnly" } })
  await story.patch({ spec: { template: { spec: { terminationGracePeriodSeconds: 7 } } } })
  expect((await type(story, wait, ["deploy/web"])).failure).toContain(
    "Stalled (NotInPlace: spec.terminationGracePeriodSeconds",
  )
  expect((await type(story, plan, ["deploy/web"])).text).toContain("deploy/web -n default  stopped")
})

test("history has both revisions, and a rollback to the first goes in place", async () => {
  const story = await inPlaceStory()
  const before = await story.pods()
  await story.setImage({ web: v2 })
  await story.free()
  await story.world.settle("10s")
  const listed = JSON.parse((await type(story, history, ["deploy/web"], { output: "json" })).text!)
  expect(listed.map(({ revision, images, pods }: Json) => [revision, images.web, pods.length])).toEqual([
    [2, v2, 3],
    [1, v1, 0],
  ])
  await type(story, rollback, ["deploy/web"], { toRevision: "1", wait: true })
  const after = await story.pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  expect(after.map(pod => imageOf(pod))).toEqual([v1, v1, v1])
})
