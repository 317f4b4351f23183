import { alertProviderCases, canaryCases, metricTemplateCases } from "../../support/manifests/canary.ts"
import { cases as requests } from "../../support/manifests/containerrecreaterequest.ts"
import { imageListPullJobCases, imagePullJobCases, nodeImageCases } from "../../support/manifests/pulls.ts"
import { type Case as Manifest, cases as manifests } from "../../support/manifests/serviceimage.ts"
import { type Json, type Query, type Script, topic } from "../harness/script.ts"
import { dicom } from "./objects.ts"

const field = (properties: Json, more: Json = {}) => ({ type: "object", properties, ...more })

/** A kind of the case's own, with a schema for its spec. */
const definition = (on: Script, spec: Json, version: Json = {}, more: Json = {}): Json => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `widgets.${on.id}.example.com` },
  spec: {
    group: `${on.id}.example.com`,
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: field({
            spec,
            status: field({ phase: { type: "string" }, replicas: { type: "integer" }, selector: { type: "string" } }),
          }),
        },
        ...version,
      },
    ],
    ...more,
  },
})

type Widgets = {
  path: string
  make(spec: Json, query?: Query, name?: string): Promise<Json>
  of(spec: Json, name?: string): Json
}

/** Creates the kind and waits until it is served. */
async function widgets(on: Script, spec: Json, version: Json = {}, more: Json = {}): Promise<Widgets> {
  await on.quietly.create("customresourcedefinitions", definition(on, spec, version, more))
  await on.untilObject("customresourcedefinitions", `widgets.${on.id}.example.com`, crd =>
    crd.status?.conditions?.some((each: Json) => each.type === "Established" && each.status === "True"),
  )
  const path = `/apis/${on.id}.example.com/v1/namespaces/${on.namespace}/widgets`
  await on.until("it is served", async () => {
    const { status } = await on.quietly.send("GET", path).catch(() => ({ status: 404 }))
    return status === 200
  })
  const of = (spec: Json, name = "w") => ({
    apiVersion: `${on.id}.example.com/v1`,
    kind: "Widget",
    metadata: { name },
    spec,
  })
  await untilWritable(on, path, of({}))
  return { path, of, make: (inner, query = {}, name = "w") => on.create(path, of(inner, name), query) }
}

const dry = { dryRun: "All" }

/** Served for reading comes before served for writing. */
const untilWritable = (on: Script, path: string, object: Json) =>
  on.until("it can be written", async () => {
    const { status } = await on.unrecorded("POST", path, { query: dry, body: object })
    return status === 201 || status === 422
  })

const settled = (crd: Json) => crd?.status?.conditions?.some((each: Json) => each.type === "NamesAccepted")

