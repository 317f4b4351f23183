import { expect, test } from "vitest"
import { stillCache } from "#runtime/cache/still.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { Wiring } from "#runtime/controller.ts"
import { Pods } from "./pods.ts"

/** So many pods, each of an owner of its own, and every list in at once. */
function world(count: number) {
  const clock = virtualClock()
  const owners = Array.from({ length: count }, (_, index) => `uid-${index}`)
  const pods = owners.map((uid, index) => ({
    metadata: {
      name: `pod-${index}`,
      namespace: "web",
      resourceVersion: String(index + 1),
      ownerReferences: [{ apiVersion: "example.com/v1", kind: "Shop", name: `shop-${index}`, uid, controller: true }],
    },
  }))
  const wiring: Pick<Wiring, "clock" | "watch"> = {
    clock,
    watch: (resource, options) => stillCache(resource.plural === "pods" ? pods : [], options),
  }
  return { clock, owners, watched: new Pods(wiring) }
}

test("every object is reported once the lists are in, some at a time", async () => {
  const { clock, owners, watched } = world(1200)
  const told = new Set<string>()
  const bursts: number[] = []
  let burst = 0
  watched.subscribe(uid => {
    told.add(uid)
    // Runs when the caller returns.
    if (burst++ === 0)
      queueMicrotask(() => {
        bursts.push(burst)
        burst = 0
      })
  })
  watched.open()
  await clock.advance(1)
  expect(told).toEqual(new Set(owners))
  expect(bursts).toEqual([500, 500, 200])
})

test("after a close in the middle nothing more is reported", async () => {
  const { clock, watched } = world(600)
  let told = 0
  watched.subscribe(() => {
    if (++told === 1) watched.close()
  })
  watched.open()
  await clock.advance(1)
  expect(told).toBe(1)
})
