import fc from "fast-check"
import { expect, test } from "vitest"
import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { applyJsonPatch } from "./json-patch.ts"
import { applyMergePatch } from "./merge-patch.ts"
import { applyPatch, type PatchInput, parsePatch } from "./patch.ts"
import { applyStrategicPatch } from "./strategic-patch.ts"
import { kubernetesSchema } from "./table.ts"

// Every answer below was first seen on a real kube-apiserver 1.36.3.

const schema = kubernetesSchema("apps/v1", "Deployment")!
const current = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", labels: { a: "1" }, finalizers: ["x.io/a", "x.io/b"] },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: "web" } },
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: {
        containers: [
          {
            name: "c",
            image: "i:1",
            args: ["x"],
            ports: [
              { containerPort: 80, protocol: "TCP" },
              { containerPort: 81, protocol: "TCP" },
            ],
            env: [
              { name: "A", value: "1" },
              { name: "B", value: "2" },
            ],
            resources: {},
          },
          { name: "d", image: "d:1", resources: {} },
        ],
      },
    },
  },
  status: {},
} as unknown as Obj

const patch = (type: PatchInput["type"], body: Json, more: Partial<PatchInput> = {}) =>
  applyPatch({ type, schema, current, body, kind: "Deployment", ...more })

function answer(act: () => unknown): Json {
  try {
    return act()
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return { code: error.code, reason: error.reason, message: error.message, details: error.details }
  }
}

/** The containers, one line each: name, image, args, environment, ports. */
const containers = ({ value }: Json) =>
  value.spec.template.spec.containers.map((one: Json) =>
    [
      ...[one.name, one.image, one.args?.join() ?? ""],
      one.env?.map(({ name, value: text = "" }: Json) => name + text).join() ?? "",
      one.ports?.map(({ containerPort, name = "" }: Json) => containerPort + name).join() ?? "",
    ].join(" "),
  )
const whole = ["c i:1 x A1,B2 80,81", "d d:1   "]

const refused = {
  code: 422,
  reason: "Invalid",
  message: "the server rejected our request due to an error in our request",
}
const refusedPatches: Record<string, Json> = {
  "remove what is not there": { op: "remove", path: "/spec/foo" },
  "remove below what is not there": { op: "remove", path: "/spec/foo/bar" },
  "a test that fails": { op: "test", path: "/spec/replicas", value: 5 },
  "a test of what is not there": { op: "test", path: "/spec/foo", value: 5 },
  "an unknown operation": { op: "frob", path: "/spec/replicas", value: 5 },
  "no operation": { path: "/spec/replicas", value: 5 },
  "no path": { op: "add", value: 5 },
  "an index past the end": { op: "replace", path: "/spec/template/spec/containers/7/image", value: "x" },
  "an index that is text": { op: "replace", path: "/spec/template/spec/containers/x/image", value: "x" },
  "an item after the end": { op: "add", path: "/spec/template/spec/containers/9", value: {} },
  "a move from nowhere": { op: "move", from: "/metadata/labels/zz", path: "/metadata/labels/b" },
  "a removed item that is not there": { op: "remove", path: "/spec/template/spec/containers/9" },
}
for (const [name, operation] of Object.entries(refusedPatches))
  test(`JSON patch: ${name} is refused`, () =>
    expect(answer(() => patch("json", [operation]))).toEqual({ ...refused, details: {} }))

