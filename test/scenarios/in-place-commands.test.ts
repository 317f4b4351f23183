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

const kinds = { Deployment: "deploy/web", StatefulSet: "sts/web", DaemonSet: "ds/web" } as const

for (const [kind, name] of Object.entries(kinds) as [keyof typeof kinds, string][]) {
  test(`${name}: plan, set image, wait: complete when the same pods run it, and never before`, async () => {
    const story = await inPlaceStory({ kind })
    const before = await story.pods()
    const planned = JSON.parse((await type(story, plan, [name, `web=${v2}`], { output: "json" })).text!)
    expect(planned).toMatchObject({ way: "InPlace", blockedBy: [], images: [{ container: "web", from: v1, to: v2 }] })
    expect(planned.pods).toHaveLength(3)
    expect(isHeld(await story.workload())).toBe(false)
    await story.setImage({ web: v2 })
    const { text, said } = await type(story, wait, [name])
    expect(text).toBe(`${name} -n default Complete 3/3 updated (Completed: 3 pods updated in place: ${v2})\n`)
    expect(said.join("\n")).toContain("(Updating")
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(after.map(pod => imageOf(pod))).toEqual([v2, v2, v2])
    expect(isRolledOut(await story.workload())).toBe(true)
  })

  test(`${name}: history has both revisions, and a rollback goes in place`, async () => {
    const story = await inPlaceStory({ kind })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    await story.world.settle("10s")
    const listed = JSON.parse((await type(story, history, [name], { output: "json" })).text!)
    const rows = listed.map(({ revision, images, pods }: Json) => [revision, images.web, pods.length])
    expect(rows).toEqual([
      [2, v2, 3],
      [1, v1, 0],
    ])
    await type(story, rollback, [name], { toRevision: "1", wait: true })
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(after.map(pod => imageOf(pod))).toEqual([v1, v1, v1])
  })

  test(`${name}: a pod that crashes ends the wait with the reason, and rollback brings the same pods back`, async () => {
    const story = await inPlaceStory({ kind, spec: { minReadySeconds: 3 } })
    const before = await story.pods()
    story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await story.setImage({ web: v3 })
    const { failure } = await type(story, wait, [name])
    expect(failure).toMatch(new RegExp(`^${name} -n default Stalled .UpdateFailed: web-.*CrashLoop`))
    const shown = JSON.parse((await type(story, status, [name], { output: "json" })).text!)
    expect(shown.pods.map(({ state }: Json) => state).sort()).toEqual(["Reverted", "Stale", "Stale"])
    const { text } = await type(story, rollback, [name], { wait: true })
    expect(text).toContain(`${name} -n default Complete 3/3 updated`)
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(after.map(pod => imageOf(pod))).toEqual([v1, v1, v1])
  })
}

test("the pods of a StatefulSet go from the highest ordinal", async () => {
  const story = await inPlaceStory({ kind: "StatefulSet" })
  const planned = JSON.parse((await type(story, plan, ["sts/web", `web=${v2}`], { output: "json" })).text!)
  expect(planned.pods.map(({ name, isNext }: Json) => [name, isNext])).toEqual([
    ["web-2", true],
    ["web-1", false],
    ["web-0", false],
  ])
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
  // A field that the server does not refuse by itself.
  await story.patch({ spec: { template: { spec: { hostAliases: [{ ip: "10.0.0.1", hostnames: ["db"] }] } } } })
  expect((await type(story, wait, ["deploy/web"])).failure).toContain("Stalled (NotInPlace: spec.hostAliases")
  expect((await type(story, plan, ["deploy/web"])).text).toContain("deploy/web -n default  stopped")
})
