import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Json, ManagedFields, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { kindText } from "./go-text.ts"
import { applyServerSide, isIdleUpdate, managerName, trackScale, trackUpdate } from "./managed-fields.ts"
import type { Schema } from "./schema.ts"
import { kubernetesSchema } from "./table.ts"

// Every owner and every refusal below was first seen on a real kube-apiserver 1.36.3.

const schema = kubernetesSchema("apps/v1", "Deployment")!
const first = "2026-01-31T12:00:00Z"
const later = "2026-01-31T12:00:01Z"

/** An applied configuration. */
const configuration = ({ metadata = {}, spec = {}, container = {}, more = [] }: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", ...metadata },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "c", image: "i:1", ...container }, ...more] },
    },
    ...spec,
  },
})

type How = { manager?: string; force?: boolean; now?: string; live?: Obj; subresource?: string; resetFields?: string[] }

const apply = (applied: Json, { manager = "m1", force = false, now = first, live, ...rest }: How = {}): Obj =>
  applyServerSide({
    ...{ schema, live, applied, manager, force, now, apiVersion: "apps/v1", kind: "Deployment" },
    ...{ resetFields: ["status"], ...rest },
  })

const update = (
  live: Obj,
  change: (object: Json) => void,
  { manager = "upd", now = later, ...rest }: How = {},
): Obj => {
  const after = structuredClone(live) as Json
  change(after)
  const managedFields = trackUpdate({
    ...{ schema, before: live, after, manager, apiVersion: "apps/v1", now, resetFields: ["status"], ...rest },
  })
  const { managedFields: _, ...metadata } = after.metadata
  return { ...after, metadata: { ...metadata, ...(managedFields && { managedFields }) } }
}

const owners = (object: Json) =>
  Object.fromEntries(
    (object.metadata.managedFields ?? []).map(({ manager, operation, fieldsV1 }: ManagedFields) => [
      `${manager} ${operation}`,
      fieldsV1,
    ]),
  )

