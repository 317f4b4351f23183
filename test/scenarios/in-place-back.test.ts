import { describe, expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import type { Json } from "#cluster-sim/index.ts"
import { settingAnnotations } from "#core/in-place/names.ts"
import {
  type InPlaceKind,
  type InPlaceStory,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
} from "#test/support/in-place-story.ts"
import { host } from "#test/support/pull-story.ts"
import { statusOf, uidsOf } from "./in-place-sets.ts"

// The old image is written again while a pod with a readiness gate is updated, at each of its steps. No pod restarts
// while it serves, none stays drained, and all end on the old image.

const gateOf = ({ status }: Json) => status.conditions?.find(({ type }: Json) => type === readinessGate)?.status
const isDrained = (pod: Json) => gateOf(pod) === "False"
const isNew = (pod: Json) => statusOf(pod).restartCount > 0

const moments: Record<string, (pod: Json) => boolean> = {
  "is drained": pod => isDrained(pod) && imageOf(pod) === v1,
  "is changed and has not restarted": pod => isDrained(pod) && imageOf(pod) === v2 && !isNew(pod),
  "has restarted and is not ready": pod => isDrained(pod) && isNew(pod) && !statusOf(pod).ready,
  "is ready and drained": pod => isDrained(pod) && isNew(pod) && statusOf(pod).ready,
}

const ways: Record<string, (story: InPlaceStory) => Promise<void>> = {
  "kubectl set image": story => story.setImage({ web: v1 }),
  "kubectl replace": story => story.replace(v1),
  "kubectl replace, without the opt-in": story => story.replace(v1, { hasNotAsked: true }),
}

/** Each step of a pod takes seconds. */
const slowly = {
  annotations: { [settingAnnotations.graceSeconds]: "2" },
  spec: { minReadySeconds: 5 },
  template: {
    containers: [
      { name: "web", image: v1, readinessProbe: { httpGet: { port: 80 }, initialDelaySeconds: 3, periodSeconds: 1 } },
      { name: "side", image: `${host}/side:1` },
    ],
  },
}

async function expectBack(story: InPlaceStory) {
  const after = await story.pods()
  expect(after.map(pod => [imageOf(pod), gateOf(pod)])).toEqual(after.map(() => [v1, "True"]))
  const workload = await story.workload()
  expect([isHeld(workload), isRolledOut(workload)]).toEqual([false, true])
}

for (const kind of ["Deployment", "StatefulSet", "DaemonSet"] as const satisfies readonly InPlaceKind[])
  describe(kind, () => {
    test("kubectl replace, without the opt-in, before the kubelet has seen the change of the second pod", async () => {
      const story = await inPlaceStory({ kind, hasGate: true })
      await story.setImage({ web: v2 })
      const isUnseen = (pod: Json) => isDrained(pod) && imageOf(pod) === v2 && !isNew(pod)
      const isSecond = async () => (await story.pods()).some(isNew) && (await story.pods()).some(isUnseen)
      await story.world.until("the second pod is changed", isSecond)
      await story.replace(v1, { hasNotAsked: true })
      // It restarts nothing. Which image it runs is known, though no agent is asked: it serves after half a minute.
      await story.world.advance("3m")
      await expectBack(story)
    })

    for (const [moment, isAt] of Object.entries(moments))
      for (const [way, write] of Object.entries(ways))
        test(`${way}, when the second pod ${moment}`, async () => {
          const story = await inPlaceStory({ kind, hasGate: true, ...slowly })
          const before = await story.pods()
          await story.setImage({ web: v2 })
          const isSecond = async () => {
            const found = await story.pods()
            return found.some(pod => imageOf(pod) === v2 && gateOf(pod) === "True") && found.some(isAt)
          }
          await story.world.until(`the second pod ${moment}`, isSecond)
          await write(story)
          await story.free()
          await story.world.settle("2m")
          const after = await story.pods()
          await expectBack(story)
          // A set replaces the pod that has the label of the other revision: it has not asked for anything else.
          const isReplaced = kind !== "Deployment" && way.includes("without")
          if (!isReplaced) expect(uidsOf(after)).toEqual(uidsOf(before))
        })
  })
