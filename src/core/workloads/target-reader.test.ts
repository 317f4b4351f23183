import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { fenceAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import type { Obj } from "#cluster-sim/object.ts"
import { kubernetesSchema } from "#cluster-sim/schema/index.ts"
import { applyMergePatch } from "#cluster-sim/schema/merge-patch.ts"
import { applyStrategicPatch } from "#cluster-sim/schema/strategic-patch.ts"
import { hasImage, type Member } from "../fleet/member.ts"
import { decisionAnnotation, formatDecision, type ImageRecord, imagesBefore, parseDecision } from "../image/record.ts"
import { pathsProblem, type TargetPatch, targetReader, touchPatch } from "./target-reader.ts"

const custom = (paths: string[], health = "") => targetReader({ kind: "Dicom", image: { paths }, health })
const workload = (kind: string, container = "app", health = "") => targetReader({ kind, image: { container }, health })

const metadata = { name: "a", namespace: "n", uid: "u", resourceVersion: "7", generation: 2 }
const decision: ImageRecord = {
  from: "shop/web:1",
  to: "shop/web:2",
  reason: "Stamped",
  operation: "g1",
  by: "serviceimage/web",
  at: 1_700_000_000_000,
}
const decided = (more: Partial<ImageRecord> = {}) => ({
  [decisionAnnotation]: formatDecision({ ...decision, ...more }),
})

const two = custom(["spec.image", "spec.sidecar.image"])
const atPaths: Record<string, { spec: unknown; reads: Partial<Member>; isOnTarget: boolean }> = {
  "all have it": {
    spec: { image: "shop/web:2", sidecar: { image: "shop/web:2" } },
    reads: { image: "shop/web:2", images: undefined },
    isOnTarget: true,
  },
  "all have it, spelled differently": {
    spec: { image: "shop/web:2", sidecar: { image: "docker.io/shop/web:2" } },
    reads: { images: ["shop/web:2", "docker.io/shop/web:2"] },
    isOnTarget: true,
  },
  "only the first has it": {
    spec: { image: "shop/web:2", sidecar: { image: "shop/web:1" } },
    reads: { image: "shop/web:2", images: ["shop/web:2", "shop/web:1"] },
    isOnTarget: false,
  },
  "one was never given": {
    spec: { sidecar: { image: "shop/web:2" } },
    reads: { image: "shop/web:2", images: ["", "shop/web:2"] },
    isOnTarget: false,
  },
  "none was ever given": { spec: {}, reads: { image: "", images: undefined, problem: undefined }, isOnTarget: false },
  "no spec at all": { spec: undefined, reads: { image: "", problem: undefined }, isOnTarget: false },
  "a parent is null": { spec: { sidecar: null }, reads: { image: "", problem: undefined }, isOnTarget: false },
  "a parent is a text": {
    spec: { image: "shop/web:2", sidecar: "none" },
    reads: { image: "", problem: "spec.sidecar is not an object" },
    isOnTarget: false,
  },
  "a parent is a list": {
    spec: { sidecar: [] },
    reads: { problem: "spec.sidecar is not an object" },
    isOnTarget: false,
  },
  "the spec is a number": { spec: 7, reads: { problem: "spec is not an object" }, isOnTarget: false },
  "an image is an object": {
    spec: { image: { repository: "shop/web" } },
    reads: { problem: "spec.image is not a text" },
    isOnTarget: false,
  },
}
for (const [name, { spec, reads, isOnTarget }] of Object.entries(atPaths))
  test(`two paths: ${name}`, () => {
    const member = two.read({ metadata, spec } as never)
    expect(member).toMatchObject(reads)
    expect(hasImage(member, "shop/web:2")).toBe(isOnTarget)
  })

test("what is inherited is not there", () => {
  expect(custom(["spec.constructor.name", "spec.toString"]).read({ metadata, spec: {} } as never)).toMatchObject({
    image: "",
    images: undefined,
    problem: undefined,
  })
})

test("taking a decision back restores each path, and removes what was not there", () => {
  const spec = { image: "shop/web:1", size: 3, sidecar: { args: ["x"] } }
  const member = two.read({ metadata, spec } as never)
  const record = two.recordOf(member)
  expect(record).toEqual({ from: "shop/web:1", was: { "spec.image": "shop/web:1", "spec.sidecar.image": "" } })

  const note = formatDecision({ ...decision, ...record })
  const stamped = applied(two.patchFor(member, "shop/web:2", { [decisionAnnotation]: note }), { metadata, spec })
  expect(stamped.spec).toEqual({ image: "shop/web:2", size: 3, sidecar: { args: ["x"], image: "shop/web:2" } })

  const now = two.read(stamped)
  const back = applied(two.patchFor(now, imagesBefore(now.decision!), {}), stamped)
  expect(back.spec).toEqual(spec)
})

test("a record with paths that are not ours writes nothing there", () => {
  const member = two.read({ metadata, spec: { image: "shop/web:2" } } as never)
  const forged = { "spec.image": "shop/web:1", "spec.replicas": "0", "metadata.name": "b" }
  expect(two.patchFor(member, forged, {}).body).toEqual({
    metadata: { resourceVersion: "7", annotations: {} },
    spec: { image: "shop/web:1" },
  })
})

test("what each path had is read if it is whole and bounded", () => {
  const was = (value: unknown) => parseDecision(JSON.stringify({ ...decision, at: "2026-01-01T00:00:00Z", was: value }))
  expect(was({ "spec.a": "x", "spec.b": "" })?.was).toEqual({ "spec.a": "x", "spec.b": "" })
  for (const odd of [
    null,
    [],
    "x",
    7,
    { a: 7 },
    Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`p${i}`, "x"])),
  ])
    expect(was(odd)).toBeUndefined()
  const longest = Object.fromEntries(
    Array.from({ length: 16 }, (_, i) => [`spec.${String(i).padEnd(251, "x")}`, "i".repeat(512)]),
  )
  const whole = { ...decision, from: "i".repeat(512), to: "i".repeat(512), was: longest, wasDeployed: true } as const
  expect(parseDecision(formatDecision(whole))).toEqual(whole)
})

