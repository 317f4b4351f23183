import { expect, test } from "vitest"
import { seededRandom } from "#runtime/random.ts"
import type { Json, Obj } from "../object.ts"
import { type ClientsOptions, createNetwork, type Network, type Version } from "./network.ts"

const seconds = 1000
const route = (rules: Json[], more: Json = {}) => ({
  gateways: ["infra/gw"],
  route: {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "web", namespace: "shop", creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: { rules, ...more },
  } as unknown as Obj,
})
const ref = (name: string, weight: number, filters?: Json[]) => ({
  name,
  port: 80,
  weight,
  ...(filters && { filters }),
})
const through = { gateway: "infra/gw" }

/** Two versions, `a` behind shop/web-primary and `b` behind shop/web-canary, two pods each; shop/web is of all four. */
function network(rules: Json[] = [], versions: Record<string, Partial<Version>> = {}, seed = 1) {
  const told = createNetwork(0, seededRandom(seed))
  const pods = ["a-0", "a-1", "b-0", "b-1"]
  for (const uid of pods) listen(told, uid, versions[uid[0]!])
  told.put(0, state => {
    const of = (letter: string) => pods.filter(uid => uid.startsWith(letter)).map(endpoint)
    state.services.set("shop/web-primary", of("a"))
    state.services.set("shop/web-canary", of("b"))
    state.services.set("shop/web", pods.map(endpoint))
    state.routes = [route(rules)]
  })
  return told
}

const endpoint = (uid: string) => ({ uid, ready: true, serving: true })
function listen(told: Network, uid: string, version: Partial<Version> = {}, isEnding = false) {
  const target = { labels: { pod: uid } }
  const all = { errorRate: 0, latencyMs: 10, ...version }
  const server = { uid, revision: uid[0]!, version: () => all, isEnding, target }
  told.listen(server)
  return server
}

/** 1,000 requests in ten seconds. */
function ask(told: Network, options: Partial<ClientsOptions> = {}) {
  const clients = told.send(0, { perSecond: 100, through, ...options })
  told.advance(10 * seconds)
  clients.stop()
  told.advance(20 * seconds)
  return clients.record()
}

test("weights divide requests, and the same seed divides them alike", () => {
  const rules = [{ backendRefs: [ref("web-primary", 90), ref("web-canary", 10)] }]
  const record = ask(network(rules))
  expect(record.requests).toBe(1000)
  expect(record.failed).toBe(0)
  expect(Math.abs(record.share("b") - 10)).toBeLessThan(3)
  expect(Object.keys(record.byPod).sort()).toEqual(["a-0", "a-1", "b-0", "b-1"])
  expect(ask(network(rules)).byPod).toEqual(record.byPod)
  expect(ask(network(rules, {}, 2)).byPod).not.toEqual(record.byPod)
})

test("a version that fails is recorded by revision, and is no failed request", () => {
  const rules = [{ backendRefs: [ref("web-primary", 50), ref("web-canary", 50)] }]
  const record = ask(network(rules, { b: { errorRate: 0.5 } }))
  expect(record.failed).toBe(0)
  expect(record.byRevision.a?.errors).toBe(0)
  const { requests = 0, errors = 0 } = record.byRevision.b ?? {}
  expect(errors / requests).toBeCloseTo(0.5, 1)
  expect(record.errors).toBe(errors)
})

const matched: Record<string, { match: Json; request: Partial<ClientsOptions> }> = {
  "an exact header": {
    match: { headers: [{ name: "X-Canary", value: "always" }] },
    request: { headers: { "x-canary": "always" } },
  },
  "a cookie, by a regular expression": {
    match: {
      headers: [{ type: "RegularExpression", name: "Cookie", value: "^(.*?;)?\\s*(canary=always)\\s*(;.*)?$" }],
    },
    request: { cookies: { other: "1", canary: "always" } },
  },
  "a query parameter": { match: { queryParams: [{ name: "v", value: "2" }] }, request: { query: { v: "2" } } },
  "a longer path": { match: { path: { type: "PathPrefix", value: "/new" } }, request: { path: "/new/page" } },
}
for (const [name, { match, request }] of Object.entries(matched))
  test(`requests with ${name} go to the rule that matches them, others do not`, () => {
    const rules = [
      { matches: [{ path: { type: "PathPrefix", value: "/" } }], backendRefs: [ref("web-primary", 1)] },
      { matches: [match], backendRefs: [ref("web-canary", 1)] },
    ]
    expect(ask(network(rules), request).share("b")).toBe(100)
    expect(ask(network(rules)).share("b")).toBe(0)
  })

