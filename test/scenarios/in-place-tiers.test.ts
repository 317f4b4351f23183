import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { answer, type Matcher } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { heldMark, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import {
  type InPlaceOptions,
  identity,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
  v3,
} from "#test/support/in-place-story.ts"
import { host } from "#test/support/pull-story.ts"
import { about } from "#test/support/rollout-story.ts"

// A tier says how its objects get their image: updateStrategy. The stamp itself holds the workload, so that it works on
// servers without admission policies too.

const target = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" } }

type Tier = { updateStrategy?: string; progressDeadlineSeconds?: number; settleSeconds?: number }

async function rolledOut(tier: Tier, options: InPlaceOptions = {}, spec: Json = {}) {
  const story = await inPlaceStory({ hasNoPolicies: true, hasNotAsked: true, ...options })
  const { world } = story
  await world.apply(crdOf(ServiceImage) as Json)
  const rollout = about(world, world.run([createServiceImageController()]))
  await world.apply({
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "dicom" },
    spec: {
      target: { ...target, kind: options.kind ?? target.kind },
      defaultImage: v1,
      tiers: [{ upgradeTier: "", settleSeconds: 0, ...tier }],
      pace: { podsPerSecond: 0 },
      ...spec,
    },
  })
  await rollout.complete()
  const tierReason = async () =>
    (await rollout.tier("")).conditions.find(({ type }: Json) => type === "Complete") as Json
  const waitsFor = (reason: string, within = "10m") =>
    world.until(`the tier says ${reason}`, async () => (await tierReason()).reason === reason, within)
  return { story, rollout, tierReason, waitsFor }
}

/** Each commit of the workload in which its image became this. */
const stampsOf = ({ world }: Awaited<ReturnType<typeof inPlaceStory>>, image: string, kind = "Deployment") =>
  world.history.flatMap(({ object }, index, all) => {
    if (object.kind !== kind || imageOf(object.spec.template) !== image) return []
    const before = all.slice(0, index).findLast(each => each.object.kind === kind)
    return before && imageOf(before.object.spec.template) !== image ? [object] : []
  })