const takenPatches: Record<string, [Json, Json]> = {
  "a test of null where nothing is": [{ op: "test", path: "/spec/foo", value: null }, {}],
  "a negative index counts from the end": [
    { op: "replace", path: "/spec/template/spec/containers/-1/image", value: "x" },
    { containers: [whole[0], "d x   "] },
  ],
  "a dash is the end": [
    { op: "add", path: "/spec/template/spec/containers/-", value: { name: "z", image: "z" } },
    { containers: [...whole, "z z   "] },
  ],
  "a move takes along": [
    { op: "move", from: "/metadata/labels/a", path: "/metadata/labels/b" },
    { labels: { b: "1" } },
  ],
  "a copy leaves": [
    { op: "copy", from: "/metadata/labels/a", path: "/metadata/labels/b" },
    { labels: { a: "1", b: "1" } },
  ],
  "a copy of nothing is null": [
    { op: "copy", from: "/metadata/labels/zz", path: "/metadata/labels/b" },
    { labels: { a: "1", b: "" } },
  ],
  "an add without value is null": [{ op: "add", path: "/metadata/labels/q" }, { labels: { a: "1", q: "" } }],
  "a replace adds": [{ op: "replace", path: "/spec/foo", value: 1 }, { warnings: ['unknown field "spec.foo"'] }],
  "text before the first slash is ignored": [
    { op: "add", path: "spec/replicas", value: 5 },
    { warnings: ['unknown field "replicas"'] },
  ],
  "fields an operation does not have": [
    { op: "replace", path: "/spec/replicas", value: 1, foo: 1 },
    { warnings: ['json patch unknown field "[0].foo"'] },
  ],
  "escapes in names": [
    { op: "add", path: "/metadata/labels/x.io~1a~0b", value: "1" },
    { labels: { a: "1", "x.io/a~b": "1" } },
  ],
}
for (const [name, [operation, want]] of Object.entries(takenPatches))
  test(`JSON patch: ${name}`, () => {
    const after = patch("json", [operation])
    expect({ warnings: after.warnings, labels: after.value.metadata.labels, containers: containers(after) }).toEqual({
      ...{ warnings: [], labels: { a: "1" }, containers: whole },
      ...want,
    })
  })

