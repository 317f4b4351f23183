import { expect, test } from "vitest"
import { Inventory, kindOf } from "#explain/inventory.ts"
import type { Reading } from "#explain/reading.ts"
import type { Client } from "#runtime/client/client.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { collect, keep } from "./collect.ts"

const [ants, bees, nodes] = [core("ants", "Ant"), core("bees", "Bee"), core("nodes", "Node", false)]
const name = { metadata: { name: "value" } } as const

/** What is read of a cluster where each list has one object, and some may not be read. */
async function read(readings: readonly Reading[], missing: readonly Resource[] = []) {
  const client = {
    async list({ kind }: Resource) {
      if (missing.some(each => each.kind === kind)) throw new KubeError("NotFound", `no ${kind}`, { status: 404 })
      return { items: [{ metadata: { name: kind }, spec: { a: 1, b: 2 } }], metadata: {} }
    },
  } as unknown as Client
  const inventory = new Inventory()
  for await (const piece of collect(client, readings)) keep(inventory, piece)
  return inventory
}

test("a kind that the cluster lacks is left out, and the others are read", async () => {
  const readings = [{ own: { resource: ants, shape: name } }, { own: { resource: bees, shape: name } }]
  for (const [missing, there] of [
    [ants, bees],
    [bees, ants],
  ] as const) {
    const inventory = await read(readings, [missing])
    expect(inventory.of(kindOf(there)).size).toBe(1)
    expect(inventory.whyMissing(kindOf(missing))).toBe(`no ${missing.kind}`)
  }
})

test("where no kind can be read, the error of the first one stands", async () => {
  const readings = [{ own: { resource: ants, shape: name } }, { own: { resource: bees, shape: name } }]
  await expect(read(readings, [ants, bees])).rejects.toThrow("no Ant")
})

test("a list that two kinds need, one of them first, keeps what both need", async () => {
  const inventory = await read([
    { own: { resource: ants, shape: name }, first: [{ resource: nodes, shape: { ...name, spec: { a: "value" } } }] },
    {
      own: { resource: bees, shape: name },
      rest: () => [{ resource: nodes, shape: { ...name, spec: { b: "value" } } }],
    },
  ])
  expect(inventory.of(kindOf(nodes)).get("Node")).toMatchObject({ spec: { a: 1, b: 2 } })
})