describe("without any admission policy", () => {
  for (const updateStrategy of ["InPlaceIfPossible", "InPlaceOnly"])
    test(`${updateStrategy}: the stamp holds the Deployment, and its pods stay`, async () => {
      const { story, rollout } = await rolledOut({ updateStrategy })
      const before = await story.pods()
      await rollout.change({ defaultImage: v2 })
      // Before the release, all counts of the Deployment are complete.
      await story.world.until("it is rolled out", async () => isRolledOut(await story.deployment()), "5m")
      expect(isHeld(await story.deployment())).toBe(true)
      expect((await rollout.condition("Complete"))?.status).toBe("False")
      await rollout.complete()
      await story.world.settle("1m")
      const after = await story.pods()
      expect(after.map(identity)).toEqual(before.map(identity))
      expect(after.map(pod => imageOf(pod))).toEqual([v2, v2, v2])
      const { metadata, spec } = await story.deployment()
      expect([metadata.annotations[strategyAnnotation], spec.paused]).toEqual([updateStrategy, undefined])
      // One request: the Deployment controller never saw the image without the pause.
      const [stamp, ...more] = stampsOf(story, v2)
      expect(more).toEqual([])
      const { metadata: stamped, spec: stopped } = stamp as Json
      expect([stopped.paused, stamped.labels[heldMark]]).toEqual([true, "in-place"])
      expect(JSON.parse(stamped.annotations[heldMark])).toMatchObject({ by: "in-place" })
    })

  const stops = {
    StatefulSet: { type: "RollingUpdate", rollingUpdate: { partition: 2_147_483_647 } },
    DaemonSet: { type: "OnDelete" },
  }
  for (const [kind, stop] of Object.entries(stops) as [keyof typeof stops, Json][])
    test(`a ${kind}: the stamp stops its controller, its pods stay, and its strategy comes back`, async () => {
      const { story, rollout } = await rolledOut({ updateStrategy: "InPlaceOnly" }, { kind })
      const before = await story.pods()
      const { updateStrategy } = (await story.workload()).spec
      await rollout.change({ defaultImage: v2 })
      await story.says("Updating")
      // Its counts are complete from the beginning: a held one is under way all the same.
      expect((await rollout.condition("Complete"))?.status).toBe("False")
      await rollout.complete()
      expect((await story.workload()).metadata.annotations[heldMark]).toBeUndefined()
      await story.world.settle("1m")
      const after = await story.pods()
      expect(after.map(identity)).toEqual(before.map(identity))
      expect(after.map(pod => imageOf(pod))).toEqual([v2, v2, v2])
      expect((await story.workload()).spec.updateStrategy).toEqual(updateStrategy)
      const [stamp, ...more] = stampsOf(story, v2, kind) as Json[]
      expect(more).toEqual([])
      expect(stamp!.spec.updateStrategy).toMatchObject(stop)
    })

  test("without updateStrategy the workload's own annotation counts", async () => {
    const { story, rollout } = await rolledOut({}, { hasNotAsked: false })
    const before = await story.pods()
    await rollout.change({ defaultImage: v2 })
    await rollout.complete()
    expect((await story.pods()).map(identity)).toEqual(before.map(identity))
  })

  test("Recreate: the pods are replaced, whatever the workload's own annotation says", async () => {
    const { story, rollout } = await rolledOut({ updateStrategy: "Recreate" }, { hasNotAsked: false })
    const before = new Set((await story.pods()).map(({ metadata }) => metadata.uid))
    await rollout.change({ defaultImage: v2 })
    await rollout.complete()
    await story.world.settle("2m")
    expect((await story.pods()).filter(({ metadata }) => before.has(metadata.uid))).toEqual([])
    expect(stampsOf(story, v2).map(({ spec }) => spec.paused)).toEqual([undefined])
  })

  test("what its owner has paused is not held, and stays paused", async () => {
    const { story, rollout } = await rolledOut({ updateStrategy: "InPlaceIfPossible", progressDeadlineSeconds: 60 })
    await story.patch({ spec: { paused: true } })
    await rollout.change({ defaultImage: v2 })
    await rollout.until("Halted", "AllFailed")
    const { metadata, spec } = await story.deployment()
    expect([metadata.annotations[heldMark], spec.paused]).toEqual([undefined, true])
  })

  const owners = {
    Deployment: [{ paused: true }, { paused: null }],
    StatefulSet: [
      { updateStrategy: { rollingUpdate: { partition: 1 } } },
      { updateStrategy: { rollingUpdate: { partition: 0 } } },
    ],
    DaemonSet: [{ updateStrategy: { type: "OnDelete" } }, { updateStrategy: { type: "RollingUpdate" } }],
  }
  for (const [kind, [stop, goOn]] of Object.entries(owners) as [keyof typeof owners, Json[]][])
    test(`InPlaceOnly, and the owner of a ${kind} has stopped its controller: it is not stamped before that is over`, async () => {
      const { story, rollout, tierReason, waitsFor } = await rolledOut({ updateStrategy: "InPlaceOnly" }, { kind })
      const before = await story.pods()
      await story.patch({ spec: stop })
      await rollout.change({ defaultImage: v2 })
      await waitsFor("NotInPlace")
      expect((await tierReason()).message).toContain("its owner has stopped its controller")
      await story.world.settle("1m")
      expect(stampsOf(story, v2, kind)).toEqual([])
      await story.patch({ spec: goOn })
      await rollout.complete()
      await story.world.settle("1m")
      const after = await story.pods()
      expect(after.map(identity)).toEqual(before.map(identity))
      expect(after.map(pod => imageOf(pod))).toEqual([v2, v2, v2])
    })

  test("InPlaceOnly, and the owner never lets it go on: the object has failed at its deadline, and nothing was written", async () => {
    const { story, rollout } = await rolledOut({ updateStrategy: "InPlaceOnly", progressDeadlineSeconds: 60 })
    await story.patch({ spec: { paused: true } })
    await rollout.change({ defaultImage: v2 })
    await rollout.until("Halted", "AllFailed")
    expect(stampsOf(story, v2)).toEqual([])
    const { metadata, spec } = await story.deployment()
    expect([metadata.annotations[heldMark], spec.paused]).toEqual([undefined, true])
  })

  test("an image that is changed again under the same hold: one hold, and the pods stay", async () => {
    const { story, rollout } = await rolledOut({ updateStrategy: "InPlaceIfPossible" })
    const before = await story.pods()
    await rollout.change({ defaultImage: v2 })
    await story.says("Updating")
    const held = (await story.deployment()).metadata.annotations[heldMark]
    await rollout.change({ defaultImage: v3 })
    await story.world.until("it is stamped", async () => imageOf((await story.deployment()).spec.template) === v3, "5m")
    expect((await story.deployment()).metadata.annotations[heldMark]).toBe(held)
    await rollout.complete()
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(after.map(pod => imageOf(pod))).toEqual([v3, v3, v3])
  })

  test("a rollback of the tier is in place too", async () => {
    const { story, rollout } = await rolledOut(
      { updateStrategy: "InPlaceOnly", progressDeadlineSeconds: 120 },
      { spec: { minReadySeconds: 5 } },
      { onFailure: "Rollback" },
    )
    const before = await story.pods()
    story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await rollout.change({ defaultImage: v3 })
    await rollout.until("Complete", "RolledBack")
    await story.free()
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(after.map(pod => imageOf(pod))).toEqual([v1, v1, v1])
  })
})

