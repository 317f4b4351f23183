import { expect, test } from "vitest"
import { playStrategy, type Strategy } from "#test/support/canary-strategies.ts"
import { sendTraffic, shareOf } from "#test/support/clients.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { byRoute, successRate, useCanaries, versionsIn } from "#test/support/real-canary.ts"

// Each strategy through Contour and Envoy, judged by Prometheus. They are played side by side: most of it is waiting.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

const metrics = [successRate]

const strategies: Record<string, Strategy> = {
  weights: {
    spec: byRoute({ stepWeights: [20], metrics }, { requireApproval: ["Promotion"] }),
    isRouted: true,
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const result = await sendTraffic({ ...shop.through, perSecond: 300, requestsMost: 3000 }, atEnd)
      expect(result.failures).toEqual([])
      // Chance decides each request: of 3000, the share is off by three points once in twenty thousand times.
      expect(Math.abs(shareOf("v2", result) - 20)).toBeLessThan(3)
      await shop.approve("Promotion")
    },
  },
  "a header": {
    spec: byRoute({ iterations: 1, match: [{ headers: { "x-canary": { exact: "insider" } } }], metrics }),
    isRouted: true,
    headers: { "x-canary": "insider" },
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("those that match go to it", ({ status }) => status.run?.weight === 100)
      const result = await sendTraffic({ ...shop.through, perSecond: 100, requestsMost: 100 }, atEnd)
      expect(versionsIn([result])).toEqual(["v1"])
    },
  },
  "a cookie": {
    spec: byRoute({
      iterations: 1,
      match: [{ headers: { cookie: { regex: "^(.*?;)?(canary=always)(;.*)?$" } } }],
      metrics,
    }),
    isRouted: true,
    headers: { cookie: "a=b;canary=always" },
    isBadSeen: true,
  },
  // Without requests of clients there is nothing to judge before the last iteration.
  "Blue/Green": { spec: byRoute({ iterations: 1, metrics, noData: "Pass" }), isRouted: true, isBadSeen: true },
  "Blue/Green with copies of requests": {
    spec: byRoute({ iterations: 1, mirror: true, metrics }),
    isRouted: true,
    isBadSeen: false,
    async during(shop) {
      await shop.until("requests are copied", ({ status }) => status.run?.mirrored)
    },
  },
}

for (const [name, strategy] of Object.entries(strategies))
  test.concurrent(`by ${name}: a good version is promoted, a bad one is caught, and no request is lost`, ({
    onTestFinished,
  }) => playStrategy(strategy, onTestFinished))
