import { describe, expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { alter } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { deployments, pods } from "#controllers/in-place/resources.ts"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
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
import { expectNotTriedAgain } from "./in-place-sets.ts"

// What users, their tools and the cluster do while an update in place is under way, and afterwards.

const side1 = `${host}/side:1`
const side2 = `${host}/side:2`
const name = { name: "web", namespace: "default" }
const uidsOf = (all: readonly Json[]) => all.map(({ metadata }) => metadata.uid).sort()
const imagesOf = (all: readonly Json[], container = "web") => all.map(pod => imageOf(pod, container))
const restartsOf = ({ status }: Json, container = "web") =>
  status.containerStatuses.find(({ name }: Json) => name === container).restartCount
const isActive = ({ spec, status }: Json) => spec.replicas > 0 || (status?.replicas ?? 0) > 0

/** The first pod has the new image, and the others do not yet. */
async function begun(story: InPlaceStory) {
  const before = await story.pods()
  await story.setImage({ web: v2 })
  await story.world.until("the first pod is changed", async () => imagesOf(await story.pods()).includes(v2))
  return before
}

/** Complete, not held, one active ReplicaSet, and nothing of the update left. */
async function expectCalm(story: InPlaceStory, images: readonly string[]) {
  await story.world.settle("1m")
  const deployment = await story.deployment()
  expect([isHeld(deployment), deployment.spec.paused, isRolledOut(deployment)]).toEqual([false, undefined, true])
  expect(imagesOf(await story.pods())).toEqual(images)
  expect((await story.sets()).filter(isActive)).toHaveLength(images.length > 0 ? 1 : 0)
  expect(await story.jobs()).toEqual([])
}

/** The same pods, apart from what was asked for. */
async function expectSame(story: InPlaceStory, before: readonly Json[], image: string) {
  await expectCalm(
    story,
    before.map(() => image),
  )
  expect((await story.pods()).map(identity)).toEqual(before.map(identity))
}

async function expectReplaced(story: InPlaceStory, before: readonly Json[], image: string) {
  await story.world.until("the rollout is complete", async () => isRolledOut(await story.deployment()))
  await expectCalm(
    story,
    before.map(() => image),
  )
  const olds = new Set(uidsOf(before))
  expect((await story.pods()).filter(({ metadata }) => olds.has(metadata.uid))).toEqual([])
}

const scale = (story: InPlaceStory, replicas: number) =>
  story.world.client.patch(deployments, name, { type: "merge", body: { spec: { replicas } } }, { subresource: "scale" })

describe("scale", () => {
  test("an autoscaler changes its mind three times: every pod that stays is the pod it was", async () => {
    const story = await inPlaceStory()
    const before = await begun(story)
    for (const replicas of [5, 2, 4]) {
      scale(story, replicas).catch(() => {})
      await story.world.advance("1s")
    }
    await story.free()
    await expectCalm(story, [v2, v2, v2, v2])
    const olds = new Set(uidsOf(before))
    expect((await story.pods()).filter(({ metadata }) => olds.has(metadata.uid)).length).toBeGreaterThanOrEqual(2)
  })

  test("to zero and back: nothing waits for pods that are gone, and the new ones have the new image", async () => {
    const story = await inPlaceStory()
    await begun(story)
    scale(story, 0).catch(() => {})
    await story.free()
    await expectCalm(story, [])
    expect(await story.note()).toMatchObject({ reason: "Completed" })
    scale(story, 3).catch(() => {})
    await story.world.until("all are there", async () => isRolledOut(await story.deployment()))
    await expectCalm(story, [v2, v2, v2])
  })

  test("a Deployment without pods is released at once", async () => {
    const story = await inPlaceStory({ replicas: 0 })
    await story.setImage({ web: v2 })
    await story.free("1m")
    await expectCalm(story, [])
  })
})

describe("the image", () => {
  test("another container is changed instead, and then nothing: every container goes back", async () => {
    const story = await inPlaceStory()
    story.push(side2, { version: "side" })
    const before = await begun(story)
    await story.setImage({ web: v1, side: side2 })
    await story.world.until("a pod has it", async () => imagesOf(await story.pods(), "side").includes(side2))
    await story.setImage({ web: v1, side: side1 })
    await story.free()
    await expectCalm(story, [v1, v1, v1])
    const after = await story.pods()
    expect(imagesOf(after, "side")).toEqual([side1, side1, side1])
    expect(uidsOf(after)).toEqual(uidsOf(before))
  })

  test("is changed back before the kubelet has seen it: the pod runs on", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    // Both arrive within the time that the kubelet takes to look.
    await story.setImage({ web: v2 })
    await story.world.until("the first pod is changed", async () => imagesOf(await story.pods()).includes(v2))
    await story.setImage({ web: v1 })
    await story.free("5m")
    await expectSame(story, before, v1)
  })

  test("is changed together with an environment variable: a native update, from what the pods are by then", async () => {
    const story = await inPlaceStory()
    const before = await begun(story)
    const containers = [{ name: "web", image: v3, env: [{ name: "A", value: "1" }] }]
    await story.world.client
      .patch(deployments, name, { type: "strategic", body: { spec: { template: { spec: { containers } } } } })
      .catch(() => {})
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "NotInPlace" })
    await expectReplaced(story, before, v3)
  })

  test("GitOps puts the old one back: the pods that were changed go back", async () => {
    const story = await inPlaceStory()
    const { metadata, spec } = await story.deployment()
    const before = await begun(story)
    // As it stands in the repository: no pause, no word of the hold.
    const { paused: _, ...rest } = spec
    await story.world.apply({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { ...name, annotations: { [strategyAnnotation]: metadata.annotations[strategyAnnotation] } },
      spec: rest,
    })
    await story.free()
    await expectSame(story, before, v1)
  })
})

