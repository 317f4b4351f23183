import { expect, test } from "vitest"
import type { Json } from "../object.ts"
import { testCluster } from "../test-cluster.ts"

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
const widgets = "/apis/shop.test/v1/namespaces/default/widgets"

const spec = {
  type: "object",
  properties: {
    size: { type: "integer", minimum: 1, description: "How large." },
    color: { type: "string", enum: ["red", "blue"], maxLength: 9 },
    inner: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
  },
}
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.shop.test" },
  spec: {
    group: "shop.test",
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", description: "What we sell.", properties: { spec } } },
      },
    ],
  },
}
const widget = (name: string, size = 1) => ({
  apiVersion: "shop.test/v1",
  kind: "Widget",
  metadata: { name },
  spec: { size },
})

async function world() {
  const { send, cluster } = testCluster()
  const { body } = await send("POST", definitions, definition)
  async function watch(query: string) {
    const path = `${widgets}?watch=1${query}`
    const { signal } = new AbortController()
    const answer = await cluster.transport.send({ method: "GET", path, headers: {}, signal })
    return async (): Promise<Json[]> => {
      const chunks: Uint8Array[] = []
      for await (const chunk of answer.body) chunks.push(chunk)
      const lines = Buffer.concat(chunks).toString("utf8").trim().split("\n")
      return lines.map(line => JSON.parse(line))
    }
  }
  return { send, watch, defined: Number(body.metadata.resourceVersion) }
}

test("the schema is published as it was defined, with what every object has", async () => {
  const { send } = await world()
  const { body } = await send("GET", "/openapi/v3/apis/shop.test/v1")
  const { schemas } = body.components
  const { properties, ...kind } = schemas["test.shop.v1.Widget"]
  expect(kind).toEqual({
    type: "object",
    description: "What we sell.",
    "x-kubernetes-group-version-kind": [{ group: "shop.test", version: "v1", kind: "Widget" }],
  })
  expect(properties.spec.properties).toMatchObject({ size: spec.properties.size, color: spec.properties.color })
  expect(Object.keys(properties.spec.properties.inner.properties)).toEqual(["apiVersion", "kind", "metadata"])
  expect(properties.kind.description).toContain("Kind is a string value representing the REST resource")
  for (const [, name = ""] of JSON.stringify(schemas).matchAll(/"#\/components\/schemas\/([^"]+)"/g))
    expect(schemas).toHaveProperty([name])
  expect(schemas["test.shop.v1.WidgetList"].required).toEqual(["items"])
})

/** Without an answer, kubectl does not report that there is no such kind. */
test("the older dialect is answered, in the form that kubectl reads", async () => {
  const { send } = await world()
  const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
  const { status, headers, body } = await send("GET", "/openapi/v2", undefined, { accept })
  expect([status, headers["content-type"], body]).toEqual([
    200,
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "\n\u00032.0",
  ])
  expect((await send("GET", "/openapi/v2")).body).toMatchObject({ swagger: "2.0", paths: {} })
})

test("a watch of a kind that is removed first sees its objects deleted", async () => {
  const { send, watch } = await world()
  await send("POST", widgets, widget("a"))
  const events = await watch("")
  await send("DELETE", `${definitions}/widgets.shop.test`)
  const told = (await events()).map(({ type, object }) => `${type} ${object.metadata.name}`)
  expect(told).toEqual(["ADDED a", "DELETED a"])
})

test("a watch cannot start before its kind was defined", async () => {
  const { watch } = await world()
  const events = await watch("&resourceVersion=1")
  expect(await events()).toMatchObject([{ type: "ERROR", object: { code: 410, reason: "Expired" } }])
})

test("a change of its definition keeps the history of a kind", async () => {
  const { send, watch, defined } = await world()
  await send("POST", widgets, widget("a"))
  await send("PATCH", `${definitions}/widgets.shop.test`, { metadata: { labels: { a: "b" } } })
  const events = await watch(`&resourceVersion=${defined + 1}`)
  await send("DELETE", `${definitions}/widgets.shop.test`)
  expect((await events()).map(({ type }) => type)).toEqual(["ADDED", "DELETED"])
})

test("a refused patch shows the object with its keys in order, as Go writes it", async () => {
  const { send } = await world()
  await send("POST", widgets, widget("a"))
  const { body } = await send("PATCH", `${widgets}/a?fieldValidation=Strict`, { spec: { b: "<", a: 1 } })
  const shown = JSON.parse(
    /^Invalid value: (".*"): strict decoding error/.exec(body.details.causes[0].message)?.[1] ?? "",
  )
  expect(shown).toContain('"spec":{"a":1,"b":"\\u003c","size":1}}')
  expect(shown).toMatch(/"metadata":{"creationTimestamp":.*,"generation":1,"managedFields":.*,"uid":/)
})

test("unknown fields are reported even when the object is refused", async () => {
  const { send } = await world()
  const { status, headers } = await send("POST", widgets, { ...widget("a", 0), more: 1 })
  expect([status, headers.warning]).toEqual([422, '299 - "unknown field \\"more\\""'])
})

test("a list has an empty continue token, a table has none", async () => {
  const { send } = await world()
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
  expect(Object.keys((await send("GET", widgets)).body.metadata)).toEqual(["continue", "resourceVersion"])
  expect(Object.keys((await send("GET", widgets, undefined, { accept })).body.metadata)).toEqual(["resourceVersion"])
})
