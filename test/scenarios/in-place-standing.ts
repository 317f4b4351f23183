import { expect } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import { parseHold, parseNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import { isAtRest } from "#core/in-place/operation.ts"
import { standingHold } from "#core/in-place/own-hold.ts"
import {
  type InPlaceKind,
  type InPlaceOptions,
  type InPlaceStory,
  imageOf,
  inPlaceStory,
} from "#test/support/in-place-story.ts"

export const kinds: readonly InPlaceKind[] = ["Deployment", "StatefulSet", "DaemonSet"]

/** As `aim hold` writes it. */
async function stand(story: InPlaceStory): Promise<void> {
  const object = await story.workload()
  await story.patch(standingHold(object.kind, object as never)!)
}

/** On a server without the policies, held. */
export async function begin(options: InPlaceOptions) {
  const story = await inPlaceStory({ hasNoPolicies: true, ...options })
  const before = await story.pods()
  const strategy = (await story.workload()).spec.updateStrategy
  await stand(story)
  return { story, before, strategy }
}

export const isStopped = ({ kind, spec }: Json) => holdKinds[kind as InPlaceKind].isInForce(spec)

const rests = (object: Json) => {
  const { annotations = {}, labels = {} } = object.metadata
  const hold = parseHold(annotations[heldMark])
  const note = parseNote(annotations[inPlaceAnnotation])
  return isStopped(object) && labels[heldMark] === "in-place" && isAtRest({ hold, note })
}

/** Held, with nothing to do, and every pod runs this image. */
export async function expectAtRest(story: InPlaceStory, image: string): Promise<void> {
  await story.world
    .until("the hold rests", async () => rests(await story.workload()), "30m")
    .catch(async error => {
      throw new Error(`${error.message}; it says ${JSON.stringify((await story.workload()).metadata)}`)
    })
  await story.world.settle("1m")
  const workload = await story.workload()
  expect(rests(workload)).toBe(true)
  expect(imageOf(workload.spec.template)).toBe(image)
  expect(new Set((await story.pods()).map(pod => imageOf(pod)))).toEqual(new Set([image]))
}
