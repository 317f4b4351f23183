import { setImmediate as breathe } from "node:timers/promises"
import { expect, test } from "vitest"
import { movableClock } from "#egress/test-servers.ts"
import type { RegistryClient } from "#registry/index.ts"
import type { Client } from "#runtime/client/client.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { systemClock } from "#runtime/clock.ts"
import type { Asker } from "./ask.ts"
import { Probes } from "./probes.ts"

/** A slow API server, which counts the requests that it gets at once for each namespace. */
function slowServer(reply: () => object = () => ({ metadata: { name: "default" } })) {
  const [open, most] = [new Map<string, number>(), new Map<string, number>()]
  const counts = { reads: 0, open: 0, most: 0 }
  const client = {
    async get(_: unknown, { namespace }: { namespace: string }) {
      counts.reads++
      counts.most = Math.max(counts.most, ++counts.open)
      open.set(namespace, (open.get(namespace) ?? 0) + 1)
      most.set(namespace, Math.max(most.get(namespace) ?? 0, open.get(namespace)!))
      await breathe()
      counts.open--
      open.set(namespace, open.get(namespace)! - 1)
      return reply()
    },
  } as unknown as Client
  return { client, counts, mostOf: (namespace: string) => most.get(namespace) }
}

const nothing = { resolve: async () => ({ ok: false, class: "NotFound", message: "" }) as const }
const answered = (probes: Probes, asker: Asker, image: string) =>
  new Promise<void>(resolve => probes.ask(asker, image, resolve))
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)

test("a question is asked once while it is open", async () => {
  let questions = 0
  const { client } = slowServer()
  const registry = {
    async resolve() {
      questions++
      return { ok: false, class: "NotFound", message: "" } as const
    },
  }
  const probes = new Probes({ client, clock: systemClock, registry })
  const asker = { namespace: "shop", secrets: [], account: "default" }
  const images = Array.from({ length: 100 }, (_, at) => `b.example/app:${at}`)
  // Two sources may ask the same, and both get the answer.
  const told = images.flatMap(image => {
    const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    for (const { resolve } of both) probes.ask(asker, image, resolve)
    return both.map(({ promise }) => promise)
  })
  expect(probes.areOpen).toBe(true)
  await Promise.all(told)
  expect([questions, probes.areOpen]).toEqual([100, false])
  expect(probes.get(asker, images[99]!)?.said).toMatchObject({ class: "NotFound" })
})

test("the credentials of a look are read once, however many questions it has", async () => {
  const { client, counts } = slowServer()
  const { clock, advance } = movableClock()
  const probes = new Probes({ client, clock, registry: nothing })
  // Twenty pods that pull with the same sixteen secrets, and sixteen repositories: 5,440 reads, if each question had its own.
  const asker = { namespace: "shop", secrets: numbers(16).map(at => `pull-${at}`), account: "default" }
  const look = (round: number) =>
    Promise.all(
      numbers(20).flatMap(pod => numbers(16).map(at => answered(probes, asker, `r${at}.example/app:${round}-${pod}`))),
    )
  await look(1)
  expect(counts.reads).toBe(17)
  advance(2001)
  await look(2)
  expect(counts.reads).toBe(34)
  probes.forget("shop") // granted, or taken away: what is known is no longer true
  await look(3)
  expect(counts.reads).toBe(51)
})

test("credentials that could not be read are read again", async () => {
  let isDown = true
  const { client, counts } = slowServer(() => {
    if (isDown) throw new Error("down")
    return {}
  })
  const probes = new Probes({ client, clock: systemClock, registry: nothing })
  const asker = { namespace: "shop", secrets: [], account: "default" }
  await answered(probes, asker, "b.example/app:1")
  expect(probes.get(asker, "b.example/app:1")?.said).toMatchObject({ message: "the credentials could not be read" })
  isDown = false
  await answered(probes, asker, "b.example/app:1")
  expect([counts.reads, probes.get(asker, "b.example/app:1")?.said]).toMatchObject([2, { class: "NotFound" }])
})

test("a namespace reads a few credentials at once, and others read theirs beside it", async () => {
  const { client, counts, mostOf } = slowServer()
  const probes = new Probes({ client, clock: systemClock, registry: nothing })
  const ask = (namespace: string, account: string) =>
    answered(probes, { namespace, secrets: numbers(16).map(String), account }, "b.example/app:1")
  let isDone = false
  const many = Promise.all(numbers(50).map(at => ask("evil", `account-${at}`))).then(() => {
    isDone = true
  })
  await ask("shop", "default")
  expect(isDone).toBe(false)
  await Promise.all(numbers(10).map(at => ask(`other-${at}`, "default")))
  await many
  expect([mostOf("evil"), mostOf("shop"), counts.most]).toEqual([4, 4, 16])
})

test.each([
  ["asks for credentials that may not be read", {}, "ForbiddenAddress"], // the pod may try
  ["names a token server that may not be asked", { isFinal: true } as const, "Denied"],
])("a registry that %s", async (_, more, expected) => {
  const forbidden = () => {
    throw new KubeError("Forbidden", "no", { status: 403 })
  }
  const registry = { resolve: async () => ({ ok: false, class: "Denied", message: "", ...more }) as const }
  const probes = new Probes({ client: slowServer(forbidden).client, clock: systemClock, registry })
  const asker = { namespace: "shop", secrets: ["pull"], account: "default" }
  await answered(probes, asker, "b.example/app:1")
  expect(probes.get(asker, "b.example/app:1")?.said).toMatchObject({ class: expected })
})

test("a question is asked for its namespace", async () => {
  const tenants: unknown[] = []
  const registry: Pick<RegistryClient, "resolve"> = {
    async resolve(_, { tenant } = {}) {
      tenants.push(tenant)
      return nothing.resolve()
    },
  }
  const probes = new Probes({ client: slowServer().client, clock: systemClock, registry })
  await answered(probes, { namespace: "shop", secrets: [], account: "default" }, "b.example/app:1")
  expect(tenants).toEqual(["shop"])
})
