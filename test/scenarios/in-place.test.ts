import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { answer, type Matcher } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { deployments } from "#controllers/in-place/resources.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { heldMark, inPlaceAnnotation, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import {
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
import { about } from "#test/support/rollout-story.ts"

// A Deployment that asks for it is updated in place: the same pods, and nothing odd left behind.

const statusOf = ({ status }: Json, container: string) =>
  status.containerStatuses.find(({ name }: Json) => name === container)
const uidsOf = (pods: readonly Json[]) => pods.map(({ metadata }) => metadata.uid).sort()
const imagesOf = (pods: readonly Json[]) => pods.map(pod => imageOf(pod)).sort()
const active = (sets: readonly Json[]) => sets.filter(({ spec }) => spec.replicas > 0)

/** Every pod is the pod it was, and the Deployment looks like any other. */
async function expectUpdated(story: InPlaceStory, before: readonly Json[], image: string) {
  await story.world.settle("1m")
  const deployment = await story.deployment()
  const after = await story.pods()
  expect(after.map(identity)).toEqual(before.map(identity))
  expect(new Set(imagesOf(after))).toEqual(new Set([image]))
  expect(isRolledOut(deployment)).toBe(true)
  expect(isHeld(deployment)).toBe(false)
  expect(deployment.spec.paused).toBeUndefined()
  expect(deployment.status.collisionCount).toBeUndefined()
  expect(active(await story.sets())).toHaveLength(1)
  expect(await story.jobs()).toEqual([])
}

/** The Deployment controller has replaced every pod. */
async function expectReplaced(story: InPlaceStory, before: readonly Json[], image: string) {
  await story.world.until("the rollout is complete", async () => isRolledOut(await story.deployment()))
  await story.world.settle("1m")
  const after = await story.pods()
  const olds = new Set(uidsOf(before))
  expect(after.filter(({ metadata }) => olds.has(metadata.uid))).toEqual([])
  expect(new Set(imagesOf(after))).toEqual(new Set([image]))
  expect(isHeld(await story.deployment())).toBe(false)
}

describe("an update in place", () => {
  test("the same pods run the new image, and the Deployment is complete", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await story.setImage({ web: v2 })
    expect(isHeld(await story.deployment())).toBe(true)
    const deployment = await story.free()
    expect(imageOf(deployment.spec.template)).toBe(v2)
    await expectUpdated(story, before, v2)
    for (const [index, pod] of (await story.pods()).entries()) {
      expect(statusOf(pod, "web").containerID).not.toBe(statusOf(before[index]!, "web").containerID)
      expect(statusOf(pod, "web").restartCount).toBe(1)
    }
    expect(await story.note()).toMatchObject({ reason: "Completed", from: { web: v1 }, to: { web: v2 } })
  })

  test("kubectl rollout history shows both revisions, and the old one can be updated to in place", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    const revisions = async () =>
      Object.fromEntries(
        (await story.sets()).map(({ metadata, spec }) => [
          metadata.annotations["deployment.kubernetes.io/revision"],
          `${imageOf(spec.template).split(":").pop()} ${spec.replicas}`,
        ]),
      )
    await story.setImage({ web: v2 })
    await story.free()
    await story.world.settle("10s")
    expect(await revisions()).toEqual({ 1: "1 0", 2: "2 3" })
    await story.setImage({ web: v1 })
    await story.free()
    await expectUpdated(story, before, v1)
    expect(await revisions()).toEqual({ 2: "2 0", 3: "1 3" })
  })

  test("a revision that is kept has the annotations of its Deployment: kubectl rollout undo brings them back", async () => {
    const story = await inPlaceStory({ annotations: { team: "blue" } })
    for (const image of [v2, v3]) {
      await story.setImage({ web: image })
      await story.free()
      await story.world.settle("10s")
    }
    const kept = (await story.sets()).filter(({ spec }) => spec.replicas === 0)
    const annotations = { [strategyAnnotation]: "InPlaceIfPossible", team: "blue" }
    expect(kept.map(({ metadata }) => metadata.annotations)).toEqual(
      kept.map(() => ({ ...annotations, "deployment.kubernetes.io/revision": expect.any(String) })),
    )
    expect(kept).toHaveLength(2)
  })

  test("costs one write a pod and a few more", async () => {
    const story = await inPlaceStory({ replicas: 6 })
    const from = story.world.history.length
    await story.setImage({ web: v2 })
    await story.free()
    const isPods = ({ object, place }: (typeof story.world.history)[number]) =>
      object.kind === "Pod" &&
      !place.includes("status") &&
      object.metadata.annotations?.[inPlaceAnnotation] !== undefined
    const written = story.world.history.slice(from).filter(isPods)
    const versions = new Set(written.map(({ object }) => `${object.metadata.name} ${object.metadata.generation}`))
    expect(versions.size).toBe(6)
  })

  test("an update that follows a native one is not taken for its old ReplicaSet", async () => {
    const story = await inPlaceStory({ annotations: { [strategyAnnotation]: "Recreate" } })
    await story.setImage({ web: v2 })
    await story.world.until("the native rollout", async () => isRolledOut(await story.deployment()))
    await story.world.settle("30s")
    const before = await story.pods()
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: "InPlaceIfPossible" } } })
    await story.setImage({ web: v1 })
    await story.free()
    await expectUpdated(story, before, v1)
  })

  test("the same bits under a new tag: no restart, only the template changes", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    const digest = /sha256:.*$/.exec(statusOf(before[0]!, "web").imageID)![0]
    story.registries.push(`${host}/web:same`, { digest, sizeBytes: 100_000 })
    await story.setImage({ web: `${host}/web:same` })
    const deployment = await story.free()
    await story.world.settle("30s")
    const after = await story.pods()
    expect(after.map(pod => statusOf(pod, "web").containerID)).toEqual(
      before.map(pod => statusOf(pod, "web").containerID),
    )
    expect(imageOf(deployment.spec.template)).toBe(`${host}/web:same`)
    expect(isRolledOut(await story.deployment())).toBe(true)
  })

  test("labels and annotations reach the pods without a restart", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await story.patch({ spec: { template: { metadata: { labels: { team: "blue" }, annotations: { note: "x" } } } } })
    await story.free()
    await expectUpdated(story, before, v1)
    for (const { metadata, status } of await story.pods()) {
      expect([metadata.labels.team, metadata.annotations.note]).toEqual(["blue", "x"])
      expect(statusOf({ status }, "web").restartCount).toBe(0)
    }
  })
})