test("GitOps writes an image again that was rolled back: the Deployment waits, and is tried again when asked", async () => {
  const annotations = { [settingAnnotations.onFailure]: "Rollback" }
  await expectNotTriedAgain(await inPlaceStory({ annotations, spec: { minReadySeconds: 5 } }))
})

describe("kubectl rollout", () => {
  const kubectl = (story: InPlaceStory, body: Json) =>
    story.world.client.patch(deployments, name, { type: "strategic", body }, { fieldManager: "kubectl-rollout" })

  test("restart, by a tool that does not look at the pause: a native update, and nothing stays held", async () => {
    const story = await inPlaceStory()
    const before = await begun(story)
    const annotations = { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" }
    kubectl(story, { spec: { template: { metadata: { annotations } } } }).catch(() => {})
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "NotInPlace" })
    await expectReplaced(story, before, v2)
  })

  test("restart afterwards: every pod is replaced, once", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    const annotations = { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" }
    kubectl(story, { spec: { template: { metadata: { annotations } } } }).catch(() => {})
    await story.world.advance("1s")
    await expectReplaced(story, before, v2)
    const made = new Set(
      story.world.history.flatMap(({ object }) => (object.kind === "Pod" ? [object.metadata.uid] : [])),
    )
    expect(made.size).toBe(6)
  })

  test("history, in between: the revision before, and no other", async () => {
    const story = await inPlaceStory()
    await begun(story)
    const sets = await story.sets()
    expect(sets.map(({ metadata }) => metadata.annotations["deployment.kubernetes.io/revision"])).toEqual(["1"])
  })

  /** What kubectl sends: the template of the revision, and its annotations in place of the Deployment's own. */
  async function undo(story: InPlaceStory, revision: string) {
    const set = (await story.sets()).find(
      ({ metadata }) => metadata.annotations["deployment.kubernetes.io/revision"] === revision,
    )!
    const { "pod-template-hash": __, ...labels } = set.spec.template.metadata.labels
    const template = { ...set.spec.template, metadata: { ...set.spec.template.metadata, labels } }
    const own = new Set(["deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"])
    const of = (annotations: Json) => Object.fromEntries(Object.entries(annotations).filter(([key]) => !own.has(key)))
    const { metadata } = await story.deployment()
    const kept = Object.fromEntries(Object.entries(metadata.annotations).filter(([key]) => own.has(key)))
    const body = [
      { op: "replace", path: "/spec/template", value: template },
      { op: "replace", path: "/metadata/annotations", value: { ...of(set.metadata.annotations), ...kept } },
    ]
    story.world.client.patch(deployments, name, { type: "json", body }).catch(() => {})
    await story.world.advance("1s")
  }

  test("undo afterwards: the same pods go back in place, and undo again brings them forward", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    await story.world.settle("10s")
    await undo(story, "1")
    await story.free()
    await expectSame(story, before, v1)
    await undo(story, "2")
    await story.free()
    await expectSame(story, before, v2)
  })
})

