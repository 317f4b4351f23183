import { expect, test } from "vitest"
import { rollbackAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { Json } from "#cluster-sim/index.ts"
import { autoscalers, canaries, scaledObjects } from "#controllers/canary/resources.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, v2 } from "#test/support/canary-story.ts"

// The autoscaler stays on the user's workload: it scales the source during a run, and only up.

const target = { apiVersion: "apps/v1", kind: "Deployment", name: "web" }
const hpa = (spec: Json = {}): Json => ({
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name: "web", namespace: "default" },
  spec: {
    scaleTargetRef: target,
    minReplicas: 2,
    maxReplicas: 6,
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }],
    ...spec,
  },
})

/** With a load in percent that a test may change. At 80 nothing changes. */
async function scaledStory(options: CanaryOptions = {}) {
  const load = { percent: 80 }
  const story = await canaryStory({ hasPolicy: true, ...options, isAlone: true, measure: () => load.percent })
  await story.world.apply(hpa())
  const first = story.run()
  await story.until("Initialized")
  await story.world.settle("1m")
  const autoscaler = () => story.world.get(autoscalers, "web", "default")
  const sizes = async () => {
    const sets = (await story.sets()).filter(({ spec }) => spec.replicas > 0)
    return sets.map(({ spec }) => spec.replicas as number).sort()
  }
  return { ...story, first, load, autoscaler, sizes }
}

const said = ({ metadata, spec }: Json) => ({
  annotations: metadata.annotations ?? {},
  labels: metadata.labels ?? {},
  spec,
})

const atFirstWeight = (story: CanaryStory) => story.world.until("a weight", () => story.weights().includes(34), "10m")

test("it scales the source up during a run, not down, and is as before afterwards", async () => {
  const story = await scaledStory({ spec: { analysis: { interval: "5m", threshold: 2, stepWeights: [34, 67] } } })
  const before = said(await story.autoscaler())
  await story.setImage(v2)
  await atFirstWeight(story)
  story.load.percent = 160
  await story.world.until("six pods of the source", async () => (await story.deployment()).spec.replicas === 6, "5m")
  story.load.percent = 10
  const { status } = await story.until("Succeeded", "2h")
  expect(status.history[0]).toMatchObject({ result: "Promoted" })
  const sizesOfSource = story.world.history
    .filter(({ object }) => object.kind === "Deployment" && object.metadata.name === "web")
    .map(({ object }) => object.spec.replicas as number)
  expect(sizesOfSource.toSorted((a, b) => a - b)).toEqual(sizesOfSource)
  await story.world.until("it scales down again", async () => (await story.deployment()).spec.replicas === 2, "30m")
  await story.world.settle("1m")
  expect(said(await story.autoscaler())).toEqual(before)
  expect(await story.sizes()).toEqual([2])
})

test("taken back, or deleted with the Canary: it is as before", async () => {
  for (const end of ["rollback", "delete"] as const) {
    const story = await scaledStory()
    const before = said(await story.autoscaler())
    await story.setImage(v2)
    await atFirstWeight(story)
    expect((await story.autoscaler()).spec.behavior.scaleDown.selectPolicy).toBe("Disabled")
    if (end === "delete") await story.remove()
    else {
      const { id } = (await story.canary()).status.run
      await story.world.patch(canaries, "web", { metadata: { annotations: { [rollbackAnnotation]: id } } }, "default")
      await story.until("Failed")
    }
    await story.world.settle("5m")
    expect(said(await story.autoscaler())).toEqual(before)
  }
})

test("the process dies during the run: the next one goes on, and puts it back", async () => {
  const story = await scaledStory()
  const before = said(await story.autoscaler())
  await story.setImage(v2)
  await atFirstWeight(story)
  expect(said(await story.autoscaler())).not.toEqual(before)
  await story.first.stop()
  story.run()
  await story.until("Succeeded")
  await story.world.settle("1m")
  expect(said(await story.autoscaler())).toEqual(before)
})

test("what its owner writes during a run counts at once, and stays", async () => {
  const story = await scaledStory()
  await story.setImage(v2)
  await atFirstWeight(story)
  await story.world.apply(hpa({ minReplicas: 4, behavior: { scaleDown: { selectPolicy: "Min" } } }))
  await story.world.until("four pods", async () => (await story.deployment()).spec.replicas === 4, "5m")
  const held = async () => (await story.autoscaler()).spec.behavior.scaleDown.selectPolicy === "Disabled"
  await story.world.until("it is held again", held, "5m")
  await story.until("Succeeded", "2h")
  await story.world.settle("1m")
  expect((await story.autoscaler()).spec).toMatchObject({
    minReplicas: 4,
    behavior: { scaleDown: { selectPolicy: "Min" } },
  })
  expect((await story.autoscaler()).metadata.annotations).toBeUndefined()
})

const kedaCrd: Json = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "scaledobjects.keda.sh" },
  spec: {
    group: "keda.sh",
    names: { kind: "ScaledObject", listKind: "ScaledObjectList", plural: "scaledobjects", singular: "scaledobject" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
}

test("a ScaledObject of KEDA: neither it nor the autoscaler that KEDA makes scales down, and it is as before afterwards", async () => {
  const autoscalerRef = { apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject", name: "web" } as const
  const story = await canaryStory({ hasPolicy: true, isAlone: true, spec: { autoscalerRef } })
  const { world } = story
  await world.apply(kedaCrd)
  await world.settle("1m")
  const scaled = { scaleTargetRef: { name: "web" }, idleReplicaCount: 0, minReplicaCount: 1, triggers: [] }
  const metadata = { name: "web", namespace: "default" }
  await world.apply({ apiVersion: "keda.sh/v1alpha1", kind: "ScaledObject", metadata, spec: scaled })
  const found = () => world.get(scaledObjects, "web", "default")
  const before = said(await found())
  story.run()
  await story.until("Initialized")
  await story.setImage(v2)
  await atFirstWeight(story)
  expect((await found()).spec).toEqual({
    scaleTargetRef: { name: "web" },
    minReplicaCount: 1,
    advanced: { horizontalPodAutoscalerConfig: { behavior: { scaleDown: { selectPolicy: "Disabled" } } } },
    triggers: [],
  })
  await story.until("Succeeded")
  await world.settle("1m")
  expect(said(await found())).toEqual(before)
})