describe("a label that a container reads into its environment", () => {
  const env = [{ name: "TEAM", valueFrom: { fieldRef: { fieldPath: "metadata.labels['team']" } } }]
  const template = {
    containers: [
      { name: "web", image: v1, env },
      { name: "side", image: `${host}/side:1` },
    ],
  }
  const team = (value: string) => ({ spec: { template: { metadata: { labels: { team: value } } } } })
  const restarts = async (story: InPlaceStory, name: string) =>
    (await story.pods()).map(pod => statusOf(pod, name).restartCount)

  test("the container is restarted by its node's agent, and no other", async () => {
    const story = await inPlaceStory({ template })
    const before = await story.pods()
    await story.patch(team("blue"))
    await story.free()
    await expectUpdated(story, before, v1)
    expect((await story.pods()).map(({ metadata }) => metadata.labels.team)).toEqual(["blue", "blue", "blue"])
    expect([await restarts(story, "web"), await restarts(story, "side")]).toEqual([
      [1, 1, 1],
      [0, 0, 0],
    ])
  })

  test("with the image of the container: the kubelet restarts it, once", async () => {
    const story = await inPlaceStory({ template })
    const before = await story.pods()
    const containers = [{ ...template.containers[0], image: v2 }, template.containers[1]]
    await story.patch({ spec: { template: { metadata: { labels: { team: "blue" } }, spec: { containers } } } })
    await story.free()
    await expectUpdated(story, before, v2)
    expect(await restarts(story, "web")).toEqual([1, 1, 1])
  })

  test("changed back in between: what was changed is restarted again", async () => {
    const story = await inPlaceStory({ template, annotations: { [settingAnnotations.partition]: "2" } })
    const before = await story.pods()
    await story.patch(team("blue"))
    await story.says("Partitioned")
    await story.patch({ spec: { template: { metadata: { labels: { team: null } } } } })
    await story.free()
    await expectUpdated(story, before, v1)
    expect((await story.pods()).map(({ metadata }) => metadata.labels.team)).toEqual([undefined, undefined, undefined])
    expect((await restarts(story, "web")).sort()).toEqual([0, 0, 2])
  })

  test("the processes are killed after each write: no container is restarted twice", async () => {
    const story = await inPlaceStory({ template, isAlone: true })
    const before = await story.pods()
    let running = story.update()
    await story.patch(team("blue"))
    for (let round = 0; round < 20 && isHeld(await story.deployment()); round++) {
      await story.world.settle("1s")
      running.die()
      running = story.update()
      await story.world.settle("20s")
    }
    await story.free()
    await expectUpdated(story, before, v1)
    expect(await restarts(story, "web")).toEqual([1, 1, 1])
  })
})

