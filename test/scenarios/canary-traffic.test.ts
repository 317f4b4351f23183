import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaryController } from "#controllers/canary/controller.ts"
import { createMeasuring } from "#controllers/canary/measure.ts"
import { canaries, deployments, pods, services } from "#controllers/canary/resources.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import type { Egress } from "#egress/index.ts"
import type { World } from "#test/support/scenario.ts"
import { application, backend, httpRoute, service, throughGateway, trafficStory } from "#test/support/traffic.ts"

// A Canary with its real routers and metrics, under requests at a constant rate: none fails but those that the bad version
// answered.

const v1 = "registry.example.com/web:1"
const v2 = "registry.example.com/web:2"
const apiVersion = "autoimagemanager.io/v1alpha1"

const analysis = {
  interval: "1m",
  threshold: 2,
  stepWeights: [20, 50],
  metrics: [{ name: "request-success-rate", thresholdRange: { min: 99 } }],
}

async function story(spec: Partial<CanarySpecInput> & Json, errorRate = 0, before: Json[] = []) {
  const told = await trafficStory({ versions: { [v2]: { errorRate } } })
  const { world, prometheus } = told
  await world.apply(crdOf(Canary) as Json, application("web", { image: v1, replicas: 3 }), ...before)
  const get = () => world.get(deployments, "web", "default")
  await world.until("pods are ready", async () => (await get()).status?.availableReplicas === 3, "5m")
  const egress: Egress = {
    async request({ url }) {
      const { pathname, search } = new URL(url)
      const { status, body } = await prometheus.answer(`${pathname}${search}`)
      return {
        ok: true,
        status,
        headers: {},
        body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
      }
    },
  }
  const metricsServer = { url: "http://prometheus.example.com:9090", egress }
  const none = { get: () => undefined }
  world.run([
    canaryController({
      routerOf,
      measuring: wiring =>
        createMeasuring(wiring, {
          egress,
          metricsServer,
          templates: none,
          secrets: { read: async () => ({ ok: false }) as never },
          sharing: { isShared: async () => false },
        }),
    }),
  ])
  await world.apply({
    apiVersion,
    kind: "Canary",
    metadata: { name: "web", namespace: "default" },
    spec: { targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, analysis, ...spec },
  })
  const canary = () => world.get(canaries, "web", "default")
  const until = (phase: string) =>
    world
      .until(`the Canary is ${phase}`, async () => (await canary()).status?.phase === phase, "30m")
      .catch(async error => {
        throw new Error(`${error.message}; it is ${JSON.stringify((await canary()).status)}`)
      })
  return { ...told, canary, until }
}

const setImage = (world: World, image: string) =>
  world.patch(deployments, "web", { spec: { template: { spec: { containers: [{ name: "web", image }] } } } }, "default")

/** The shares of the target that the route ever had, in order. */
function weightsIn(world: World): number[] {
  const all = world.history.flatMap(({ object }) => {
    if (object.kind !== "HTTPRoute") return []
    const backends = object.spec.rules.flatMap(({ backendRefs = [] }: Json) => backendRefs)
    return [backends.findLast(({ name }: Json) => name === "web-canary")?.weight ?? 0]
  })
  return all.filter((weight, index) => weight !== all[index - 1])
}

const imagesOf = async (world: World) =>
  new Set((await world.list(pods)).map(pod => pod.spec.containers[0].image as string))

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

