import { expect, test } from "vitest"
import { playStrategy, type Strategy } from "#test/support/canary-strategies.ts"
import { sendTraffic, shareOf } from "#test/support/clients.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { byProxy, successRate, useCanaries, versionsIn } from "#test/support/real-canary.ts"

// As canary-gateway.test.ts, by an HTTPProxy instead of an HTTPRoute.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

const metrics = [successRate]
const requireApproval = ["Promotion"]

const strategies: Record<string, Strategy> = {
  weights: {
    spec: byProxy({ stepWeights: [20], metrics }, { requireApproval }),
    isRouted: "HTTPProxy",
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const result = await sendTraffic({ ...shop.through, perSecond: 300, requestsMost: 3000 }, atEnd)
      expect(result.failures).toEqual([])
      expect(Math.abs(shareOf("v2", result) - 20)).toBeLessThan(3)
      await shop.approve("Promotion")
    },
  },
  "a header": {
    spec: byProxy(
      { iterations: 1, match: [{ headers: { "x-canary": { exact: "insider" } } }], metrics },
      { requireApproval },
    ),
    isRouted: "HTTPProxy",
    headers: { "x-canary": "insider" },
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const result = await sendTraffic({ ...shop.through, perSecond: 100, requestsMost: 100 }, atEnd)
      expect(versionsIn([result])).toEqual(["v1"])
      await shop.approve("Promotion")
    },
  },
  "Blue/Green with copies of requests": {
    spec: byProxy({ iterations: 1, mirror: true, metrics }),
    isRouted: "HTTPProxy",
    isBadSeen: false,
  },
}

for (const [name, strategy] of Object.entries(strategies))
  test.concurrent(`by ${name}: a good version is promoted, a bad one is caught, and no request is lost`, ({
    onTestFinished,
  }) => playStrategy(strategy, onTestFinished))
