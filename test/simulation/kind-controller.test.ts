import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { isDecision, nth } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { scenario, type World } from "#test/support/scenario.ts"
import { Motto } from "#test/support/toy-kind/src/api/v1alpha1/motto/index.ts"
import { configMaps, createMottoController, mottos } from "#test/support/toy-kind/src/controllers/motto/controller.ts"
import { faults, keepRunning } from "./fates.ts"

// The frame of a controller, with the smallest kind there is, and with every fault at every write.

const motto = (text: string): Json => ({
  apiVersion: Motto.apiVersion,
  kind: Motto.kind,
  metadata: { name: "ours", namespace: "default" },
  spec: { text },
})
const map = (name: string, labels: Json = { motto: "" }): Json => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default", labels },
})

async function begin(): Promise<World> {
  const world = await scenario()
  await world.apply(crdOf(Motto) as Json, ...["a", "b", "c"].map(name => map(name)), map("other", {}))
  await world.advance("1s")
  await world.apply(motto("slow is smooth"))
  return world
}

const textsIn = async (world: World) =>
  Object.fromEntries((await world.list(configMaps)).map(({ metadata, data }) => [metadata.name, data?.motto]))
const readyOf = async (world: World): Promise<Json> =>
  (await world.get(mottos, "ours", "default")).status?.conditions[0]
const isReady = async (world: World, count: number) => (await readyOf(world))?.message === `${count} have it`

test("objects get what they are to have, the status says so, and then nothing is written", async () => {
  const world = await begin()
  world.run([createMottoController()])
  await world.until("all have it", () => isReady(world, 3), "1m")
  const all = "slow is smooth"
  expect(await textsIn(world)).toEqual({ a: all, b: all, c: all, other: undefined })
  expect(await readyOf(world)).toMatchObject({ type: "Ready", status: "True", reason: "UpToDate" })
  const { revision } = world.cluster.store
  await world.advance("1h")
  const after = world.history.filter(commit => commit.revision > revision)
  expect(after.filter(({ object }) => ["Motto", "ConfigMap"].includes(object.kind))).toEqual([])
})

describe("every fault at every write ends in the same state", () => {
  for (const [name, make] of Object.entries(faults))
    test(name, async () => {
      for (const at of [1, 2, 3, 4, 5]) {
        const world = await begin()
        keepRunning(world, createMottoController, make(nth(isDecision, at), world.clock, nth(isDecision, at + 1)))
        await world.until(`all have it, fault at ${at}`, () => isReady(world, 3), "1h")
        await world.apply(map("d"))
        await world.until(`the new one has it, fault at ${at}`, () => isReady(world, 4), "1h")
        expect(new Set(Object.values(await textsIn(world)))).toEqual(new Set(["slow is smooth", undefined]))
      }
    })
})

test("a Motto made anew under its name is another one", async () => {
  const world = await begin()
  world.run([createMottoController()])
  await world.until("all have it", () => isReady(world, 3), "1m")
  await world.client.delete(mottos, { name: "ours", namespace: "default" })
  await world.apply(motto("measure twice"))
  await world.until("all have the other", async () => (await textsIn(world)).c === "measure twice", "1m")
  await world.until("it is ready", () => isReady(world, 3), "1m")
})
