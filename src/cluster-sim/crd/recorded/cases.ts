import { change } from "../../kinds/recorded/cases.ts"
import type { Json } from "../../object.ts"

/** What a real server was asked about custom kinds; its answers stand in `answers.jsonl`: see tools/record-kinds.ts. */

const version = (schema: Json, more: Json = {}) => ({
  name: "v1",
  served: true,
  storage: true,
  schema: { openAPIV3Schema: schema },
  ...more,
})

const crd = (spec: Json, versionFields: Json = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.shop.test" },
  spec: {
    group: "shop.test",
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets" },
    versions: [version({ type: "object", properties: { spec } }, versionFields)],
  },
})

const object = { type: "object" }
const plain = crd({ type: "object", properties: { a: { type: "string" } } })
const withRule = (rule: Json) =>
  crd({ type: "object", properties: { a: { type: "string" } }, "x-kubernetes-validations": [rule] })

/** Definitions to create, as a dry run. */
export const definitions: Record<string, Json> = {
  plain,
  "with everything": {
    ...plain,
    spec: {
      ...plain.spec,
      scope: "Cluster",
      names: {
        ...plain.spec.names,
        shortNames: ["wd"],
        categories: ["all"],
        singular: "widget",
        listKind: "WidgetList",
      },
      versions: [
        version(plain.spec.versions[0]!.schema.openAPIV3Schema, {
          subresources: {
            status: {},
            scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
          },
          additionalPrinterColumns: [{ name: "A", type: "string", jsonPath: ".spec.a" }],
        }),
        { name: "v2", served: true, storage: false, schema: { openAPIV3Schema: object } },
      ],
    },
  },
  "with another name": change(plain, { "metadata.name": "others.shop.test" }),
  "without a group": change(plain, { "spec.group": "" }),
  "with a bad group": change(plain, { "spec.group": "Bad_Group", "metadata.name": "widgets.Bad_Group" }),
  "without names": change(plain, { "spec.names": { plural: "", kind: "" } }),
  "with bad names": change(plain, {
    "spec.names": {
      plural: "widgets",
      kind: "Wid get",
      singular: "Wid",
      shortNames: ["W d"],
      categories: ["a b"],
      listKind: "x y",
    },
  }),
  "with the same list kind": change(plain, { "spec.names": { plural: "widgets", kind: "Widget", listKind: "Widget" } }),
  "without a scope": change(plain, { "spec.scope": "" }),
  "with an unknown scope": change(plain, { "spec.scope": "Galaxy" }),
  "without versions": change(plain, { "spec.versions": [] }),
  "without a storage version": change(plain, { "spec.versions.0.storage": false }),
  "with two storage versions": change(plain, { "spec.versions.1": { ...plain.spec.versions[0], name: "v2" } }),
  "with the same version twice": change(plain, { "spec.versions.1": { ...plain.spec.versions[0], storage: false } }),
  "with a bad version": change(plain, { "spec.versions.0.name": "V1" }),
  "without a schema": change(plain, { "spec.versions.0.schema": undefined }),
  "with an empty schema": change(plain, { "spec.versions.0.schema": {} }),
  "with a root that is no object": change(plain, { "spec.versions.0.schema.openAPIV3Schema": { type: "string" } }),
  "with a root without type": change(plain, { "spec.versions.0.schema.openAPIV3Schema": {} }),
  "with an untyped field": crd({ type: "object", properties: { a: {} } }),
  "with untyped items": crd({ type: "object", properties: { a: { type: "array", items: {} } } }),
  "with an array without items": crd({ type: "object", properties: { a: { type: "array" } } }),
  "with an unknown type": crd({ type: "object", properties: { a: { type: "text" } } }),
  "with properties and additional ones": crd({
    type: "object",
    properties: { a: { type: "string" } },
    additionalProperties: { type: "string" },
  }),
  "with a bad pattern": crd({ type: "object", properties: { a: { type: "string", pattern: "(" } } }),
  "with unique items": crd({
    type: "object",
    properties: { a: { type: "array", uniqueItems: true, items: { type: "string" } } },
  }),
  "with a reference": crd({ type: "object", properties: { a: { $ref: "#/b" } } }),
  "with a default of the wrong type": crd({ type: "object", properties: { a: { type: "string", default: 5 } } }),
  "with a default that is not allowed": crd({
    type: "object",
    properties: { a: { type: "string", enum: ["x"], default: "y" } },
  }),
  "with a default with unknown fields": crd({
    type: "object",
    properties: { a: { type: "object", default: { b: 1 } } },
  }),
  "with a list map without keys": crd({
    type: "object",
    properties: {
      a: {
        type: "array",
        "x-kubernetes-list-type": "map",
        items: { type: "object", properties: { k: { type: "string" } } },
      },
    },
  }),
  "with a list map whose key is optional": crd({
    type: "object",
    properties: {
      a: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        items: { type: "object", properties: { k: { type: "string" } } },
      },
    },
  }),
  "with a list map of an unknown key": crd({
    type: "object",
    properties: {
      a: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["z"],
        items: { type: "object", required: ["k"], properties: { k: { type: "string" } } },
      },
    },
  }),
  "with a list map of strings": crd({
    type: "object",
    properties: {
      a: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        items: { type: "string" },
      },
    },
  }),
  "with an unknown list type": crd({
    type: "object",
    properties: { a: { type: "array", "x-kubernetes-list-type": "bag", items: { type: "string" } } },
  }),
  "with a list type on a string": crd({
    type: "object",
    properties: { a: { type: "string", "x-kubernetes-list-type": "set" } },
  }),
  "with int or string and a type": crd({
    type: "object",
    properties: { a: { type: "integer", "x-kubernetes-int-or-string": true } },
  }),
  "with int or string": crd({ type: "object", properties: { a: { "x-kubernetes-int-or-string": true } } }),
  "with metadata restricted": {
    ...plain,
    spec: {
      ...plain.spec,
      versions: [
        version({
          type: "object",
          properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } },
        }),
      ],
    },
  },
  "with metadata's name restricted": {
    ...plain,
    spec: {
      ...plain.spec,
      versions: [
        version({
          type: "object",
          properties: { metadata: { type: "object", properties: { name: { type: "string", maxLength: 5 } } } },
        }),
      ],
    },
  },
  "with a rule": withRule({ rule: "self.a == 'x'" }),
  "with a rule that is not CEL": withRule({ rule: "self.a ==" }),
  "with a rule about an unknown field": withRule({ rule: "self.zzz == 1" }),
  "with a rule that is no condition": withRule({ rule: "self.a" }),
  "with a rule of the wrong type": withRule({ rule: "self.a == 1" }),
  "with an empty rule": withRule({ rule: "" }),
  "with a rule with an empty message": withRule({ rule: "true", message: "   " }),
  "with a rule with lines in its message": withRule({ rule: "true", message: "a\nb" }),
  "with a rule with lines": withRule({ rule: "true\n || false" }),
  "with a message expression of the wrong type": withRule({ rule: "true", messageExpression: "1" }),
  "with an unknown reason": withRule({ rule: "true", reason: "Because" }),
  "with a bad field path": withRule({ rule: "true", fieldPath: ".zzz" }),
  "with a good field path": withRule({ rule: "true", fieldPath: ".a" }),
  "with a rule about the past in a list": crd({
    type: "object",
    properties: {
      a: {
        type: "array",
        maxItems: 5,
        items: { type: "string", "x-kubernetes-validations": [{ rule: "self == oldSelf" }] },
      },
    },
  }),
  "with a rule that costs too much": crd({
    type: "object",
    properties: {
      a: {
        type: "array",
        items: { type: "string" },
        "x-kubernetes-validations": [{ rule: "self.all(x, self.all(y, self.all(z, x == y && y == z)))" }],
      },
    },
  }),
  "with a bad column": crd(object, { additionalPrinterColumns: [{ name: "A", type: "text", jsonPath: ".spec[" }] }),
  "with a column without path": crd(object, { additionalPrinterColumns: [{ name: "", type: "string", jsonPath: "" }] }),
  "with a bad scale": crd(object, {
    subresources: { scale: { specReplicasPath: ".replicas", statusReplicasPath: "status" } },
  }),
  "with preserved fields": crd({ type: "object", "x-kubernetes-preserve-unknown-fields": true }),
  "with an unknown conversion": change(plain, { "spec.conversion": { strategy: "Magic" } }),
  "with a webhook conversion without webhook": change(plain, { "spec.conversion": { strategy: "Webhook" } }),
  "preserving unknown fields everywhere": change(plain, { "spec.preserveUnknownFields": true }),
  "of a protected group": change(plain, { "spec.group": "x.k8s.io", "metadata.name": "widgets.x.k8s.io" }),
}