function refusal(act: () => unknown): StatusError {
  try {
    act()
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
  throw new Error("it was taken")
}

const template = {
  "f:metadata": { "f:labels": { "f:app": {} } },
  "f:spec": { "f:containers": { 'k:{"name":"c"}': { ".": {}, "f:image": {}, "f:name": {} } } },
}
const base = { "f:selector": {}, "f:template": template }

test("an applier owns the fields that it sends, except those that identify the object", () => {
  const created = apply(configuration({ spec: { replicas: 1 } }))
  expect(created.metadata.managedFields).toEqual([
    {
      ...{ manager: "m1", operation: "Apply", apiVersion: "apps/v1", time: first, fieldsType: "FieldsV1" },
      fieldsV1: { "f:spec": { "f:replicas": {}, ...base } },
    },
  ])
  expect(created.spec).toMatchObject({ replicas: 1, strategy: {} })
})

test("two managers may own a field with the same value; a manager that changes nothing has no time", () => {
  const live = apply(configuration({ spec: { replicas: 1 } }))
  const both = apply(configuration({ spec: { replicas: 1 } }), { manager: "m2", live, now: later })
  expect(both.metadata.managedFields?.map(({ manager, time }) => [manager, time])).toEqual([
    ["m2", undefined],
    ["m1", first],
  ])
  const { code, reason, message, details } = refusal(() =>
    apply(configuration({ spec: { replicas: 2 } }), { manager: "m2", live: both }),
  )
  expect({ code, reason, message, details }).toEqual({
    code: 409,
    reason: "Conflict",
    message: 'Apply failed with 1 conflict: conflict with "m1": .spec.replicas',
    details: {
      causes: [{ reason: "FieldManagerConflict", message: 'conflict with "m1"', field: ".spec.replicas" }],
    },
  })
})

const updated = () =>
  update(apply(configuration({ spec: { replicas: 1 } })), object => {
    object.metadata.labels = { q: "1" }
    Object.assign(object.spec, { replicas: 3, minReadySeconds: 5 })
  })

test("an update takes the fields it changes from all other managers", () => {
  expect(owners(updated())).toEqual({
    "m1 Apply": { "f:spec": base },
    "upd Update": {
      "f:metadata": { "f:labels": { ".": {}, "f:q": {} } },
      "f:spec": { "f:minReadySeconds": {}, "f:replicas": {} },
    },
  })
})

test("all conflicts with an updater are reported, with its version", () => {
  const wanted = configuration({ metadata: { labels: { q: "2" } }, spec: { replicas: 1, minReadySeconds: 7 } })
  const { message, details } = refusal(() => apply(wanted, { live: updated() }))
  expect(message).toBe(
    'Apply failed with 3 conflicts: conflicts with "upd" using apps/v1:\n- .metadata.labels.q\n- .spec.minReadySeconds\n- .spec.replicas',
  )
  expect(details?.causes?.map(({ message: told, field }) => [told, field])).toEqual([
    ['conflict with "upd" using apps/v1', ".metadata.labels.q"],
    ['conflict with "upd" using apps/v1', ".spec.minReadySeconds"],
    ['conflict with "upd" using apps/v1', ".spec.replicas"],
  ])
})

test("force takes the fields, and the map around them stays with the manager that created it", () => {
  const wanted = configuration({ metadata: { labels: { q: "2" } }, spec: { replicas: 1 } })
  const forced = apply(wanted, { live: updated(), force: true })
  expect(owners(forced)).toEqual({
    "m1 Apply": { "f:metadata": { "f:labels": { "f:q": {} } }, "f:spec": { "f:replicas": {}, ...base } },
    "upd Update": { "f:metadata": { "f:labels": {} }, "f:spec": { "f:minReadySeconds": {} } },
  })
  expect(forced.metadata.labels).toEqual({ q: "2" })
})

const rich = () =>
  configuration({
    metadata: { annotations: { a: "1" }, finalizers: ["x.io/a"] },
    spec: { replicas: 1 },
    container: { ports: [{ containerPort: 80 }, { containerPort: 80, protocol: "UDP" }] },
    more: [{ name: "e", image: "e:1" }],
  })

test("items are identified by their keys, also by keys that were not sent", () => {
  const ports = {
    'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {} },
    'k:{"containerPort":80,"protocol":"UDP"}': { ".": {}, "f:containerPort": {}, "f:protocol": {} },
  }
  expect(owners(apply(rich()))).toEqual({
    "m1 Apply": {
      "f:metadata": { "f:annotations": { "f:a": {} }, "f:finalizers": { 'v:"x.io/a"': {} } },
      "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
          "f:metadata": { "f:labels": { "f:app": {} } },
          "f:spec": {
            "f:containers": {
              'k:{"name":"c"}': { ".": {}, "f:image": {}, "f:name": {}, "f:ports": ports },
              'k:{"name":"e"}': { ".": {}, "f:image": {}, "f:name": {} },
            },
          },
        },
      },
    },
  })
})

test("a field that is no longer applied is removed, with what others own inside; fields beside it stay", () => {
  const live = update(apply(rich()), object => {
    object.metadata.labels = { kept: "1" }
    object.spec.template.spec.containers[1].image = "e:2" // the updater owns the image of e now, but not the item
  })
  const less = apply(configuration({ spec: { replicas: 1 } }), { live, now: later }) as Json
  expect(less.metadata).toMatchObject({ name: "web", labels: { kept: "1" } })
  expect(less.metadata.annotations ?? less.metadata.finalizers).toBeUndefined()
  expect(less.spec.template.spec.containers).toEqual([{ name: "c", image: "i:1", resources: {} }])
  expect(owners(less)).toEqual({
    "m1 Apply": { "f:spec": { "f:replicas": {}, ...base } },
    "upd Update": { "f:metadata": { "f:labels": { ".": {}, "f:kept": {} } } },
  })
})

test("an applier that applies nothing more loses its entry, and fields without an owner stay", () => {
  const live = apply(configuration({ spec: { replicas: 1 } }))
  const both = apply(configuration(), { manager: "m2", live })
  const bare = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" } }
  const left = apply(bare, { live: both }) as Json
  expect(Object.keys(owners(left))).toEqual(["m2 Apply"])
  expect(left.spec.replicas).toBeUndefined()
  expect(left.spec.template.spec.containers).toHaveLength(1)
})

