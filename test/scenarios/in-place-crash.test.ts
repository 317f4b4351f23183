import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { parseNote } from "#core/in-place/marks.ts"
import { inPlaceAnnotation, settingAnnotations } from "#core/in-place/names.ts"
import {
  type InPlaceKind,
  type InPlaceStory,
  identity,
  inPlaceStory,
  v1,
  v2,
  v3,
} from "#test/support/in-place-story.ts"
import { begun, imagesOf, statusOf } from "./in-place-sets.ts"

// A container in a crash loop runs for a moment in each round. That proves nothing, and does not end a failure.

const onFailure = (policy: string) => ({ [settingAnnotations.onFailure]: policy })
const crashes = (story: InPlaceStory, image: string) =>
  story.registries.push(image, { sizeBytes: 7, exits: { afterMs: 2000, exitCode: 1 } })
const isReady = ({ status }: Json) =>
  status?.conditions?.some(({ type, status: is }: Json) => type === "Ready" && is === "True") === true
/** What the note has said since. */
const reasonsOf = (story: InPlaceStory, kind: InPlaceKind, from: number) => {
  const states = story.world.history.slice(from).flatMap(({ object }) => (object.kind === kind ? [object] : []))
  return new Set(states.map(({ metadata }) => parseNote(metadata.annotations?.[inPlaceAnnotation])?.reason))
}

for (const kind of ["Deployment", "StatefulSet", "DaemonSet"] as const satisfies readonly InPlaceKind[]) {
  test(`a ${kind}, without minReadySeconds: a process that takes over while it runs touches no other pod`, async () => {
    const story = await inPlaceStory({ kind, annotations: onFailure("Stop"), isAlone: true })
    crashes(story, v2)
    const first = story.update()
    await begun(story)
    first.die()
    const isUpAgain = async () => (await story.pods()).some(pod => statusOf(pod).restartCount > 1 && isReady(pod))
    await story.world.until("it runs again", isUpAgain)
    story.update()
    await story.says("UpdateFailed")
    await story.world.advance("20m")
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v2])
  })

  for (const policy of ["Stop", "Revert", "Rollback"])
    test(`a ${kind} that had ${policy}, two images that failed, and the first again with Stop: one pod, and one failure`, async () => {
      const story = await inPlaceStory({ kind, annotations: onFailure(policy), spec: { minReadySeconds: 5 } })
      const before = await story.pods()
      for (const image of [v2, v3]) {
        crashes(story, image)
        await story.setImage({ web: image })
        await story.world.advance("3m")
      }
      await story.setImage({ web: v1 })
      await story.free()
      await story.world.settle("1m")
      await story.patch({ metadata: { annotations: onFailure("Stop") } })
      await begun(story)
      await story.says("UpdateFailed")
      // Its owner allows more: what has failed is not tried in another pod.
      await story.patch({ metadata: { annotations: { [settingAnnotations.maxUnavailable]: "3" } }, spec: wider[kind] })
      const from = story.world.history.length
      await story.world.advance("20m")
      expect(imagesOf(await story.pods())).toEqual([v1, v1, v2])
      expect(reasonsOf(story, kind, from)).toEqual(new Set(["UpdateFailed"]))
      expect((await story.pods()).map(identity)).toEqual(before.map(identity))
    })
}

const wider: Record<InPlaceKind, Json> = {
  Deployment: { strategy: { rollingUpdate: { maxUnavailable: 3 } } },
  StatefulSet: { updateStrategy: { rollingUpdate: { maxUnavailable: 3 } } },
  DaemonSet: { updateStrategy: { rollingUpdate: { maxUnavailable: 3 } } },
}