test("answers to copies reach no client", () => {
  const mirror = [{ type: "RequestMirror", requestMirror: { backendRef: { name: "web-canary", port: 80 } } }]
  const record = ask(network([{ backendRefs: [ref("web-primary", 1)], filters: mirror }], { b: { errorRate: 1 } }))
  expect(record).toMatchObject({ requests: 1000, errors: 0, failed: 0 })
  expect(record.byRevision.b).toEqual({ requests: 0, errors: 0, mirrored: 1000 })
})

test("a cookie that is set pins a client, and one that expires lets it go", () => {
  const header = (value: string) => [
    { type: "ResponseHeaderModifier", responseHeaderModifier: { add: [{ name: "Set-Cookie", value }] } },
  ]
  const cookie = [{ headers: [{ type: "RegularExpression", name: "Cookie", value: ".*canary=b.*" }] }]
  const weighted = { backendRefs: [ref("web-primary", 50), ref("web-canary", 50, header("canary=b; Max-Age=60"))] }
  const told = network([
    { matches: cookie, backendRefs: [ref("web-canary", 1)] },
    { ...weighted, matches: [{}] },
  ])
  const first = told.send(0, { perSecond: 100, clients: 10, through })
  told.advance(20 * seconds)
  // Ten clients, each pinned when it has met the canary once.
  expect(first.record().share("b")).toBeGreaterThan(95)
  told.put(20 * seconds, state => {
    state.routes = [
      route([
        { matches: cookie, backendRefs: [ref("web-primary", 1, header("canary=b; Max-Age=-1"))] },
        { matches: [{}], backendRefs: [ref("web-primary", 1)] },
      ]),
    ]
  })
  const before = first.record().byRevision.b?.requests ?? 0
  told.advance(40 * seconds)
  expect((first.record().byRevision.b?.requests ?? 0) - before).toBeLessThan(5)
})

test("what is missing is named: route, Service, endpoint, pod", () => {
  expect(ask(network([{ matches: [{ path: { type: "Exact", value: "/other" } }] }])).failures[0]?.why).toBe("NoRoute")
  expect(ask(network([{ backendRefs: [ref("web-gone", 1)] }])).failures[0]?.why).toBe("NoBackend")
  expect(ask(network([{ backendRefs: [ref("web-primary", 0)] }])).failures[0]?.why).toBe("NoBackend")
  const told = network([{ backendRefs: [ref("web-primary", 1)] }])
  told.put(0, ({ services }) => void services.set("shop/web-primary", []))
  expect(ask(told).failures[0]?.why).toBe("NoEndpoint")
  const gone = network([{ backendRefs: [ref("web-primary", 1)] }])
  gone.advance(0)
  gone.end("a-0")
  const record = ask(gone)
  expect(record.failures[0]?.why).toBe("Refused")
  expect(record.failed).toBeGreaterThan(400)
  expect(record.failed + record.requests).toBe(1000)
})

test("a crash cuts the requests in hand; a pod that was told to end answers them", () => {
  for (const isEnding of [false, true]) {
    const told = createNetwork(0, seededRandom(1))
    const server = listen(told, "a-0", { latencyMs: 1000 })
    told.put(0, ({ services }) => void services.set("shop/web", [endpoint("a-0")]))
    const clients = told.send(0, { perSecond: 10, through: { service: "shop/web" } })
    told.advance(5 * seconds)
    clients.stop()
    server.isEnding = isEnding
    told.end("a-0")
    told.advance(10 * seconds)
    const { requests, failed, failures } = clients.record()
    expect(requests + failed).toBe(50)
    expect(failed > 0).toBe(!isEnding)
    expect(failures.every(({ why, pod }) => why === "Cut" && pod === "a-0")).toBe(true)
  }
})

