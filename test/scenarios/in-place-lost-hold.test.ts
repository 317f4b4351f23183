import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { grantName } from "#core/grant.ts"
import {
  heldMark,
  inPlaceAnnotation,
  inPlaceHolder,
  settingAnnotations,
  strategyAnnotation,
} from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { type Resource, resourceOf } from "#runtime/resource.ts"
import {
  type InPlaceOptions,
  type InPlaceStory,
  identity,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
} from "#test/support/in-place-story.ts"

// Writes that take the marks of a held workload away, and are no release: nothing stays stopped for ever, and no pods
// stay on two images.

const kinds = ["Deployment", "StatefulSet", "DaemonSet"] as const
const imagesOf = (all: readonly Json[]) => all.map(pod => imageOf(pod))
const uidsOf = (all: readonly Json[]) => all.map(({ metadata }) => metadata.uid).sort()
const isStopped = ({ spec }: Json) =>
  spec.paused === true ||
  spec.updateStrategy?.type === "OnDelete" ||
  spec.updateStrategy?.rollingUpdate?.partition === 2_147_483_647

const hasRestarted = ({ status }: Json) => status.containerStatuses.some(({ restartCount }: Json) => restartCount > 0)

/** The first pod runs the new image, and the others do not yet. */
async function begun(options: InPlaceOptions) {
  const story = await inPlaceStory(options)
  const before = await story.pods()
  await story.setImage({ web: v2 })
  await story.world.until("the first pod runs it", async () => (await story.pods()).some(hasRestarted))
  expect(imagesOf(await story.pods())).toContain(v1)
  return { story, before }
}

/** Given back, complete, and every pod on this image. */
async function expectCalm(story: InPlaceStory, image: string) {
  const isCalm = async () => {
    const workload = await story.workload()
    return !isHeld(workload) && !isStopped(workload) && isRolledOut(workload)
  }
  await story.world.until("it is given back", isCalm, "20m").catch(async error => {
    const { metadata, spec } = await story.workload()
    throw new Error(`${error.message}; ${JSON.stringify([metadata.annotations, metadata.labels, spec.paused])}`)
  })
  await story.world.settle("2m")
  expect(await isCalm()).toBe(true)
  expect(new Set(imagesOf(await story.pods()))).toEqual(new Set([image]))
  expect(await story.jobs()).toEqual([])
}

const gone = { [heldMark]: null }
const optedOut = { [strategyAnnotation]: null }
/** Writes that leave the native controller stopped. */
const strips: Record<string, Json> = {
  "the annotation": { annotations: gone },
  "the label": { labels: gone },
  "annotation and label": { annotations: gone, labels: gone },
  "the text of the annotation": { annotations: { [heldMark]: "?" } },
  "annotation, label and note": { annotations: { ...gone, [inPlaceAnnotation]: null }, labels: gone },
}

