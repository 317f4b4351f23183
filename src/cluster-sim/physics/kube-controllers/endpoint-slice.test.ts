import { expect, test } from "vitest"
import type { Json, Obj } from "../../object.ts"
import { endpointSliceController } from "./endpoint-slice.ts"
import { type TestWorld, testWorld } from "./test-world.ts"

const web = (spec: Json = {}) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web" },
  spec: { selector: { app: "web" }, ports: [{ port: 80 }], ...spec },
})

function pod(world: TestWorld, name: string, labels: Json = { app: "web" }): Obj {
  const spec = { containers: [{ name: "app", image: "web:1" }] }
  const made = world.create({ apiVersion: "v1", kind: "Pod", metadata: { name, labels }, spec })
  return world.setStatus(made, {
    phase: "Running",
    podIP: `10.0.${Math.floor(Number(name.slice(1)) / 200)}.${Number(name.slice(1)) % 200}`,
    conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
  })
}

function started() {
  const world = testWorld()
  world.start(endpointSliceController(world))
  world.create(web())
  return world
}

const slices = (world: TestWorld) => world.list("EndpointSlice")
const counts = (world: TestWorld) =>
  slices(world)
    .map(({ endpoints }) => endpoints?.length ?? 0)
    .sort()
const names = (world: TestWorld) =>
  slices(world)
    .flatMap(({ endpoints }) => endpoints ?? [])
    .map(({ targetRef }: Json) => targetRef.name)
    .sort()

test("a slice holds a hundred endpoints, and one more pod starts a new slice", async () => {
  const world = started()
  for (let at = 0; at < 101; at++) pod(world, `p${at}`)
  await world.clock.advance(1000)
  expect(counts(world)).toEqual([1, 100])
  expect(names(world)).toHaveLength(101)
})

test("an endpoint that stays is not moved to another slice", async () => {
  const world = started()
  for (let at = 0; at < 150; at++) pod(world, `p${at}`)
  await world.clock.advance(1000)
  const home = (name: string) =>
    slices(world).find(({ endpoints }) => endpoints?.some(({ targetRef }: Json) => targetRef.name === name))?.metadata
      .name
  const before = home("p149")
  for (let at = 0; at < 40; at++)
    world.storage.delete(world.kindOf("Pod"), { name: `p${at}`, namespace: "default" }, { gracePeriodSeconds: 0 })
  await world.clock.advance(1000)
  expect(home("p149")).toBe(before)
  expect(names(world)).toHaveLength(110)
})

test("the index of pods agrees with the selector, whatever changed in whichever order", async () => {
  const world = started()
  for (let at = 0; at < 3; at++) pod(world, `p${at}`)
  pod(world, "p9", { app: "other" })
  await world.clock.advance(1000)
  expect(names(world)).toEqual(["p0", "p1", "p2"])
  world.patch("Pod", "p0", { metadata: { labels: { app: "other" } } })
  await world.clock.advance(1000)
  expect(names(world)).toEqual(["p1", "p2"])
  world.patch("Service", "web", { spec: { selector: { app: "other" } } })
  world.patch("Pod", "p1", { metadata: { labels: { app: "other" } } })
  await world.clock.advance(1000)
  expect(names(world)).toEqual(["p0", "p1", "p9"])
})

test("readiness of a pod changes its slice; anything else about it does not", async () => {
  const world = started()
  const made = pod(world, "p1")
  await world.clock.advance(1000)
  const [slice] = slices(world)
  world.setStatus(made, { message: "anything" })
  await world.clock.advance(1000)
  expect(slices(world)[0]?.metadata.resourceVersion).toBe(slice?.metadata.resourceVersion)
  world.setStatus(made, {
    conditions: [{ type: "Ready", status: "False", lastTransitionTime: "2026-01-01T00:00:02Z" }],
  })
  await world.clock.advance(1000)
  expect(slices(world)[0]?.endpoints[0].conditions).toEqual({ ready: false, serving: false, terminating: false })
})