describe("budgets", () => {
  /** The most pods that were not ready, or had been changed and not yet restarted, at any time. */
  function mostDown(story: InPlaceStory, from: number): number {
    const down = new Map<string, boolean>()
    let most = 0
    for (const { object } of story.world.history.slice(from)) {
      if (object.kind !== "Pod") continue
      const ready = object.status?.conditions?.find(({ type }: Json) => type === "Ready")?.status === "True"
      const isBehind = object.status?.containerStatuses?.some(
        ({ name, image }: Json) => image !== imageOf(object, name),
      )
      down.set(object.metadata.name, !ready || isBehind)
      most = Math.max(most, [...down.values()].filter(Boolean).length)
    }
    return most
  }

  for (const [own, annotation, most] of [
    [1, undefined, 1],
    [2, undefined, 2],
    [2, "1", 1],
    ["50%", undefined, 3],
  ] as const)
    test(`maxUnavailable ${own}${annotation ? ` and in-place-max-unavailable ${annotation}` : ""}: ${most} at a time`, async () => {
      const story = await inPlaceStory({
        replicas: 6,
        annotations: annotation ? { [settingAnnotations.maxUnavailable]: annotation } : {},
        spec: { strategy: { rollingUpdate: { maxUnavailable: own } } },
      })
      const from = story.world.history.length
      await story.setImage({ web: v2 })
      await story.free()
      expect(mostDown(story, from)).toBe(most)
    })

  test("a single pod is not stopped without being asked for: the update is a native one", async () => {
    const story = await inPlaceStory({ replicas: 1, spec: { strategy: {} } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "NoBudget" })
    await expectReplaced(story, before, v2)
  })

  test("a PodDisruptionBudget that allows none is waited for, and named", async () => {
    const story = await inPlaceStory({ spec: { strategy: { rollingUpdate: { maxUnavailable: 2 } } } })
    const budget = (minAvailable: number) => ({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "web", namespace: "default" },
      spec: { minAvailable, selector: { matchLabels: { app: "web" } } },
    })
    await story.world.apply(budget(3))
    await story.world.settle("10s")
    const before = await story.pods()
    const from = story.world.history.length
    await story.setImage({ web: v2 })
    expect((await story.says("BudgetSpent")).message).toContain("PodDisruptionBudget web")
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
    await story.world.apply(budget(2))
    await story.free()
    expect(mostDown(story, from)).toBe(1)
    await expectUpdated(story, before, v2)
  })

  test("in-place-partition keeps pods, and a smaller one lets them go", async () => {
    const story = await inPlaceStory({ annotations: { [settingAnnotations.partition]: "2" } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.says("Partitioned")
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v2])
    await story.patch({ metadata: { annotations: { [settingAnnotations.partition]: "0" } } })
    await story.free()
    await expectUpdated(story, before, v2)
  })
})

describe("the readiness gate", () => {
  test("a pod is not ready for the grace period before its container restarts, and ready again afterwards", async () => {
    const story = await inPlaceStory({ hasGate: true, annotations: { [settingAnnotations.graceSeconds]: "10" } })
    const before = await story.pods()
    const from = story.world.history.length
    await story.setImage({ web: v2 })
    await story.free()
    const drained = new Map<string, number>()
    for (const { object, at } of story.world.history.slice(from)) {
      if (object.kind !== "Pod") continue
      const gate = object.status?.conditions?.find(({ type }: Json) => type === readinessGate)
      if (gate?.status === "False" && !drained.has(object.metadata.name)) drained.set(object.metadata.name, at)
      if (imageOf(object) === v2) expect(at - drained.get(object.metadata.name)!).toBeGreaterThanOrEqual(10_000)
    }
    expect(drained.size).toBe(3)
    await expectUpdated(story, before, v2)
  })

  test("an annotation that is removed in between gives everything back", async () => {
    const story = await inPlaceStory({ hasGate: true, annotations: { [settingAnnotations.graceSeconds]: "60" } })
    const before = await story.pods()
    const isDrained = (pod: Json) =>
      pod.status.conditions.some(({ type, status }: Json) => type === readinessGate && status === "False")
    await story.setImage({ web: v2 })
    await story.world.until("a pod is drained", async () => (await story.pods()).some(isDrained))
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
    await story.free()
    expect((await story.pods()).some(isDrained)).toBe(false)
    expect(await story.note()).toMatchObject({ reason: "OptedOut" })
    await expectReplaced(story, before, v2)
  })
})