describe("is gone", () => {
  test("the Deployment: its pods and jobs go, and nothing is left", async () => {
    const story = await inPlaceStory()
    await begun(story)
    story.world.client.delete(deployments, name, { propagationPolicy: "Background" }).catch(() => {})
    await story.world.settle("2m")
    expect([await story.pods(), await story.sets(), await story.jobs()]).toEqual([[], [], []])
  })

  test("a Deployment of the same name that follows it: the update of the first says nothing about it", async () => {
    const story = await inPlaceStory()
    const { metadata, spec } = await story.deployment()
    await begun(story)
    story.world.client.delete(deployments, name, { propagationPolicy: "Background" }).catch(() => {})
    await story.world.settle("2m")
    await story.world.apply({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { ...name, annotations: { [strategyAnnotation]: metadata.annotations[strategyAnnotation] } },
      spec,
    })
    await story.world.until("it is there", async () => isRolledOut(await story.deployment()))
    const before = await story.pods()
    await story.setImage({ web: v3 })
    await story.free()
    await expectSame(story, before, v3)
  })

  test("a pod that was changed: its successor has the old image, and is brought along", async () => {
    const story = await inPlaceStory()
    await begun(story)
    const changed = (await story.pods()).find(pod => imageOf(pod) === v2)!
    story.world.client.delete(pods, { name: changed.metadata.name, namespace: "default" }).catch(() => {})
    await story.free()
    await expectCalm(story, [v2, v2, v2])
  })

  test("a pod that was drained: the update goes on with the others and its successor", async () => {
    const story = await inPlaceStory({ hasGate: true, annotations: { [settingAnnotations.graceSeconds]: "30" } })
    await story.setImage({ web: v2 })
    const isDrained = (pod: Json) =>
      pod.status.conditions.some(({ type, status }: Json) => type === readinessGate && status === "False")
    await story.world.until("a pod is drained", async () => (await story.pods()).some(isDrained))
    const drained = (await story.pods()).find(isDrained)!
    story.world.client.delete(pods, { name: drained.metadata.name, namespace: "default" }).catch(() => {})
    await story.free()
    await expectCalm(story, [v2, v2, v2])
  })

  test("the agent of a node: its pod is not touched, the node is named, and it goes on when the agent is back", async () => {
    const story = await inPlaceStory()
    const before = await story.pods()
    const { nodeName } = before[0]!.spec
    story.agents.get(nodeName)!.die()
    await story.setImage({ web: v2 })
    expect((await story.says("ImageUnavailable", "30m")).message).toContain(nodeName)
    const images = Object.fromEntries((await story.pods()).map(pod => [pod.spec.nodeName, imageOf(pod)]))
    expect(images[nodeName]).toBe(v1)
    expect(Object.values(images).filter(image => image === v2)).toHaveLength(2)
    story.runAgent(nodeName)
    await story.free("1h")
    await expectSame(story, before, v2)
  })

  test("the agent of a node, and in-place-unverified allows it: the kubelet pulls the image itself", async () => {
    const story = await inPlaceStory({ annotations: { [settingAnnotations.unverified]: "true" } })
    await story.addNode("bare", { agent: false })
    await story.patch({ spec: { replicas: 4, strategy: { rollingUpdate: { maxUnavailable: 1 } } } })
    await story.world.until("all are there", async () => isRolledOut(await story.deployment()))
    await story.world.settle("10s")
    const before = await story.pods()
    expect(before.map(({ spec }) => spec.nodeName)).toContain("bare")
    await story.setImage({ web: v2 })
    await story.free("1h")
    await expectSame(story, before, v2)
  })

  test("a node: its pods are replaced elsewhere, and the update is complete", async () => {
    const story = await inPlaceStory()
    const before = await begun(story)
    const stale = (await story.pods()).find(pod => imageOf(pod) === v1)!
    const lost = stale.spec.nodeName
    story.agents.get(lost)?.die()
    story.world.client
      .delete({ group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false }, { name: lost })
      .catch(() => {})
    await story.free("1h")
    await expectCalm(story, [v2, v2, v2])
    const after = await story.pods()
    expect(after.every(({ spec }) => spec.nodeName !== lost)).toBe(true)
    expect(after.filter(({ metadata }) => uidsOf(before).includes(metadata.uid)).length).toBeGreaterThanOrEqual(1)
  })
})

