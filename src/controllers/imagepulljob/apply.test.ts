import { expect, test } from "vitest"
import type { Clock } from "#runtime/clock.ts"
import { createMetrics } from "#runtime/metrics.ts"
import { apply } from "./apply.ts"
import { createImagePullJobMetrics } from "./metrics.ts"
import type { Plan, Snapshot } from "./plan.ts"

test("the metrics of a job are those of its status: nodes that begin now are active", async () => {
  const factory = createMetrics({ clock: { now: () => 0 } as Clock })
  const board = { pick: () => ["n1", "n2"], start() {} }
  const world = { pulls: { board }, metrics: createImagePullJobMetrics(factory) } as never
  const view = { Waiting: 3, Starting: 0, Active: 1, Succeeded: 0, Failed: 0 }
  const seen = { isListed: true, isOver: false, view } as Snapshot
  const plan: Plan = { wants: 3, verdict: { reason: "RegistryBusy", message: "0 of 4; waits" } }
  expect(await apply(world, seen, plan, { key: "shop/web", now: 0 } as never)).toEqual({ started: 2 })
  const text = await factory.text()
  for (const series of [
    'imagepulljob_jobs{namespace="shop",reason="Pulling"} 1',
    'imagepulljob_nodes{namespace="shop",state="Waiting"} 1',
    'imagepulljob_nodes{namespace="shop",state="Active"} 3',
  ])
    expect(text).toContain(series)
})
