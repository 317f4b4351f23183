import { expect, test } from "vitest"
import { playStrategy, type Strategy } from "#test/support/canary-strategies.ts"
import { sendTraffic, shareOf } from "#test/support/clients.ts"
import { routeToTraefikService, traefikAddress, useAddOns } from "#test/support/data-planes.ts"
import { floor, until } from "#test/support/floor.ts"
import {
  byTraefikRoute,
  byTraefikService,
  expectAnswered,
  openShop,
  type Shop,
  successRate,
  useCanaries,
  versionsIn,
} from "#test/support/real-canary.ts"

// As canary-gateway.test.ts, through Traefik: by a TraefikService, and by an HTTPRoute.

useAddOns("proxy", "traefik", "prometheus")
useCanaries()

const requireApproval = ["Promotion"]

/** Traefik's own names of Services are not those of Envoy, which the built-in metrics of the Gateway API ask for. */
const ofTarget = 'service=~"{{ namespace }}-{{ service }}-canary-http-[0-9]+@kubernetesgateway"'
const series = "traefik_service_request_duration_seconds_count"
const routeMetric = {
  name: "success",
  thresholdRange: { min: 99 },
  query: `(sum(rate(${series}{${ofTarget}, code!~"5.*"}[{{ interval }}])) or vector(0)) / sum(rate(${series}{${ofTarget}}[{{ interval }}])) * 100`,
}

async function seesTwentyPercent(shop: Shop, atEnd: Parameters<NonNullable<Strategy["during"]>>[1]): Promise<void> {
  await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
  const result = await sendTraffic({ ...shop.through, perSecond: 300, requestsMost: 3000 }, atEnd)
  expect(result.failures).toEqual([])
  expect(Math.abs(shareOf("v2", result) - 20)).toBeLessThan(3)
  await shop.approve("Promotion")
}

const strategies: Record<string, Strategy> = {
  "weights of a TraefikService": {
    spec: byTraefikService({ stepWeights: [20], metrics: [successRate] }, { requireApproval }),
    isRouted: "TraefikService",
    isBadSeen: true,
    during: seesTwentyPercent,
  },
  // Without requests of clients there is nothing to judge before the last iteration.
  "Blue/Green of a TraefikService": {
    spec: byTraefikService({ iterations: 1, metrics: [successRate], noData: "Pass" }),
    isRouted: "TraefikService",
    isBadSeen: true,
  },
  "weights of an HTTPRoute": {
    spec: byTraefikRoute({ stepWeights: [20], metrics: [routeMetric] }, { requireApproval }),
    isRouted: "HTTPRoute of Traefik",
    isBadSeen: true,
    during: seesTwentyPercent,
  },
  "a header in an HTTPRoute": {
    spec: byTraefikRoute(
      { iterations: 1, match: [{ headers: { "x-canary": { exact: "insider" } } }], metrics: [routeMetric] },
      { requireApproval },
    ),
    isRouted: "HTTPRoute of Traefik",
    headers: { "x-canary": "insider" },
    isBadSeen: true,
    async during(shop, atEnd) {
      await shop.until("it waits for approval", ({ status }) => status.phase === "WaitingPromotion")
      const result = await sendTraffic({ ...shop.through, perSecond: 100, requestsMost: 100 }, atEnd)
      expect(versionsIn([result])).toEqual(["v1"])
      await shop.approve("Promotion")
    },
  },
}

for (const [name, strategy] of Object.entries(strategies))
  test.concurrent(`by ${name}: a good version is promoted, a bad one is caught, and no request is lost`, ({
    onTestFinished,
  }) => playStrategy(strategy, onTestFinished))

/** The Canary of fluxcd/flagger test/traefik, with its steps and hooks left out: clients come all the time. */
test.concurrent("a TraefikService is made for an IngressRoute that names it, with the metadata of the spec", async ({
  onTestFinished,
}) => {
  const shop = await openShop(onTestFinished, { isRouted: false })
  const { namespace } = shop
  await routeToTraefikService(namespace, "shop")
  const apex = { labels: { test: "test-label" }, annotations: { test: "test-annotation" } }
  const spec = byTraefikService({
    ...{ threshold: 15, maxWeight: 60, stepWeight: 30 },
    metrics: [
      { name: "request-success-rate", threshold: 99, interval: "1m" },
      { name: "request-duration", threshold: 500, interval: "1m" },
    ],
  })
  await shop.create({ ...spec, service: { ...spec.service, apex } })
  await shop.until("it is initialized", ({ status }) => status?.phase === "Initialized")
  const made = await floor().api.get(`/apis/traefik.io/v1alpha1/namespaces/${namespace}/traefikservices/shop`)
  expect(made.metadata).toMatchObject(apex)
  const through = { addresses: [traefikAddress], headers: { host: `${namespace}.example.com` } }
  await until("Traefik has the route", async () => {
    const { failures } = await sendTraffic({ ...through, perSecond: 50, requestsMost: 10 }, onTestFinished)
    return failures.length === 0
  })
  const clients = shop.clients(through)
  await clients.more()
  await shop.setVersion("v2")
  expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
  await clients.more()
  const results = await clients.stop()
  expectAnswered(results)
  expect(versionsIn(results)).toEqual(["v1", "v2"])
})