/** Changes of a definition, as a dry run. */
export const definitionUpdates: Record<string, Record<string, Json>> = {
  "another group": { "spec.group": "other.test" },
  "another kind": { "spec.names.kind": "Gadget" },
  "another scope": { "spec.scope": "Cluster" },
  "another short name": { "spec.names.shortNames": ["ww"] },
  "the stored version gone": { "spec.versions.0.name": "v3" },
}

const base = {
  a: { type: "string", default: "x", maxLength: 5, minLength: 1, pattern: "^[a-z]+$" },
  count: { type: "integer", format: "int32", minimum: 1, maximum: 10, default: 3 },
  big: { type: "integer", format: "int64" },
  ratio: { type: "number", exclusiveMinimum: true, minimum: 0, multipleOf: 0.5 },
  flag: { type: "boolean" },
  mode: { type: "string", enum: ["On", "Off", ""] },
  when: { type: "string", format: "date-time" },
  port: { "x-kubernetes-int-or-string": true },
  maybe: { type: "string", nullable: true, default: "d" },
  tags: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set", maxItems: 3, minItems: 1 },
  list: {
    type: "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["key"],
    items: {
      type: "object",
      required: ["key"],
      properties: {
        key: { type: "string" },
        value: { type: "string", default: "v" },
        n: { type: "integer", minimum: 0 },
      },
      "x-kubernetes-validations": [
        { rule: "!has(self.n) || !has(oldSelf.n) || self.n >= oldSelf.n", message: "n only grows" },
      ],
    },
  },
  labels: {
    type: "object",
    additionalProperties: { type: "string", maxLength: 3 },
    maxProperties: 2,
    minProperties: 1,
  },
  nested: {
    type: "object",
    required: ["must"],
    properties: {
      must: { type: "string" },
      inner: { type: "object", default: {}, properties: { deep: { type: "integer", default: 7 } } },
    },
  },
  free: { type: "object", "x-kubernetes-preserve-unknown-fields": true, properties: { known: { type: "string" } } },
  any: { "x-kubernetes-preserve-unknown-fields": true },
  template: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
  fixed: { type: "string", "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "fixed is immutable" }] },
  min: { type: "integer" },
  max: { type: "integer" },
  either: {
    type: "object",
    properties: { b: { type: "string" }, c: { type: "string" } },
    oneOf: [{ required: ["b"] }, { required: ["c"] }],
  },
}

/** The kind the objects below are of. */
export const widget = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.shop.test" },
  spec: {
    group: "shop.test",
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets", shortNames: ["wd"], categories: ["all"] },
    versions: [
      version(
        {
          type: "object",
          required: ["spec"],
          properties: {
            spec: {
              type: "object",
              properties: base,
              "x-kubernetes-validations": [
                {
                  rule: "!has(self.min) || !has(self.max) || self.min <= self.max",
                  message: "min must not be above max",
                },
                {
                  rule: "!has(self.mode) || self.mode != 'Off' || has(self.flag)",
                  messageExpression: "'off needs a flag, not ' + self.mode",
                  reason: "FieldValueRequired",
                  fieldPath: ".flag",
                },
                { rule: "!has(self.big) || self.big < 100" },
                { rule: "!has(self.min) || self.list[0].key == 'first'", message: "unreachable" },
                {
                  rule: "!has(self.max) || self.max >= oldSelf.orValue(self).max",
                  optionalOldSelf: true,
                  message: "max never shrinks",
                },
              ],
            },
            status: {
              type: "object",
              properties: {
                phase: { type: "string", enum: ["Good", "Bad"] },
                replicas: { type: "integer" },
                conditions: {
                  type: "array",
                  "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["type"],
                  items: {
                    type: "object",
                    required: ["type", "status"],
                    properties: {
                      type: { type: "string" },
                      status: { type: "string" },
                      since: { type: "string", format: "date-time" },
                    },
                  },
                },
              },
            },
          },
        },
        {
          subresources: { status: {} },
          additionalPrinterColumns: [
            { name: "Mode", type: "string", jsonPath: ".spec.mode", description: "How it runs." },
            { name: "Count", type: "integer", jsonPath: ".spec.count", format: "int32" },
            { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
            { name: "Since", type: "date", jsonPath: '.status.conditions[?(@.type=="Ready")].since' },
            { name: "Flag", type: "boolean", jsonPath: ".spec.flag", priority: 1 },
            { name: "Tags", type: "string", jsonPath: ".spec.tags" },
            { name: "First", type: "string", jsonPath: ".spec.tags[0]" },
            { name: "Label", type: "string", jsonPath: ".metadata.labels.a\\.b/c" },
            { name: "All", type: "string", jsonPath: ".spec.list[*].key" },
            { name: "Ratio", type: "number", jsonPath: ".spec.ratio" },
            { name: "Nested", type: "string", jsonPath: ".spec.nested" },
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
          ],
        },
      ),
      {
        name: "v2",
        served: true,
        storage: false,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
}

const of = (spec: Json, more: Json = {}) => ({
  apiVersion: "shop.test/v1",
  kind: "Widget",
  metadata: { name: "w", namespace: "default" },
  spec,
  ...more,
})

/** Objects to create, as a dry run. */
export const objects: Record<string, Json> = {
  "an empty spec": of({}),
  "no spec": { ...of({}), spec: undefined },
  "a spec that is no object": of("text"),
  "unknown fields": of({ zzz: 1, nested: { must: "m", zzz: 1 }, list: [{ key: "k", zzz: 1 }] }, { zzz: 1 }),
  "a status": of({}, { status: { phase: "Good" } }),
  "null where there is a default": of({ a: null, count: null }),
  "null where it may be": of({ maybe: null }),
  "null where it may not be": of({ flag: null }),
  "null inside": of({ nested: null, list: null }),
  "nested defaults": of({ nested: { must: "m" } }),
  "nested defaults in a list": of({ list: [{ key: "k" }, { key: "l", value: "w" }] }),
  "missing and nested": of({ nested: {} }),
  "wrong types": of({ a: 1, count: "3", flag: "true", ratio: "1", tags: "t", labels: [], nested: "n", list: {} }),
  "a fraction for an integer": of({ count: 1.5 }),
  "a whole float for an integer": of({ count: 2.0 }),
  "an integer for a number": of({ ratio: 1 }),
  "out of bounds": of({ a: "abcdef", count: 11, ratio: 0 }),
  "out of the other bounds": of({ a: "", count: 0, ratio: 0.3 }),
  "a pattern": of({ a: "A1" }),
  "an enum": of({ mode: "Maybe" }),
  "an empty enum": of({ mode: "" }),
  "a time": of({ when: "2026-01-02T03:04:05Z" }),
  "a bad time": of({ when: "yesterday" }),
  "an int for int or string": of({ port: 80 }),
  "a string for int or string": of({ port: "http" }),
  "a bool for int or string": of({ port: true }),
  "too many tags": of({ tags: ["a", "b", "c", "d"] }),
  "no tags": of({ tags: [] }),
  "tags twice": of({ tags: ["a", "b", "a", "a"] }),
  "a list's key twice": of({ list: [{ key: "k" }, { key: "k" }] }),
  "a list without key": of({ list: [{ value: "v" }] }),
  "too many labels": of({ labels: { a: "1", b: "2", c: "3" } }),
  "no labels": of({ labels: {} }),
  "a long label": of({ labels: { a: "1234", "b.c/d": "12345" } }),
  "free fields": of({ free: { known: "k", other: [1, { x: null }] }, any: [1, "a", { b: 2 }] }),
  "a wrong known field in a free one": of({ free: { known: 5 } }),
  "an embedded object": of({
    template: { apiVersion: "v1", kind: "Pod", metadata: { name: "p", zzz: 1 }, spec: { x: 1 } },
  }),
  "an embedded object without kind": of({ template: { metadata: { name: "Bad_Name" } } }),
  "int32 overflow": of({ count: 3_000_000_000 }),
  "one of": of({ either: { b: "x" } }),
  "both of": of({ either: { b: "x", c: "y" } }),
  "none of": of({ either: {} }),
  "a rule broken": of({ min: 5, max: 3, list: [{ key: "first" }] }),
  "a rule with an expression and a path": of({ mode: "Off" }),
  "a rule without a message": of({ big: 100 }),
  "a rule that fails": of({ min: 1 }),
  "a rule and a type": of({ min: 5, max: 3, flag: "x" }),
  "a rule about the past at the beginning": of({ fixed: "a" }),
  "labels that are no strings": { ...of({}), metadata: { name: "w", namespace: "default", labels: { a: 1 } } },
  "a bad name": { ...of({}), metadata: { name: "Bad_Name", namespace: "default" } },
}

/** Changes of an object that exists; the object may break rules that came after it (see `strict`). */
export const objectUpdates: Record<
  string,
  { given: Json; set: Record<string, Json>; subresource?: "status"; laterSchema?: Record<string, Json> }
> = {
  "a label": { given: of({}), set: { "metadata.labels": { a: "b" } } },
  "the spec": { given: of({}), set: { "spec.count": 5 } },
  "the status through the front door": { given: of({}), set: { status: { phase: "Good" } } },
  "the status": {
    given: of({}),
    set: { status: { phase: "Good" }, "spec.count": 5, "metadata.labels": { a: "b" } },
    subresource: "status",
  },
  "a bad status": { given: of({}), set: { status: { phase: "Ugly", replicas: "x" } }, subresource: "status" },
  "a status's list twice": {
    given: of({}),
    set: {
      status: {
        conditions: [
          { type: "A", status: "x" },
          { type: "A", status: "y" },
        ],
      },
    },
    subresource: "status",
  },
  "without a version": { given: of({}), set: { "spec.count": 5, "metadata.resourceVersion": undefined } },
  "a fixed field": { given: of({ fixed: "a" }), set: { "spec.fixed": "b" } },
  "a fixed field set": { given: of({}), set: { "spec.fixed": "b" } },
  "a fixed field taken away": { given: of({ fixed: "a" }), set: { "spec.fixed": undefined } },
  "a number in a list shrunk": {
    given: of({
      list: [
        { key: "a", n: 5 },
        { key: "b", n: 5 },
      ],
    }),
    set: {
      "spec.list": [
        { key: "b", n: 6 },
        { key: "a", n: 4 },
      ],
    },
  },
  "the maximum shrunk": { given: of({ max: 5 }), set: { "spec.max": 4 } },
  nothing: { given: of({ max: 5 }), set: {} },
  "elsewhere while broken": {
    given: of({ mode: "On" }),
    set: { "spec.count": 4 },
    laterSchema: { "mode.enum": ["New"] },
  },
  "what is broken, another way": {
    given: of({ mode: "On" }),
    set: { "spec.mode": "Off", "spec.flag": true },
    laterSchema: { "mode.enum": ["New"] },
  },
  "elsewhere in a list while broken": {
    given: of({ list: [{ key: "a", value: "long" }, { key: "b" }] }),
    set: { "spec.list.2": { key: "c" } },
    laterSchema: { "list.items.properties.value.maxLength": 2 },
  },
  "elsewhere in a set while broken": {
    given: of({ tags: ["long", "b"] }),
    set: { "spec.tags": ["long", "c"] },
    laterSchema: { "tags.items.maxLength": 2 },
  },
  "elsewhere while a rule is broken": {
    given: of({ a: "abc" }),
    set: { "spec.count": 4 },
    laterSchema: { "a.x-kubernetes-validations": [{ rule: "self == 'x'", message: "must be x" }] },
  },
}

/** Objects whose row in `kubectl get` is asked for. */
export const rows: Record<string, Json> = {
  "a bare one": of({}),
  "a full one": {
    ...of({
      mode: "On",
      count: 7,
      flag: true,
      tags: ["a", "b"],
      ratio: 1.5,
      list: [{ key: "k" }, { key: "l" }],
      nested: { must: "m" },
    }),
    metadata: { name: "w", namespace: "default", labels: { "a.b/c": "label" } },
    status: {
      conditions: [
        { type: "Other", status: "x" },
        { type: "Ready", status: "True", since: "2020-01-02T03:04:05Z" },
      ],
    },
  },
}