describe("what keeps an update in place is the reason of its tier", () => {
  test("an image that a node cannot pull, and the deadline goes on running", async () => {
    const { story, rollout, tierReason, waitsFor } = await rolledOut({
      updateStrategy: "InPlaceOnly",
      progressDeadlineSeconds: 120,
    })
    const before = await story.pods()
    await rollout.change({ defaultImage: `${host}/web:absent` })
    await waitsFor("ImageUnavailable", "90s")
    expect((await tierReason()).message).toContain("default/web in place: 0 of 3 pods updated; not on 3 nodes")
    await rollout.until("Halted", "AllFailed")
    expect((await rollout.condition("Halted"))!.message).toContain("1 ImageUnavailable")
    expect((await story.pods()).map(identity)).toEqual(before.map(identity))
  })

  test("a budget that is spent", async () => {
    const { story, rollout, tierReason, waitsFor } = await rolledOut({ updateStrategy: "InPlaceOnly" })
    await story.world.apply({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web", namespace: "default" },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: "web" } } },
    })
    await story.world.settle("5s")
    await rollout.change({ defaultImage: v2 })
    await waitsFor("BudgetSpent")
    expect((await tierReason()).message).toContain("PodDisruptionBudget web")
  })

  for (const [reason, message] of [
    ["Refused", 'pods "web" is forbidden: ValidatingAdmissionPolicy "signed" denied request'],
    ["Forbidden", 'pods "web" is forbidden: User "aim" cannot patch resource "pods"'],
  ] as const)
    test(`a write to a pod that is refused: ${reason}`, async () => {
      const { story, rollout, tierReason, waitsFor } = await rolledOut(
        { updateStrategy: "InPlaceOnly" },
        { isAlone: true },
      )
      const isPodPatch: Matcher = ({ method, path }) => method === "PATCH" && path.includes("/pods/")
      story.update({ faults: [answer(isPodPatch, 403, { reason: "Forbidden", message })] })
      await rollout.change({ defaultImage: v2 })
      await waitsFor(reason)
      if (reason === "Refused") expect((await tierReason()).message).toMatch(/pod web-\S+: pods .web. is forbidden/)
      expect((await rollout.tier("")).failures).toMatchObject([
        { reason, message: expect.stringContaining("pod web-") },
      ])
    })

  test("a change that a running pod cannot get, until it is released", async () => {
    const { story, rollout, tierReason, waitsFor } = await rolledOut({ updateStrategy: "InPlaceOnly" })
    await rollout.change({ defaultImage: `${host}/web:absent` })
    await waitsFor("ImageUnavailable")
    await story.patch({ spec: { template: { spec: { terminationGracePeriodSeconds: 5 } } } })
    await waitsFor("NotInPlace")
    expect((await tierReason()).message).toContain("spec.terminationGracePeriodSeconds")
  })

  test("an update that failed and went back: the tier has failed, and does not look well again", async () => {
    const { story, rollout } = await rolledOut(
      { updateStrategy: "InPlaceOnly", progressDeadlineSeconds: 3600 },
      { spec: { minReadySeconds: 5 } },
    )
    story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await rollout.change({ defaultImage: v3 })
    await story.says("UpdateFailed")
    await story.world.settle("2m")
    expect((await rollout.condition("Halted"))?.status).toBe("True")
    expect((await rollout.tier("")).failures).toMatchObject([{ reason: "UpdateFailed", count: 1 }])
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v1, v1, v1])
  })

  test("an update that failed and was taken back: the tier has failed, and the image is not tried again", async () => {
    const { story, rollout } = await rolledOut(
      { updateStrategy: "InPlaceOnly", progressDeadlineSeconds: 3600 },
      { annotations: { [settingAnnotations.onFailure]: "Rollback" }, spec: { minReadySeconds: 5 } },
    )
    const before = await story.pods()
    story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await rollout.change({ defaultImage: v3 })
    await story.says("RolledBack")
    await story.world.settle("20m")
    expect(stampsOf(story, v3)).toHaveLength(1)
    expect((await rollout.condition("Halted"))?.status).toBe("True")
    expect((await rollout.tier("")).failures).toMatchObject([{ reason: "UpdateFailed", count: 1 }])
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(after.map(pod => imageOf(pod))).toEqual([v1, v1, v1])
  })

  test("a rollback is over when the workload, which takes the image back by itself, is released", async () => {
    const { story, rollout } = await rolledOut(
      { updateStrategy: "InPlaceOnly", progressDeadlineSeconds: 3600 },
      { annotations: { [settingAnnotations.onFailure]: "Rollback" }, spec: { minReadySeconds: 30 } },
      { onFailure: "Rollback" },
    )
    story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await rollout.change({ defaultImage: v3 })
    await rollout.until("Complete", "RolledBack")
    expect(isHeld(await story.workload())).toBe(false)
    expect((await story.pods()).map(pod => imageOf(pod))).toEqual([v1, v1, v1])
  })

  test("a partition, and none once it is smaller", async () => {
    const { story, rollout, waitsFor } = await rolledOut(
      { updateStrategy: "InPlaceIfPossible" },
      { annotations: { [settingAnnotations.partition]: "2" } },
    )
    await rollout.change({ defaultImage: v2 })
    await waitsFor("Partitioned")
    await story.patch({ metadata: { annotations: { [settingAnnotations.partition]: "0" } } })
    await rollout.complete()
  })
})