describe("what others do to pods", () => {
  test("two ReplicaSets have pods when it begins: the rolling update that is under way goes on", async () => {
    const story = await inPlaceStory({
      annotations: { [strategyAnnotation]: "Recreate" },
      spec: { minReadySeconds: 20 },
    })
    const before = await story.pods()
    await story.setImage({ web: v3 })
    await story.world.until("two have pods", async () => (await story.sets()).filter(isActive).length === 2)
    await story.patch({ metadata: { annotations: { [strategyAnnotation]: "InPlaceIfPossible" } } })
    await story.setImage({ web: v2 })
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "FellBackToRollingUpdate" })
    await expectReplaced(story, before, v2)
  })

  test("a container that admission has injected is neither changed nor restarted", async () => {
    const story = await inPlaceStory({ replicas: 0 })
    await story.world.apply(...injects)
    await story.patch({ spec: { replicas: 3 } })
    await story.world.until("all are there", async () => isRolledOut(await story.deployment()))
    await story.world.settle("10s")
    const before = await story.pods()
    const injected = (all: readonly Json[]) =>
      all.map(({ status }) => status.containerStatuses.find((each: Json) => each.name === "injected"))
    expect(injected(before).every(each => each?.ready)).toBe(true)
    await story.setImage({ web: v2 })
    await story.free()
    await expectSame(story, before, v2)
    expect(injected(await story.pods())).toEqual(injected(before))
  })

  test("a webhook rewrites the image of pods: what it made of our write counts, and is not fought", async () => {
    const mirrored = `${host}/mirror/web:2`
    const story = await inPlaceStory({ isAlone: true })
    story.push(mirrored, { version: "x" })
    const isPatch = ({ method, path }: { method: string; path: string }) =>
      method === "PATCH" && /\/pods\/[^/]+\?/.test(path)
    story.update({ faults: [alter(isPatch, body => body.replace(`"image":"${v2}"`, `"image":"${mirrored}"`))] })
    const before = await story.pods()
    await story.setImage({ web: v2 })
    await story.free()
    await story.world.settle("1m")
    const after = await story.pods()
    expect(after.map(identity)).toEqual(before.map(identity))
    expect(imagesOf(after)).toEqual([mirrored, mirrored, mirrored])
    expect(after.map(pod => restartsOf(pod))).toEqual([1, 1, 1])
    expect(isRolledOut(await story.deployment())).toBe(true)
  })

  test("another ReplicaSet with pods appears in between: what it does is its owner's", async () => {
    const story = await inPlaceStory()
    await begun(story)
    const [set] = await story.sets()
    const hash = "other"
    const labels = { app: "web", "pod-template-hash": hash }
    const { metadata, spec } = set!
    await story.world.apply({
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { name: "web-other", namespace: "default", labels, ownerReferences: metadata.ownerReferences },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { ...spec.template, metadata: { labels } },
      },
    })
    await story.free()
    expect(await story.note()).toMatchObject({ reason: "FellBackToRollingUpdate" })
    await story.world.until("the rollout is complete", async () => isRolledOut(await story.deployment()))
    await expectCalm(story, [v2, v2, v2])
  })
})

/** As a service mesh does it, by a policy. */
const injects: Json[] = [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicy",
    metadata: { name: "inject" },
    spec: {
      reinvocationPolicy: "Never",
      matchConstraints: {
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
      },
      mutations: [
        {
          patchType: "JSONPatch",
          jsonPatch: {
            expression: `[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'injected', image: '${side1}'}}]`,
          },
        },
      ],
    },
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicyBinding",
    metadata: { name: "inject" },
    spec: { policyName: "inject" },
  },
]