const badRequests: [PatchInput["type"], Json, string][] = [
  [
    "json",
    { a: 1 },
    "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
  ],
  ["json", [1], "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"],
  ["merge", [], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"],
  ["merge", 3, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"],
  ["merge", null, "Invalid JSON Patch"],
  ["strategic", [], "json: cannot unmarshal array into Go value of type map[string]interface {}"],
  ["strategic", { metadata: { $deleteFromPrimitiveList: ["a"] } }, "invalid patch format of primitive list"],
  ["strategic", { spec: { strategy: { $retainKeys: ["x"], type: "Recreate" } } }, "invalid patch format of retainKeys"],
  ["strategic", { spec: { strategy: { $retainKeys: "x" } } }, "invalid patch format of retainKeys"],
]
for (const [type, body, message] of badRequests)
  test(`${type}: ${JSON.stringify(body)} is a bad request`, () =>
    expect(answer(() => patch(type, body))).toMatchObject({ code: 400, reason: "BadRequest", message }))

test("a patch that is no JSON", () => {
  const words = "invalid character 'n' looking for beginning of object key string"
  expect(answer(() => parsePatch("{nope", "merge"))).toMatchObject({
    code: 400,
    message: `error decoding patch: ${words}`,
  })
  expect(answer(() => parsePatch("{nope", "strategic"))).toMatchObject({ code: 400, message: words })
})

test("a patch whose outcome cannot be decoded is invalid, and the message has the whole object", () => {
  const { code, reason, message, details } = answer(() => patch("merge", { spec: { replicas: "x" } }))
  const shown = JSON.stringify({ ...current, spec: { ...current.spec, replicas: "x" } })
  const words = `Invalid value: ${JSON.stringify(shown)}: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`
  expect({ code, reason, message }).toEqual({
    code: 422,
    reason: "Invalid",
    message: ` "" is invalid: patch: ${words}`,
  })
  expect(details).toEqual({ causes: [{ reason: "FieldValueInvalid", message: words, field: "patch" }] })
  const message2 = (body: Json) => answer(() => patch("merge", body)).message
  expect(message2({ kind: "Foo" })).toContain('no kind "Foo" is registered for version "apps/v1" in scheme')
  expect(message2({ kind: "ReplicaSet" })).toContain("converting (v1.ReplicaSet) to (apps.Deployment)")
})

test("unknown and duplicate fields of a patch are reported, or refused", () => {
  const text = '{"spec":{"replicas":1,"replicas":2,"foo":1}}'
  for (const type of ["merge", "strategic"] as const) {
    const input = { text }
    const told = ['duplicate field "spec.replicas"', 'unknown field "spec.foo"']
    expect(patch(type, JSON.parse(text), input).warnings).toEqual(told)
    expect(patch(type, JSON.parse(text), { ...input, validation: "Ignore" }).warnings).toEqual([])
    const { message } = answer(() => patch(type, JSON.parse(text), { ...input, validation: "Strict" }))
    expect(message).toContain(`: strict decoding error: ${told.join(", ")}`)
  }
})

const inTemplate = (spec: Json) => ({ spec: { template: { spec } } })
const strategic: Record<string, [Json, string[]]> = {
  "$patch: replace as an item replaces the list": [
    { containers: [{ $patch: "replace" }, { name: "z", image: "z" }] },
    ["z z   "],
  ],
  "$patch: delete takes an item out": [{ containers: [{ name: "d", $patch: "delete" }] }, [whole[0]!]],
  "items are merged by name, in the order of the patch": [
    { containers: [{ name: "d", image: "d:2" }, { name: "c" }] },
    ["d d:2   ", whole[0]!],
  ],
  "new items come first": [{ containers: [{ name: "z", image: "z" }] }, ["z z   ", ...whole]],
  "lists in items are merged too": [
    {
      containers: [
        {
          name: "c",
          env: [
            { name: "C", value: "3" },
            { name: "A", value: "9" },
          ],
        },
      ],
    },
    ["c i:1 x C3,A9,B2 80,81", whole[1]!],
  ],
  "ports are merged by their number": [
    { containers: [{ name: "c", ports: [{ containerPort: 82 }, { containerPort: 80, name: "http" }] }] },
    ["c i:1 x A1,B2 82,80http,81", whole[1]!],
  ],
  "a list without merge strategy is replaced": [
    { containers: [{ name: "c", args: ["y"] }] },
    ["c i:1 y A1,B2 80,81", whole[1]!],
  ],
  "null removes": [{ containers: [{ name: "c", args: null }] }, ["c i:1  A1,B2 80,81", whole[1]!]],
  "null in a new item is nothing": [
    { containers: [{ name: "z", image: "q", args: null, env: [{ name: "Q", value: null }] }] },
    ["z q  Q ", ...whole],
  ],
  "of two items with one name the later wins": [
    {
      containers: [
        { name: "z", image: "q" },
        { name: "z", image: "r" },
      ],
    },
    ["z r   ", ...whole],
  ],
  "$setElementOrder orders": [
    { "$setElementOrder/containers": [{ name: "d" }, { name: "c" }], containers: [{ name: "d", image: "d:2" }] },
    ["d d:2   ", whole[0]!],
  ],
  "$setElementOrder alone orders": [
    { "$setElementOrder/containers": [{ name: "d" }, { name: "c" }] },
    [...whole].reverse(),
  ],
  "an order of nothing puts new items last": [
    { "$setElementOrder/containers": [], containers: [{ name: "z", image: "z" }] },
    [...whole, "z z   "],
  ],
  "a new item takes the place of a deleted one": [
    {
      "$setElementOrder/containers": [{ name: "z" }],
      containers: [
        { name: "c", $patch: "delete" },
        { name: "z", image: "z" },
      ],
    },
    [whole[1]!, "z z   "],
  ],
}
for (const [name, [spec, want]] of Object.entries(strategic))
  test(`strategic: ${name}`, () => {
    const after = patch("strategic", inTemplate(spec))
    expect(after.warnings).toEqual([])
    expect(containers(after)).toEqual(want)
  })

const maps: Record<string, [Json, (object: Json) => Json, Json]> = {
  "lists of names are merged as sets": [
    { metadata: { finalizers: ["x.io/c", "x.io/a"] } },
    object => object.metadata.finalizers,
    ["x.io/c", "x.io/a", "x.io/b"],
  ],
  "$deleteFromPrimitiveList takes names out": [
    { metadata: { "$deleteFromPrimitiveList/finalizers": ["x.io/a"] } },
    object => object.metadata.finalizers,
    ["x.io/b"],
  ],
  "names are taken out and added at once": [
    { metadata: { "$deleteFromPrimitiveList/finalizers": ["x.io/a"], finalizers: ["x.io/z"] } },
    object => object.metadata.finalizers,
    ["x.io/z", "x.io/b"],
  ],
  "$setElementOrder for names": [
    { metadata: { "$setElementOrder/finalizers": ["x.io/z", "x.io/b"], finalizers: ["x.io/z"] } },
    object => object.metadata.finalizers,
    ["x.io/z", "x.io/a", "x.io/b"],
  ],
  "$retainKeys drops the others": [
    { spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } } },
    object => object.spec.strategy,
    { type: "Recreate" },
  ],
  "$patch: replace in a map": [
    { metadata: { labels: { $patch: "replace", z: "1" } } },
    object => object.metadata.labels,
    { z: "1" },
  ],
  "$patch: delete in a map": [
    { metadata: { labels: { $patch: "delete" } } },
    object => object.metadata.labels ?? "none",
    "none",
  ],
}
for (const [name, [body, of, want]] of Object.entries(maps))
  test(`strategic: ${name}`, () => expect(of(patch("strategic", body).value)).toEqual(want))

