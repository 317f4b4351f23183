import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { daemonSets, statefulSets } from "#controllers/canary/resources.ts"
import { everyOrdinal, heldMark } from "#core/in-place/names.ts"
import { type CanaryStory, canaryStory, uidsOf, v1, v2, v3 } from "#test/support/canary-story.ts"

// The stop of a set stands between runs, in fields that have defaults. What a writer that puts the default back does to it.

const imageOf = (pod: Json) => pod.spec.containers[0].image as string
const isStopped = ({ spec: { updateStrategy } }: Json) =>
  updateStrategy.type === "OnDelete" || updateStrategy.rollingUpdate?.partition === everyOrdinal
const resources = { StatefulSet: statefulSets, DaemonSet: daemonSets }
const usual = {
  StatefulSet: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
  DaemonSet: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
}

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  describe(`a ${kind} whose owner writes its strategy`, () => {
    const applied = (story: CanaryStory, spec: Json) =>
      story.world.patch(resources[kind], "web", { spec: { updateStrategy: usual[kind], ...spec } }, "default")
    const adopted = async () => {
      const story = await canaryStory({ kind })
      await story.until("Initialized")
      await story.world.settle("10s")
      return story
    }
    const template = (image: string) => ({ template: { spec: { containers: [{ name: "web", image }] } } })

    test("between runs: the stop is put back, no pod is touched, and the next change is proven", async () => {
      const story = await adopted()
      const before = uidsOf(await story.pods())
      await applied(story, {})
      await story.world.until("it stands again", async () => isStopped(await story.workload()), "1m")
      await story.world.settle("1m")
      expect(uidsOf(await story.pods())).toEqual(before)
      await story.setImage(v2)
      await story.until("Succeeded")
      expect(story.weights()).toEqual([0, 34, 67, 100, 0])
    })

    test("with a new template: its own controller rolls it out, that is said, and afterwards it is held again", async () => {
      const story = await adopted()
      await applied(story, template(v2))
      const said = async () => {
        const { status } = await story.canary()
        return status.conditions.find(({ type }: Json) => type === "Ready").reason
      }
      await story.world.until("it is said", async () => (await said()) === "Released", "5m")
      await story.world.until(
        "it is rolled out",
        async () => (await story.pods()).every(pod => imageOf(pod) === v2),
        "10m",
      )
      await story.world.until("it is held again", async () => isStopped(await story.workload()), "5m")
      await story.world.settle("1m")
      const { status } = await story.canary()
      expect([status.canaryWeight, status.run, status.history]).toEqual([0, undefined, []])
      expect((await story.workload()).metadata.labels[heldMark]).toBe("canary")
      await story.setImage(v3)
      await story.until("Succeeded")
      await story.world.settle("1m")
      expect((await story.pods()).map(imageOf)).toEqual([v3, v3, v3])
      expect(imageOf({ spec: (await story.workload()).spec.template.spec })).not.toBe(v1)
    })
  })
