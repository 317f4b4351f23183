import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { byVersion, sendTraffic, shareOf, startTraffic, type TrafficResult } from "#test/support/clients.ts"
import {
  addressesOf,
  clusterPrometheus,
  gatewayAddress,
  hostOf,
  pushShop,
  readyPods,
  routeShop,
  shopDeployment,
  shopService,
  untilEnvoyReaches,
  useAddOns,
  weighted,
} from "#test/support/data-planes.ts"
import { floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import { handOver } from "#test/support/hand-over.ts"

// What carries requests on the real floor, without a controller of ours: Envoy behind Contour for Gateway API, kube-proxy
// for Services, and Prometheus that counts. What a Canary is tested with must hold by itself first.

useAddOns("proxy", "gateway", "prometheus")

/** For all tests but the last: the versions v1, v2 and bad, two pods of each, each with a Service of its own. */
const namespace = "data-planes"
const versions = ["v1", "v2", "bad"] as const
const serviceOf = { v1: "shop-primary", v2: "shop-next", bad: "shop-canary" } as const
const badRate = 0.2
let images: Record<(typeof versions)[number], string>
/** The pods of each version. */
const pods = {} as Record<(typeof versions)[number], Json[]>

beforeAll(async () => {
  const { api } = floor()
  const [v1, v2, bad] = await Promise.all([
    ...["v1", "v2"].map(tag => pushShop(`shop:${tag}`)),
    pushShop("shop:bad", { ERROR_RATE: String(badRate) }),
  ])
  images = { v1: v1!, v2: v2!, bad: bad! }
  await api.create("/api/v1/namespaces", { metadata: { name: namespace } })
  await until("its account", () => api.find(`/api/v1/namespaces/${namespace}/serviceaccounts/default`))
  for (const version of versions) {
    const labels = { version }
    const deployment = shopDeployment(`shop-${version}`, images[version], { labels })
    await api.create(`/apis/apps/v1/namespaces/${namespace}/deployments`, deployment)
    await api.create(`/api/v1/namespaces/${namespace}/services`, shopService(serviceOf[version], labels))
  }
  for (const version of versions) pods[version] = await readyPods(namespace, 2, { version })
})
afterAll(() => floor().api.remove(`/api/v1/namespaces/${namespace}`))

const toGateway = (namespace: string, headers: Record<string, string> = {}) => ({
  addresses: [gatewayAddress],
  headers: { host: hostOf(namespace), ...headers },
})

describe("a route of Gateway API", () => {
  const route = async (...rules: Json[]) => {
    await routeShop(namespace, rules)
    const names = rules.flatMap(({ backendRefs }) => backendRefs.map(({ name }: Json) => name))
    for (const version of versions)
      if (names.includes(serviceOf[version]))
        await untilEnvoyReaches(namespace, serviceOf[version], addressesOf(pods[version]))
  }

  test.for([0, 8])("splits 90 to 10, on %i kept connections", async connections => {
    await route(weighted({ [serviceOf.v1]: 90, [serviceOf.v2]: 10 }))
    const load = { perSecond: 400, connections, requestsMost: 2000 }
    const result = await sendTraffic({ ...toGateway(namespace), ...load })
    expect(result).toMatchObject({ sent: 2000, failures: [] })
    // Chance decides each request: of 2000, the share is off by three points once in a hundred thousand times.
    expect(Math.abs(shareOf("v2", result) - 10)).toBeLessThan(3)
    expect(result.answers).toHaveLength(4) // each pod of both versions
  })

  test("goes by a header, and by a cookie among others", async () => {
    const to = (name: string) => [{ name, port: 80 }]
    const cookie = { type: "RegularExpression", name: "Cookie", value: "(^|.*; )canary=always(;.*|$)" }
    await route(
      { matches: [{ headers: [{ name: "x-canary", value: "yes" }] }], backendRefs: to(serviceOf.v2) },
      { matches: [{ headers: [cookie] }], backendRefs: to(serviceOf.v2) },
      { backendRefs: to(serviceOf.v1) },
    )
    const send = async (headers: Record<string, string>) =>
      byVersion(await sendTraffic({ ...toGateway(namespace, headers), perSecond: 100, requestsMost: 20 }))
    expect(await send({})).toEqual({ v1: 20 })
    expect(await send({ "x-canary": "yes" })).toEqual({ v2: 20 })
    expect(await send({ "x-canary": "no" })).toEqual({ v1: 20 })
    expect(await send({ cookie: "a=b; canary=always; c=d" })).toEqual({ v2: 20 })
    expect(await send({ cookie: "a=b; canary=never" })).toEqual({ v1: 20 })
  })

  test("mirrors every request, and no client gets an answer to a mirrored one", async () => {
    const mirror = { type: "RequestMirror", requestMirror: { backendRef: { name: serviceOf.v2, port: 80 } } }
    await route({ filters: [mirror], backendRefs: [{ name: serviceOf.v1, port: 80 }] })
    await untilEnvoyReaches(namespace, serviceOf.v2, addressesOf(pods.v2))
    const before = await answeredBy(pods.v2)
    const result = await sendTraffic({ ...toGateway(namespace), perSecond: 100, requestsMost: 200 })
    expect(byVersion(result)).toEqual({ v1: 200 })
    expect(result.failures).toEqual([])
    await until("the mirrored ones are counted", async () => (await answeredBy(pods.v2)) >= before + 200)
    expect(await answeredBy(pods.v2)).toBe(before + 200)
  })

  test("sets a cookie for each backend", async () => {
    const backend = (name: string, weight: number) => {
      const add = [{ name: "Set-Cookie", value: `backend=${name}; Max-Age=60` }]
      return { name, port: 80, weight, filters: [{ type: "ResponseHeaderModifier", responseHeaderModifier: { add } }] }
    }
    await route({ backendRefs: [backend(serviceOf.v1, 50), backend(serviceOf.v2, 50)] })
    const result = await sendTraffic({ ...toGateway(namespace), perSecond: 100, requestsMost: 100 })
    expect(result.failures).toEqual([])
    const counts = byVersion(result)
    expect(Object.keys(counts).sort()).toEqual(["v1", "v2"])
    const wanted = (["v1", "v2"] as const).map(version => ({
      ...{ cookie: `backend=${serviceOf[version]}; Max-Age=60`, version, count: counts[version] },
    }))
    expect(result.cookies).toEqual(expect.arrayContaining(wanted))
    expect(result.cookies).toHaveLength(2)
  })

  test("is counted by Prometheus, in the words of Flagger's queries", async () => {
    await route(weighted({ [serviceOf.v1]: 50, [serviceOf.bad]: 50 }))
    const prometheus = await clusterPrometheus()
    // The first scrape must come before the requests: a series that begins with a value has not grown.
    const warm = await sendTraffic({ ...toGateway(namespace), perSecond: 100, requestsMost: 40 })
    expect(warm.failures).toEqual([])
    const cluster = `envoy_cluster_name=~"${namespace}_shop-canary_[0-9a-zA-Z-]+"`
    await until(
      "Envoy is scraped",
      async () => (await prometheus.query(`envoy_cluster_upstream_rq{${cluster}}`)).length,
    )

    const load = startTraffic({ ...toGateway(namespace), perSecond: 50, secondsMost: 120 })
    const rate = (series: string) => `sum(rate(${series}[30s]))`
    const byCode = (labels: string) => rate(`envoy_cluster_upstream_rq{${labels}}`)
    const success = `${byCode(`${cluster}, envoy_response_code!~"5.*"`)} / ${byCode(`${cluster},`)} * 100`
    const quantile = (buckets: string) => `histogram_quantile(0.99, sum(rate(${buckets}[30s])) by (le))`
    const ask = async (expr: string) => {
      const found = await prometheus.query(expr)
      expect(found.length).toBeLessThanOrEqual(1)
      return found[0]?.value ?? Number.NaN
    }
    const gives = (what: string, expr: string, isIt: (value: number) => boolean) =>
      until(`${what}: ${expr}`, async () => isIt(await ask(expr)), { withinMs: 60_000 })
    const wanted = 100 * (1 - badRate)
    const isWanted = (value: number) => Math.abs(value - wanted) < 2
    await gives("successes at the gateway", success, isWanted)
    const time = quantile(`envoy_cluster_upstream_rq_time_bucket{${cluster},}`)
    await gives("milliseconds at the gateway", time, value => value > 0 && value < 5000)

    const own = `namespace="${namespace}", pod=~"shop-bad-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)"`
    const counted = (labels: string) => rate(`http_request_duration_seconds_count{${labels}}`)
    await gives("successes at the pods", `${counted(`${own}, status!~"5.*"`)} / ${counted(own)} * 100`, isWanted)
    const seconds = quantile(`http_request_duration_seconds_bucket{${own}}`)
    await gives("seconds at the pods", seconds, value => value > 0 && value < 5)
    const result = await load.stop()
    expect(result.failures).toEqual([])
    expectErrorsOf(result, "bad")
  })
})

/** How many requests of clients these pods have answered, by their own count. */
async function answeredBy(pods: Json[]): Promise<number> {
  const counts = await Promise.all(
    pods.map(async ({ metadata: { name } }) => {
      const path = `/api/v1/namespaces/${namespace}/pods/${name}:8080/proxy/metrics`
      const lines = (await floor().api.text(path)).matchAll(/^http_requests_total{.*} (\d+)$/gm)
      return [...lines].reduce((sum, [, count]) => sum + Number(count), 0)
    }),
  )
  return counts.reduce((sum, each) => sum + each, 0)
}

function expectErrorsOf({ answers }: TrafficResult, version: string) {
  const failed = answers.filter(({ status }) => status !== 200)
  expect(new Set(failed.map(each => each.version))).toEqual(new Set([version]))
}

test("a Service whose selector changes loses no request, on kept and on fresh connections", async () => {
  const { api } = floor()
  const path = `/api/v1/namespaces/${namespace}/services`
  const { spec } = await api.create(path, shopService("shop", { version: "v1" }))
  const address = { addresses: [`${spec.clusterIP}:80`] }
  const ask = async () => byVersion(await sendTraffic({ ...address, perSecond: 100, requestsMost: 20 }))
  await until("kube-proxy has the Service", async () => (await ask()).v1 === 20)
  const clients = [0, 8].map(connections => startTraffic({ ...address, connections, perSecond: 50 }))
  for (const client of clients) await client.more(50)
  await api.patch(`${path}/shop`, { spec: { selector: { version: "v2" } } })
  await until("new connections reach v2", async () => (await ask()).v2 === 20)
  for (const client of clients) await client.more(50)
  const [fresh, kept] = await Promise.all(clients.map(client => client.stop()))
  expect([fresh!.failures, kept!.failures]).toEqual([[], []])
  expect(byVersion(fresh!)).toMatchObject({ v1: expect.any(Number), v2: expect.any(Number) })
  // The kernel remembers a connection, so one that is kept stays where it is.
  expect(Object.keys(byVersion(kept!))).toEqual(["v1"])
})

test("pods reach a Service by its address, too", async () => {
  const { api, pushImage } = floor()
  const { reference: image } = await pushImage("asking:v1")
  const { spec } = await api.get(`/api/v1/namespaces/${namespace}/services/${serviceOf.v1}`)
  const command = ["sh", "-c", `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 30 ${spec.clusterIP} 80`]
  const path = `/api/v1/namespaces/${namespace}/pods`
  const container = { name: "ask", image, command }
  await api.create(path, { metadata: { name: "ask" }, spec: { restartPolicy: "Never", containers: [container] } })
  const hasEnded = async () => ["Succeeded", "Failed"].includes((await api.get(`${path}/ask`)).status.phase)
  await until("it has ended", hasEnded)
  expect(await api.text(`${path}/ask/log`)).toContain('"version":"v1"')
})

test("a ReplicaSet is handed over under load: no request fails, and the tested pods stay", async () => {
  const namespace = await uniqueNamespace()
  const { api, kubectlRun } = floor()
  const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const services = `/api/v1/namespaces/${namespace}/services`
  const hashLabel = "pod-template-hash"
  const hashOf = (pod: Json) => pod.metadata.labels[hashLabel]
  const size = 3
  await api.create(deployments, shopDeployment("shop", images.v1, { replicas: size }))
  const sourcePods = await readyPods(namespace, size, { app: "shop" })
  const source = { [hashLabel]: hashOf(sourcePods[0]) }
  await api.create(services, shopService("shop-primary", source))
  await api.create(services, shopService("shop-canary", { [hashLabel]: "none" }))
  const routeTo = (primary: number, canary: number) =>
    routeShop(namespace, [weighted({ "shop-primary": primary, "shop-canary": canary })])
  await routeTo(100, 0)
  await untilEnvoyReaches(namespace, "shop-primary", addressesOf(sourcePods))
  const clients = [0, 4].map(connections => startTraffic({ ...toGateway(namespace), connections, perSecond: 25 }))
  const more = () => Promise.all(clients.map(client => client.more(20)))
  await more()

  // The template is held, and a Deployment beside runs it.
  const template = { spec: { containers: [{ name: "shop", image: images.v2 }] } }
  await api.patchStrategically(`${deployments}/shop`, { spec: { paused: true, template } })
  await api.create(deployments, shopDeployment("shop-2", images.v2, { replicas: 1 }))
  const set = await until("the ReplicaSet of the trial", async () => {
    const { items } = await api.get(`/apis/apps/v1/namespaces/${namespace}/replicasets`)
    return items.find(({ metadata }: Json) => metadata.ownerReferences[0].name === "shop-2")
  })
  const target = { [hashLabel]: set.metadata.labels[hashLabel] }
  const canarySelects = async (count: number) => {
    const pods = await readyPods(namespace, count, target)
    await untilEnvoyReaches(namespace, "shop-canary", addressesOf(pods))
    return pods
  }
  await api.patch(`${services}/shop-canary`, { spec: { selector: target } })
  await canarySelects(1)
  await routeTo(90, 10)
  await more()
  await api.patch(`${deployments}/shop-2`, { spec: { replicas: size } })
  const tested = await canarySelects(size)
  await routeTo(50, 50)
  await more()
  await routeTo(0, 100)
  await more()
  // The roles change places while the side whose selector changes has no weight.
  await api.patch(`${services}/shop-primary`, { spec: { selector: target } })
  await untilEnvoyReaches(namespace, "shop-primary", addressesOf(tested))
  await routeTo(100, 0)
  const steps = await handOver(namespace, { user: "shop", trial: "shop-2", set: set.metadata.name })
  expect(steps).toEqual(["pauseTrial", "moveSet", "deleteTrial", "resumeUser"])
  await kubectlRun("-n", namespace, "rollout", "status", "deploy/shop", "--timeout=120s")
  await until("the old pods are gone", async () => {
    const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods`)
    return items.length === size
  })
  await more()

  const results = await Promise.all(clients.map(client => client.stop()))
  for (const result of results) {
    expect(result.failures).toEqual([])
    expect(byVersion(result)).toEqual({ v1: expect.any(Number), v2: expect.any(Number) })
  }
  const uids = (pods: Json[]) => pods.map(({ metadata }) => metadata.uid).sort()
  expect(uids(await readyPods(namespace, size, { app: "shop" }))).toEqual(uids(tested))
  const { items } = await api.get(deployments)
  expect(items.map(({ metadata }: Json) => metadata.name)).toEqual(["shop"])
})