test("a pod that cannot be let serve yet keeps the Deployment held: no pod stays drained", async () => {
  const annotations = { [settingAnnotations.graceSeconds]: "60" }
  const story = await inPlaceStory({ hasGate: true, annotations, isAlone: true })
  let refusals = 0
  const isRefused: Matcher = ({ path }) => /\/pods\/[^/]+\/status/.test(path) && refusals-- > 0
  story.update({ faults: [answer(isRefused, 409, { reason: "Conflict" })] })
  const isDrained = (pod: Json) =>
    pod.status.conditions.some(({ type, status }: Json) => type === readinessGate && status === "False")
  await story.setImage({ web: v2 })
  await story.world.until("a pod is drained", async () => (await story.pods()).some(isDrained))
  refusals = 2
  // Back to the template that its pods have: no pod is replaced.
  await story.patch({ metadata: { annotations: { [strategyAnnotation]: null } } })
  await story.setImage({ web: v1 })
  await story.free()
  expect((await story.pods()).some(isDrained)).toBe(false)
})

test("a revision that the server does not let be kept is left out, and the update is complete", async () => {
  const story = await inPlaceStory({ isAlone: true })
  const isHistory: Matcher = ({ method, path }) => method === "POST" && path.includes("/replicasets")
  const said = "exceeded quota: small, requested: count/replicasets.apps=1, used: 1, limited: 1"
  story.update({ faults: [answer(isHistory, 403, { reason: "Forbidden", message: said })] })
  const before = await story.pods()
  await story.setImage({ web: v2 })
  await story.free()
  await story.world.settle("1m")
  expect((await story.pods()).map(identity)).toEqual(before.map(identity))
  expect(await story.sets()).toHaveLength(1)
  expect(isRolledOut(await story.deployment())).toBe(true)
  const told = story.world.history.flatMap(({ object }) =>
    object.kind === "Event" ? [String(object.note ?? object.message)] : [],
  )
  expect(told.filter(note => note.includes("is not kept for kubectl rollout undo") && note.includes(said))).not.toEqual(
    [],
  )
})

describe("an image that does not work", () => {
  test("is missing: no pod is touched, and the nodes are named", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await story.setImage({ web: `${host}/web:missing` })
    expect((await story.says("ImageUnavailable")).message).toMatch(/node-\d \(NotFound\)/)
    await story.world.advance("10m")
    const after = await story.pods()
    expect(after.map(({ spec }) => spec)).toEqual(before.map(({ spec }) => spec))
    expect(after.every(pod => statusOf(pod, "web").restartCount === 0)).toBe(true)
    await story.setImage({ web: v1 })
    await story.free()
    await expectUpdated(story, before, v1)
  })

  for (const policy of ["Revert", "Stop", "Rollback"] as const)
    test(`crashes: ${policy}`, async () => {
      const annotations = { [settingAnnotations.onFailure]: policy }
      const story = await inPlaceStory({ annotations, spec: { minReadySeconds: 5 } })
      story.registries.push(v2, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
      const before = await story.pods()
      await story.setImage({ web: v2 })
      if (policy === "Rollback") {
        const deployment = await story.free("30m")
        expect(imageOf(deployment.spec.template)).toBe(v1)
        expect(await story.note()).toMatchObject({ reason: "RolledBack" })
        return expectUpdated(story, before, v1)
      }
      expect((await story.says("UpdateFailed", "30m")).message).toContain("CrashLoop")
      await story.world.advance("10m")
      const images = imagesOf(await story.pods())
      expect(images).toEqual(policy === "Stop" ? [v1, v1, v2] : [v1, v1, v1])
      // A better image is taken up at once.
      await story.setImage({ web: v3 })
      await story.free()
      await expectUpdated(story, before, v3)
    })
})

