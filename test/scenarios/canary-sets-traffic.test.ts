import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaryController } from "#controllers/canary/controller.ts"
import { canaries, pods, setResources } from "#controllers/canary/resources.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import type { Check } from "#core/canary/tally.ts"
import { application, throughGateway, trafficStory } from "#test/support/traffic.ts"

// Canaries over StatefulSets and DaemonSets with their real routers, under requests at a constant rate.

type Kind = keyof typeof setResources
const v1 = "registry.example.com/web:1"
const v2 = "registry.example.com/web:2"

function workloadOf(kind: Kind): Json {
  const made = application("web", { image: v1, replicas: 3 })
  const { replicas, ...spec } = made.spec
  return { ...made, kind, spec: kind === "StatefulSet" ? { ...spec, replicas, serviceName: "peers" } : spec }
}

async function story(kind: Kind, spec: Partial<CanarySpecInput> & Json, fields: Json = {}) {
  const told = await trafficStory({ versions: {} })
  const { world } = told
  const made = workloadOf(kind)
  await world.apply(crdOf(Canary) as Json, { ...made, spec: { ...made.spec, ...fields } })
  const get = async () => (await world.get(setResources[kind], "web", "default")).status ?? {}
  const isReady = async () => ((await get()).availableReplicas ?? (await get()).numberAvailable) === 3
  await world.until("pods are ready", isReady, "5m")
  const says: { checks: readonly Check[] } = { checks: [] }
  world.run([canaryController({ routerOf, measuring: () => ({ checksOf: () => says.checks }) })])
  await world.apply({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web", namespace: "default" },
    spec: { targetRef: { apiVersion: "apps/v1", kind, name: "web" }, ...spec },
  })
  const canary = () => world.get(canaries, "web", "default")
  const until = (phase: string) =>
    world
      .until(`the Canary is ${phase}`, async () => (await canary()).status?.phase === phase, "40m")
      .catch(async error => {
        throw new Error(`${error.message}; it is ${JSON.stringify((await canary()).status)}`)
      })
  const setImage = (image: string) =>
    world.patch(
      setResources[kind],
      "web",
      { spec: { template: { spec: { containers: [{ ...made.spec.template.spec.containers[0], image }] } } } },
      "default",
    )
  const images = async () => (await world.list(pods)).map(pod => pod.spec.containers[0].image as string)
  await until("Initialized")
  await world.settle("10s")
  return { ...told, says, canary, until, setImage, images }
}

const throughRoute = {
  provider: "gatewayapi:v1",
  service: {
    port: 80,
    targetPort: 8080,
    hosts: ["web.example.com"],
    gatewayRefs: [{ name: "gateway", namespace: "default" }],
  },
}
const byService = { provider: "kubernetes", service: { port: 80, targetPort: 8080 } }
const weights = { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics: [] }
const noWeights = { interval: "1m", threshold: 2, iterations: 2, metrics: [] }
const match = [{ headers: { "x-canary": { exact: "insider" } } }]

type Way = { spec: Json; through: Parameters<Awaited<ReturnType<typeof story>>["traffic"]["send"]>[0]["through"] }
const service = { service: "default/web" }
const ways: Record<string, Way> = {
  "weights of a route": { spec: { ...throughRoute, analysis: weights }, through: throughGateway },
  "Blue/Green through a route": { spec: { ...throughRoute, analysis: noWeights }, through: throughGateway },
  "copies of requests": {
    spec: { ...throughRoute, analysis: { ...noWeights, mirror: true } },
    through: throughGateway,
  },
  "matching requests": { spec: { ...throughRoute, analysis: { ...noWeights, match } }, through: throughGateway },
  "Blue/Green through a Service alone": { spec: { ...byService, analysis: noWeights }, through: service },
  "the share of pods behind a Service": {
    spec: { ...byService, analysis: { ...weights, stepWeights: [33, 67] } },
    through: service,
  },
  "no analysis": { spec: { ...throughRoute, analysis: weights, skipAnalysis: true }, through: throughGateway },
}

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  describe(`a ${kind}`, () => {
    for (const [name, { spec, through }] of Object.entries(ways))
      test(`by ${name}: promoted, and no request fails`, async () => {
        const { world, traffic, until, setImage, images } = await story(kind, spec)
        const kept = traffic.send({ perSecond: 10, through, connections: "kept" })
        const fresh = traffic.send({ perSecond: 10, through, connections: "fresh" })
        await world.advance("30s")
        await setImage(v2)
        await until("Succeeded")
        await world.advance("1m")
        for (const clients of [kept, fresh]) {
          const { failures, errors } = clients.record()
          expect({ failures, errors }).toEqual({ failures: [], errors: 0 })
        }
        expect(await images()).toEqual([v2, v2, v2])
      })

    test("a bad one is caught: no request fails but those that it answered, and its share was within 3 points", async () => {
      const metrics = [{ name: "rate", query: "1", thresholdRange: { min: 99 } }]
      const { world, traffic, says, until, setImage, images, canary } = await story(kind, {
        ...throughRoute,
        analysis: { ...weights, interval: "5m", metrics },
      })
      says.checks = [{ name: "rate", verdict: "Bad", value: 1, why: "1 is below 99" }]
      await setImage(v2)
      await world.until("a third", async () => (await canary()).status.canaryWeight === 34, "10m")
      await world.advance("5s")
      const clients = traffic.send({ perSecond: 20, through: throughGateway })
      await world.advance("4m")
      const { target } = (await canary()).status.run
      const { byRevision } = clients.record()
      const all = Object.values(byRevision).reduce((sum, { requests }) => sum + requests, 0)
      expect(Math.abs((100 * (byRevision[target.hash]?.requests ?? 0)) / all - 34)).toBeLessThan(3)
      await until("Failed")
      await world.advance("3m")
      expect(clients.record().failures).toEqual([])
      expect(await images()).toEqual([v1, v1, v1])
    })
  })

test("pods of a StatefulSet find each other by their own Service during a run", async () => {
  const { world, until, setImage, canary } = await story(
    "StatefulSet",
    { ...throughRoute, analysis: weights },
    { serviceName: "web" },
  )
  await setImage(v2)
  await world.until("a third", async () => (await canary()).status.canaryWeight === 34, "10m")
  const services = { group: "", version: "v1", plural: "services", kind: "Service", namespaced: true }
  expect((await world.get(services, "web", "default")).spec.selector).toEqual({ app: "web" })
  await until("Succeeded")
})