test("a kept connection stays with its pod when the Service turns elsewhere, and moves on when the pod ends", () => {
  const told = network()
  told.advance(0)
  const service = { service: "shop/web-primary" }
  const kept = told.send(0, { perSecond: 100, clients: 4, through: service, connections: "kept" })
  const fresh = told.send(0, { perSecond: 100, through: service, connections: "fresh" })
  told.advance(10 * seconds)
  told.put(10 * seconds, ({ services }) => void services.set("shop/web-primary", ["b-0", "b-1"].map(endpoint)))
  told.advance(20 * seconds)
  expect(kept.record().share("b")).toBe(0)
  expect(Math.abs(fresh.record().share("b") - 50)).toBeLessThan(1)
  for (const uid of ["a-0", "a-1"]) told.end(uid)
  told.advance(30 * seconds)
  expect(kept.record().failed).toBeLessThanOrEqual(2) // at most those in hand
  expect(Math.abs(kept.record().share("b") - 33)).toBeLessThan(2)
})

test("kube-proxy falls back to pods that end and still serve, a gateway does not", () => {
  const told = network([{ backendRefs: [ref("web-primary", 1)] }])
  told.put(0, ({ services }) => void services.set("shop/web-primary", [{ uid: "a-0", ready: false, serving: true }]))
  expect(ask(told, { through: { service: "shop/web-primary" } }).failed).toBe(0)
  expect(ask(network(), { through: { service: "shop/none" } }).failures[0]?.why).toBe("NoBackend")
  const other = network([{ backendRefs: [ref("web-primary", 1)] }])
  other.put(0, ({ services }) => void services.set("shop/web-primary", [{ uid: "a-0", ready: false, serving: true }]))
  expect(ask(other).failures[0]?.why).toBe("NoEndpoint")
})

test("a request that takes longer than the route allows is timed out", () => {
  const rules = [{ backendRefs: [ref("web-canary", 1)], timeouts: { request: "500ms" } }]
  expect(ask(network(rules, { b: { latencyMs: 400 } })).failed).toBe(0)
  expect(ask(network(rules, { b: { latencyMs: 1000 } })).failures[0]).toMatchObject({ why: "TimedOut", revision: "b" })
})

test("counters of the gateway and of the application show what was answered", () => {
  const told = network([{ backendRefs: [ref("web-canary", 1)] }], { b: { errorRate: 0.25, latencyMs: 100 } })
  const record = ask(told)
  const sum = (name: string, with_: Record<string, string>) =>
    [...told.counters.readings()]
      .filter(
        ({ labels }) =>
          labels.__name__ === name && Object.entries(with_).every(([key, value]) => labels[key] === value),
      )
      .reduce((total, { value }) => total + value, 0)
  const cluster = { envoy_cluster_name: "shop_web-canary_80" }
  expect(sum("envoy_cluster_upstream_rq", { ...cluster, envoy_response_code: "500" })).toBe(record.errors)
  expect(sum("envoy_cluster_upstream_rq", cluster)).toBe(1000)
  expect(sum("http_requests_total", { status: "500" })).toBe(record.errors)
  expect(sum("http_request_duration_seconds_count", {})).toBe(1000)
  // From 80 to 120 ms: about half of them up to 100.
  expect(sum("http_request_duration_seconds_bucket", { le: "0.1" }) / 1000).toBeCloseTo(0.5, 1)
  expect(sum("http_request_duration_seconds_bucket", { le: "0.25" })).toBe(1000)
  expect(sum("envoy_cluster_upstream_rq_time_bucket", { le: "50" })).toBe(0)
})