describe("in between", () => {
  const held = async (story: InPlaceStory) => {
    await story.setImage({ web: v2 })
    await story.world.until("the first pod is changed", async () => imagesOf(await story.pods()).includes(v2))
  }

  test("the image is changed again", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await held(story)
    await story.setImage({ web: v3 })
    await story.free()
    await expectUpdated(story, before, v3)
  })

  test("the image is changed back", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await held(story)
    await story.setImage({ web: v1 })
    await story.free()
    await expectUpdated(story, before, v1)
    expect(await story.note()).toMatchObject({ reason: "Completed", from: { web: v2 }, to: { web: v1 } })
  })

  test("the image is changed back before a pod was touched", async () => {
    const story = await inPlaceStory({ annotations: { [settingAnnotations.partition]: "100%" } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.says("Partitioned")
    await story.setImage({ web: v1 })
    await story.free()
    await expectUpdated(story, before, v1)
    expect((await story.note())?.message).toBe(`no pod had to be changed: ${v1}`)
  })

  test("an environment variable is changed too: the Deployment controller does it", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await held(story)
    await story.patch({
      spec: {
        template: {
          spec: {
            containers: [
              { name: "web", image: v2, env: [{ name: "A", value: "1" }] },
              { name: "side", image: `${host}/side:1` },
            ],
          },
        },
      },
    })
    await story.free()
    expect(await story.note()).toMatchObject({
      reason: "NotInPlace",
      message: expect.stringContaining("spec.containers[web].env"),
    })
    await expectReplaced(story, before, v2)
  })

  test("under InPlaceOnly such a change stays held, with its path, until it is taken back", async () => {
    const story = await inPlaceStory({ annotations: { [strategyAnnotation]: "InPlaceOnly" } })
    const before = await story.pods()
    await story.patch({ spec: { template: { spec: { priorityClassName: "system-node-critical" } } } })
    const { message } = await story.says("NotInPlace")
    expect(message).toContain("spec.priorityClassName")
    expect(message).toContain("aim release deploy/web")
    await story.patch({ spec: { template: { spec: { priorityClassName: null } } } })
    await story.free()
    await expectUpdated(story, before, v1)
  })

  for (const replicas of [5, 2, 0])
    test(`it is scaled to ${replicas}`, async () => {
      const story = await inPlaceStory()
      const before = await story.pods()
      await held(story)
      await story.patch({ spec: { replicas } })
      await story.free()
      await story.world.settle("1m")
      const after = await story.pods()
      const olds = new Set(uidsOf(before))
      expect(after).toHaveLength(replicas)
      expect(after.filter(({ metadata }) => olds.has(metadata.uid))).toHaveLength(Math.min(replicas, 3))
      expect(imagesOf(after)).toEqual(Array(replicas).fill(v2))
      expect(isRolledOut(await story.deployment())).toBe(true)
    })

  test("kubectl rollout resume is its owner's release: the rest is a rolling update", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await held(story)
    await story.patch({ spec: { paused: false } })
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "FellBackToRollingUpdate" })
    await expectReplaced(story, before, v2)
  })

  for (const [what, body] of Object.entries({
    "the annotation is removed": { metadata: { annotations: { [strategyAnnotation]: null } } },
    "it is resumed": { spec: { paused: false } },
  }))
    test(`the image is changed back, and ${what}: no pod stays on the other image`, async () => {
      const story = await inPlaceStory()
      const before = await story.pods()
      await held(story)
      const back = { spec: { template: { spec: { containers: [{ name: "web", image: v1 }] } } } }
      // Both at one time: no pod has gone back yet.
      for (const each of [back, body])
        await story.world.client.patch(
          deployments,
          { name: "web", namespace: "default" },
          { type: "strategic", body: each },
        )
      await story.free()
      await expectUpdated(story, before, v1)
    })

  test("a pod is deleted: its successor is brought along", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await held(story)
    const { metadata } = (await story.pods()).find(pod => imageOf(pod) === v1)!
    await story.world.client.delete(
      { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
      metadata,
    )
    await story.free()
    await story.world.settle("1m")
    const after = await story.pods()
    expect(imagesOf(after)).toEqual([v2, v2, v2])
    expect(after.filter(({ metadata }) => uidsOf(before).includes(metadata.uid))).toHaveLength(2)
  })

  test("an annotation that admission cannot judge is reported with what to write, and continues when it is right", async () => {
    const story = await inPlaceStory({ annotations: { [settingAnnotations.containerOrder]: "web,web" } })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    expect((await story.says("InvalidAnnotation")).message).toContain('is "web,web": write names of containers')
    await story.patch({ metadata: { annotations: { [settingAnnotations.containerOrder]: "side,web" } } })
    await story.free()
    await expectUpdated(story, before, v2)
  })
})