test("by weights of a route: a good version is promoted, and no request fails", async () => {
  const { world, traffic, until, canary } = await story(throughRoute)
  await until("Initialized")
  await world.settle("10s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await world.advance("30s")
  await setImage(world, v2)
  await until("Succeeded")
  await world.advance("1m")
  const { failures, errors } = clients.record()
  expect({ failures, errors }).toEqual({ failures: [], errors: 0 })
  expect(weightsIn(world)).toEqual([0, 20, 50, 100, 0])
  const { status } = await canary()
  expect(status.history[0]).toMatchObject({ result: "Promoted" })
  expect(await imagesOf(world)).toEqual(new Set([v2]))
})

test("by weights of a route: a bad version is caught, and only its own answers failed", async () => {
  const { world, traffic, until, canary } = await story(throughRoute, 0.5)
  await until("Initialized")
  await world.settle("10s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await world.advance("30s")
  await setImage(world, v2)
  await until("Failed")
  await world.advance("1m")
  const { failures, errors } = clients.record()
  expect(failures).toEqual([])
  expect(errors).toBeGreaterThan(0)
  const { status } = await canary()
  expect(status.history[0]).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  expect(weightsIn(world)).toEqual([0, 20, 0])
  expect(await imagesOf(world)).toEqual(new Set([v1]))
})

test("by the share of pods: half of the pods answer half of the requests, and a weight that is not possible is refused", async () => {
  const half = { interval: "1m", threshold: 2, stepWeights: [25, 50], metrics: [] }
  const { world, traffic, until, canary } = await story({ ...byService, analysis: half })
  await until("Initialized")
  await world.settle("10s")
  await setImage(world, v2)
  await world.until("half", async () => (await canary()).status.canaryWeight === 50, "10m")
  const clients = traffic.send({ perSecond: 20, through: { service: "default/web" }, connections: "fresh" })
  await world.advance("50s")
  expect((await canary()).status.canaryWeight).toBe(50)
  const { byRevision } = clients.record()
  const [least = 0, most = 0] = Object.values(byRevision)
    .map(({ requests }) => requests)
    .sort((a, b) => a - b)
  expect(least / (least + most)).toBeGreaterThan(0.45)

  const refused = await story({ ...byService, analysis: { ...half, stepWeights: [80] } })
  const reason = async () =>
    (await refused.canary()).status?.conditions?.find(({ type }: Json) => type === "Stalled")?.reason
  await refused.world.until("it is refused", async () => (await reason()) === "WeightNotPossible", "1m")
})

type Way = { spec: Json; through: Parameters<Awaited<ReturnType<typeof story>>["traffic"]["send"]>[0]["through"] }
const noWeights = { interval: "1m", threshold: 2, iterations: 2, metrics: [] }
const ways: Record<string, Way> = {
  "Blue/Green through a route": { spec: { ...throughRoute, analysis: noWeights }, through: throughGateway },
  "Blue/Green with copies of requests": {
    spec: { ...throughRoute, analysis: { ...noWeights, mirror: true } },
    through: throughGateway,
  },
  "matching requests": {
    spec: {
      ...throughRoute,
      analysis: { ...noWeights, match: [{ headers: { "x-canary": { exact: "insider" } } }] },
    },
    through: throughGateway,
  },
  "Blue/Green through a Service alone": {
    spec: { ...byService, analysis: noWeights },
    through: { service: "default/web" },
  },
  "the share of pods behind a Service": {
    spec: { ...byService, analysis: { interval: "1m", threshold: 2, stepWeights: [25, 50], metrics: [] } },
    through: { service: "default/web" },
  },
  "without analysis": { spec: { ...throughRoute, skipAnalysis: true }, through: throughGateway },
  "a promotion in steps": {
    spec: {
      ...throughRoute,
      analysis: { interval: "1m", threshold: 2, stepWeights: [50], stepWeightPromotion: 25, metrics: [] },
    },
    through: throughGateway,
  },
}

for (const [name, { spec, through }] of Object.entries(ways))
  for (const connections of ["kept", "fresh"] as const)
    test(`by ${name}, on ${connections} connections: promoted, and no request fails`, async () => {
      const { world, traffic, until } = await story(spec)
      await until("Initialized")
      await world.settle("10s")
      const clients = traffic.send({ perSecond: 20, through, connections })
      await world.advance("30s")
      await setImage(world, v2)
      await until("Succeeded")
      await world.advance("1m")
      const { failures, errors } = clients.record()
      expect({ failures, errors }).toEqual({ failures: [], errors: 0 })
      expect(await imagesOf(world)).toEqual(new Set([v2]))
      expect(await world.list(deployments)).toHaveLength(1)
    })

test("a Canary that is deleted gives Service and route back as they were, and no request fails", async () => {
  const own = [service("web", { app: "web" }), httpRoute("web", [{ backendRefs: [backend("web", 1)] }])]
  const { world, traffic, until } = await story({ ...throughRoute, revertOnDeletion: true }, 0, own)
  await until("Initialized")
  await world.settle("10s")
  const clients = traffic.send({ perSecond: 200, through: throughGateway })
  await world.advance("10s")
  const { metadata } = await world.get(canaries, "web", "default")
  await Promise.all([
    world.client.delete(canaries, { name: "web", namespace: "default" }, { uid: metadata.uid }),
    world.until("it is gone", async () => (await world.list(canaries)).length === 0, "5m"),
  ])
  await world.advance("10s")
  expect(clients.record().failures).toEqual([])
  const left = (await world.list(services)).map(({ metadata }) => metadata.name)
  expect(left.filter(name => name.startsWith("web"))).toEqual(["web"])
})
