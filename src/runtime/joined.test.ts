import { expect, test } from "vitest"
import type { Controller, Wiring } from "./controller.ts"
import { joined } from "./joined.ts"

/** A part that enqueues one key at once, and writes down which it is asked about. */
const part = (name: string, asked: string[]): Controller => ({
  name,
  permissions: [{ resource: { group: "apps", plural: name }, verbs: ["list"] }],
  setup({ enqueue }) {
    enqueue("shop/web", { background: true })
    return { reconcile: async key => void asked.push(`${name} ${key}`) }
  },
})

test("each part has its own keys, in one queue, and turns are by what the part calls its key", async () => {
  const asked: string[] = []
  const queued: string[] = []
  const turns = { of: (key: string) => key.split("/")[0]!, most: 2 }
  const both = joined({ name: "both", concurrency: 4, turns }, [part("web", asked), part("db", asked)])
  const wiring = { enqueue: (key: string) => queued.push(key) } as unknown as Wiring
  const reconciler = both.setup(wiring)
  expect(queued).toEqual(["web/shop/web", "db/shop/web"])
  for (const key of queued) await reconciler.reconcile(key)
  expect(asked).toEqual(["web shop/web", "db shop/web"])
  expect(queued.map(both.turns!.of)).toEqual(["shop", "shop"])
  expect(both.permissions.map(({ resource }) => resource.plural)).toEqual(["web", "db"])
})
