import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaryController } from "#controllers/canary/controller.ts"
import { canaries, deployments, pods, services } from "#controllers/canary/resources.ts"
import { createMeasuring } from "#controllers/measure.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import type { Egress } from "#egress/index.ts"
import istioDefinitions from "#test/support/istio-definitions.generated.json" with { type: "json" }
import type { World } from "#test/support/scenario.ts"
import { application, backend, httpRoute, service, throughGateway, trafficStory } from "#test/support/traffic.ts"
import { trafficSplits } from "#test/support/traffic-splits.ts"

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

async function story(spec: Partial<CanarySpecInput> & Json, errorRate = 0) {
  const told = await openStory(spec, errorRate)
  await told.adopt()
  return told
}

/** The Canary is not there yet: `adopt` creates it. */
async function openStory(spec: Partial<CanarySpecInput> & Json, errorRate = 0, before: Json[] = []) {
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
  const adopt = () =>
    world.apply({
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
  return { ...told, adopt, canary, until }
}

const setImage = (world: World, image: string) =>
  world.patch(deployments, "web", { spec: { template: { spec: { containers: [{ name: "web", image }] } } } }, "default")

/** The backends that the route ever had, in order. */
const routesIn = (world: World): Json[][] =>
  world.history.flatMap(({ object: { kind, metadata, spec } }) => {
    if (kind === "HTTPRoute") return [spec.rules.flatMap(({ backendRefs = [] }: Json) => backendRefs)]
    if (kind === "TrafficSplit") return [spec.backends.map(({ service, weight }: Json) => ({ name: service, weight }))]
    if (kind === "VirtualService")
      return [
        spec.http.flatMap(({ route }: Json) =>
          route.map(({ destination, weight }: Json) => ({ name: destination.host, weight })),
        ),
      ]
    if (kind === "TraefikService") return [spec.weighted.services]
    const isOurs = kind === "HTTPProxy" && metadata.name === "web"
    return isOurs ? [spec.routes.flatMap(({ services = [] }: Json) => services)] : []
  })

const withoutRepeats = <T>(all: T[]): T[] => all.filter((each, index) => each !== all[index - 1])

/** The shares of the target that the route ever had. */
const weightsIn = (world: World): number[] =>
  withoutRepeats(
    routesIn(world).map(backends => backends.findLast(({ name }: Json) => name === "web-canary")?.weight ?? 0),
  )

const backendsIn = (world: World): string[] =>
  withoutRepeats(routesIn(world).map(all => all.map(({ name, weight }) => `${name} ${weight}`).join(", ")))

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

const throughProxy = { provider: "contour", service: { port: 80, targetPort: 8080 } }

const httpProxy = (name: string, spec: Json): Json => ({
  apiVersion: "projectcontour.io/v1",
  kind: "HTTPProxy",
  metadata: { name, namespace: "default" },
  spec,
})

/** As Flagger's users have it: the one with the host includes the one that is made. */
const root = httpProxy("root", {
  virtualhost: { fqdn: "web.example.com" },
  includes: [{ name: "web", conditions: [{ prefix: "/" }] }],
})

test.each([
  ["good", 0, "Succeeded", [0, 20, 50, 100, 0]],
  ["bad", 0.5, "Failed", [0, 20, 0]],
] as const)(
  "by an HTTPProxy of Contour: a %s version, and no request fails but its own",
  async (_, rate, end, ways) => {
    const { world, traffic, until, adopt, canary } = await openStory(throughProxy, rate)
    await adopt()
    await world.until(
      "it waits for an HTTPProxy with a host",
      async () => {
        const { status } = await canary()
        return status?.conditions?.some(
          ({ reason, message }: Json) => reason === "NotAccepted" && message.includes("includes"),
        )
      },
      "5m",
    )
    await world.apply(root)
    await until("Initialized")
    await world.settle("10s")
    const clients = traffic.send({ perSecond: 20, through: throughGateway })
    await setImage(world, v2)
    await until(end)
    await world.advance("1m")
    const { failures, errors } = clients.record()
    expect({ failures, hasErrors: errors > 0 }).toEqual({ failures: [], hasErrors: rate > 0 })
    expect(weightsIn(world)).toEqual(ways)
    expect(await imagesOf(world)).toEqual(new Set([rate > 0 ? v1 : v2]))
  },
)

test("by an HTTPProxy of Contour: only requests with the header go to the new version", async () => {
  const match = [{ headers: { "x-canary": { exact: "insider" } } }]
  const abTest = { ...throughProxy, analysis: { ...analysis, stepWeights: undefined, iterations: 3, match } }
  const { world, traffic, until, adopt } = await openStory(abTest)
  await world.apply(root)
  await adopt()
  await until("Initialized")
  const all = traffic.send({ perSecond: 5, through: throughGateway })
  const insiders = traffic.send({ perSecond: 5, through: throughGateway, headers: { "x-canary": "insider" } })
  await setImage(world, v2)
  await until("Progressing")
  await world.advance("2m")
  const [revisions, ofInsiders] = [all, insiders].map(each => Object.keys(each.record().byRevision).length)
  expect({ revisions, ofInsiders }).toEqual({ revisions: 1, ofInsiders: 2 })
  await until("Succeeded")
  expect([all.record().failures, insiders.record().failures]).toEqual([[], []])
})

const virtualServices = istioDefinitions as Json[]

const throughTraefik = { provider: "traefik", service: { port: 80, targetPort: 8080 } }

/** As Flagger's users have it: the one with the host names the TraefikService that is made. */
const ingressRoute: Json = {
  apiVersion: "traefik.io/v1alpha1",
  kind: "IngressRoute",
  metadata: { name: "public", namespace: "default" },
  spec: {
    routes: [
      { kind: "Rule", match: "Host(`web.example.com`)", services: [{ kind: "TraefikService", name: "web", port: 80 }] },
    ],
  },
}

test.each([
  ["good", 0, "Succeeded", ["web-primary 100", "web-primary 80, web-canary 20", "web-primary 50, web-canary 50", "web-canary 100", "web-primary 100"]],
  ["bad", 0.5, "Failed", ["web-primary 100", "web-primary 80, web-canary 20", "web-primary 100"]],
] as const)("by a TraefikService: a %s version, and no request fails but its own", async (_, rate, end, ways) => {
  const { world, traffic, until } = await story(throughTraefik, rate)
  await world.apply(ingressRoute)
  await until("Initialized")
  await world.settle("10s")
  const clients = traffic.send({ perSecond: 20, through: throughGateway })
  await setImage(world, v2)
  await until(end)
  await world.advance("1m")
  const { failures, errors } = clients.record()
  expect({ failures, hasErrors: errors > 0 }).toEqual({ failures: [], hasErrors: rate > 0 })
  expect(backendsIn(world)).toEqual(ways)
  expect(await imagesOf(world)).toEqual(new Set([rate > 0 ? v1 : v2]))
}) // biome-ignore format: a table

test("a TraefikService that was there is divided at once and given back as it was, and no request fails", async () => {
  const own: Json = {
    apiVersion: "traefik.io/v1alpha1",
    kind: "TraefikService",
    metadata: { name: "web", namespace: "default" },
    spec: { weighted: { sticky: { cookie: { name: "stay" } }, services: [{ name: "web", port: 80, weight: 1 }] } },
  }
  const before = [service("web", { app: "web" }), own, ingressRoute]
  const { world, traffic, until, adopt } = await openStory({ ...throughTraefik, revertOnDeletion: true }, 0, before)
  await world.settle("10s")
  const clients = traffic.send({ perSecond: 200, through: throughGateway })
  await world.advance("10s")
  await adopt()
  await until("Initialized")
  await world.advance("10s")
  const { metadata } = await world.get(canaries, "web", "default")
  await Promise.all([
    world.client.delete(canaries, { name: "web", namespace: "default" }, { uid: metadata.uid }),
    world.until("it is gone", async () => (await world.list(canaries)).length === 0, "5m"),
  ])
  await world.advance("10s")
  expect(clients.record().failures).toEqual([])
  expect(backendsIn(world)).toEqual(["web 1", "web-primary 100", "web 1"])
  const kept = world.history.findLast(({ object }) => object.kind === "TraefikService")!.object
  expect({ annotations: kept.metadata.annotations, spec: kept.spec }).toEqual({ spec: own.spec })
})

test("by a TrafficSplit: its weights are those of the run, and requests through the Service are answered", async () => {
  const spec = { ...throughProxy, provider: "smi:v1alpha2", analysis: { ...analysis, metrics: [] } }
  const { world, traffic, until, adopt } = await openStory(spec, 0, [trafficSplits])
  await adopt()
  await until("Initialized")
  const clients = traffic.send({ perSecond: 20, through: { service: "default/web" }, connections: "fresh" })
  await setImage(world, v2)
  await until("Succeeded")
  await world.advance("1m")
  expect(weightsIn(world)).toEqual([0, 20, 50, 100, 0])
  expect(clients.record().failures).toEqual([])
  expect(await imagesOf(world)).toEqual(new Set([v2]))
})

test("by a VirtualService of Istio, as its project defines it: its weights are those of the run", async () => {
  const spec = { ...throughProxy, provider: "istio", analysis: { ...analysis, metrics: [] } }
  const { world, traffic, until, adopt } = await openStory(spec, 0, virtualServices)
  await adopt()
  await until("Initialized")
  const clients = traffic.send({ perSecond: 20, through: { service: "default/web" }, connections: "fresh" })
  await setImage(world, v2)
  await until("Succeeded")
  await world.advance("1m")
  expect(weightsIn(world)).toEqual([0, 20, 50, 100, 0])
  expect(clients.record().failures).toEqual([])
  expect(await imagesOf(world)).toEqual(new Set([v2]))
})

test("by a VirtualService of Istio that was there: a header, copies of requests, and it is given back", async () => {
  const own: Json = {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "web", namespace: "default" },
    spec: {
      hosts: ["web"],
      http: [{ timeout: "5s", route: [{ destination: { host: "web.default.svc.cluster.local" } }] }],
    },
  }
  const match = [{ headers: { "x-canary": { exact: "insider" } } }]
  const iterations = { ...analysis, stepWeights: undefined, metrics: [], iterations: 2 }
  for (const asked of [{ match }, { mirror: true }]) {
    const spec = { ...throughProxy, provider: "istio", revertOnDeletion: true, analysis: { ...iterations, ...asked } }
    const before = [...virtualServices, service("web", { app: "web" }), own]
    const { world, until, adopt } = await openStory(spec, 0, before)
    await adopt()
    await until("Initialized")
    await setImage(world, v2)
    await until("Succeeded")
    const written = () =>
      world.history.filter(({ object }) => object.kind === "VirtualService").map(each => each.object)
    const isAsked = ({ spec }: Json) =>
      spec.http.some((route: Json) => (asked.match ? route.match?.[0].headers["x-canary"] : route.mirror))
    expect(written().some(isAsked)).toBe(true)
    const { metadata } = await world.get(canaries, "web", "default")
    await Promise.all([
      world.client.delete(canaries, { name: "web", namespace: "default" }, { uid: metadata.uid }),
      world.until("it is gone", async () => (await world.list(canaries)).length === 0, "5m"),
    ])
    expect(written().at(-1)!.spec).toEqual(own.spec)
  }
})

const ofOwners = [
  ["HTTPRoute", throughRoute, httpRoute("web", [{ backendRefs: [backend("web", 1)] }])],
  [
    "HTTPProxy",
    throughProxy,
    httpProxy("web", {
      virtualhost: { fqdn: "web.example.com" },
      routes: [{ services: [{ name: "web", port: 80, weight: 1 }] }],
    }),
  ],
] as const

test.each(ofOwners)(
  "an %s that was there is adopted and given back as it was, and no request fails",
  async (_, spec, route) => {
    const own = [service("web", { app: "web" }), route]
    const { world, traffic, until, adopt } = await openStory({ ...spec, revertOnDeletion: true }, 0, own)
    await world.settle("10s")
    const clients = traffic.send({ perSecond: 200, through: throughGateway })
    await world.advance("10s")
    await adopt()
    await until("Initialized")
    await world.advance("10s")
    expect(clients.record().failures).toEqual([])
    expect(backendsIn(world)).toEqual([
      "web 1",
      "web 100, web-primary 0, web-canary 0",
      "web 0, web-primary 100, web-canary 0",
      "web-primary 100, web-canary 0",
    ])
    const { metadata } = await world.get(canaries, "web", "default")
    await Promise.all([
      world.client.delete(canaries, { name: "web", namespace: "default" }, { uid: metadata.uid }),
      world.until("it is gone", async () => (await world.list(canaries)).length === 0, "5m"),
    ])
    await world.advance("10s")
    expect(clients.record().failures).toEqual([])
    expect(backendsIn(world).slice(4)).toEqual([
      "web 0, web-primary 100, web-canary 0",
      "web 100, web-primary 0, web-canary 0",
      "web 1",
    ])
    const left = (await world.list(services)).map(({ metadata }) => metadata.name)
    expect(left.filter(name => name.startsWith("web"))).toEqual(["web"])
  },
)
