import { describe, expect, test } from "vitest"
import { isDecision, nth, stale } from "#cluster-sim/faults/faults.ts"
import { imageOf, v1, v2, v3 } from "#test/support/in-place-story.ts"
import { imagesOver, mirrored, refused, type SideBySide, sideBySide } from "#test/support/side-by-side-story.ts"
import { faults, keepAlive, watches } from "./fates.ts"

// Updates in place and failovers of pulls on the same pods, with every fault at a write of either. Each run is judged by
// S32 when its test ends; the stories say that both still come to an end.

type Parts = "failOver" | "update"

/** A pull is failed over while an update begins: the pod first starts, and is then updated. */
async function updateDuringFailover(story: SideBySide) {
  story.slowMirror(20)
  const name = await story.addWaiting()
  const isSent = async () => imageOf(await story.pod(name)) === mirrored(v1)
  await story.world.until("it is sent to the mirror", isSent, "1h")
  await story.setImage({ web: v2 })
  await story.free("2h")
  expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v2, v2, v2, v2])
  expect(imagesOver(story, name).slice(0, 2)).toEqual([v1, mirrored(v1)])
}

/** The image of an update cannot be pulled any more: no failover comes between, and the next image arrives. */
async function failureDuringUpdate(story: SideBySide) {
  const { world, registries } = story
  const name = await story.addWaiting()
  registries.setFault(mirrored(v1), refused)
  await story.setImage({ web: v2 })
  const isChanged = async () => imageOf(await story.pod(name)) === v2
  const isPulled = () => ["node-0", "node-1", "node-2"].every(node => story.imageOn(node, v2) !== undefined)
  await world.until("the agents have pulled", isPulled, "1h")
  registries.setFault(v2, refused)
  await world.until("it is changed, or the agents see it", async () => (await isChanged()) || (await isStuck()), "1h")
  await world.settle("3m")
  expect(imagesOver(story, name)).not.toContain(mirrored(v2))
  registries.setFault(v2, undefined)
  await story.setImage({ web: v3 })
  await story.free("2h")
  expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v3, v3, v3, v3])

  async function isStuck() {
    return ["ImageUnavailable", "UpdateFailed"].includes((await story.note())?.reason ?? "")
  }
}

const stories = { updateDuringFailover, failureDuringUpdate }

/** As many writes as each part makes before it comes to the pod, and some more. */
const writes = { failOver: 5, update: 12 } as const

/** In the long form each write of both parts; in the short form one write of one of them. */
function struck(index: number): { part: Parts; at: number }[] {
  const all = (["failOver", "update"] as const).flatMap(part =>
    Array.from({ length: writes[part] }, (_, at) => ({ part, at: at + 1 })),
  )
  return process.env.AIM_RUNS === undefined ? [all[(index * 5) % all.length]!] : all
}

for (const [title, tell] of Object.entries(stories))
  describe(title, () => {
    for (const [index, [fault, make]] of Object.entries(faults).entries())
      test(fault, async () => {
        for (const { part, at } of struck(index)) {
          const story = await sideBySide({ isAlone: true })
          const fate = make(nth(isDecision, at), story.world.clock, nth(isDecision, at + 1))
          keepAlive(story.world.clock, options => story.failOver(options), part === "failOver" ? fate : {})
          keepAlive(story.world.clock, options => story.update(options), part === "update" ? fate : {})
          await tell(story)
        }
      })

    test("with old pictures of pods and Deployments", async () => {
      const story = await sideBySide({ isAlone: true })
      const { clock } = story.world
      story.failOver({ faults: [stale(watches("deployments"), clock, 30_000)] })
      story.update({ faults: [stale(watches("pods"), clock, 5000)] })
      await tell(story)
    })
  })
