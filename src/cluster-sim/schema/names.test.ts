import { expect, test } from "vitest"
import { createClient } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createCluster } from "../cluster.ts"
import type { Json } from "../object.ts"

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
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
}
const widgets = { group: "shop.test", version: "v1", plural: "widgets", kind: "Widget", namespaced: true }
const name = { name: "w", namespace: "default" }
const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"]
const by = (value: (name: string) => Json): Json =>
  JSON.parse(`{${names.map(each => `"${each}":${JSON.stringify(value(each))}`)}}`)

async function setUp() {
  const { transport } = createCluster({ clock: virtualClock(0) })
  const client = createClient({ transport, clock: virtualClock(0), random: seededRandom(1) })
  const definitions = (await client.discover("apiextensions.k8s.io/v1", "CustomResourceDefinition"))!
  await client.create(definitions, definition)
  const spec = async () => JSON.stringify(((await client.get(widgets, name)) as Json).spec)
  const create = (spec: Json) =>
    client.create(widgets, { apiVersion: "shop.test/v1", kind: "Widget", metadata: name, spec } as never)
  return { client, create, spec }
}

const inherited = () => ({}) as Record<string, unknown>

test("names that JavaScript's objects inherit are stored as they are sent", async () => {
  const { create, spec } = await setUp()
  const sent = by(each => ({ x: each }))
  await create(sent)
  expect(await spec()).toBe(JSON.stringify(sent))
})

for (const type of ["merge", "apply", "json"] as const)
  test(`a ${type} patch writes them, and changes nothing else`, async () => {
    const { client, create, spec } = await setUp()
    await create(type === "json" ? by(() => ({ y: 0 })) : {})
    const wanted = by(each => ({ x: each }))
    const body =
      type === "json"
        ? names.map(each => ({ op: "replace", path: `/spec/${each}`, value: { x: each } }))
        : { ...(type === "apply" && { apiVersion: "shop.test/v1", kind: "Widget", metadata: name }), spec: wanted }
    await client.patch(widgets, name, { type, body } as never)
    expect(JSON.parse(await spec())).toEqual(wanted)
    expect(inherited().x).toBeUndefined()
    expect(inherited().constructor).toBe(Object)
  })

test("a merge patch takes one away again, and one that was never there is no field", async () => {
  const { client, create, spec } = await setUp()
  await create(JSON.parse('{"__proto__": {"x": 1}, "a": 1}'))
  await client.patch(widgets, name, { type: "merge", body: { spec: by(() => null) } })
  expect(await spec()).toBe('{"a":1}')
})

test("labels with such names can be selected by their values", async () => {
  const { client } = await setUp()
  const labelled = (word: string, labels: Json) =>
    client.create(widgets, {
      ...{ apiVersion: "shop.test/v1", kind: "Widget" },
      metadata: { ...name, name: word, labels },
    } as never)
  await labelled("with", { constructor: "a", toString: "b" })
  await labelled("without", {})
  const found = async (labelSelector: string) =>
    (await client.list(widgets, { namespace: "default", labelSelector })).items.map(({ metadata }) => metadata.name)
  expect(await found("constructor")).toEqual(["with"])
  expect(await found("!constructor")).toEqual(["without"])
  expect(await found("toString=b,constructor in (a)")).toEqual(["with"])
})
