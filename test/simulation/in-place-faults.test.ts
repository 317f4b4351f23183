import { describe, expect, test } from "vitest"
import { isDecision, nth, stale } from "#cluster-sim/faults/faults.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import { imageOf, inPlaceStory, v1, v2, v3 } from "#test/support/in-place-story.ts"
import { faults, keepAlive, watches } from "./fates.ts"
import { expectDone, withGate } from "./in-place-runs.ts"

// Every fault at every write of an update in place, and a Deployment controller that is behind. S21–S24: no pod is
// re-created, none is drained or held for ever, and the Deployment ends complete.

/** Of an update of three pods with a gate. */
const writes = 22

describe("a fault at each write", () => {
  // In the long form each fault at each write; in the short form at some, and the kills at all of them.
  const every = process.env.AIM_RUNS === undefined ? 7 : 1
  for (const [index, [name, make]] of Object.entries(faults).entries())
    test(name, async () => {
      const isKill = name === "the process is killed after it"
      for (let at = isKill ? 1 : 1 + (index % every); at <= writes; at += isKill ? 1 : every) {
        const story = await inPlaceStory(withGate)
        const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
        keepAlive(story.world.clock, given => story.update(given), fate)
        await story.world.settle("10s")
        const before = await story.pods()
        await story.setImage({ web: v2 })
        await expectDone(story, before, `${name}: ${at}`)
      }
    })
})

describe("a Deployment controller that is behind", () => {
  for (const kinds of [undefined, ["ReplicaSet"], ["Deployment"]])
    test(`by five seconds in ${kinds?.join() ?? "everything"}: no pod is lost`, async () => {
      const lag = createLag()
      const story = await inPlaceStory({ lags: { "deployment-controller": lag } })
      const before = await story.pods()
      lag.behind(5000, kinds)
      await story.setImage({ web: v2 })
      await expectDone(story, before, "behind")
    })

  test("that has not seen the hold, and finds no revision of the template before: no pod is lost", async () => {
    const lag = createLag()
    const spec = { revisionHistoryLimit: 0, strategy: { rollingUpdate: { maxUnavailable: 1 } } }
    const story = await inPlaceStory({ lags: { "deployment-controller": lag }, spec })
    const before = await story.pods()
    // From then on the ReplicaSet has the name of another template: that of its own is free.
    await story.setImage({ web: v3 })
    await story.free()
    await story.world.settle("10s")
    lag.behind(5000, ["Deployment"])
    await story.setImage({ web: v2 })
    await expectDone(story, before, "behind", { sets: 1 })
  })

  test("stopped across flip and release, and continued: no pod is lost", async () => {
    for (const ms of [100, 300, 500, 560, 600, 1000]) {
      const lag = createLag()
      const story = await inPlaceStory({ lags: { "deployment-controller": lag } })
      const before = await story.pods()
      await story.setImage({ web: v2 })
      await story.world.advance(`${ms}ms`)
      lag.stop()
      await story.world.advance("30s")
      lag.resume()
      await expectDone(story, before, `stopped after ${ms} ms`)
    }
  })

  test("a ReplicaSet controller that is behind makes a pod of the old template, which is brought along", async () => {
    const lag = createLag()
    const story = await inPlaceStory({ lags: { "replicaset-controller": lag } })
    lag.behind(20_000, ["ReplicaSet"])
    await story.setImage({ web: v2 })
    await story.world.until("the template is flipped", async () => {
      const sets = await story.sets()
      return sets.some(({ spec }) => spec.replicas > 0 && imageOf(spec.template) === v2)
    })
    const [pod] = await story.pods()
    await story.world.client.delete(
      { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
      pod!.metadata,
    )
    await story.free("1h")
    await story.world.settle("2m")
    expect((await story.pods()).map(each => imageOf(each))).toEqual([v2, v2, v2])
  })
})

test("a pod that was made from the old template, and that we see late, is brought along before the release", async () => {
  const lag = createLag()
  const story = await inPlaceStory({ isAlone: true, lags: { "replicaset-controller": lag } })
  const { world } = story
  story.update({ faults: [stale(watches("pods"), world.clock, 30_000)] })
  lag.behind(5000, ["ReplicaSet"])
  await story.setImage({ web: v2 })
  const isFlipped = async () =>
    (await story.sets()).some(({ spec }) => spec.replicas > 0 && imageOf(spec.template) === v2)
  await world.until("the template is flipped", isFlipped, "1h")
  const [pod] = await story.pods()
  await world.client.delete({ group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true }, pod!.metadata)
  await world.advance("1s")
  expect((await story.pods()).map(each => imageOf(each))).toContain(v1)
  await story.free("1h")
  await world.settle("2m")
  expect((await story.pods()).map(each => imageOf(each))).toEqual([v2, v2, v2])
})
