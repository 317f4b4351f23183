import { describe, expect, test } from "vitest"
import { expectHandOversHarmless } from "#test/support/canary-stall.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { until } from "#test/support/floor.ts"
import {
  byRoute,
  expectAnswered,
  openShop,
  pushVersion,
  successRate,
  uidsOf,
  useCanaries,
  versionsIn,
} from "#test/support/real-canary.ts"

// What goes wrong during a run, and what changes: requests are answered all the same.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

const metrics = [successRate]
const byWeights = (weights: number[]) => byRoute({ stepWeights: weights, metrics })

describe.concurrent("a version that is no good", () => {
  const bad: Record<string, { env: Record<string, string>; reason: string; metrics?: object[] }> = {
    "ends again and again": { env: { CRASH_AFTER: "1s", START_DELAY: "1m" }, reason: "CrashLoop" },
    "is slow": {
      env: { LATENCY: "800ms" },
      reason: "AnalysisFailed",
      metrics: [{ name: "request-duration", thresholdRange: { max: 500 } }],
    },
  }
  for (const [name, { env, reason, metrics: own }] of Object.entries(bad))
    test(`${name}: requests stay with the one that runs`, async ({ onTestFinished }) => {
      const shop = await openShop(onTestFinished, { isRouted: true })
      const spec = own ? byRoute({ stepWeights: [20], metrics: own as never }) : byWeights([20])
      await shop.create(spec)
      await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
      const before = uidsOf(await shop.pods())
      const clients = shop.clients()
      await clients.more()
      const tag = name.replaceAll(" ", "-")
      const reference = await pushVersion(tag, env)
      await shop.kubectl("set", "image", "deploy/shop", `shop=${reference}`)
      expect(await shop.untilEnded(0)).toMatchObject({ result: "RolledBack", reason })
      await until("its pods are gone", async () => (await shop.pods()).length === 2)
      expect(uidsOf(await shop.pods())).toEqual(before)
      await clients.more()
      expectAnswered(await clients.stop())
    })
})

describe.concurrent("the target changes", () => {
  test("during the run, and while it is promoted: the last change is what runs", async ({ onTestFinished }) => {
    const shop = await openShop(onTestFinished, { isRouted: true })
    await shop.create(byWeights([20]))
    await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
    const clients = shop.clients()
    await clients.more()
    await shop.setVersion("v2")
    await shop.until("v2 has requests", ({ status }) => status.run?.weight === 20)
    await shop.setVersion("v3")
    expect(await shop.untilStarted(1)).toMatchObject({ result: "Superseded", reason: "Restarted" })
    await shop.until("v3 is promoted", ({ status }) => status.phase === "Promoting" || status.phase === "Finalising")
    await shop.setVersion("v2")
    await shop.until("the last is promoted", async ({ status }) => {
      const [pod] = await shop.pods()
      return status.phase === "Succeeded" && !status.run && pod?.spec.containers[0].image.endsWith(":v2")
    })
    await until("all others are gone", async () => (await shop.pods()).length === 2)
    await clients.more()
    const results = await clients.stop()
    expectAnswered(results)
    expect(versionsIn(results)).toEqual(["v1", "v2", "v3"])
    expect(await shop.kubectl("rollout", "status", "deploy/shop", "--timeout=60s")).toContain("successfully")
  })
})

test("kube-controller-manager is stopped across the hand-over of 20 Canaries: no pod is replaced", () =>
  expectHandOversHarmless(20))