test("the annotation of a hold of long ago, without its label, is no hold: the next one is a new one", async () => {
  const story = await inPlaceStory()
  const before = await story.pods()
  const left = '{"by":"in-place","original":{"paused":false},"generation":1}'
  await story.patch({ metadata: { annotations: { [heldMark]: left } } })
  const { generation } = (await story.deployment()).metadata
  expect(generation).toBeGreaterThan(1)
  await story.setImage({ web: v2 })
  expect(JSON.parse((await story.deployment()).metadata.annotations[heldMark])).toMatchObject({ generation })
  await story.free()
  await expectUpdated(story, before, v2)
})

describe("nothing is held", () => {
  test("of a Deployment that its owner has paused", async () => {
    const story = await inPlaceStory()
    await story.patch({ spec: { paused: true } })
    await story.setImage({ web: v2 })
    await story.world.settle("1m")
    const deployment = await story.deployment()
    expect([deployment.spec.paused, isHeld(deployment)]).toEqual([true, false])
    expect(imagesOf(await story.pods())).toEqual([v1, v1, v1])
  })

  test("without a grant: the update is a native one", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    const roleBindings = {
      group: "rbac.authorization.k8s.io",
      version: "v1",
      plural: "rolebindings",
      kind: "RoleBinding",
      namespaced: true,
    }
    await story.world.client.delete(roleBindings, { name: "aim-target", namespace: "default" })
    await story.setImage({ web: v2 })
    expect(isHeld(await story.deployment())).toBe(false)
    await expectReplaced(story, before, v2)
  })

  test("by a write that is no change of the template", async () => {
    const story = await inPlaceStory()
    await story.patch({ metadata: { annotations: { other: "x" } }, spec: { replicas: 4 } })
    expect((await story.deployment()).metadata.annotations[heldMark]).toBeUndefined()
  })
})

describe("together with a ServiceImage", () => {
  const target = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" } }
  const tiers = [{ upgradeTier: "", settleSeconds: 0 }]

  async function rolledOut(spec: Json = {}, ofDeployment: Json = {}) {
    const story = await inPlaceStory({ spec: ofDeployment })
    const { world } = story
    await world.apply(crdOf(ServiceImage) as Json)
    const rollout = about(world, world.run([createServiceImageController()]))
    await world.apply({
      apiVersion: ServiceImage.apiVersion,
      kind: "ServiceImage",
      metadata: { name: "dicom" },
      spec: { target, defaultImage: v1, tiers, pace: { podsPerSecond: 0 }, ...spec },
    })
    await rollout.complete()
    return { story, rollout }
  }

  test("its stamp is held, its tier is complete when the Deployment is released, and the pods are the same", async () => {
    const { story, rollout } = await rolledOut()
    const before = await story.pods()
    const { history } = story.world
    const from = history.length
    await rollout.change({ defaultImage: v2 })
    await rollout.complete()
    const first = (plural: string, isIt: (object: Json) => boolean) =>
      history.findIndex(({ place, object }, at) => at >= from && place.endsWith(plural) && isIt(object))
    const isUpdated = (each: Json) => isRolledOut(each) && imageOf(each.spec.template) === v2
    const isComplete = ({ status }: Json) =>
      status.conditions.some((each: Json) => each.type === "Complete" && each.status === "True")
    const isChanged = ({ metadata, status }: Json) => status?.observedGeneration === metadata.generation
    // Before the release, all counts of the Deployment are complete.
    const counted = first("deployments", each => isUpdated(each) && isHeld(each))
    const released = first("deployments", each => isUpdated(each) && !isHeld(each))
    const complete = first("serviceimages", each => isChanged(each) && isComplete(each))
    expect([counted, released, complete]).toEqual([counted, released, complete].sort((a, b) => a - b))
    expect(counted).toBeGreaterThan(0)
    await expectUpdated(story, before, v2)
    expect(JSON.stringify(rollout.statuses())).not.toContain("CrashLoop")
  })

  test("an update that fails halts it, and what it changed goes back in place", async () => {
    const { story, rollout } = await rolledOut({ onFailure: "Rollback" }, { minReadySeconds: 5 })
    const before = await story.pods()
    story.registries.push(v3, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await rollout.change({ defaultImage: v3 })
    await rollout.until("Complete", "RolledBack")
    await story.free()
    await expectUpdated(story, before, v1)
  })
})
