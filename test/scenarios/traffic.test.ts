import { expect, test } from "vitest"
import { createGateway, type Json } from "#cluster-sim/index.ts"
import { deployments, pods, replicaSets } from "#controllers/in-place/resources.ts"
import { application, backend, httpRoute, service, throughGateway, trafficStory } from "../support/traffic.ts"

const v1 = "registry.example.com/web:1"
const v2 = "registry.example.com/web:2"

type Story = Awaited<ReturnType<typeof trafficStory>>

/** The application with one version, behind Services of its revision and a route. */
async function begun({
  preStopSeconds = 5,
  ...options
}: Parameters<typeof trafficStory>[0] & { preStopSeconds?: number } = {}) {
  const story = await trafficStory(options)
  const { world } = story
  await world.apply(application("web", { image: v1, preStopSeconds }), service("web", { app: "web" }))
  await isRolledOut(story)
  const hashes = await hashesOf(story)
  await world.apply(
    service("web-primary", { app: "web", "pod-template-hash": hashes[v1]! }),
    httpRoute("web", [{ backendRefs: [backend("web-primary", 100), backend("web-canary", 0)] }]),
  )
  await world.advance("5s")
  return story
}

async function isRolledOut({ world }: Story) {
  const isIt = ({ status, spec, metadata }: Json) =>
    status?.observedGeneration === metadata.generation &&
    [status.updatedReplicas, status.availableReplicas, status.replicas].every(count => count === spec.replicas)
  await world.until("the pods are there", async () => isIt(await world.get(deployments, "web", "default")))
}

/** By image: the hash of its ReplicaSet. */
async function hashesOf({ world }: Story): Promise<Record<string, string>> {
  const sets = await world.list(replicaSets)
  return Object.fromEntries(
    sets.map(({ spec }) => [
      spec.template.spec.containers[0].image,
      spec.template.metadata.labels["pod-template-hash"],
    ]),
  )
}

test("a rolling update behind a Service loses no request, on kept and on fresh connections", async () => {
  const story = await begun()
  const { world, traffic } = story
  const kept = traffic.send({ perSecond: 50, through: { service: "default/web" }, connections: "kept" })
  const fresh = traffic.send({ perSecond: 50, through: { service: "default/web" }, connections: "fresh" })
  await world.advance("10s")
  await world.apply(application("web", { image: v2 }))
  await isRolledOut(story)
  await world.advance("30s")
  const hashes = await hashesOf(story)
  for (const { record } of [kept, fresh]) {
    expect(record().failures).toEqual([])
    expect(record().byRevision[hashes[v1]!]?.requests).toBeGreaterThan(400)
    expect(record().byRevision[hashes[v2]!]?.requests).toBeGreaterThan(1000)
  }
  const uids = (await world.list(pods)).map(({ metadata }) => metadata.uid)
  expect(uids).toHaveLength(3)
  for (const uid of uids) expect(traffic.record().byPod[uid]?.requests).toBeGreaterThan(300)
})

test("pods that end at once refuse what kube-proxy still sends them", async () => {
  const story = await begun({ preStopSeconds: 0, endpointsMs: 1000 })
  const { world, traffic } = story
  const fresh = traffic.send({ perSecond: 50, through: { service: "default/web" }, connections: "fresh" })
  await world.advance("10s")
  await world.apply(application("web", { image: v2, preStopSeconds: 0 }))
  await isRolledOut(story)
  await world.advance("30s")
  const { failures, failed } = fresh.record()
  expect(failed).toBeGreaterThan(5)
  expect(new Set(failures.map(({ why }) => why))).toEqual(new Set(["Refused"]))
})