test("a status sent to the main endpoint makes no owner, one sent to /status makes one of its own", () => {
  const created = apply({ ...configuration(), status: { replicas: 4 } })
  expect(owners(created)).toEqual({ "m1 Apply": { "f:spec": base } })
  const change = (object: Json) => {
    object.metadata.annotations = { yy: "1" }
    object.metadata.labels = { zz: "1" }
    object.spec.replicas = 9
    object.status.observedGeneration = 7
  }
  const reset = { subresource: "status", resetFields: ["spec", "metadata.labels"] }
  const after = update(created, change, { manager: "sm", ...reset })
  expect(after.metadata.managedFields?.at(-1)).toEqual({
    ...{ manager: "sm", operation: "Update", apiVersion: "apps/v1", time: later, fieldsType: "FieldsV1" },
    fieldsV1: {
      "f:metadata": { "f:annotations": { ".": {}, "f:yy": {} } },
      "f:status": { "f:observedGeneration": {} },
    },
    subresource: "status",
  })
  const status = { ...configuration(), status: { observedGeneration: 1 } }
  expect(refusal(() => apply(status, { live: after, manager: "st", ...reset })).message).toBe(
    'Apply failed with 1 conflict: conflict with "sm" with subresource "status" using apps/v1: .status.observedGeneration',
  )
})

test("a create owns the sent and the defaulted fields, but not the structs that always exist", () => {
  const after = {
    ...configuration({
      spec: { replicas: 1 },
      container: { resources: {}, ports: [{ containerPort: 80, protocol: "TCP" }] },
    }),
    status: {},
  }
  after.spec.strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } }
  after.metadata.labels = { x: "" }
  const [entry] = trackUpdate({
    schema,
    before: undefined,
    after,
    manager: "probe",
    apiVersion: "apps/v1",
    now: first,
  })!
  expect(entry).toEqual({
    ...{ manager: "probe", operation: "Update", apiVersion: "apps/v1", time: first, fieldsType: "FieldsV1" },
    fieldsV1: {
      "f:metadata": { "f:labels": { ".": {}, "f:x": {} } },
      "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:strategy": { "f:rollingUpdate": { ".": {}, "f:maxSurge": {}, "f:maxUnavailable": {} }, "f:type": {} },
        "f:template": {
          "f:metadata": { "f:labels": { ".": {}, "f:app": {} } },
          "f:spec": {
            "f:containers": {
              'k:{"name":"c"}': {
                ...{ ".": {}, "f:image": {}, "f:name": {}, "f:resources": {} },
                "f:ports": {
                  ".": {},
                  'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {}, "f:protocol": {} },
                },
              },
            },
          },
        },
      },
    },
  })
})

test("an empty managedFields ends the tracking, until the next apply", () => {
  const live = updated()
  for (const managedFields of [[], [{}]]) {
    const untracked = update(live, object => (object.metadata.managedFields = managedFields))
    expect(untracked.metadata.managedFields).toBeUndefined()
    const changed = update(untracked, object => (object.spec.minReadySeconds = 3))
    expect(changed.metadata.managedFields).toBeUndefined()
    const wanted = configuration({ spec: { minReadySeconds: 4 } })
    expect(refusal(() => apply(wanted, { live: changed })).message).toBe(
      'Apply failed with 1 conflict: conflict with "before-first-apply" using apps/v1: .spec.minReadySeconds',
    )
    expect(Object.keys(owners(apply(wanted, { live: changed, force: true })))).toEqual([
      "m1 Apply",
      "before-first-apply Update",
    ])
  }
  const unknowing = update(live, object => (object.metadata.managedFields = undefined))
  expect(unknowing.metadata.managedFields).toEqual(live.metadata.managedFields)
})

test("clients may write managedFields, but not through a subresource, and not nonsense", () => {
  const live = updated()
  const entry = {
    operation: "Update",
    apiVersion: "apps/v1",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:spec": { "f:replicas": {} } },
  }
  const write = (entries: Json, how?: How) =>
    owners(update(live, object => (object.metadata.managedFields = entries), how))
  expect(write([{ manager: "z", ...entry }])).toEqual({ "z Update": entry.fieldsV1 })
  expect(write([{ manager: "z", ...entry }], { subresource: "status" })).toEqual(owners(live))
  expect(write([{ manager: "z", ...entry, operation: "Frob" }])).toEqual(owners(live))
  expect(write([{ manager: "z", ...entry, fieldsV1: { "f:a": 3 } }])).toEqual(owners(live))
})

