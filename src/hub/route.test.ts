import { expect, test } from "vitest"
import { virtualClock } from "#runtime/clock.ts"
import { deliveryOf } from "#test/support/transport/suite.ts"
import { routeTransport } from "./index.ts"
import { createFakeTransport } from "./test-fake.ts"

test("each cluster is reached by its own transport, and one without any is trouble", async () => {
  const clock = virtualClock(0)
  const [north, south] = ["north", "south"].map(name => createFakeTransport({ clock, clusters: { [name]: {} } }))
  const routed = routeTransport(cluster => ({ north, south })[cluster]?.transport)
  const delivery = deliveryOf([])
  for (const cluster of ["north", "south"]) {
    expect(await routed.apply(cluster, delivery)).toMatchObject({ ok: true })
    expect(await routed.observe(cluster, delivery)).toMatchObject({ value: { bundle: "Present" } })
    expect(await routed.probe(cluster)).toMatchObject({ value: { isReachable: true } })
    expect(await routed.remove(cluster, delivery)).toMatchObject({ ok: true })
  }
  let calls = 0
  const end = routed.subscribe("south", () => calls++)
  south?.spoke("south").setAway(true)
  expect(calls).toBe(1)
  end()
  for (const answer of [await routed.probe("west"), await routed.apply("west", delivery)])
    expect(answer).toMatchObject({ trouble: { is: "UnknownCluster" } })
  routed.subscribe("west", () => {})()
})