test("paths that stand inside one another cannot both hold an image", () => {
  expect(pathsProblem(["spec.image", "spec.imageOther", "spec.a.image"])).toBeUndefined()
  expect(pathsProblem(["spec.image", "spec.a.__proto__.b"])).toBe(
    "spec.a.__proto__.b has a part that cannot be a field: __proto__, constructor, prototype",
  )
  expect(pathsProblem(["spec.a.b", "spec.a"])).toBe("spec.a.b stands inside spec.a, which is to hold an image itself")
})

const template = (...images: string[]) => ({
  spec: {
    initContainers: [{ name: "init", image: "shop/init:1" }],
    containers: images.map((image, index) => ({ name: index === 0 ? "app" : `other-${index}`, image })),
  },
})
const replicas = (count: number, more: object = {}) => ({
  observedGeneration: 2,
  replicas: count,
  updatedReplicas: count,
  readyReplicas: count,
  availableReplicas: count,
  ...more,
})
const daemons = (count: number, more: object = {}) => ({
  observedGeneration: 2,
  desiredNumberScheduled: count,
  updatedNumberScheduled: count,
  numberAvailable: count,
  ...more,
})
const rolling = (partition: number) => ({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } } })
const revisions = (currentRevision: string, updateRevision: string) => ({ currentRevision, updateRevision })

const leftHold = { annotations: { "autoimagemanager.io/held": "{}" } }
const held = { ...leftHold, labels: { "autoimagemanager.io/held": "in-place" } }