const unappliable: Record<string, [Json, number, string]> = {
  "another kind": [{ ...configuration(), kind: "ReplicaSet" }, 400, "invalid object type: apps/v1, Kind=ReplicaSet"],
  "another version": [
    { ...configuration(), apiVersion: "apps/v2" },
    400,
    "invalid object type: apps/v2, Kind=Deployment",
  ],
  "no kind": [{ ...configuration(), kind: undefined }, 400, "invalid object type: apps/v1, Kind="],
  managedFields: [configuration({ metadata: { managedFields: [] } }), 400, "metadata.managedFields must be nil"],
  "an unknown field": [configuration({ spec: { foo: 1 } }), 500, ".spec.foo: field not declared in schema"],
  "an unknown field of an item": [
    configuration({ container: { bar: 1 } }),
    500,
    '.spec.template.spec.containers[name="c"].bar: field not declared in schema',
  ],
  "text for a number": [
    configuration({ spec: { replicas: "x" } }),
    500,
    ".spec.replicas: expected numeric (int or float), got string",
  ],
  "text for a switch": [configuration({ spec: { paused: "x" } }), 500, ".spec.paused: expected boolean, got &{x}"],
  "a number for text": [
    configuration({ metadata: { labels: { a: 1 } } }),
    500,
    ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
  ],
  "a map for a list": [
    configuration({ spec: { template: { spec: { containers: {} } } } }),
    500,
    ".spec.template.spec.containers: expected list, got &{map[]}",
  ],
  "a list for a map": [
    configuration({ spec: { template: { spec: [] } } }),
    500,
    ".spec.template.spec: expected map, got &{[]}",
  ],
  "an item twice": [
    configuration({ more: [{ name: "c", image: "z" }] }),
    500,
    '.spec.template.spec.containers: duplicate entries for key [name="c"]',
  ],
}
for (const [name, [applied, code, words]] of Object.entries(unappliable))
  test(`${name} cannot be applied`, () => {
    const prefix = code === 500 ? "failed to create typed patch object (/web; apps/v1, Kind=Deployment): " : ""
    expect(refusal(() => apply(applied))).toMatchObject({ code, message: prefix + words })
  })

test("a kind without a group is written as Go writes it", () => {
  expect(kindText({ apiVersion: "v1", kind: "Pod" })).toBe("/v1, Kind=Pod")
  expect(kindText({ apiVersion: "apps/v1", kind: "Deployment" })).toBe("apps/v1, Kind=Deployment")
  expect(kindText({ metadata: {} })).toBe("/, Kind=")
})

/** Each was seen on kube-apiserver v1.36.3, after `kubectl create` and `kubectl patch --subresource=scale`. */
describe("the owners of the replicas after a write of the scale", () => {
  const created = {
    manager: "create",
    operation: "Update",
    apiVersion: "apps/v1",
    time: "2026-01-01T00:00:00Z",
  } as const
  const fieldsV1 = { "f:spec": { "f:paused": {}, "f:replicas": {} } }
  const scaled = (managedFields: Json, from: number, to: number) =>
    trackScale({
      before: { metadata: { managedFields }, spec: { replicas: from } } as unknown as Obj,
      after: { spec: { replicas: to } },
      path: ["spec", "replicas"],
      manager: "patch",
      apiVersion: "apps/v1",
    })?.map(({ manager, subresource = "", time = "", fieldsV1 }) => [
      manager,
      subresource,
      time,
      JSON.stringify(fieldsV1),
    ])
  const entry = (operation: string) => [{ ...created, operation, fieldsType: "FieldsV1", fieldsV1 }]
  const replicas = '{"f:spec":{"f:replicas":{}}}'
  const rest = ["create", "", created.time, '{"f:spec":{"f:paused":{}}}']

  test("a changed number belongs to its writer, without a time", () =>
    expect(scaled(entry("Update"), 1, 3)).toEqual([["patch", "scale", "", replicas], rest]))
  test("an unchanged number stays with its updater, in an entry of its own", () =>
    expect(scaled(entry("Update"), 2, 2)).toEqual([["create", "", "", replicas], rest]))
  test("an unchanged number stays with its applier as it was", () =>
    expect(scaled(entry("Apply"), 2, 2)).toEqual([["create", "", created.time, JSON.stringify(fieldsV1)]]))
  test("zero has no owner", () => expect(scaled(entry("Update"), 2, 0)).toEqual([rest]))
  test("a number without an owner stays without one", () => {
    const others = [{ ...entry("Update")[0], fieldsV1: { "f:spec": { "f:paused": {} } } }]
    expect(scaled(others, 1, 3)).toEqual([rest])
  })
})

