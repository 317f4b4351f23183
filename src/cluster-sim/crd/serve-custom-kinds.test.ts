import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { createCluster } from "../cluster.ts"
import type { Json } from "../object.ts"

const definition = (names: Json = {}, properties: Json = { a: { type: "string" } }) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${names.plural ?? "widgets"}.shop.test` },
  spec: {
    group: "shop.test",
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets", ...names },
    versions: ["v1", "v2"].map(name => ({
      name,
      served: true,
      storage: name === "v1",
      schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties } } } },
    })),
  },
})

function setUp() {
  const { storage } = createCluster({ clock: virtualClock(0) })
  const definitions = storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")!
  const widgets = (version = "v1") => storage.kind(`shop.test/${version}`, "Widget")
  const conditions = (name: string) =>
    Object.fromEntries(
      storage
        .get(definitions, { name })
        .status.conditions.map(({ type, status, reason }: Json) => [type, `${status} ${reason}`]),
    )
  return { storage, definitions, widgets, conditions }
}

const widget = {
  apiVersion: "shop.test/v1",
  kind: "Widget",
  metadata: { name: "w", namespace: "default" },
  spec: { a: "x" },
}

test("a definition is in force at once, in all its versions", () => {
  const { storage, definitions, widgets, conditions } = setUp()
  storage.create(definitions, definition())
  expect(conditions("widgets.shop.test")).toEqual({
    NamesAccepted: "True NoConflicts",
    Established: "True InitialNamesAccepted",
  })
  storage.create(widgets()!, widget)
  expect(storage.get(widgets("v2")!, { namespace: "default", name: "w" })).toMatchObject({
    apiVersion: "shop.test/v2",
    spec: { a: "x" },
  })
})

test("a changed schema applies to later writes", () => {
  const { storage, definitions, widgets } = setUp()
  storage.create(definitions, definition())
  const stored = storage.get(definitions, { name: "widgets.shop.test" })
  storage.update(definitions, { ...stored, spec: definition({}, { a: { type: "string", enum: ["y"] } }).spec })
  expect(() => storage.create(widgets()!, widget)).toThrow('Unsupported value: "x": supported values: "y"')
})

test("objects stored earlier are read with the defaults of a changed schema", () => {
  const { storage, definitions, widgets } = setUp()
  storage.create(definitions, definition())
  const made = storage.create(widgets()!, widget)
  const stored = storage.get(definitions, { name: "widgets.shop.test" })
  const { spec } = definition({}, { a: { type: "string" }, b: { type: "string", default: "there" } })
  storage.update(definitions, { ...stored, spec: { ...stored.spec, versions: spec.versions } })
  const read = storage.get(widgets()!, { namespace: "default", name: "w" })
  expect(read.spec).toEqual({ a: "x", b: "there" })
  expect(read.metadata).toEqual(made.metadata)
  expect(storage.list(widgets("v2")!).items).toMatchObject([{ apiVersion: "shop.test/v2", spec: { b: "there" } }])
})

test("users of an old version get a warning that names the newest", () => {
  const { storage, definitions, widgets } = setUp()
  const { spec, ...rest } = definition()
  const versions = ["v1", "v2", "v1beta1"].map(name => ({
    ...spec.versions[0],
    name,
    storage: name === "v1",
    deprecated: name === "v1beta1",
  }))
  storage.create(definitions, { ...rest, spec: { ...spec, versions } })
  expect(widgets("v1beta1")!.deprecation).toBe("shop.test/v1beta1 Widget is deprecated; use shop.test/v2 Widget")
  expect(widgets("v1")!.deprecation).toBeUndefined()
})

test("a name that another kind of the group has is not accepted", () => {
  const { storage, definitions, conditions } = setUp()
  storage.create(definitions, definition({ shortNames: ["w"] }))
  storage.create(definitions, definition({ plural: "wheels", kind: "Wheel", shortNames: ["w"] }))
  expect(conditions("wheels.shop.test")).toEqual({
    NamesAccepted: "False ShortNamesConflict",
    Established: "False NotAccepted",
  })
  expect(storage.kind("shop.test/v1", "Wheel")).toBeUndefined()
})

test("if some names of a definition are taken, the others are accepted and the last conflict is reported", () => {
  const { storage, definitions } = setUp()
  storage.create(definitions, definition())
  storage.create(definitions, definition({ plural: "gadgets", singular: "gadget" }))
  const { acceptedNames, conditions } = storage.get(definitions, { name: "gadgets.shop.test" }).status
  expect(acceptedNames).toEqual({ plural: "gadgets", singular: "gadget", kind: "" })
  expect(conditions[0]).toMatchObject({ reason: "ListKindConflict", message: '"WidgetList" is already in use' })
})

test("deleting a definition deletes its objects, even those with finalizers", () => {
  const { storage, definitions, widgets } = setUp()
  storage.create(definitions, definition())
  storage.create(widgets()!, widget)
  storage.create(widgets()!, { ...widget, metadata: { name: "held", namespace: "default", finalizers: ["a.test/b"] } })
  storage.delete(definitions, { name: "widgets.shop.test" })
  expect(widgets()).toBeUndefined()
  storage.create(definitions, definition())
  expect(storage.list(widgets()!).items).toEqual([])
})

test("a rule that would cost too much fails in the server's words, and later rules are not evaluated", () => {
  const { storage, definitions, widgets } = setUp()
  const list = { type: "array", items: { type: "integer" } }
  const rules = ["self.list.all(x, self.list.all(y, self.list.all(z, x + y + z >= 0)))", "self.list.size() < 1"]
  const properties = {
    inner: { type: "object", properties: { list }, "x-kubernetes-validations": rules.map(rule => ({ rule })) },
  }
  storage.create(definitions, definition({}, properties))
  const create = (length: number) =>
    storage.create(widgets()!, {
      ...widget,
      spec: { inner: { list: Array.from({ length }, (_, i) => i) } },
    })
  expect(() => create(5)).toThrow("failed rule: self.list.size() < 1")
  const started = performance.now()
  expect(() => create(1000)).toThrow(
    /spec\.inner: Invalid value: "object": validation failed due to running out of cost budget, no further validation rules will be run$/,
  )
  expect(performance.now() - started).toBeLessThan(30_000) // on a busy machine, too
})