type Row = { kind: string; metadata?: object; spec?: object; status: unknown; reads: Partial<Member> }
const workloads: Record<string, Row> = {
  "all replicas new and available": {
    kind: "Deployment",
    status: replicas(3),
    reads: { image: "shop/web:2", replicas: 3, isUpToDate: true, isDeployed: true, problem: undefined },
  },
  "replicas are one unless said": {
    kind: "Deployment",
    spec: { replicas: undefined },
    status: replicas(1),
    reads: { replicas: 1, isUpToDate: true },
  },
  "the status is about an older generation": {
    kind: "Deployment",
    status: replicas(3, { observedGeneration: 1 }),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "a pod of the old image is still there": {
    kind: "Deployment",
    status: replicas(3, { replicas: 4 }),
    reads: { isUpToDate: false },
  },
  "one is not new yet": {
    kind: "Deployment",
    status: replicas(3, { updatedReplicas: 2 }),
    reads: { isUpToDate: false },
  },
  "one is not available": {
    kind: "Deployment",
    status: replicas(3, { availableReplicas: 2 }),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "made a moment ago": { kind: "Deployment", status: {}, reads: { isUpToDate: false, isDeployed: false } },
  "Available says True before the first pod": {
    kind: "Deployment",
    status: { observedGeneration: 2, conditions: [{ type: "Available", status: "True" }] },
    reads: { isUpToDate: false, isDeployed: false },
  },
  "scaled to nothing": {
    kind: "Deployment",
    spec: { replicas: 0 },
    status: { observedGeneration: 2 },
    reads: { isUpToDate: true, isDeployed: true, replicas: 0 },
  },
  "paused by its owner": {
    kind: "Deployment",
    spec: { paused: true },
    status: replicas(3, { updatedReplicas: 0 }),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "all new, and held by an update in place": {
    kind: "Deployment",
    metadata: held,
    spec: { paused: true },
    status: replicas(3),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "all new, with the annotation of a hold of long ago": {
    kind: "Deployment",
    metadata: leftHold,
    status: replicas(3),
    reads: { isUpToDate: true, isDeployed: true },
  },
  "a partition that is the hold of an update in place": {
    kind: "StatefulSet",
    metadata: held,
    spec: rolling(2_147_483_647),
    status: replicas(3, { updatedReplicas: 0, ...revisions("a", "b") }),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "OnDelete that is the hold of an update in place": {
    kind: "DaemonSet",
    metadata: held,
    spec: { updateStrategy: { type: "OnDelete" } },
    status: daemons(5),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "a status of nonsense": {
    kind: "Deployment",
    status: { observedGeneration: 2, replicas: "3", updatedReplicas: [3], availableReplicas: null },
    reads: { isUpToDate: false, isDeployed: false },
  },
  "a status that is a text": { kind: "Deployment", status: "fine", reads: { isUpToDate: false, isDeployed: false } },
  "revisions the same": {
    kind: "StatefulSet",
    status: replicas(3, revisions("b", "b")),
    reads: { isUpToDate: true, isDeployed: true, replicas: 3 },
  },
  "revisions differ": { kind: "StatefulSet", status: replicas(3, revisions("a", "b")), reads: { isUpToDate: false } },
  "held back by a partition, the others new": {
    kind: "StatefulSet",
    spec: rolling(2),
    status: replicas(3, { updatedReplicas: 1, ...revisions("a", "b") }),
    reads: { isUpToDate: true },
  },
  "held back by a partition, none new": {
    kind: "StatefulSet",
    spec: rolling(2),
    status: replicas(3, { updatedReplicas: 0, ...revisions("a", "b") }),
    reads: { isUpToDate: false },
  },
  "a partition, and one is not available": {
    kind: "StatefulSet",
    spec: rolling(2),
    status: replicas(3, { updatedReplicas: 1, availableReplicas: 2 }),
    reads: { isUpToDate: false },
  },
  "OnDelete, none replaced": {
    kind: "StatefulSet",
    spec: { updateStrategy: { type: "OnDelete" } },
    status: replicas(3, { updatedReplicas: 0, ...revisions("a", "b") }),
    reads: { isUpToDate: false },
  },
  "OnDelete, all replaced": {
    kind: "StatefulSet",
    spec: { updateStrategy: { type: "OnDelete" } },
    status: replicas(3, revisions("a", "b")),
    reads: { isUpToDate: true },
  },
  "every node has it": {
    kind: "DaemonSet",
    status: daemons(5),
    reads: { isUpToDate: true, isDeployed: true, replicas: 5 },
  },
  "one node has the old one": {
    kind: "DaemonSet",
    status: daemons(5, { updatedNumberScheduled: 4 }),
    reads: { isUpToDate: false, isDeployed: true },
  },
  "one node is not available": {
    kind: "DaemonSet",
    status: daemons(5, { numberAvailable: 4 }),
    reads: { isUpToDate: false },
  },
  "on no node": { kind: "DaemonSet", status: daemons(0), reads: { isUpToDate: true, isDeployed: true, replicas: 0 } },
  "no status yet": {
    kind: "DaemonSet",
    status: undefined,
    reads: { isUpToDate: false, isDeployed: false, replicas: 0 },
  },
}
for (const [name, { kind, spec, status, reads, metadata: more }] of Object.entries(workloads))
  test(`${kind}: ${name}`, () => {
    const object = {
      metadata: { ...metadata, ...more },
      spec: { replicas: 3, template: template("shop/web:2"), ...spec },
      status,
    }
    expect(workload(kind).read(object as never)).toMatchObject(reads)
  })

test("while it is held, an expression about health says nothing of the new image", () => {
  const object = { metadata, spec: { replicas: 3, template: template("shop/web:2") }, status: replicas(3) }
  const reader = workload("StatefulSet", "app", "object.status.readyReplicas == object.spec.replicas")
  const heldObject = { ...object, metadata: { ...metadata, ...held } }
  expect(reader.read(object as never)).toMatchObject({ isUpToDate: true })
  expect(reader.read(heldObject as never)).toMatchObject({ isUpToDate: false, isDeployed: true })
})

test("a container is found by name in both lists; where there is none, nothing is written", () => {
  const object = { metadata, spec: { template: template("shop/web:2", "shop/log:9") } }
  expect(workload("Deployment", "other-1").read(object as never)).toMatchObject({ image: "shop/log:9" })
  const init = workload("Deployment", "init")
  expect(init.patchFor(init.read(object as never), "shop/init:2", {}).body).toEqual({
    metadata: { resourceVersion: "7", annotations: {} },
    spec: { template: { spec: { initContainers: [{ name: "init", image: "shop/init:2" }] } } },
  })
  const absent = workload("Deployment", "web")
  const member = absent.read(object as never)
  expect(member).toMatchObject({ image: "", problem: "has no container web, only app, other-1, init" })
  expect(() => absent.patchFor(member, "shop/web:2", {})).toThrow("never written")
  for (const spec of [
    undefined,
    "x",
    { template: { spec: { containers: "app" } } },
    { template: { spec: { containers: [null, 7] } } },
  ])
    expect(absent.read({ metadata, spec } as never).problem).toBe("has no container web")
})

test("the contract remembers by itself that an object was deployed", () => {
  const status = { observedGeneration: 2, conditions: [{ type: "Deployed", status: "True" }] }
  const member = custom(["spec.image"]).read({ metadata, spec: { image: "shop/web:1" }, status } as never)
  expect(member.isDeployed).toBe(true)
  expect(custom(["spec.image"]).recordOf(member)).toEqual({ from: "shop/web:1" })
})

describe("since when an object is not up to date", () => {
  const [early, late] = ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]
  const managedFields = [
    { manager: "aim", time: early },
    { manager: "kubectl-scale", time: late },
    { manager: "operator", subresource: "status", time: "2026-01-01T00:03:00Z" },
    { manager: "nobody", time: "noon" },
    null,
  ]
  const unwell = (status: object, more = {}, reader = custom(["spec.image"])) =>
    reader.read({ metadata: { ...metadata, generation: 2, ...more }, spec: {}, status } as never).unwellSince
  const said = (status: string) => [{ type: "UpToDate", status, lastTransitionTime: early }]
  const cases: Record<string, [number | undefined, string | undefined]> = {
    "is when its condition became False": [unwell({ observedGeneration: 2, conditions: said("False") }), early],
    "is unknown if it does not say so": [unwell({ observedGeneration: 2, conditions: said("Unknown") }), undefined],
    "is nothing if it is": [unwell({ observedGeneration: 2, conditions: said("True") }), undefined],
    "is the last change of a spec that no status covers yet": [
      unwell({ observedGeneration: 1, conditions: said("True") }, { managedFields }),
      late,
    ],
    "is also that of a workload": [unwell({ observedGeneration: 1 }, { managedFields }, workload("Deployment")), late],
    "which says nothing of its counts": [
      unwell({ observedGeneration: 2 }, { managedFields }, workload("Deployment")),
      undefined,
    ],
    "is unknown of one without records": [unwell({ observedGeneration: 1 }, { managedFields: "x" }), undefined],
  }
  for (const [name, [found, expected]] of Object.entries(cases))
    test(name, () => expect(found).toBe(expected && Date.parse(expected)))
})

test("the flags of a workload, and of kinds without fields for them, are annotations that say true", () => {
  const read = (value: unknown, reader = workload("Deployment")) => {
    const annotations = {
      "autoimagemanager.io/failure-halts-update": value,
      "autoimagemanager.io/manually-specified-image": value,
    }
    const { haltsOnFailure, isUnmanaged } = reader.read({ metadata: { ...metadata, annotations } })
    return [haltsOnFailure, isUnmanaged]
  }
  expect(read("true")).toEqual([true, true])
  expect(read("true", custom(["spec.image"], health))).toEqual([true, true])
  for (const other of ["", "false", "True", true, undefined]) expect(read(other)).toEqual([false, false])
})

test("what was available before a stamp stays deployed while it is replaced, and through later stamps", () => {
  const reader = workload("Deployment")
  const object = (status: object, annotations = {}) =>
    reader.read({
      metadata: { ...metadata, annotations },
      spec: { replicas: 1, template: template("shop/web:2") },
      status,
    } as never)
  expect(reader.recordOf(object(replicas(1)))).toEqual({ from: "shop/web:2", wasDeployed: true })
  expect(reader.recordOf(object({}))).toEqual({ from: "shop/web:2" })
  const replaced = object({ observedGeneration: 2 }, decided({ wasDeployed: true }))
  expect(replaced.isDeployed).toBe(true)
  expect(reader.recordOf(replaced)).toMatchObject({ wasDeployed: true })
  expect(object({ observedGeneration: 2 }, decided()).isDeployed).toBe(false)
})

const health = "object.status.phase == 'Running'"
test("health that costs too much makes the object an invalid target, and only such health", () => {
  const list = Array.from({ length: 1000 }, (_, i) => i)
  const object = { metadata, spec: { image: "shop/web:2" }, status: { list } }
  const nested = "object.status.list.all(x, object.status.list.all(y, x + y >= 0))"
  const words = "spec.target.health cannot be asked: it takes too many steps"
  expect(custom(["spec.image"], nested).read(object)).toMatchObject({ problem: words, healthProblem: words })
  expect(custom(["spec.image"], "object.status.list > 1").read(object).problem).toBeUndefined()
})

test("health takes the place of the contract, and what was healthy when stamped stays deployed", () => {
  const reader = custom(["spec.image"], health)
  const conditions = [
    { type: "UpToDate", status: "True" },
    { type: "Deployed", status: "True" },
  ]
  const read = (status: object, annotations = {}) =>
    reader.read({ metadata: { ...metadata, annotations }, spec: { image: "a:1" }, status } as never)
  expect(read({ observedGeneration: 2, conditions })).toMatchObject({ isUpToDate: false, isDeployed: false })
  expect(read({ phase: "Running" })).toMatchObject({ isUpToDate: true, isDeployed: true })
  expect(read({ phase: "Pending" }, decided({ wasDeployed: true }))).toMatchObject({
    isUpToDate: false,
    isDeployed: true,
  })
  expect(reader.recordOf(read({ phase: "Running" }))).toEqual({ from: "a:1", wasDeployed: true })
  const workloadByHealth = workload("Deployment", "app", "object.status.readyReplicas == 1")
  expect(workloadByHealth.read({ metadata, status: { readyReplicas: 1 } } as never).isUpToDate).toBe(true)
})

const owns = (manager: string, time: string, fieldsV1: object) => ({ manager, time, operation: "Update", fieldsV1 })
const image = { "f:spec": { "f:image": {} } }
const contested: Record<string, { image?: string; managedFields: unknown; by: string | undefined }> = {
  "the newest owner of the field": {
    managedFields: [
      owns("argocd", "2026-01-02T00:00:00Z", image),
      owns("helm", "2026-01-03T00:00:00Z", image),
      owns("kubectl", "2026-01-01T00:00:00Z", image),
    ],
    by: "helm",
  },
  "never ourselves, nor an owner of other fields": {
    managedFields: [
      owns("aim", "2026-01-09T00:00:00Z", image),
      owns("kubectl", "2026-01-08T00:00:00Z", { "f:spec": { "f:size": {} } }),
    ],
    by: undefined,
  },
  "the owner of all of the spec": { managedFields: [owns("operator", "x", { "f:spec": {} })], by: "operator" },
  "no manager while the image is what we decided": {
    image: "shop/web:2",
    managedFields: [owns("argocd", "2026-01-02T00:00:00Z", image)],
    by: undefined,
  },
  "a name that is cut and cleaned": {
    managedFields: [owns(`a\n${"b".repeat(100)}`, "", image)],
    by: `a?${"b".repeat(61)}…`,
  },
  nonsense: { managedFields: [null, 7, {}, owns("x", "", []), { manager: 7, fieldsV1: image }], by: undefined },
  "no list": { managedFields: "x", by: undefined },
}
for (const [name, { image: has = "shop/web:1", managedFields, by }] of Object.entries(contested))
  test(`contested by ${name}`, () => {
    const object = { metadata: { ...metadata, managedFields, annotations: decided() }, spec: { image: has } }
    expect(custom(["spec.image"]).read(object as never).contestedBy).toBe(by)
    const undecided = { ...object, metadata: { ...object.metadata, annotations: {} } }
    expect(custom(["spec.image"]).read(undecided as never).contestedBy).toBeUndefined()
  })

test("only the path that was changed back names the other writer", () => {
  const managedFields = [
    owns("helm", "2026-01-09T00:00:00Z", image),
    owns("argocd", "2026-01-02T00:00:00Z", { "f:spec": { "f:sidecar": { "f:image": {} } } }),
  ]
  const spec = { image: "shop/web:2", sidecar: { image: "shop/web:1" } }
  const object = { metadata: { ...metadata, managedFields, annotations: decided() }, spec }
  expect(two.read(object as never).contestedBy).toBe("argocd")
})

test("a workload is contested by the owner of the container's image", () => {
  const fields = (list: string, name: string) => ({
    "f:spec": { "f:template": { "f:spec": { [list]: { ".": {}, [`k:{"name":"${name}"}`]: { "f:image": {} } } } } },
  })
  const read = (container: string) =>
    workload("Deployment", container).read({
      metadata: {
        ...metadata,
        annotations: decided(),
        managedFields: [
          owns("helm", "2026-01-02T00:00:00Z", fields("f:containers", "app")),
          owns("kubectl", "2026-01-01T00:00:00Z", fields("f:initContainers", "init")),
        ],
      },
      spec: { template: template("shop/web:1", "shop/log:1") },
    } as never).contestedBy
  expect([read("app"), read("init"), read("other-1")]).toEqual(["helm", "kubectl", undefined])
})

test("a touch moves the fence and nothing else, whatever the version", () => {
  expect(touchPatch("leader-2")).toEqual({
    type: "merge",
    body: { metadata: { annotations: { [fenceAnnotation]: "leader-2" } } },
  })
})

test("no object makes a reader throw", () => {
  const readers = [
    two,
    custom(["spec.image"], health),
    ...["Deployment", "StatefulSet", "DaemonSet"].map(kind => workload(kind)),
  ]
  const objects = fc.record(
    { metadata: fc.object(), spec: fc.anything(), status: fc.anything() },
    { requiredKeys: ["metadata"] },
  )
  fc.assert(
    fc.property(objects, object => {
      for (const reader of readers) expect(reader.read(object)).toMatchObject({ isUpToDate: false, isUnmanaged: false })
    }),
  )
})

test("an object of a megabyte is read like any other, and an image of one is not kept", () => {
  const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`label-${i}`, "x".repeat(60)]))
  const member = two.read({ metadata: { ...metadata, labels }, spec: { image: "x".repeat(1_000_000) } } as never)
  expect(Object.keys(member.labels)).toHaveLength(10_000)
  expect(member.image).toHaveLength(1024)
  expect(two.read({ metadata: { ...metadata, labels: "x" } } as never).labels).toEqual({})
})

test("members without labels, and with the same decision, share them", () => {
  const read = () => two.read({ metadata: { ...metadata, annotations: decided() } })
  expect(read().labels).toBe(read().labels)
  expect(read().decision).toBe(read().decision)
})

/** The object as a server has it after the patch. */
function applied({ type, body }: TargetPatch, object: object, kind = "Dicom"): Obj {
  if (type === "merge") return applyMergePatch(object, body)
  return applyStrategicPatch(kubernetesSchema("apps/v1", kind)!, object, body)
}

const word = fc.stringMatching(/^[a-z]{1,3}$/)
const reference = fc.constantFrom("shop/web:1", "shop/web:2", "shop/other:1")
const own = <T>(record: Record<string, T>): Record<string, T> => ({ ...record })

test("after a patch every path has the image, and nothing else changed", () => {
  const paths = fc
    .uniqueArray(fc.array(word, { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 4,
      selector: path => path.join("."),
    })
    .map(all => all.map(path => ["spec", ...path].join(".")))
    .filter(all => pathsProblem(all) === undefined)
  const tree = fc.letrec(node => ({
    leaf: fc.oneof(reference, fc.integer(), fc.array(word)),
    node: fc.oneof({ depthSize: "small" }, node("leaf"), fc.dictionary(word, node("node")).map(own)),
  })).node
  const specs = fc.dictionary(word, tree, { maxKeys: 5 }).map(own)
  let written = 0
  fc.assert(
    fc.property(paths, specs, reference, (paths, spec, to) => {
      const reader = custom(paths)
      const object = { metadata: { ...metadata, annotations: { mine: "kept" } }, spec }
      const member = reader.read(object)
      if (member.problem) return
      written++
      const after = applied(reader.patchFor(member, to, { note: "x" }), object)
      const now = reader.read(after)
      expect([now.image, now.images]).toEqual([to, undefined])
      expect(after.metadata).toEqual({ ...metadata, annotations: { mine: "kept", note: "x" } })
      expect(without(after.spec, paths)).toEqual(without(spec, paths))
    }),
    { numRuns: 500 },
  )
  expect(written).toBeGreaterThan(100)
})

/** The leaves of a spec that are not at one of the paths. */
function without(spec: unknown, paths: string[], at = "spec"): Record<string, unknown> {
  if (paths.includes(at)) return {}
  if (typeof spec !== "object" || spec === null || Array.isArray(spec)) return { [at]: spec }
  return Object.assign({}, ...Object.entries(spec).map(([name, below]) => without(below, paths, `${at}.${name}`)))
}

test("after a patch the container has the image, and nothing else of the workload changed", () => {
  const kinds = fc.constantFrom("Deployment", "StatefulSet", "DaemonSet")
  const names = fc.uniqueArray(fc.constantFrom("app", "log", "init", "setup"), { minLength: 1 })
  fc.assert(
    fc.property(kinds, names, fc.nat(3), fc.nat(4), reference, (kind, names, chosen, inits, to) => {
      const container = names[chosen % names.length]!
      const all = names.map(name => ({ name, image: "shop/old:1", env: [{ name: "A", value: name }], args: [name] }))
      const pod = { initContainers: all.slice(0, inits), containers: all.slice(inits) }
      const object = { metadata: { ...metadata, annotations: { mine: "kept" } }, spec: { template: { spec: pod } } }
      const reader = workload(kind, container)
      const member = reader.read(object)
      const after = applied(reader.patchFor(member, to, { note: "x" }), object, kind)
      expect(reader.read(after)).toMatchObject({ image: to, isInitContainer: names.indexOf(container) < inits })
      const wanted = structuredClone(object)
      for (const list of [wanted.spec.template.spec.initContainers, wanted.spec.template.spec.containers])
        for (const each of list) if (each.name === container) each.image = to
      Object.assign(wanted.metadata.annotations, { note: "x" })
      expect(after).toEqual(wanted)
    }),
  )
})