test("a route shifts requests when the gateway has taken it over, and only then", async () => {
  const gateway = createGateway({ effectMs: 3000 })
  const story = await begun({ gateway, versions: { [v2]: { errorRate: 0.5 } } })
  const { world, traffic } = story
  await world.apply(application("trial", { image: v2 }), service("web-canary", { app: "trial" }))
  await world.advance("30s")
  const clients = traffic.send({ perSecond: 100, through: throughGateway })
  await world.advance("10s")
  await world.apply(httpRoute("web", [{ backendRefs: [backend("web-primary", 70), backend("web-canary", 30)] }]))
  await world.advance("2s")
  expect(clients.record().errors).toBe(0)
  expect(clients.record().requests).toBeGreaterThan(1100)
  clients.stop()
  await world.advance("3s")
  const later = traffic.send({ perSecond: 100, through: throughGateway })
  await world.advance("30s")
  const { [v2]: hash = "" } = await hashesOf(story)
  const record = later.record()
  expect(record.failures).toEqual([])
  expect(Math.abs(record.share(hash) - 30)).toBeLessThan(3)
  expect(record.errors / (record.byRevision[hash]?.requests ?? 0)).toBeCloseTo(0.5, 1)
  traffic.setVersion(v2, { errorRate: 0 })
  const { errors } = later.record()
  await world.advance("10s")
  expect(later.record().errors - errors).toBeLessThan(5) // those in hand
})

test("a weight for a Service without pods fails its share, and the record says why", async () => {
  const { world, traffic } = await begun()
  const clients = traffic.send({ perSecond: 100, through: throughGateway })
  await world.apply(
    service("web-canary", { app: "none" }),
    httpRoute("web", [{ backendRefs: [backend("web-primary", 50), backend("web-canary", 50)] }]),
  )
  await world.advance("20s")
  const { failures, failed, requests } = clients.record()
  expect(Math.abs(failed / (failed + requests) - 0.5)).toBeLessThan(0.05)
  expect(new Set(failures.map(({ why }) => why))).toEqual(new Set(["NoEndpoint"]))
})

test("a crash of the only container cuts and refuses, until its endpoint is gone", async () => {
  const { world, traffic } = await begun({ endpointsMs: 2000, versions: { [v1]: { latencyMs: 500 } } })
  const clients = traffic.send({ perSecond: 50, through: throughGateway })
  await world.advance("10s")
  expect(clients.record().failed).toBe(0)
  const [{ metadata, spec }] = await world.list(pods)
  const { runtime } = world.cluster.node(spec.nodeName)!
  const client = runtime.connect()
  const containers = await client.listContainers()
  for (const { id, labels } of containers)
    if (labels["io.kubernetes.pod.uid"] === metadata.uid) void client.stopContainer(id, { graceSeconds: 0 })
  await world.advance("30s")
  const reasons = new Set(clients.record().failures.map(({ why }) => why))
  expect(reasons).toContain("Cut")
  expect(clients.record().failures.every(({ at }) => at < world.clock.now() - 20_000)).toBe(true)
})

test("Prometheus sees the version behind a revision, loses it with its pods, and may be down", async () => {
  const story = await begun({ versions: { [v2]: { errorRate: 0.5, latencyMs: 200 } } })
  const { world, traffic, prometheus } = story
  await world.apply(application("trial", { image: v2 }), service("web-canary", { app: "trial" }))
  traffic.send({ perSecond: 50, through: throughGateway })
  await world.apply(httpRoute("web", [{ backendRefs: [backend("web-primary", 50), backend("web-canary", 50)] }]))
  await world.advance("2m")
  const ask = (query: string): number => {
    const { body } = prometheus.answer(`/api/v1/query?query=${encodeURIComponent(query)}`)
    return Number(JSON.parse(body).data.result[0]?.value[1])
  }
  const rate = (more: string) => `sum(rate(http_requests_total{pod=~"trial-.*"${more}}[1m]))`
  expect(Math.abs(ask(`${rate(',status!~"5.*"')} / ${rate("")} * 100`) - 50)).toBeLessThan(5)
  expect(ask(`${rate("")}`)).toBeCloseTo(25, -1)
  const p99 = `histogram_quantile(0.99, sum(rate(http_request_duration_seconds_bucket{pod=~"trial-.*"}[1m])) by (le))`
  expect(ask(p99)).toBeGreaterThan(0.2)
  await world.patch(deployments, "trial", { spec: { replicas: 0 } }, "default")
  await world.advance("30s")
  expect(ask(`sum(http_requests_total{pod=~"trial-.*"}) or vector(-1)`)).toBe(-1)
  expect(ask(`sum(http_requests_total{pod=~"web-.*"})`)).toBeGreaterThan(1000)
  prometheus.stop()
  expect(prometheus.answer("/api/v1/query?query=1").status).toBe(503)
  prometheus.resume()
  expect(prometheus.answer("/api/v1/query?query=sum(").status).toBe(400)
})