for (const kind of kinds)
  describe(`a held ${kind}`, () => {
    for (const [what, metadata] of Object.entries(strips)) {
      test(`loses ${what}: the update in place goes on to its end`, async () => {
        const { story, before } = await begun({ kind })
        await story.patch({ metadata })
        await expectCalm(story, v2)
        expect((await story.pods()).map(identity)).toEqual(before.map(identity))
      })

      test(`loses ${what} and the opt-in: it is given back, and its own controller does the rest`, async () => {
        const { story } = await begun({ kind })
        await story.patch({ metadata: { ...metadata, annotations: { ...metadata.annotations, ...optedOut } } })
        await expectCalm(story, v2)
        expect(await story.note()).toMatchObject({ reason: "OptedOut" })
      })
    }

    test("loses every mark before the first note: the update in place goes on", async () => {
      const story = await inPlaceStory({ kind, isAlone: true })
      const before = await story.pods()
      await story.setImage({ web: v2 })
      await story.patch({ metadata: { annotations: gone, labels: gone } })
      story.update()
      await expectCalm(story, v2)
      expect(uidsOf(await story.pods())).toEqual(uidsOf(before))
    })

    test("is replaced by its manifest with the same image: the update in place goes on", async () => {
      const { story, before } = await begun({ kind })
      await story.replace(v2)
      await expectCalm(story, v2)
      expect((await story.pods()).map(identity)).toEqual(before.map(identity))
    })

    test("is replaced by its manifest with the old image: the pods that were changed go back", async () => {
      const { story, before } = await begun({ kind })
      await story.replace(v1)
      await expectCalm(story, v1)
      expect(uidsOf(await story.pods())).toEqual(uidsOf(before))
    })

    for (const image of [v1, v2])
      test(`is replaced by a manifest without the opt-in and with ${image}: no pod stays on another`, async () => {
        const { story } = await begun({ kind })
        await story.replace(image, { hasNotAsked: true })
        await expectCalm(story, image)
      })

    test("is replaced while it waits for a person: it waits on, with the same reason", async () => {
      const annotations = { [settingAnnotations.partition]: "1" }
      const story = await inPlaceStory({ kind, annotations })
      await story.setImage({ web: v2 })
      await story.says("Partitioned")
      await story.replace(v2)
      await story.world.settle("1m")
      expect([isHeld(await story.workload()), isStopped(await story.workload())]).toEqual([true, true])
      expect(await story.note()).toMatchObject({ reason: "Partitioned" })
    })
  })

describe("without any admission policy", () => {
  const stops = {
    Deployment: { paused: true },
    StatefulSet: { updateStrategy: { rollingUpdate: { partition: 2_147_483_647 } } },
    DaemonSet: { updateStrategy: { type: "OnDelete", rollingUpdate: { maxUnavailable: "1" } } },
  }
  for (const kind of kinds)
    test(`a hold of a ${kind} that cannot be read, and no note: it is given back`, async () => {
      const story = await inPlaceStory({ kind, hasNoPolicies: true })
      const mark = { labels: { [heldMark]: inPlaceHolder }, annotations: { [heldMark]: "?" } }
      await story.patch({ metadata: mark, spec: stops[kind] })
      await expectCalm(story, v1)
      expect(await story.note()).toMatchObject({ reason: "OptedOut" })
    })
})

/** Without the grant no policy is in force. */
const roleBindings: Resource = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "rolebindings",
  kind: "RoleBinding",
  namespaced: true,
}
for (const kind of kinds)
  describe(`a held ${kind}, while no policy is in force`, () => {
    const unprotected = async () => {
      const { story, before } = await begun({ kind })
      await story.world.client.delete(roleBindings, { name: grantName, namespace: "default" })
      return { story, before }
    }

    for (const image of [v1, v2])
      test(`is replaced by its manifest with ${image}: the update is over, and no pod stays on another`, async () => {
        const { story } = await unprotected()
        await story.replace(image)
        await expectCalm(story, image)
        expect((await story.note())?.reason).toMatch(/^(FellBackToRollingUpdate|Completed)$/)
      })

    test("loses every mark and stays stopped: the update in place goes on", async () => {
      const { story, before } = await unprotected()
      await story.patch({ metadata: strips["annotation, label and note"]! })
      await expectCalm(story, v2)
      expect(uidsOf(await story.pods())).toEqual(uidsOf(before))
    })

    test("is deleted: nothing is left of it", async () => {
      const { story } = await unprotected()
      await story.world.client.delete(resourceOf(workloadKind(kind)!), { name: "web", namespace: "default" })
      await story.world.settle("5m")
      expect([await story.pods(), await story.jobs()]).toEqual([[], []])
    })
  })

test("a Deployment that was resumed and is replaced then stays resumed", async () => {
  const { story } = await begun({})
  await story.patch({ spec: { paused: null } })
  await story.replace(v2)
  await expectCalm(story, v2)
  expect(story.world.history.some(({ object }) => object.kind === "Deployment" && object.spec.paused)).toBe(true)
})
