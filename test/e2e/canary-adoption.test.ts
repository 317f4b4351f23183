import { expect, test } from "vitest"
import { useAddOns } from "#test/support/data-planes.ts"
import { floor, until } from "#test/support/floor.ts"
import {
  byRoute,
  byService,
  expectAnswered,
  openShop,
  patienceMs,
  uidsOf,
  useCanaries,
} from "#test/support/real-canary.ts"

// A Canary comes and goes, several times, while requests come: none is lost, no pod is touched, and what it changed is as
// before. Through the gateway, the route passes from one Service to others and back.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

const ways = {
  "a route": { spec: byRoute({ iterations: 1 }), isRouted: true },
  "a Service": { spec: byService({ iterations: 1 }), isRouted: false },
}
for (const [name, { spec, isRouted }] of Object.entries(ways))
  test.concurrent(`a Canary adopts ${name} under load and lets it go, four times`, { timeout: patienceMs }, async ({
    onTestFinished,
  }) => {
    const shop = await openShop(onTestFinished, { isRouted })
    const pods = uidsOf(await shop.pods())
    const { api } = floor()
    const route = `/apis/gateway.networking.k8s.io/v1/namespaces/${shop.namespace}/httproutes/shop`
    const service = `/api/v1/namespaces/${shop.namespace}/services/shop`
    const specs = async () => [(await api.get(service)).spec, isRouted ? (await api.get(route)).spec : undefined]
    const before = await specs()
    const clients = shop.clients({ perSecond: 100 })
    for (let times = 0; times < 4; times++) {
      await clients.more()
      await shop.create({ ...spec, revertOnDeletion: true })
      await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
      await clients.more()
      await shop.remove()
      await until("it is gone", async () => !(await shop.canary().catch(() => undefined)))
      expect(await specs()).toEqual(before)
    }
    await clients.more()
    expectAnswered(await clients.stop())
    expect(uidsOf(await shop.pods())).toEqual(pods)
  })