export const crds = topic("crds", "kinds", {
  "fields that objects are selected by, in lists and watches": async on => {
    const selectableFields = [{ jsonPath: ".spec.size" }, { jsonPath: ".status.phase" }]
    const spec = field({ size: { type: "integer" }, color: { type: "string" } })
    const { path, of } = await widgets(on, spec, { selectableFields, subresources: { status: {} } })
    for (const [name, size] of Object.entries({ a: 1, b: 2, c: 2 })) await on.quietly.create(path, of({ size }, name))
    await on.quietly.create(path, of({}, "none"))
    const phase = (name: string, phase: string) =>
      on.quietly.patch(`${path}/status`, name, "merge", { status: { phase } })
    await phase("b", "Busy")
    const selectors = [
      "spec.size=2",
      "spec.size!=2",
      "spec.size=",
      "status.phase=Busy",
      "status.phase=",
      "status.phase!=",
    ]
    for (const fieldSelector of [...selectors, "spec.size=2,status.phase=Busy", "metadata.name=a,spec.size=1"]) {
      const { items } = await on.quietly.list(path, { fieldSelector })
      on.note(
        fieldSelector,
        items.map(({ metadata }: Json) => metadata.name),
      )
    }
    for (const fieldSelector of ["spec.color=red", "status.nothing=1", ".spec.size=2"])
      await on.list(path, { fieldSelector })
    const watch = await on.watch(path, { fieldSelector: "status.phase=Busy" })
    await watch.until("what is there", ({ object }) => object.metadata.name === "b")
    await phase("a", "Busy") // enters
    await phase("c", "Idle") // is not concerned
    await phase("b", "Idle") // leaves
    await on.quietly.remove(path, "a")
    await watch.until("the end", () => watch.events.length === 4)
    on.note(
      "events",
      watch.events.map(({ type, object }) => [type, object.metadata.name, object.status?.phase]),
    )
  },
  "our charts' definition is taken as it is": async on => {
    const definition = await on.quietly.get("customresourcedefinitions", "serviceimages.autoimagemanager.io")
    // Other tests of the same run may have applied it too, which leaves annotations and moves no spec.
    const { managedFields: _, annotations: __, ...metadata } = definition.metadata
    const { spec, status } = definition
    on.note("as stored", { metadata: { ...metadata, creationTimestamp: "", resourceVersion: "" }, spec, status })
  },
  "the example's definition is taken as it is": async on => {
    const { spec, status } = await on.quietly.get("customresourcedefinitions", "dicoms.services.example.com")
    on.note("as stored", { spec, status })
  },
  "a definition's life": async on => {
    const made = await on.quietly.create("customresourcedefinitions", definition(on, field({})))
    const { managedFields: _, ...metadata } = made.metadata
    on.note("made", { ...made, metadata })
    const { status } = await on.untilObject("customresourcedefinitions", made.metadata.name, ({ status }) =>
      status?.conditions?.some((each: Json) => each.type === "Established" && each.status === "True"),
    )
    on.note("established", status)
    await on.quietly.remove("customresourcedefinitions", made.metadata.name)
    await on.untilObject("customresourcedefinitions", made.metadata.name, object => object === undefined)
    const path = `/apis/${on.id}.example.com/v1/namespaces/${on.namespace}/widgets`
    await on.until("it is no longer served", async () => (await on.unrecorded("GET", path)).status === 404)
    await on.send("GET", path)
  },
  "its end takes its objects along": async on => {
    const { make, path } = await widgets(on, field({}))
    await make({})
    await on.quietly.remove("customresourcedefinitions", `widgets.${on.id}.example.com`)
    await on.untilObject("customresourcedefinitions", `widgets.${on.id}.example.com`, object => object === undefined)
    await on.until(
      "it is no longer served",
      async () =>
        (await on.quietly.send("GET", path).then(
          () => undefined,
          () => true,
        )) as true | undefined,
    )
  },
  "definitions that are refused": async on => {
    const bad: Json[] = [
      { ...definition(on, field({})), metadata: { name: "wrong" } },
      definition(on, field({}), { storage: false }),
      definition(on, { type: "object", properties: { a: { type: "strange" } } }),
      definition(on, { properties: { a: { type: "string" } } }),
      definition(on, { type: "object", properties: { a: { type: "array" } } }),
      definition(on, { type: "object", properties: { a: { type: "string", default: 1 } } }),
      definition(on, { type: "object", required: ["a"], additionalProperties: false }),
      definition(on, field({}), { schema: undefined }),
      definition(on, field({}), {}, { scope: "Everywhere" }),
      definition(on, field({}), {}, { names: { plural: "Widgets", kind: "widget" } }),
      definition(on, field({ a: { type: "string", pattern: "(" } })),
    ]
    for (const each of bad) await on.create("customresourcedefinitions", each, dry)
  },
  "rules that are refused": async on => {
    const withRule = (rule: string, more: Json = {}) =>
      definition(
        on,
        field({ a: { type: "integer" }, s: { type: "string" } }, { "x-kubernetes-validations": [{ rule, ...more }] }),
      )
    for (const rule of ["self.a >", "self.none > 1", "self.a + 1", "self.a == 'x'"])
      await on.create("customresourcedefinitions", withRule(rule), dry)
    await on.create("customresourcedefinitions", withRule("self.a > 1", { message: "two\nlines" }), dry)
    await on.create("customresourcedefinitions", withRule("self.a > 1", { reason: "Nonsense" }), dry)
    await on.create("customresourcedefinitions", withRule("self.a > 1", { fieldPath: ".none" }), dry)
    await on.create("customresourcedefinitions", withRule("self.a > 1", { messageExpression: "1" }), dry)
  },
  "names that are taken already": async on => {
    await on.quietly.create("customresourcedefinitions", definition(on, field({})))
    await on.untilObject("customresourcedefinitions", `widgets.${on.id}.example.com`, settled)
    const second = definition(
      on,
      field({}),
      {},
      { names: { plural: "gadgets", singular: "gadget", kind: "Widget", listKind: "WidgetList" } },
    )
    await on.quietly.create("customresourcedefinitions", {
      ...second,
      metadata: { name: `gadgets.${on.id}.example.com` },
    })
    const { status } = await on.untilObject("customresourcedefinitions", `gadgets.${on.id}.example.com`, settled)
    on.note("second", { conditions: status.conditions, acceptedNames: status.acceptedNames })
  },
  pruning: async on => {
    const { make } = await widgets(
      on,
      field({
        known: { type: "string" },
        nested: field({ a: { type: "integer" } }),
        list: { type: "array", items: field({ b: { type: "string" } }) },
        map: { type: "object", additionalProperties: field({ c: { type: "string" } }) },
      }),
    )
    await make(
      { known: "k", unknown: "u", nested: { a: 1, b: 2 }, list: [{ b: "x", z: 1 }], map: { m: { c: "c", d: "d" } } },
      { fieldValidation: "Ignore" },
    )
    await make({ known: "k", unknown: "u", nested: { b: 2 } }, { fieldValidation: "Warn" }, "warned")
    await make({ unknown: "u" }, { fieldValidation: "Strict" }, "refused")
  },
  "fields that are kept although unknown": async on => {
    const { make } = await widgets(
      on,
      field({
        free: {
          type: "object",
          "x-kubernetes-preserve-unknown-fields": true,
          properties: { typed: field({ a: { type: "string" } }) },
        },
      }),
    )
    await make({ free: { anything: { goes: [1, "two", null] }, typed: { a: "a", pruned: 1 } } })
  },
  defaults: async on => {
    const { make, path, of } = await widgets(
      on,
      field({
        level: { type: "integer", default: 3 },
        nested: field({ flag: { type: "boolean", default: true }, other: { type: "string" } }),
        whole: { ...field({ x: { type: "string", default: "y" } }), default: {} },
        list: { type: "array", items: field({ n: { type: "string" }, size: { type: "integer", default: 1 } }) },
        maybe: { type: "string", nullable: true, default: "d" },
      }),
    )
    await make({})
    await make({ nested: {}, list: [{ n: "a" }, { n: "b", size: 2 }], maybe: null, level: null }, {}, "second")
    await on.patch(path, "w", "merge", { spec: { level: null } })
    const stored = await on.quietly.get(path, "w")
    await on.replace(path, { ...of({ level: 9 }), metadata: stored.metadata })
  },
  types: async on => {
    const { make } = await widgets(
      on,
      field({
        s: { type: "string" },
        i: { type: "integer" },
        n: { type: "number" },
        b: { type: "boolean" },
        l: { type: "array", items: { type: "string" } },
        o: field({}),
        both: { "x-kubernetes-int-or-string": true },
      }),
    )
    for (const spec of [
      { s: 1 },
      { i: "1" },
      { i: 1.5 },
      { n: 1.5, i: 2, both: "5%" },
      { both: 5 },
      { both: true },
      { b: "true" },
      { l: "x" },
      { l: [1] },
      { o: [] },
      { s: null },
      "text",
    ])
      await make(spec, dry)
  },
  bounds: async on => {
    const { make } = await widgets(
      on,
      field(
        {
          s: { type: "string", minLength: 2, maxLength: 4, pattern: "^[a-z]+$" },
          i: { type: "integer", minimum: 1, maximum: 5 },
          e: { type: "string", enum: ["One", "Two"] },
          l: { type: "array", minItems: 1, maxItems: 2, items: { type: "string" } },
          m: { type: "object", maxProperties: 1, additionalProperties: { type: "string" } },
          x: { type: "integer", multipleOf: 5, exclusiveMinimum: true, minimum: 0 },
          t: { type: "string", format: "date-time" },
        },
        { required: ["s"] },
      ),
    )
    for (const more of [
      { s: "a" },
      { s: "abcde" },
      { s: "AB" },
      { i: 0 },
      { i: 6 },
      { e: "Three" },
      { l: [] },
      { l: ["a", "b", "c"] },
      { m: { a: "1", b: "2" } },
      { x: 0 },
      { x: 7 },
      { t: "yesterday" },
      { s: undefined },
    ])
      await make({ s: "ab", ...more }, dry)
  },
  "list types": async on => {
    const { make, path } = await widgets(
      on,
      field({
        set: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
        map: {
          type: "array",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: field({ name: { type: "string" }, value: { type: "string" } }, { required: ["name"] }),
        },
      }),
    )
    await make({ set: ["a", "a"] }, dry)
    await make({ map: [{ name: "a" }, { name: "a" }] }, dry)
    await make({ set: ["a"], map: [{ name: "a", value: "1" }] })
    const more = (spec: Json) => ({
      apiVersion: `${on.id}.example.com/v1`,
      kind: "Widget",
      metadata: { name: "w" },
      spec,
    })
    await on.apply(path, more({ set: ["b"], map: [{ name: "b", value: "2" }] }), { fieldManager: "second" })
    await on.apply(path, more({ map: [{ name: "a", value: "changed" }] }), { fieldManager: "second" })
  },
  rules: async on => {
    const { make } = await widgets(
      on,
      field(
        {
          min: { type: "integer" },
          max: { type: "integer" },
          name: {
            type: "string",
            maxLength: 20,
            "x-kubernetes-validations": [{ rule: "self.startsWith('w-')", message: "begins with w-" }],
          },
          items: { type: "array", maxItems: 5, items: { type: "integer" } },
        },
        {
          "x-kubernetes-validations": [
            { rule: "!has(self.min) || !has(self.max) || self.min <= self.max", message: "min is not above max" },
            { rule: "!has(self.items) || self.items.all(x, x > 0)", message: "all are positive" },
            { rule: "!has(self.name) || self.name.size() < 15", messageExpression: "'longer than 14: ' + self.name" },
            { rule: "!has(self.min) || self.min != 13", reason: "FieldValueForbidden", fieldPath: ".min" },
          ],
        },
      ),
    )
    for (const spec of [
      { min: 1, max: 2 },
      { min: 3, max: 2 },
      { name: "x" },
      { name: "w-1" },
      { name: "w-and-much-more" },
      { items: [1, 0] },
      { min: 13 },
      { min: 14, max: 2, name: "x" },
    ])
      await make(spec, dry)
  },
  "rules about what was before": async on => {
    const { make, path } = await widgets(
      on,
      field(
        {
          fixed: {
            type: "string",
            "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "fixed does not change" }],
          },
          grows: { type: "integer" },
        },
        {
          "x-kubernetes-validations": [
            {
              rule: "!has(oldSelf.grows) || (has(self.grows) && self.grows >= oldSelf.grows)",
              message: "grows never shrinks",
            },
          ],
        },
      ),
    )
    await make({ fixed: "a", grows: 1 })
    await on.patch(path, "w", "merge", { spec: { grows: 2 } })
    await on.patch(path, "w", "merge", { spec: { grows: 1 } })
    await on.patch(path, "w", "merge", { spec: { fixed: "b" } })
    await on.patch(path, "w", "merge", { spec: { fixed: null } })
    await on.patch(path, "w", "merge", { spec: { fixed: "c" } })
  },
  "rules with what the language offers": async on => {
    const { make } = await widgets(
      on,
      field(
        {
          s: { type: "string", maxLength: 100 },
          l: { type: "array", maxItems: 10, items: { type: "string", maxLength: 10 } },
          t: { type: "string", format: "date-time" },
          q: { type: "string", maxLength: 20 },
          m: { type: "object", maxProperties: 5, additionalProperties: { type: "string", maxLength: 10 } },
        },
        {
          "x-kubernetes-validations": [
            { rule: "!has(self.s) || self.s.matches('^[a-z]+:[0-9]+$')", message: "matches" },
            { rule: "!has(self.s) || self.s.split(':').size() == 2", message: "split" },
            { rule: "!has(self.l) || self.l.exists_one(x, x == 'one')", message: "exists_one" },
            { rule: "!has(self.l) || self.l.map(x, x.size()).max() < 5", message: "max" },
            { rule: "!has(self.t) || self.t < timestamp('2026-01-01T00:00:00Z')", message: "before 2026" },
            { rule: "!has(self.q) || quantity(self.q).isLessThan(quantity('1Gi'))", message: "less than 1Gi" },
            { rule: "!has(self.m) || ('key' in self.m && self.m['key'] == 'value')", message: "in" },
          ],
        },
      ),
    )
    for (const spec of [
      { s: "abc:1" },
      { s: "abc" },
      { l: ["one", "two"] },
      { l: ["one", "one", "toolong"] },
      { t: "2025-01-01T00:00:00Z" },
      { t: "2027-01-01T00:00:00Z" },
      { q: "1Mi" },
      { q: "2Gi" },
      { m: { key: "value" } },
      { m: { other: "value" } },
    ])
      await make(spec, dry)
  },
  "rules about the name": async on => {
    await on.create("dicoms", dicom("x".repeat(64)), dry)
    await on.create("dicoms", dicom("x".repeat(63)), dry)
  },
  columns: async on => {
    const { path, make } = await widgets(
      on,
      field({
        size: { type: "integer" },
        on: { type: "boolean" },
        parts: { type: "array", items: field({ name: { type: "string" } }) },
      }),
      {
        additionalPrinterColumns: [
          { name: "Size", type: "integer", jsonPath: ".spec.size", description: "How big." },
          { name: "On", type: "boolean", jsonPath: ".spec.on" },
          { name: "Parts", type: "string", jsonPath: ".spec.parts[*].name" },
          { name: "Last", type: "string", jsonPath: ".spec.parts[-1:].name", priority: 1 },
          { name: "Missing", type: "string", jsonPath: ".spec.none" },
          { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
        ],
      },
    )
    await make({ size: 3, on: true, parts: [{ name: "a" }, { name: "b" }] })
    await make({}, {}, "empty")
    const { body } = await on.quietly.send("GET", path, {
      headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
    })
    on.note("table", { columns: body.columnDefinitions, cells: body.rows.map((row: Json) => row.cells) })
  },
  "columns by default": async on => {
    const { path, make } = await widgets(on, field({}))
    await make({})
    const { body } = await on.quietly.send("GET", path, {
      headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
    })
    on.note("table", { columns: body.columnDefinitions, cells: body.rows.map((row: Json) => row.cells) })
  },
  "a status of its own": async on => {
    const { path, make } = await widgets(on, field({ size: { type: "integer" } }), { subresources: { status: {} } })
    await make({ size: 1 })
    await on.patch(path, "w", "merge", { status: { phase: "ignored" } })
    await on.patch(`${path}/status`, "w", "merge", {
      status: { phase: "Up" },
      spec: { size: 9 },
      metadata: { labels: { a: "b" } },
    })
    await on.patch(path, "w", "merge", { spec: { size: 2 } })
    await on.patch(`${path}/status`, "w", "merge", { status: { phase: 5 } })
    await on.get(`${path}/status`, "w")
  },
  "without a status of its own": async on => {
    const { path, make } = await widgets(on, field({ size: { type: "integer" } }))
    await make({ size: 1 })
    await on.patch(path, "w", "merge", { status: { phase: "kept" } })
    await on.patch(`${path}/status`, "w", "merge", { status: { phase: "Up" } })
  },
  "a scale of its own": async on => {
    const { path, make } = await widgets(on, field({ replicas: { type: "integer" } }), {
      subresources: {
        status: {},
        scale: {
          specReplicasPath: ".spec.replicas",
          statusReplicasPath: ".status.replicas",
          labelSelectorPath: ".status.selector",
        },
      },
    })
    await make({ replicas: 2 })
    await on.quietly.patch(`${path}/status`, "w", "merge", { status: { replicas: 1, selector: "a=b" } })
    await on.get(`${path}/scale`, "w")
    await on.patch(`${path}/scale`, "w", "merge", { spec: { replicas: 5 } })
    await on.get(path, "w")
  },
  "two versions": async on => {
    const { path, make } = await widgets(
      on,
      field({ a: { type: "string" } }),
      {},
      {
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: field({ spec: field({ a: { type: "string" } }) }) },
          },
          {
            name: "v1beta1",
            served: true,
            storage: false,
            deprecated: true,
            schema: { openAPIV3Schema: field({ spec: field({ a: { type: "string" } }) }) },
          },
          { name: "v0", served: false, storage: false, schema: { openAPIV3Schema: field({}) } },
        ],
      },
    )
    await make({ a: "x" })
    await on.send("GET", `${path.replace("/v1/", "/v1beta1/")}/w`)
    await on.send("GET", `${path.replace("/v1/", "/v0/")}/w`)
    const group = await on.until("it is found", async () => {
      const { status, body } = await on.unrecorded("GET", `/apis/${on.id}.example.com`)
      return status === 200 && body
    })
    on.note("group", group)
  },
  "selectable fields": async on => {
    const { path, make } = await widgets(on, field({ colour: { type: "string" } }), {
      selectableFields: [{ jsonPath: ".spec.colour" }],
    })
    await make({ colour: "blue" })
    await make({ colour: "red" }, {}, "red")
    const { body } = await on.quietly.send("GET", path, { query: { fieldSelector: "spec.colour=red" } })
    on.note(
      "red ones",
      body.items.map((item: Json) => item.metadata.name),
    )
    await on.list(path, { fieldSelector: "spec.size=1" })
  },
  "a schema that changes": async on => {
    const { path, make } = await widgets(on, field({ a: { type: "string" } }))
    await make({ a: "x", b: "dropped" })
    const name = `widgets.${on.id}.example.com`
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: {
        openAPIV3Schema: field({ spec: field({ a: { type: "string" }, b: { type: "string", default: "now there" } }) }),
      },
    }
    const changed = await on.quietly.patch("customresourcedefinitions", name, "merge", {
      spec: { versions: [version] },
    })
    on.note("generation", changed.metadata.generation)
    await on.until("it is served", async () => (await on.quietly.get(path, "w")).spec.b)
    await on.get(path, "w")
  },
  "a schema that grows stricter than what is stored": async on => {
    const { path, make } = await widgets(on, field({ a: { type: "string" }, b: { type: "string" } }))
    await make({ a: "TooLoud", b: "x" })
    const version = {
      name: "v1",
      served: true,
      storage: true,
      schema: {
        openAPIV3Schema: field({ spec: field({ a: { type: "string", pattern: "^[a-z]+$" }, b: { type: "string" } }) }),
      },
    }
    await on.quietly.patch("customresourcedefinitions", `widgets.${on.id}.example.com`, "merge", {
      spec: { versions: [version] },
    })
    await on.until(
      "it is served",
      async () =>
        (await on.quietly
          .create(
            path,
            { apiVersion: `${on.id}.example.com/v1`, kind: "Widget", metadata: { name: "probe" }, spec: { a: "LOUD" } },
            dry,
          )
          .then(
            () => undefined,
            () => true,
          )) as true | undefined,
    )
    await on.patch(path, "w", "merge", { spec: { b: "y" } })
    await on.patch(path, "w", "merge", { spec: { a: "Louder" } })
    await on.patch(path, "w", "merge", { spec: { a: "quiet" } })
  },
  "cluster-wide kinds": async on => {
    await on.quietly.create("customresourcedefinitions", definition(on, field({}), {}, { scope: "Cluster" }))
    const path = `/apis/${on.id}.example.com/v1/widgets`
    await on.until(
      "it is served",
      async () =>
        (await on.quietly.send("GET", path).then(
          () => true,
          () => undefined,
        )) as true | undefined,
    )
    const of = { apiVersion: `${on.id}.example.com/v1`, kind: "Widget", metadata: { name: "w" } }
    await untilWritable(on, path, of)
    await on.create(path, of)
    await on.send("GET", `/apis/${on.id}.example.com/v1/namespaces/${on.namespace}/widgets`)
    await on.create(path, { ...of, metadata: { name: "x", namespace: "default" } })
  },
  "an object without spec or kind": async on => {
    await on.create(
      "dicoms",
      { apiVersion: "services.example.com/v1alpha1", kind: "Dicom", metadata: { name: "a" } },
      dry,
    )
    await on.create("dicoms", { metadata: { name: "a" }, spec: {} }, dry)
    await on.create(
      "dicoms",
      { apiVersion: "services.example.com/v1alpha1", kind: "Dicoom", metadata: { name: "a" }, spec: {} },
      dry,
    )
    await on.create(
      "dicoms",
      { apiVersion: "services.example.com/v1", kind: "Dicom", metadata: { name: "a" }, spec: {} },
      dry,
    )
  },
})

