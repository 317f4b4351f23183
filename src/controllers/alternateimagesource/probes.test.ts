import { setImmediate as breathe } from "node:timers/promises"
import { expect, test } from "vitest"
import type { Client } from "#runtime/client/client.ts"
import { systemClock } from "#runtime/clock.ts"
import { Probes } from "./probes.ts"

test("a question is asked once while it is open, and few credentials are read at once", async () => {
  let [open, most, questions] = [0, 0, 0]
  const client = {
    async get() {
      most = Math.max(most, ++open)
      await breathe()
      open--
      return { metadata: { name: "default" } }
    },
  } as unknown as Client
  const registry = {
    async resolve() {
      questions++
      return { ok: false, class: "NotFound", message: "" } as const
    },
  }
  const probes = new Probes({ client, clock: systemClock, registry })
  const asker = { namespace: "shop", secrets: [], account: "default" }
  const images = Array.from({ length: 100 }, (_, at) => `b.example/app:${at}`)
  // Two sources may want to know the same, and both are told.
  const answered = images.flatMap(image => {
    const told = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    for (const { resolve } of told) probes.ask(asker, image, resolve)
    return told.map(({ promise }) => promise)
  })
  expect(probes.areOpen).toBe(true)
  await Promise.all(answered)
  expect([questions, most, probes.areOpen]).toEqual([100, 16, false])
  expect(probes.get(asker, images[99]!)?.said).toMatchObject({ class: "NotFound" })
})
