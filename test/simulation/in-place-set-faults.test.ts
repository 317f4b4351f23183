import { describe, expect, test } from "vitest"
import { isDecision, nth, stale } from "#cluster-sim/faults/faults.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import type { Json } from "#cluster-sim/index.ts"
import { pods } from "#controllers/in-place/resources.ts"
import { revisionLabel, settingAnnotations } from "#core/in-place/names.ts"
import {
  type InPlaceStory,
  identity,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
} from "#test/support/in-place-story.ts"
import { faults, keepAlive, watches } from "./fates.ts"

// Every fault at every write of an update in place of a StatefulSet and a DaemonSet, and controllers of theirs that are
// behind. No pod is made anew, none is drained or held for ever, and the set ends complete.

const kinds = ["StatefulSet", "DaemonSet"] as const
const gate = ({ status }: Json) =>
  status.conditions.find(({ type }: Json) => type === "autoimagemanager.io/InPlaceUpdateReady")?.status

async function expectDone(story: InPlaceStory, before: readonly Json[], what: string, image = v2) {
  await story.free("1h")
  await story.world.settle("2m")
  const after = await story.pods()
  const set = await story.workload()
  expect([what, after.map(identity)]).toEqual([what, before.map(identity)])
  expect([what, after.map(pod => imageOf(pod))]).toEqual([what, before.map(() => image)])
  expect([what, isRolledOut(set), isHeld(set)]).toEqual([what, true, false])
  expect([what, set.spec.updateStrategy.type]).toEqual([what, "RollingUpdate"])
  expect([what, set.spec.updateStrategy.rollingUpdate.partition ?? 0]).toEqual([what, 0])
  expect([what, after.some(pod => gate(pod) === "False")]).toEqual([what, false])
  expect([what, new Set(after.map(({ metadata }) => metadata.labels[revisionLabel])).size]).toEqual([what, 1])
  // Neither for a moment.
  const ever = new Set(
    story.world.history.flatMap(({ object }) => (object.kind === "Pod" ? [object.metadata.uid] : [])),
  )
  expect([what, ever.size]).toEqual([what, before.length])
}

/** Of an update of three pods with a gate. */
const writes = 22

for (const kind of kinds)
  describe(`a fault at each write to a ${kind}`, () => {
    const options = { kind, hasGate: true, annotations: { [settingAnnotations.graceSeconds]: "2" }, isAlone: true }
    // In the long form each fault at each write; in the short form each at one, and another one for each kind.
    const every = process.env.AIM_RUNS === undefined ? writes : 1
    const offset = kind === "StatefulSet" ? 0 : 3
    for (const [index, [name, make]] of Object.entries(faults).entries())
      test(name, async () => {
        for (let at = 1 + ((index * 7 + offset) % every); at <= writes; at += every) {
          const story = await inPlaceStory(options)
          const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
          keepAlive(story.world.clock, given => story.update(given), fate)
          await story.world.settle("10s")
          const before = await story.pods()
          await story.setImage({ web: v2 })
          await expectDone(story, before, `${name}: ${at}`)
        }
      })
  })

for (const kind of kinds) {
  const native = `${kind.toLowerCase()}-controller`

  describe(`a controller of a ${kind} that is behind`, () => {
    for (const behind of [undefined, ["Pod"], [kind]])
      test(`by twenty seconds in ${behind?.join() ?? "everything"}: no pod is lost, forth and back`, async () => {
        const lag = createLag()
        const story = await inPlaceStory({ kind, lags: { [native]: lag } })
        const before = await story.pods()
        lag.behind(20_000, behind)
        await story.setImage({ web: v2 })
        await expectDone(story, before, "forth")
        await story.setImage({ web: v1 })
        await expectDone(story, before, "back", v1)
      })

    test("the user goes back while labels are on their way: no pod is lost", async () => {
      for (const ms of [500, 3000, 12_000]) {
        const lag = createLag()
        const story = await inPlaceStory({ kind, lags: { [native]: lag } })
        const before = await story.pods()
        lag.behind(4000, ["Pod"])
        await story.setImage({ web: v2 })
        await story.world.advance(`${ms}ms`)
        await story.setImage({ web: v1 })
        await expectDone(story, before, `back after ${ms} ms`, v1)
      }
    })

    test("stopped across labels and release, and continued: no pod is lost", async () => {
      for (const ms of [300, 2000, 8000]) {
        const lag = createLag()
        const story = await inPlaceStory({ kind, lags: { [native]: lag } })
        const before = await story.pods()
        await story.setImage({ web: v2 })
        await story.world.advance(`${ms}ms`)
        lag.stop()
        await story.world.advance("30s")
        lag.resume()
        await expectDone(story, before, `stopped after ${ms} ms`)
      }
    })
  })

  test(`a lost pod of a ${kind} that we see late is brought along before the release`, async () => {
    const story = await inPlaceStory({ kind, isAlone: true })
    const { world } = story
    story.update({ faults: [stale(watches("pods"), world.clock, 30_000)] })
    await story.setImage({ web: v2 })
    const isAlmostDone = async () => (await story.pods()).filter(pod => imageOf(pod) === v2).length >= 2
    await world.until("two pods are changed", isAlmostDone, "1h")
    const [pod] = await story.pods()
    await world.client.delete(pods, pod!.metadata)
    await story.free("1h")
    await world.settle("2m")
    expect((await story.pods()).map(each => imageOf(each))).toEqual([v2, v2, v2])
    expect(isRolledOut(await story.workload())).toBe(true)
  })
}