/** The table of manifests that our own validator is held to, as a server sees it. */
export const serviceImages = topic(
  "serviceimages",
  "kinds",
  Object.fromEntries(
    Object.entries(manifests).map(([sentence, { manifest, old }]) => [
      sentence,
      async (on: Script) => {
        const named = (object: Json) => ({ ...object, metadata: { ...object.metadata, name: `${on.id}-si` } })
        const isObject = typeof manifest === "object" && manifest !== null && "metadata" in manifest
        if (!old)
          return void (await on.create(
            "serviceimages",
            isObject && (manifest as Json).metadata?.name ? named(manifest) : manifest,
            { ...dry, fieldValidation: "Warn" },
          ))
        const stored = await on.quietly.create("serviceimages", named(old))
        const next = named(manifest)
        await on.replace(
          "serviceimages",
          { ...next, metadata: { ...next.metadata, resourceVersion: stored.metadata.resourceVersion } },
          { ...dry, fieldValidation: "Warn" },
        )
        await on.quietly.remove("serviceimages", stored.metadata.name)
      },
    ]),
  ),
  { withManagedFields: false },
)

/** A table of manifests, one after the other: most are refused, and nothing is stored. */
const table =
  (plural: string, of: Record<string, Manifest>, isNamespaced = true) =>
  async (on: Script) => {
    const root = `/apis/autoimagemanager.io/v1alpha1/${isNamespaced ? `namespaces/${on.namespace}/` : ""}${plural}`
    for (const { manifest, old } of Object.values(of)) {
      const { metadata: _, ...object } = manifest as Json
      const metadata = { name: `${on.id}-table` }
      if (old) {
        const { metadata: __, ...before } = old as Json
        const stored = await on.quietly.create(root, { ...before, metadata })
        const { resourceVersion } = stored.metadata
        await on.replace(
          root,
          { ...object, metadata: { ...metadata, resourceVersion } },
          { ...dry, fieldValidation: "Warn" },
        )
        await on.quietly.remove(root, metadata.name)
      } else await on.create(root, { ...object, metadata }, { ...dry, fieldValidation: "Warn" })
    }
  }

export const nodeKinds = topic(
  "kinds of nodes",
  "kinds",
  {
    "manifests of ContainerRecreateRequests": table("containerrecreaterequests", requests),
    "manifests of ImagePullJobs": table("imagepulljobs", imagePullJobCases),
    "manifests of ImageListPullJobs": table("imagelistpulljobs", imageListPullJobCases),
    "manifests of NodeImages": table("nodeimages", nodeImageCases, false),
  },
  { withManagedFields: false },
)

export const deliveryKinds = topic(
  "kinds of delivery",
  "kinds",
  {
    "manifests of Canaries": table("canaries", canaryCases),
    "manifests of MetricTemplates": table("metrictemplates", metricTemplateCases),
    "manifests of AlertProviders": table("alertproviders", alertProviderCases),
  },
  { withManagedFields: false },
)