test("a value that does not fit the type is reported after the merge", () => {
  const limits = { cpu: "abc" }
  expect(refusal(() => apply(configuration({ container: { resources: { limits } } }))).message).toBe(
    "failed to convert new object (/web; apps/v1, Kind=Deployment) to proper version: unable to convert unstructured object to apps/v1, Kind=Deployment: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  )
})

test("kubectl takes over the fields of its client-side apply that have not changed since", () => {
  const annotation = "kubectl.kubernetes.io/last-applied-configuration"
  const before = configuration({ spec: { replicas: 1, minReadySeconds: 5 } })
  const after = { ...structuredClone(before), status: {} }
  after.metadata.annotations = { [annotation]: JSON.stringify(before) }
  const tracked = trackUpdate({ schema, before: undefined, after, manager: "csa", apiVersion: "apps/v1", now: first })
  const live = { ...after, metadata: { ...after.metadata, managedFields: tracked } }
  const wanted = configuration({ spec: { replicas: 2 } })

  const taken = apply(wanted, { manager: "kubectl", live }) as Json
  expect(taken.spec).toMatchObject({ replicas: 2, minReadySeconds: 5 })
  expect(JSON.parse(taken.metadata.annotations[annotation])).toEqual(wanted)
  expect(refusal(() => apply(wanted, { manager: "other", live })).message).toContain('conflict with "csa"')

  const changed = update(live, object => (object.spec.replicas = 7), { manager: "scaler" })
  expect(refusal(() => apply(wanted, { manager: "kubectl", live: changed })).message).toBe(
    'Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas',
  )
})

test("appliers are listed before updaters, each sorted by time and name", () => {
  const made = apply(configuration(), { now: later })
  const two = update(made, object => (object.spec.replicas = 2), { manager: "z", now: first })
  const three = update(two, object => (object.spec.paused = true), { manager: "a", now: later })
  const four = update(three, object => (object.spec.minReadySeconds = 1), { manager: "b", now: first })
  expect(four.metadata.managedFields?.map(({ manager }) => manager)).toEqual(["m1", "b", "z", "a"])
})

test("past ten updaters the oldest share an entry", () => {
  let object = apply(configuration())
  for (let index = 0; index < 12; index++) {
    const now = `2026-01-31T12:00:${10 + index}Z`
    object = update(
      object,
      next => (next.metadata.annotations = { ...next.metadata.annotations, [`a${index}`]: "1" }),
      {
        ...{ manager: `u${index}`, now },
      },
    )
  }
  const updaters = object.metadata.managedFields!.filter(({ operation }) => operation === "Update")
  expect(updaters.map(({ manager }) => manager)).toEqual([
    "ancient-changes",
    ...[3, 4, 5, 6, 7, 8, 9, 10, 11].map(index => `u${index}`),
  ])
  expect(updaters[0]).toMatchObject({
    time: "2026-01-31T12:00:12Z",
    fieldsV1: { "f:metadata": { "f:annotations": { ".": {}, "f:a0": {}, "f:a1": {}, "f:a2": {} } } },
  })
})

test("a write that changes only times is none", () => {
  const live = apply(configuration({ spec: { replicas: 1 } }))
  const entries = (time: string) => live.metadata.managedFields!.map(entry => ({ ...entry, time }))
  const touched = { ...live, metadata: { ...live.metadata, managedFields: entries(later) } }
  expect(isIdleUpdate(live, touched)).toBe(true)
  expect(isIdleUpdate(live, { ...touched, spec: { ...live.spec, replicas: 2 } })).toBe(false)
  expect(isIdleUpdate(live, apply(configuration(), { manager: "m2", live }))).toBe(false)
})

test("without a field manager the program of the client is named", () => {
  expect(managerName("me", "kubectl/v1.36.3 (linux/amd64)")).toBe("me")
  expect(managerName(undefined, "kubectl/v1.36.3 (linux/amd64)")).toBe("kubectl")
  expect(managerName("", undefined)).toBe("unknown")
})

// ----- custom resources

const text: Schema = { type: "string" }
const widget: Schema = {
  type: "object",
  properties: {
    metadata: { type: "object" },
    spec: {
      type: "object",
      properties: {
        n: { type: "integer" },
        set: { type: "array", items: text, listType: "set" },
        plain: { type: "array", items: text },
        map: {
          type: "array",
          listType: "map",
          listMapKeys: ["name", "proto"],
          items: {
            type: "object",
            properties: { name: text, proto: { type: "string", default: "TCP" }, v: { type: "integer" } },
          },
        },
        labels: { type: "object", additional: text },
        atomic: { type: "object", isAtomic: true, properties: { a: text, b: text } },
        any: { type: "object", preservesUnknown: true },
        open: { type: "any", preservesUnknown: true },
        ios: { type: "int-or-string" },
      },
    },
  },
}
const ofWidget = (spec: Json, metadata: Json = {}): Json => ({
  apiVersion: "x.io/v1",
  kind: "Widget",
  metadata: { name: "w", ...metadata },
  spec,
})
const tcp = (name: string) => `k:{"name":"${name}","proto":"TCP"}`

test("custom resources are owned by the schema of their definition", () => {
  const spec = {
    ...{
      n: 1,
      set: ["a"],
      plain: ["x"],
      map: [{ name: "a", proto: "TCP", v: 1 }],
      labels: { x: "1" },
      atomic: { a: "1" },
    },
    ...{ any: { x: { y: 1 }, l: [1] }, open: { q: [1], z: 2 }, ios: 1 },
  }
  const after = ofWidget(spec, { labels: { l: "1" }, finalizers: ["x.io/a"] })
  const of = { schema: widget, apiVersion: "x.io/v1", isCustom: true, now: first }
  const managedFields = trackUpdate({ ...of, before: undefined, after, manager: "c" })!
  const created = {
    ...{ ".": {}, "f:any": { ".": {}, "f:l": {}, "f:x": { ".": {}, "f:y": {} } }, "f:atomic": {}, "f:ios": {} },
    ...{ "f:labels": { ".": {}, "f:x": {} }, "f:plain": {} },
  }
  expect(managedFields).toMatchObject([{ manager: "c" }])
  expect(managedFields[0]!.fieldsV1).toEqual({
    "f:metadata": {
      "f:finalizers": { ".": {}, 'v:"x.io/a"': {} },
      "f:labels": { ".": {}, "f:l": {} },
    },
    "f:spec": {
      ...created,
      ...{ "f:n": {}, "f:open": { ".": {}, "f:q": {}, "f:z": {} }, "f:set": { ".": {}, 'v:"a"': {} } },
      "f:map": { ".": {}, [tcp("a")]: { ".": {}, "f:name": {}, "f:proto": {}, "f:v": {} } },
    },
  })

  const live = { ...after, metadata: { ...after.metadata, managedFields } }
  const as = { ...of, kind: "Widget", manager: "m1" }
  const wanted = { n: 2, set: ["b"], map: [{ name: "a", v: 2 }, { name: "b" }], any: { x: { z: 1 } }, open: { q: [2] } }
  const forced = applyServerSide({ ...as, live, applied: ofWidget(wanted), force: true })
  expect(forced.spec).toEqual({
    ...{ n: 2, set: ["a", "b"], plain: ["x"], labels: { x: "1" }, atomic: { a: "1" }, ios: 1 },
    ...{ any: { x: { y: 1, z: 1 }, l: [1] }, open: { q: [2], z: 2 } },
    map: [{ name: "a", proto: "TCP", v: 2 }, { name: "b" }], // proto gets its default elsewhere
  })
  expect(owners(forced)["m1 Apply"]).toEqual({
    "f:spec": {
      "f:any": { "f:x": { ".": {}, "f:z": {} } },
      "f:map": {
        [tcp("a")]: { ".": {}, "f:name": {}, "f:v": {} },
        [tcp("b")]: { ".": {}, "f:name": {} },
      },
      ...{ "f:n": {}, "f:open": { "f:q": {} }, "f:set": { 'v:"b"': {} } },
    },
  })

  const less = applyServerSide({ ...as, live: forced, applied: ofWidget({ n: 2 }), force: false })
  expect(less.spec).toEqual({
    ...{ n: 2, set: ["a"], plain: ["x"], labels: { x: "1" }, atomic: { a: "1" }, ios: 1 },
    ...{ any: { x: { y: 1 }, l: [1] }, open: { z: 2 }, map: [{ name: "a", proto: "TCP" }] },
  })
})

test("a map emptied by an apply is removed if it is declared, and becomes null if it is not", () => {
  const as = { schema: widget, apiVersion: "x.io/v1", kind: "Widget", isCustom: true, now: first, force: false }
  const applied = ofWidget({ n: 1, labels: { x: "1" }, any: { x: { y: "1" }, s: "t" } })
  const made = applyServerSide({ ...as, live: undefined, applied, manager: "m1" })
  const kept = { ...as, live: made, applied: ofWidget({ labels: {}, any: { x: {}, s: "t" } }), manager: "m2" }
  const both = applyServerSide(kept)
  const less = applyServerSide({ ...as, live: both, applied: ofWidget({ n: 1 }), manager: "m1" })
  expect(less.spec).toEqual({ n: 1, any: { x: null, s: "t" } })
})

test("a custom resource without a schema is stored as it is", () => {
  const applied = { ...ofWidget({ a: { b: 1 } }), zed: [1] }
  const as = { schema: { type: "object" } as Schema, apiVersion: "x.io/v1", kind: "Widget", isCustom: true, now: first }
  const made = applyServerSide({ ...as, live: undefined, applied, manager: "m", force: false })
  expect(owners(made)).toEqual({
    "m Apply": { "f:spec": { ".": {}, "f:a": { ".": {}, "f:b": {} } }, "f:zed": {} },
  })
  const unknown = { ...as, schema: widget, live: undefined, manager: "m", force: false }
  expect(refusal(() => applyServerSide({ ...unknown, applied })).message).toContain(
    "(/w; x.io/v1, Kind=Widget): errors:\n  .spec.a: field not declared in schema\n  .zed: field not declared in schema",
  )
})

// ----- for all

const items = fc.uniqueArray(
  fc.record({ name: fc.constantFrom("a", "b", "c", "d"), v: fc.integer({ min: 0, max: 2 }) }),
  { selector: ({ name }) => name },
)
const spec = fc.record(
  {
    n: fc.integer({ min: 0, max: 3 }),
    set: fc.uniqueArray(fc.constantFrom("a", "b", "c", "d")),
    map: items,
    labels: fc.dictionary(fc.constantFrom("x", "y", "z"), fc.constantFrom("1", "2")),
    atomic: fc.record({ a: fc.constantFrom("1", "2") }),
  },
  { requiredKeys: [] },
)

test("a sole applier gets exactly what it applies, whatever it applied before", () => {
  const as = {
    schema: widget,
    apiVersion: "x.io/v1",
    kind: "Widget",
    isCustom: true,
    manager: "m",
    force: false,
    now: first,
  }
  const run = (applied: Json, live: Json) => applyServerSide({ ...as, live, applied: ofWidget(applied) })
  fc.assert(
    fc.property(fc.array(spec, { minLength: 1, maxLength: 4 }), specs => {
      const last = specs.at(-1)!
      const object = specs.reduce<Json>((live, next) => run(next, live), undefined)
      const alone = run(last, undefined)
      expect(object.metadata.managedFields?.[0]?.fieldsV1).toEqual(alone.metadata.managedFields?.[0]?.fieldsV1)
      expect(full(object.spec)).toEqual(full(last))
    }),
  )
})

/** Without empty maps: for a reader, an emptied map and an absent one are the same. */
const full = (spec: Json): Json =>
  Object.fromEntries(
    Object.entries<Json>(spec ?? {}).filter(
      ([, value]) => value !== null && (typeof value !== "object" || Object.keys(value).length > 0),
    ),
  )

test("every field of a created object has one owner, and an update leaves no field without an owner", () => {
  const track = (before: Json, after: Json, manager: string) =>
    trackUpdate({ schema: widget, before, after, manager, apiVersion: "x.io/v1", isCustom: true, now: first })
  const counted = (set: Json, into = new Map<string, number>(), path = "") => {
    for (const [step, below] of Object.entries<Json>(set)) {
      if (step === ".") continue
      if (Object.keys(below).length === 0 || "." in below) into.set(path + step, (into.get(path + step) ?? 0) + 1)
      counted(below, into, path + step)
    }
    return into
  }
  fc.assert(
    fc.property(spec, spec, (one, other) => {
      const created = ofWidget(one)
      const live = { ...created, metadata: { name: "w", managedFields: track(undefined, created, "a") } }
      const after = track(live, ofWidget(other), "b") ?? []
      const counts = after.reduce((all, { fieldsV1 }) => counted(fieldsV1, all), new Map<string, number>())
      expect([...counts.values()].every(count => count === 1)).toBe(true)
      const fresh = track(undefined, ofWidget(other), "c") ?? []
      expect([...counts.keys()].sort()).toEqual([...counted(fresh[0]?.fieldsV1 ?? {}).keys()].sort())
    }),
  )
})
