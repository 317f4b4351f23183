import { describe, expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { retryAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import type { Json } from "#cluster-sim/index.ts"
import { pods } from "#controllers/in-place/resources.ts"
import { inPlaceAnnotation, revisionLabel, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import {
  type InPlaceKind,
  type InPlaceOptions,
  type InPlaceStory,
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

// What a StatefulSet and a DaemonSet that are updated in place have in common.

export const statusOf = ({ status }: Json, container = "web") =>
  status.containerStatuses?.find(({ name }: Json) => name === container)
export const uidsOf = (found: readonly Json[]) => found.map(({ metadata }) => metadata.uid).sort()
export const imagesOf = (found: readonly Json[]) => found.map(pod => imageOf(pod)).sort()
const labelOf = ({ metadata }: Json): string => metadata.labels[revisionLabel]
const isReady = ({ status }: Json) =>
  status?.conditions?.some(({ type, status: is }: Json) => type === "Ready" && is === "True") === true

/** Every pod is the pod it was, and the set looks like any other. */
export async function expectUpdated(story: InPlaceStory, before: readonly Json[], image: string, strategy?: Json) {
  await story.world.settle("1m")
  const set = await story.workload()
  const after = await story.pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  expect(new Set(imagesOf(after))).toEqual(new Set([image]))
  expect(new Set(after.map(labelOf)).size).toBe(1)
  expect(imageOf(set.spec.template)).toBe(image)
  expect([isRolledOut(set), isHeld(set)]).toEqual([true, false])
  if (strategy) expect(set.spec.updateStrategy).toEqual(strategy)
  expect(await story.jobs()).toEqual([])
  // Neither was a pod gone in between.
  const ever = new Set(
    story.world.history.flatMap(({ object }) => (object.kind === "Pod" ? [object.metadata.uid] : [])),
  )
  expect(ever.size).toBe(before.length)
}

/** Its own controller has replaced every pod. */
export async function expectReplaced(story: InPlaceStory, before: readonly Json[], image: string) {
  await story.world.until("the rollout is complete", async () => isRolledOut(await story.workload()))
  await story.world.settle("1m")
  const after = await story.pods()
  const olds = new Set(uidsOf(before))
  expect(after.filter(({ metadata }) => olds.has(metadata.uid))).toEqual([])
  expect(new Set(imagesOf(after))).toEqual(new Set([image]))
  expect(isHeld(await story.workload())).toBe(false)
}

/** Until the first pod is changed. */
export async function begun(story: InPlaceStory, image = v2) {
  await story.setImage({ web: image })
  await story.world.until("the first pod is changed", async () => imagesOf(await story.pods()).includes(image))
}

/** Until the first pod has the label of the new revision. */
export async function labelled(story: InPlaceStory, image = v2) {
  const olds = new Set((await story.pods()).map(labelOf))
  await story.setImage({ web: image })
  const isNew = (pod: Json) => !olds.has(labelOf(pod))
  await story.world.until("the first pod is labelled", async () => (await story.pods()).some(isNew))
}

export const lose = async (story: InPlaceStory, pod: Json) => {
  await story.world.client.delete(pods, pod.metadata)
}

/** Writes of ours to pods: neither a kubelet nor a native controller changes any of this in a pod that is there. */
function podWrites(story: InPlaceStory, from: number): number {
  const last = new Map<string, string>()
  let count = 0
  for (const [index, { object }] of story.world.history.entries()) {
    if (object.kind !== "Pod") continue
    const { uid, labels, annotations } = object.metadata
    const gate = object.status?.conditions?.find(({ type }: Json) => type === readinessGate)?.status
    const ours = JSON.stringify([labels, annotations, object.spec.containers, gate])
    if (index >= from && last.get(uid) !== ours) count++
    last.set(uid, ours)
  }
  return count
}

/** With `Rollback`, and a second image that crashes. */
export async function expectNotTriedAgain(story: InPlaceStory) {
  story.registries.push(v2, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
  const before = await story.pods()
  const seen = async () => (await story.pods()).map(pod => [imageOf(pod), statusOf(pod)])
  await story.setImage({ web: v2 })
  await story.free("30m")
  const { failed = "" } = (await story.note())!
  await story.world.settle("1m")
  const calm = await seen()
  await story.setImage({ web: v2 })
  expect((await story.says("UpdateFailed")).message).toContain(`${failed} failed and was rolled back`)
  await story.world.advance("30m")
  expect(await story.note()).toMatchObject({ reason: "UpdateFailed", failed })
  expect(await seen()).toEqual(calm)
  // A person asks for it: it is tried once more.
  await story.patch({ metadata: { annotations: { [retryAnnotation]: failed } } })
  await story.free("30m")
  const again = (await story.note())!
  expect([again.reason, again.failed === failed]).toEqual(["RolledBack", false])
  expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
  await story.setImage({ web: v3 })
  await story.free()
  expect(await story.note()).not.toHaveProperty("failed")
  expect((await story.pods()).map(identity)).toEqual(before.map(identity))
}

/** The stories that both kinds tell in the same words. */
export function tellOfSets(kind: InPlaceKind) {
  const begin = (options: InPlaceOptions = {}) => inPlaceStory({ kind, ...options })

  describe(`an update in place of a ${kind}`, () => {
    test("the same pods run the new image, and the set is complete", async () => {
      const story = await begin()
      const before = await story.pods()
      const { updateStrategy } = (await story.workload()).spec
      await story.setImage({ web: v2 })
      expect(isHeld(await story.workload())).toBe(true)
      await story.free()
      await expectUpdated(story, before, v2, updateStrategy)
      for (const [index, pod] of (await story.pods()).entries()) {
        expect(statusOf(pod).containerID).not.toBe(statusOf(before[index]!).containerID)
        expect(statusOf(pod).restartCount).toBe(1)
        expect(labelOf(pod)).not.toBe(labelOf(before[index]!))
      }
      expect(await story.note()).toMatchObject({ reason: "Completed", from: { web: v1 }, to: { web: v2 } })
    })

    test("a pod is labelled only after it has run the new image in health", async () => {
      const story = await begin({ spec: { minReadySeconds: 10 } })
      const before = await story.pods()
      const olds = new Set(before.map(labelOf))
      const from = story.world.history.length
      await story.setImage({ web: v2 })
      await story.free()
      const readySince = new Map<string, number>()
      const seen = new Set<string>()
      for (const { object, at } of story.world.history.slice(from)) {
        if (object.kind !== "Pod") continue
        const { name } = object.metadata
        const isUp = isReady(object) && statusOf(object)?.image === v2
        if (!isUp) readySince.delete(name)
        else if (!readySince.has(name)) readySince.set(name, at)
        if (olds.has(labelOf(object)) || seen.has(name)) continue
        seen.add(name)
        expect(at - readySince.get(name)!).toBeGreaterThanOrEqual(10_000)
      }
      expect(seen.size).toBe(3)
      await expectUpdated(story, before, v2)
    })

    for (const [hasGate, most] of [
      [false, 2],
      [true, 4],
    ] as const)
      test(`costs ${most} writes a pod${hasGate ? " with a gate" : ""}`, async () => {
        const story = await begin({ hasGate })
        const from = story.world.history.length
        await story.setImage({ web: v2 })
        await story.free()
        await story.world.settle("30s")
        expect(podWrites(story, from)).toBe(3 * most)
      })

    test("and back in place: the revision of before is current again", async () => {
      const story = await begin()
      const before = await story.pods()
      await story.setImage({ web: v2 })
      await story.free()
      await story.world.settle("10s")
      await story.setImage({ web: v1 })
      await story.free()
      await expectUpdated(story, before, v1)
      expect((await story.pods()).map(labelOf)).toEqual(before.map(labelOf))
    })

    test("labels and annotations reach the pods without a restart", async () => {
      const story = await begin()
      const before = await story.pods()
      await story.change({ metadata: { labels: { team: "blue" }, annotations: { note: "x" } } })
      await story.free()
      await expectUpdated(story, before, v1)
      for (const { metadata, status } of await story.pods()) {
        expect([metadata.labels.team, metadata.annotations.note]).toEqual(["blue", "x"])
        expect(statusOf({ status }).restartCount).toBe(0)
      }
    })
  })

  describe(`in between, a ${kind}`, () => {
    test("the image is changed again", async () => {
      const story = await begin()
      const before = await story.pods()
      await begun(story)
      await story.setImage({ web: v3 })
      await story.free()
      await expectUpdated(story, before, v3)
    })

    for (const [when, until] of [
      ["before the first label", begun],
      ["after the first label", labelled],
    ] as const)
      test(`the image is changed back ${when}`, async () => {
        const story = await begin()
        const before = await story.pods()
        await until(story)
        await story.setImage({ web: v1 })
        await story.free()
        await expectUpdated(story, before, v1)
        expect((await story.pods()).map(labelOf)).toEqual(before.map(labelOf))
        expect(await story.note()).toMatchObject({ reason: "Completed", from: { web: v2 }, to: { web: v1 } })
      })

    test("a write that would drop the hold does not: the policy asserts it again", async () => {
      const story = await begin()
      const before = await story.pods()
      const { updateStrategy } = (await story.workload()).spec
      await begun(story)
      await story.patch({ spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: null } } })
      await story.free()
      await expectUpdated(story, before, v2, updateStrategy)
    })

    test("an environment variable is changed too: its own controller does it", async () => {
      const story = await begin()
      const before = await story.pods()
      await begun(story)
      const env = [{ name: "A", value: "1" }]
      await story.change({ spec: { containers: [{ name: "web", image: v2, env }] } })
      await story.free()
      expect(await story.note()).toMatchObject({ reason: "NotInPlace" })
      await expectReplaced(story, before, v2)
    })

    test("under InPlaceOnly such a change stays held, with its path", async () => {
      const story = await begin({ annotations: { [strategyAnnotation]: "InPlaceOnly" } })
      const before = await story.pods()
      await story.change({ spec: { priorityClassName: "system-node-critical" } })
      const { message } = await story.says("NotInPlace")
      expect(message).toContain("spec.priorityClassName")
      expect(message).toContain(`aim release ${kind === "StatefulSet" ? "sts" : "ds"}/web`)
      await story.change({ spec: { priorityClassName: null } })
      await story.free()
      await expectUpdated(story, before, v1)
    })

    test("the annotation is removed: its own controller does the rest", async () => {
      const story = await begin()
      const before = await story.pods()
      const { updateStrategy } = (await story.workload()).spec
      await begun(story)
      await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
      const set = await story.free()
      expect(set.spec.updateStrategy).toEqual(updateStrategy)
      expect(await story.note()).toMatchObject({ reason: "OptedOut" })
      await expectReplaced(story, before, v2)
    })

    test("the image is changed back and the annotation removed: no pod stays on the other image", async () => {
      const story = await begin()
      await begun(story)
      await story.change({ spec: { containers: [{ name: "web", image: v1 }] } })
      await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
      await story.free()
      await story.world.settle("2m")
      expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
      expect(isRolledOut(await story.workload())).toBe(true)
    })

    test("a write drops the hold, without a policy: the update is a native one, and its strategy is left as written", async () => {
      const story = await begin()
      await begun(story)
      await story.world.client.delete(roleBindings, { name: "aim-target", namespace: "default" })
      const own = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } }
      await story.patch({
        spec: { updateStrategy: kind === "StatefulSet" ? { rollingUpdate: { partition: 0 } } : own },
      })
      const set = await story.free()
      expect(await story.note()).toMatchObject({ reason: "FellBackToRollingUpdate" })
      expect(set.spec.updateStrategy.type).toBe("RollingUpdate")
      await story.world.until("the rollout is complete", async () => isRolledOut(await story.workload()))
      await story.world.settle("1m")
      expect(imagesOf(await story.pods())).toEqual([v2, v2, v2])
    })
  })

  describe(`an image that does not work in a ${kind}`, () => {
    test("is missing: no pod is touched", async () => {
      const story = await begin()
      const before = await story.pods()
      await story.setImage({ web: `${host}/web:missing` })
      expect((await story.says("ImageUnavailable")).message).toMatch(/node-\d \(NotFound\)/)
      await story.setImage({ web: v1 })
      await story.free()
      await expectUpdated(story, before, v1)
      expect((await story.pods()).every(pod => statusOf(pod).restartCount === 0)).toBe(true)
    })

    for (const policy of ["Revert", "Stop", "Rollback"] as const)
      test(`crashes: ${policy}`, async () => {
        const annotations = { [settingAnnotations.onFailure]: policy }
        const story = await begin({ annotations, spec: { minReadySeconds: 5 } })
        story.registries.push(v2, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
        const before = await story.pods()
        await story.setImage({ web: v2 })
        if (policy === "Rollback") {
          const set = await story.free("30m")
          expect(imageOf(set.spec.template)).toBe(v1)
          expect(await story.note()).toMatchObject({ reason: "RolledBack" })
          return expectUpdated(story, before, v1)
        }
        expect((await story.says("UpdateFailed", "30m")).message).toContain("CrashLoop")
        await story.world.advance("10m")
        expect(imagesOf(await story.pods())).toEqual(policy === "Stop" ? [v1, v1, v2] : [v1, v1, v1])
        expect((await story.pods()).map(labelOf)).toEqual(before.map(labelOf))
        // A better image is taken up at once.
        await story.setImage({ web: v3 })
        await story.free()
        await expectUpdated(story, before, v3)
      })
  })

  test(`GitOps writes an image again that was rolled back: the ${kind} waits, and is tried again when asked`, async () => {
    const annotations = { [settingAnnotations.onFailure]: "Rollback" }
    await expectNotTriedAgain(await begin({ annotations, spec: { minReadySeconds: 5 } }))
  })

  test(`a ${kind} that is not held is left alone, and so are its pods`, async () => {
    const story = await begin()
    const before = await story.pods()
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: "Recreate" } } })
    await story.patch({ spec: { template: { spec: { containers: [{ name: "web", image: v2 }, side] } } } })
    await expectReplaced(story, before, v2)
    const marks = (await story.pods()).map(({ metadata }) => metadata.annotations?.[inPlaceAnnotation])
    expect(marks).toEqual([undefined, undefined, undefined])
  })
}

const roleBindings = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "rolebindings",
  kind: "RoleBinding",
  namespaced: true,
}
const side = { name: "side", image: `${host}/side:1` }
