import { expect, test } from "vitest"
import { cut, type Matcher, stale } from "#cluster-sim/faults/faults.ts"
import { inPlaceStory, v2 } from "#test/support/in-place-story.ts"

// What an update in place asks of the server.

test("each pod is written once, also where the watch of pods is behind", async () => {
  const spec = { strategy: { rollingUpdate: { maxUnavailable: 4 } } }
  const story = await inPlaceStory({ isAlone: true, replicas: 8, spec })
  let [patches, questions] = [0, 0]
  const counts: Matcher = ({ method, path }) => {
    if (method === "PATCH" && /\/pods\/[^/]+$/.test(path.split("?")[0]!)) patches++
    if (path.includes("/eviction")) questions++
    return false
  }
  const isPods: Matcher = ({ path }) => /\/pods\?.*watch=(true|1)/.test(path)
  story.update({ faults: [cut(counts), stale(isPods, story.world.clock, 400)] })
  await story.setImage({ web: v2 })
  await story.free()
  expect({ patches, questions }).toEqual({ patches: 8, questions: 8 })
})
