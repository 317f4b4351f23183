import { expect, test } from "vitest"
import { eventExpiry } from "./event-expiry.ts"
import { testWorld } from "./kube-controllers/test-world.ts"

const event = (name: string) => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { name },
  involvedObject: { kind: "Pod", name: "a", namespace: "default" },
  reason: "Tested",
  message: "tested",
  type: "Normal",
})
const minutes = 60_000

test("an event is gone an hour after it was last written", async () => {
  const world = testWorld()
  world.create(event("before"))
  world.start(eventExpiry(world))
  const left = () => world.list("Event").map(({ metadata }) => metadata.name)
  await world.clock.advance(10 * minutes)
  world.create(event("a"))
  await world.clock.advance(49 * minutes)
  world.patch("Event", "a", { count: 2 })
  expect(left()).toEqual(["a", "before"])
  await world.clock.advance(2 * minutes)
  expect(left()).toEqual(["a"])
  await world.clock.advance(57 * minutes)
  expect(left()).toEqual(["a"])
  await world.clock.advance(2 * minutes)
  expect(left()).toEqual([])
})
