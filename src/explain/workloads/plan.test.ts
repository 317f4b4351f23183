import { describe, expect, test } from "vitest"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import type { Sight } from "./facts.ts"
import { planOf } from "./plan.ts"
import {
  budget,
  type Given,
  markOf,
  nodeImage,
  noteOf,
  pod,
  revision,
  sight,
  templateOf,
  v1,
  v2,
} from "./test-workloads.ts"

const kinds = ["Deployment", "StatefulSet", "DaemonSet"] as const
const to2: Given = { image: v2, note: "none" }
const plan = (given: Given = to2, over: Partial<Sight> = {}, asked: { holds: boolean | undefined } = { holds: true }) =>
  planOf(sight(given, over), asked)

for (const kind of kinds)
  test(`${kind}: an image goes in place, one pod after the other, once it is pulled`, () => {
    const planned = plan({ ...to2, kind })
    expect(planned).toMatchObject({
      way: "InPlace",
      message: "the pods stay, web restarts, at most 1 of 3 pods down at a time",
      images: [{ container: "web", from: v1, to: v2 }],
      blockedBy: [],
      remarks: [],
    })
    expect(planned.pods.map(({ name }) => name).sort()).toEqual(["web-0", "web-1", "web-2"])
    expect(planned.pods.filter(({ isNext }) => isNext)).toHaveLength(1)
    expect(planned.nodes.map(({ node }) => node).sort()).toEqual(["node-0", "node-1", "node-2"])
  })

test("nodes that have the image are left out, and a failed pull has its reason", () => {
  const nodeImages = [nodeImage("node-0", v2), nodeImage("node-1", v2, "Failed", "NotFound"), nodeImage("node-2")]
  expect(plan(to2, { nodeImages }).nodes).toEqual([
    { node: "node-1", image: v2, why: "NotFound" },
    { node: "node-2", image: v2, why: "" },
  ])
})

test("a node without an agent blocks, unless that is allowed", () => {
  const nodeImages = [nodeImage("node-0"), nodeImage("node-1")]
  const words = "no agent has answered on node-2 (aim manifests agent; in-place-unverified allows it)"
  expect(plan(to2, { nodeImages }).blockedBy).toEqual([words])
  const annotations = { [settingAnnotations.unverified]: "true" }
  expect(plan({ ...to2, annotations }, { nodeImages }).blockedBy).toEqual([])
})

describe("budgets", () => {
  test("a PodDisruptionBudget blocks by name", () => {
    const { blockedBy, pods } = plan(to2, { budgets: [budget("careful", 0)] })
    expect(blockedBy).toEqual(["PodDisruptionBudget careful allows no disruption now"])
    expect(pods.filter(({ isNext }) => isNext)).toEqual([])
    expect(plan(to2, { budgets: [budget("careful", 1)] }).blockedBy).toEqual([])
  })

  test("two budgets over the same pods let none go", () => {
    expect(plan(to2, { budgets: [budget("a", 1), budget("b", 1)] }).blockedBy).toEqual([
      "PodDisruptionBudgets a and b cover the same pods, and Kubernetes then lets none of them go",
    ])
  })

  test("maxUnavailable blocks while another pod is down", () => {
    const revisions = [revision("StatefulSet", 1, templateOf(v1)), revision("StatefulSet", 2, templateOf(v2))]
    const kind = "StatefulSet"
    const isNew = { kind, isReady: false, revision: 2, image: v2 } as const
    const pods = [pod("web-0", isNew), pod("web-1", { kind }), pod("web-2", { kind })]
    expect(plan({ ...to2, kind }, { pods, revisions }).blockedBy).toEqual([
      "maxUnavailable is 1, and 1 pod is down (not ready: web-0)",
    ])
  })

  test("without any, it is released or stays", () => {
    const spec = { strategy: { rollingUpdate: { maxUnavailable: 0 } } }
    expect(plan({ ...to2, spec })).toMatchObject({ way: "RollingUpdate", reason: "NoBudget" })
    const annotations = { [settingAnnotations.maxUnavailable]: "2" }
    expect(plan({ ...to2, spec, annotations })).toMatchObject({ way: "InPlace" })
  })

  test("of a held DaemonSet, the one that it gets back counts", () => {
    const strategy = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } }
    expect(plan({ ...to2, kind: "DaemonSet", strategy }).message).toContain("at most 2 of 3 pods down")
  })
})

describe("what does not go in place", () => {
  const env = templateOf(v2, { terminationGracePeriodSeconds: 5 })

  test("has its path, and is released or stays held", () => {
    expect(plan({ ...to2, template: env })).toMatchObject({
      way: "RollingUpdate",
      reason: "NotInPlace",
      message: "spec.terminationGracePeriodSeconds: a running pod cannot change it",
    })
    const annotations = { [strategyAnnotation]: "InPlaceOnly" }
    const stopped = plan({ ...to2, template: env, annotations })
    expect(stopped).toMatchObject({ way: "Stopped", reason: "NotInPlace" })
    expect(stopped.remarks.join()).toContain("aim release deploy/web")
  })

  test("is what its owner did not ask for, or has stopped", () => {
    const recreate = { [strategyAnnotation]: "Recreate" }
    expect(plan({ image: v2, annotations: recreate })).toMatchObject({ way: "RollingUpdate", reason: "NotOptedIn" })
    expect(plan({ image: v2, spec: { paused: true } })).toMatchObject({ reason: "Paused" })
    const partition = { type: "RollingUpdate", rollingUpdate: { partition: 2 } }
    expect(plan({ image: v2, kind: "StatefulSet", strategy: partition })).toMatchObject({ reason: "Partition" })
    expect(plan({ image: v2, kind: "DaemonSet", strategy: { type: "OnDelete" } })).toMatchObject({ reason: "OnDelete" })
  })

  test("is what a server without the policy does not hold", () => {
    const set = plan({ image: v2, kind: "StatefulSet" }, {}, { holds: false })
    expect(set).toMatchObject({ way: "RollingUpdate", reason: "NotHeld" })
    expect(set.message).toContain("or aim hold sts/web; its controller re-creates its pods")
  })

  test("is a change while two ReplicaSets have pods", () => {
    const revisions = [1, 2].map(number => revision("Deployment", number, templateOf(`web:${number}`)))
    const pods = [pod("web-0"), pod("web-1", { revision: 2 })]
    expect(plan(to2, { revisions, pods })).toMatchObject({ reason: "FellBackToRollingUpdate" })
  })
})

test("an annotation that cannot be read is named", () => {
  const annotations = { [settingAnnotations.partition]: "many" }
  expect(plan({ ...to2, annotations })).toMatchObject({ way: "Stopped", reason: "InvalidAnnotation" })
})

test("without a change it says what becomes of the next one", () => {
  expect(plan({}).remarks).toEqual([
    "The next change of images, labels or annotations goes in place: at most 1 of 3 pods down at a time.",
  ])
  expect(plan({}, {}, { holds: false }).remarks.join()).toContain(
    "The next change does not go in place: the server does not hold it",
  )
  expect(plan({}, {}, { holds: undefined }).remarks.join()).toContain("is not known")
})

test("of an update under way, the pods that are left", () => {
  const pods = [pod("web-0", { image: v2, mark: markOf() }), pod("web-1"), pod("web-2")]
  const planned = plan({ image: v2, note: noteOf("Updating") }, { pods })
  expect(planned.pods.map(({ name }) => name)).toEqual(["web-1", "web-2"])
})
