import { expect, test } from "vitest"
import { playStrategy, type Strategy } from "#test/support/canary-strategies.ts"
import { sendTraffic, shareOf } from "#test/support/clients.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { floor } from "#test/support/floor.ts"
import { byService, patienceMs, successRate, useCanaries } from "#test/support/real-canary.ts"

// Both strategies that need nothing but kube-proxy, judged by what the pods count.

useAddOns("proxy", "prometheus")
useCanaries()

const metrics = [successRate]

const strategies: Record<string, Strategy> = {
  "the share of pods": {
    spec: byService({ stepWeights: [25], metrics }, { requireApproval: ["Promotion"] }),
    isRouted: false,
    replicas: 3,
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const result = await sendTraffic({ ...shop.through, perSecond: 300, requestsMost: 3500 }, atEnd)
      expect(result.failures).toEqual([])
      expect(Math.abs(shareOf("v2", result) - 25)).toBeLessThan(3)
      await shop.approve("Promotion")
    },
  },
  "one flip of the selector": {
    spec: byService({ iterations: 1, metrics }),
    isRouted: false,
    // A load test: nothing else asks the new version before it has all requests.
    async besides({ namespace, clients }) {
      const { spec } = await floor().api.get(`/api/v1/namespaces/${namespace}/services/shop-canary`)
      return clients({ addresses: [`${spec.clusterIP}:80`] })
    },
    isBadSeen: false,
  },
}

for (const [name, strategy] of Object.entries(strategies))
  test.concurrent(
    `by ${name}: a good version is promoted, a bad one is caught, and no request is lost`,
    {
      timeout: patienceMs,
    },
    ({ onTestFinished }) => playStrategy(strategy, onTestFinished),
  )