const unforeseen: Record<string, [Json, string]> = {
  "an unknown directive": [{ spec: { $patch: "frob" } }, "unknown patch type: frob in map: map[$patch:frob]"],
  "merge as a directive": [
    { metadata: { labels: { $patch: "merge", z: "1" } } },
    "unknown patch type: merge in map: map[$patch:merge z:1]",
  ],
  "an unknown directive in a list": [
    inTemplate({ containers: [{ name: "d", $patch: "frob" }] }),
    "unknown patch type: frob in map: map[$patch:frob name:d]",
  ],
  "merge in a list": [
    inTemplate({ containers: [{ name: "d", $patch: "merge" }] }),
    "merging lists cannot yet be specified in the patch",
  ],
  "deleting what has no name": [
    inTemplate({ containers: [{ $patch: "delete" }] }),
    "map: map[$patch:delete] does not contain declared merge key: name",
  ],
  "an item without name": [
    inTemplate({ containers: [{ image: "x" }] }),
    "map: map[image:x] does not contain declared merge key: name",
  ],
  "an order that is no list": [
    inTemplate({ "$setElementOrder/containers": 3 }),
    "expected a []interface {}, but received a int64",
  ],
  "an order without an item of the patch": [
    inTemplate({ "$setElementOrder/containers": [{ name: "d" }], containers: [{ name: "c", image: "d:2" }] }),
    "The order in patch list:\n[map[image:d:2 name:c]]\n doesn't match $setElementOrder list:\n[map[name:d]]\n",
  ],
}
for (const [name, [body, message]] of Object.entries(unforeseen))
  test(`strategic: ${name} is an error of the server`, () =>
    expect(answer(() => patch("strategic", body))).toMatchObject({ code: 500, reason: "", message }))

