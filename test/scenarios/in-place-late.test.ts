import { describe, expect, test } from "vitest"
import { type Matcher, slow } from "#cluster-sim/faults/faults.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import type { Json } from "#cluster-sim/index.ts"
import { nodeImages, pods as podResource } from "#controllers/in-place/resources.ts"
import { revisionLabel, strategyAnnotation } from "#core/in-place/names.ts"
import {
  type InPlaceOptions,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
} from "#test/support/in-place-story.ts"

// Between a decision and its write time passes; and what an update waits for at its end has a name.

const isQuestion: Matcher = ({ path }) => path.includes("/eviction")
const imagesOf = (found: readonly Json[]) => found.map(pod => imageOf(pod)).sort()

describe("between the decision and the patch", () => {
  /** The question to the budget takes ten seconds. */
  async function asked(options: InPlaceOptions = {}) {
    const story = await inPlaceStory({ ...options, isAlone: true })
    story.update({ faults: [slow(isQuestion, story.world.clock, 10_000)] })
    await story.setImage({ web: v2 })
    const isThere = async () => {
      const found = await story.world.list(nodeImages)
      return (
        found.length === 3 && found.every(({ status }) => JSON.stringify(status ?? {}).includes('"phase":"Succeeded"'))
      )
    }
    await story.world.until("the image is on its nodes", isThere)
    await story.world.advance("5s")
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
    return story
  }

  test("the image is changed back: the patch is not sent", async () => {
    const story = await asked()
    const from = story.world.history.length
    await story.setImage({ web: v1 })
    await story.free()
    const written = story.world.history.slice(from).filter(({ object }) => object.kind === "Pod")
    expect(written.map(({ object }) => imageOf(object))).not.toContain(v2)
  })

  test("its owner resumes it: the patch is not sent", async () => {
    const lag = createLag()
    const story = await asked({ lags: { "deployment-controller": lag } })
    const { world } = story
    // Its own controller is late, so the pods are still there.
    lag.stop()
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } }, spec: { paused: false } })
    await world.advance("30s")
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
    lag.resume()
    await story.free()
  })

  test("the agent reports that the image is gone from the node: the patch is not sent", async () => {
    const story = await asked()
    const { world } = story
    for (const agent of story.agents.values()) agent.die()
    for (const { metadata, status } of await world.list(nodeImages)) {
      const text = JSON.stringify(status).replaceAll('"phase":"Succeeded"', '"phase":"Waiting"')
      const body = { status: JSON.parse(text) }
      await world.client.patch(nodeImages, metadata, { type: "merge", body }, { subresource: "status" })
    }
    await world.advance("30s")
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
  })
})

describe("a pod that is being deleted on a lost node", () => {
  const spec = { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } } }
  const labelsOf = (found: readonly Json[]) => found.map(({ metadata }) => metadata.labels[revisionLabel])

  async function lost(kind: "StatefulSet" | "DaemonSet") {
    const story = await inPlaceStory({ kind, spec })
    const before = await story.pods()
    const [gone, ...others] = before
    const { nodeName } = gone!.spec
    story.machines.stopKubelet(nodeName)
    await story.world.client.delete(podResource, gone!.metadata)
    await story.world.advance("1m")
    await story.setImage({ web: v2 })
    const names = new Set(others.map(({ metadata }) => metadata.name))
    const expectOthers = async () => {
      const after = (await story.pods()).filter(({ metadata }) => names.has(metadata.name))
      expect(imagesOf(after)).toEqual([v2, v2])
      expect(new Set(labelsOf(after)).size).toBe(1)
      expect(labelsOf(after)).not.toContain(labelsOf(before)[0])
    }
    const expectBack = async () => {
      story.machines.startKubelet(nodeName)
      await story.free("30m")
      // Until the node is back, the lost pod is still listed, and a DaemonSet is complete without it.
      const isBack = async () => imagesOf(await story.pods()).join() === [v2, v2, v2].join()
      await story.world.until("the lost pod is gone and has a successor", isBack)
      await story.world.until("it is complete", async () => isRolledOut(await story.workload()))
      expect(imagesOf(await story.pods())).toEqual([v2, v2, v2])
    }
    return { story, gone: gone!, nodeName, expectOthers, expectBack }
  }

  test("the other pods of a StatefulSet are updated and counted, and it is named", async () => {
    const { story, gone, nodeName, expectOthers, expectBack } = await lost("StatefulSet")
    const { message } = await story.says("PodNotReady")
    expect(message).toContain(`pod ${gone.metadata.name}, which is being deleted on node ${nodeName}`)
    await expectOthers()
    expect(isHeld(await story.workload())).toBe(true)
    await expectBack()
  })

  test("a DaemonSet wants no pod there: it is complete without", async () => {
    const { story, expectOthers, expectBack } = await lost("DaemonSet")
    await story.free()
    await expectOthers()
    await expectBack()
  })
})
