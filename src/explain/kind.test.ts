import { describe, expect, test } from "vitest"
import { resourceOf } from "#runtime/resource.ts"
import { configMaps, mottos } from "#test/support/toy-kind/src/controllers/motto/controller.ts"
import { explained } from "#test/support/toy-kind/src/explain/motto/index.ts"
import { Inventory, kindOf } from "./inventory.ts"
import { plainly } from "./plain.ts"
import { stillWiring } from "./still.ts"

const now = Date.parse("2026-01-01T00:00:00Z")
const noon = "2025-12-31T12:00:00Z"
const ready = { type: "Ready", status: "True", reason: "UpToDate", message: "2 have it", lastTransitionTime: noon }

const motto = (status = {}) => ({
  ...kindOf(mottos),
  metadata: { name: "ours", namespace: "shop", uid: "1", resourceVersion: "1", generation: 1 },
  spec: { text: "slow is smooth" },
  status,
})
const map = (name: string, text: string, labels = { motto: "" }) => ({
  ...kindOf(configMaps),
  metadata: { name, namespace: "shop", uid: name, resourceVersion: "1", labels },
  data: { motto: text },
})

function sightOf(...objects: ReturnType<typeof map | typeof motto>[]) {
  const inventory = new Inventory()
  for (const object of objects) inventory.add(object)
  return { inventory, now }
}

describe("by its own controller", () => {
  test("what it decides from what was read, not what the status says", async () => {
    const object = motto({ conditions: [{ ...ready, observedGeneration: 1 }] })
    const sight = sightOf(object, map("a", "slow is smooth"), map("b", "other"), map("c", "other", {} as never))
    expect(await explained.explainer!(sight)(object)).toEqual({
      reason: "Writing",
      message: "1 of 2 differ",
      meaning: "ConfigMaps get the text.",
      since: now,
      next: ["ConfigMap b gets the text"],
      lookAgainAt: undefined,
    })
  })

  test("since when, where that has not changed", async () => {
    const object = motto({ conditions: [{ ...ready, observedGeneration: 1 }] })
    const { reason, since } = await explained.explainer!(sightOf(object, map("a", "slow is smooth")))(object)
    expect({ reason, since }).toEqual({ reason: "UpToDate", since: Date.parse(noon) })
  })

  test("it reads its own objects and those that its controller watches, of one namespace or of all", () => {
    for (const namespace of [undefined, "shop"]) {
      const { own, rest } = explained.reading({ namespace })
      expect(own).toMatchObject({ resource: mottos, options: { namespace } })
      expect(rest!(new Inventory())).toMatchObject([
        { resource: configMaps, options: { labelSelector: "motto", namespace } },
      ])
    }
  })

  test("it cannot ask the server", () => {
    const { client } = stillWiring(new Inventory(), now)
    expect(() => client.get(mottos, { name: "a" })).toThrow("asked the server to get")
  })
})

describe("a kind without an explanation", () => {
  const cases: Record<string, { status: object; reason: string; message: string }> = {
    "is what its conditions say": {
      status: { conditions: [{ ...ready, observedGeneration: 1 }] },
      reason: "UpToDate",
      message: "2 have it",
    },
    "is stalled before anything else": {
      status: {
        conditions: [
          { ...ready, observedGeneration: 1 },
          { ...ready, type: "Stalled", reason: "Invalid", message: "write text", observedGeneration: 1 },
        ],
      },
      reason: "Invalid",
      message: "write text",
    },
    "is not known where the conditions are of an earlier generation": {
      status: { conditions: [{ ...ready, observedGeneration: 0 }] },
      reason: "NotSeenYet",
      message: "no controller has observed it yet",
    },
  }
  for (const [name, { status, ...want }] of Object.entries(cases))
    test(name, async () => {
      const object = motto(status)
      expect(await plainly(mottos).explainer!(sightOf(object))(object)).toMatchObject(want)
    })

  test("is read whole, in all namespaces where it has none", () => {
    const nodes = resourceOf({ ...mottos, scope: "Cluster" })
    expect(plainly(nodes).reading({ namespace: "shop" })).toEqual({
      own: { resource: nodes, shape: expect.objectContaining({ spec: "all", status: "all" }) },
    })
  })
})