const converted: [Json, string][] = [
  [{ priority: 1.5 }, "cannot convert float64 to int32"],
  [{ priority: true }, "unrecognized type: int32"],
  [{ terminationGracePeriodSeconds: "x" }, "unrecognized type: int64"],
  [{ hostNetwork: "x" }, "unrecognized type: bool"],
  [{ restartPolicy: 1 }, "cannot convert int64 to v1.RestartPolicy"],
  [{ schedulerName: true }, "unrecognized type: string"],
  [{ tolerations: {} }, "cannot restore slice from map"],
  [{ securityContext: "x" }, "cannot restore struct from: string"],
  [{ securityContext: 1 }, "cannot restore struct from: int64"],
  [{ nodeSelector: [] }, "cannot restore map from slice"],
  [
    { containers: [{ name: "c", livenessProbe: { httpGet: { port: true } } }] },
    "json: cannot unmarshal bool into Go value of type int32",
  ],
]
for (const [spec, words] of converted)
  test(`strategic: ${JSON.stringify(spec)} has a wrong type`, () => {
    const { code, message } = answer(() => patch("strategic", inTemplate(spec)))
    expect(code).toBe(422)
    expect(message).toMatch(/^ "" is invalid: patch: Invalid value: "map\[spec:map\[template:/)
    expect(message.endsWith(`: ${words}`)).toBe(true)
  })

test("strategic: custom resources have no merge keys", () => {
  expect(answer(() => patch("strategic", {}, { isCustom: true }))).toMatchObject({
    code: 415,
    reason: "UnsupportedMediaType",
  })
})

test("a field that only JavaScript knows is unknown", () => {
  for (const type of ["merge", "strategic"] as const)
    expect(patch(type, { spec: { constructor: { a: 1 }, toString: [1] } }).warnings).toEqual([
      'unknown field "spec.constructor"',
      'unknown field "spec.toString"',
    ])
})

test("a patch does not change the stored object", () => {
  const before = structuredClone(current)
  patch("strategic", inTemplate({ containers: [{ name: "c", env: [{ name: "A", value: "7" }] }] }))
  patch("json", [{ op: "remove", path: "/metadata/labels/a" }])
  patch("merge", { metadata: { labels: { a: null } } })
  expect(current).toEqual(before)
})

// ----- for all

const scalar = fc.oneof(fc.string({ maxLength: 3 }), fc.integer({ min: 0, max: 3 }), fc.boolean())
const json = fc.letrec<{ value: Json; map: Json }>(tie => ({
  value: fc.oneof({ depthSize: "small" }, scalar, fc.array(scalar, { maxLength: 3 }), tie("map")),
  map: fc.dictionary(fc.constantFrom("a", "b", "c", "d"), tie("value"), { maxKeys: 3 }),
}))

/** The merge patch that leads from one map to another. */
function difference(from: Json, to: Json): Json {
  const isMap = (value: Json) => typeof value === "object" && value !== null && !Array.isArray(value)
  const patch: Record<string, Json> = {}
  for (const key of Object.keys(from)) if (!(key in to)) patch[key] = null
  for (const key of Object.keys(to))
    patch[key] = isMap(to[key]) && isMap(from[key]) ? difference(from[key], to[key]) : to[key]
  return patch
}

test("a merge patch made from two objects leads from one to the other, and changes neither", () => {
  fc.assert(
    fc.property(json.map, json.map, (from, to) => {
      const before = structuredClone(from)
      expect(applyMergePatch(from, difference(from, to))).toEqual(to)
      expect(from).toEqual(before)
    }),
  )
})

test("a JSON patch that adds and removes the same is no change", () => {
  fc.assert(
    fc.property(json.map, json.value, (document, value) => {
      const operations = [
        { op: "add", path: "/new", value },
        { op: "test", path: "/new", value },
        { op: "copy", from: "/new", path: "/other" },
        { op: "move", from: "/other", path: "/new" },
        { op: "remove", path: "/new" },
      ]
      expect(applyJsonPatch(document, operations)).toEqual(document)
    }),
  )
})

const names = ["a", "b", "c", "d"]
const envOf = fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), value: fc.constantFrom("1", "2") }), {
  selector: ({ name }) => name,
})

test("a strategic patch of a list merges it like a map from name to item, and keeps the order of both lists", () => {
  const deletions = fc.uniqueArray(fc.constantFrom(...names))
  fc.assert(
    fc.property(envOf, envOf, deletions, (live, patched, deleted) => {
      const kept = patched.filter(({ name }) => !deleted.includes(name))
      const body = { env: [...kept, ...deleted.map(name => ({ name, $patch: "delete" }))] }
      const container = schemaOfContainer
      const { env = [] } = applyStrategicPatch(container, { name: "c", env: live }, body)

      const model = new Map(live.map(item => [item.name, item.value]))
      for (const name of deleted) model.delete(name)
      for (const { name, value } of kept) model.set(name, value)
      expect(Object.fromEntries(env.map(({ name, value }: Json) => [name, value]))).toEqual(Object.fromEntries(model))

      const order = env.map(({ name }: Json) => name)
      const inOrder = (list: { name: string }[]) => list.map(({ name }) => name).filter(name => order.includes(name))
      expect(order.filter((name: string) => kept.some(item => item.name === name))).toEqual(inOrder(kept))
      const others = live.filter(({ name }) => !kept.some(item => item.name === name))
      expect(order.filter((name: string) => others.some(item => item.name === name))).toEqual(inOrder(others))
    }),
  )
})

const schemaOfContainer = {
  type: "object" as const,
  properties: {
    name: { type: "string" as const },
    env: {
      type: "array" as const,
      patchStrategy: "merge" as const,
      mergeKey: "name",
      items: { type: "object" as const, properties: { name: { type: "string" as const } } },
    },
  },
}
