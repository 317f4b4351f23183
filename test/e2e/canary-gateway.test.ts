import { expect, test } from "vitest"
import { playStrategy, type Strategy } from "#test/support/canary-strategies.ts"
import { sendTraffic, shareOf } from "#test/support/clients.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { byRoute, patienceMs, successRate, useCanaries, versionsIn } from "#test/support/real-canary.ts"

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
    spec: byRoute(
      { iterations: 1, match: [{ headers: { "x-canary": { exact: "insider" } } }], metrics },
      { requireApproval: ["Promotion"] },
    ),
    isRouted: true,
    headers: { "x-canary": "insider" },
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const result = await sendTraffic({ ...shop.through, perSecond: 100, requestsMost: 100 }, atEnd)
      expect(versionsIn([result])).toEqual(["v1"])
      await shop.approve("Promotion")
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
  "weights, and clients stay with the version that answered them": {
    spec: byRoute(
      { stepWeights: [50], sessionAffinity: { cookieName: "shop-cookie" }, metrics },
      { requireApproval: ["Promotion"] },
    ),
    isRouted: true,
    isBadSeen: true,
    async during(shop, atEnd) {
      const { status } = await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const cookie: string = status.sessionAffinityCookie
      expect(cookie).toMatch(/^shop-cookie=/)
      const load = { ...shop.through, perSecond: 100, requestsMost: 100 }
      const first = await sendTraffic(load, atEnd)
      expect(first.cookies.map(({ version, cookie }) => ({ version, cookie }))).toEqual([
        { version: "v2", cookie: `${cookie}; Max-Age=86400` },
      ])
      const back = await sendTraffic({ ...load, headers: { ...shop.through.headers, cookie } }, atEnd)
      expect([back.failures, versionsIn([back])]).toEqual([[], ["v2"]])
      await shop.approve("Promotion")
    },
    async afterwards(shop, atEnd) {
      const { previousSessionAffinityCookie: cookie } = (await shop.canary()).status
      const headers = { ...shop.through.headers, cookie }
      const result = await sendTraffic({ ...shop.through, headers, perSecond: 50, requestsMost: 20 }, atEnd)
      expect(result.cookies).toEqual([{ version: "v2", cookie: `${cookie}; Max-Age=-1`, count: 20 }])
    },
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
  test.concurrent(
    `by ${name}: a good version is promoted, a bad one is caught, and no request is lost`,
    {
      timeout: patienceMs,
    },
    ({ onTestFinished }) => playStrategy(strategy, onTestFinished),
  )
