import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, test } from "vitest"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { createEgress, readAllowances } from "#egress/index.ts"
import { serve } from "#egress/test-servers.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { json } from "#runtime/client/test-server.ts"
import { systemClock } from "#runtime/clock.ts"
import { createMeasuring, type Round } from "./measure.ts"
import { canaryWith, type JudgingWorld, judgingWorld, roundOf, untilThere } from "./test-judging.ts"

type Metrics = NonNullable<CanarySpecInput["analysis"]["metrics"]>

const one = (value: string) => ({
  status: "success",
  data: { resultType: "vector", result: [{ metric: {}, value: [1, value] }] },
})

/** A Prometheus on loopback whose answer depends on the query. */
async function prometheus(answer: (query: string) => unknown = () => one("1")) {
  const server = await serve(({ url, body }, response) => {
    const query = new URL(url, "http://x").searchParams.get("query") ?? new URLSearchParams(body).get("query") ?? ""
    json(response, answer(query))
  })
  return {
    ...server,
    url: server.url,
    queries: () => server.seen.map(({ url }) => new URL(url, "http://x").searchParams.get("query")),
  }
}

const measured = (
  metrics: Metrics,
  world: JudgingWorld,
  { spec = {}, round = {} }: { spec?: Partial<CanarySpecInput>; round?: Partial<Round> } = {},
) => {
  const { wiring, deps, ...rest } = judgingWorld(world)
  const measuring = createMeasuring(wiring, deps)
  const asked = roundOf(canaryWith({ metrics }, spec), round)
  return { checks: untilThere(() => measuring.checksOf(asked)), measuring, asked, ...rest }
}

test("all metrics of a round are asked for once, and the Canary is looked at again when all have come", async () => {
  const { url, port, queries } = await prometheus(query => one(query.includes("bucket") ? "0.7" : "99"))
  const metrics: Metrics = [
    { name: "request-success-rate", thresholdRange: { min: 95 } },
    { name: "request-duration", thresholdRange: { max: 500 } },
    { name: "errors", query: 'sum(errors{pod=~"{{ target }}-.*"}[{{ interval }}])', threshold: 98 },
  ]
  const allow = [`shop=127.0.0.1:${port}`]
  const { checks, measuring, asked, enqueued } = measured(metrics, { allow }, { spec: { metricsServer: url } })
  expect(await checks).toEqual([
    { name: "request-success-rate", verdict: "Good", value: 99 },
    { name: "request-duration", verdict: "Good", value: 0.7 },
    { name: "errors", verdict: "Bad", value: 99, why: "99 is above 98" },
  ])
  expect(new Set(enqueued)).toEqual(new Set(["shop/web"]))
  expect(measuring.checksOf(asked)).toHaveLength(3)
  expect(queries().sort()).toEqual([
    expect.stringMatching(/^\(sum\(rate\(http_request_duration_seconds_count/),
    expect.stringMatching(/^histogram_quantile/),
    'sum(errors{pod=~"web-7d9f-.*"}[60s])',
  ])
  expect(measuring.areOpen).toBe(false)
})

test("a process that ends says nothing of questions that are under way", async () => {
  const { url, port, seen } = await serve(() => {})
  const { wiring, deps, end, enqueued } = judgingWorld({ allow: [`shop=127.0.0.1:${port}`] })
  const measuring = createMeasuring(wiring, deps)
  const round = roundOf(canaryWith({ metrics: [{ name: "errors", query: "errors" }] }, { metricsServer: url }))
  expect(measuring.checksOf(round)).toBeUndefined()
  await untilThere(() => seen[0])
  end()
  await untilThere(() => enqueued[0])
  expect(measuring.checksOf(round)).toBeUndefined()
})

test("a template of type web: the query goes with the address, and an expression finds the number in the answer", async () => {
  const server = await serve(({ url }, response) => {
    const of = new URL(url, "http://x").searchParams.get("service")
    json(response, { items: of === "web-canary" ? [{ errors: 3, all: 4 }] : [] })
  })
  const provider = {
    type: "web",
    address: `${server.url}/v1`,
    value: "response.items[0].errors / response.items[0].all",
  }
  const templates = {
    "shop/errors": { provider, query: "service={{ service }}-canary&window={{ interval }}" },
    "shop/none": { provider, query: "service=other" },
  }
  const metrics: Metrics = [
    { name: "errors", templateRef: { name: "errors" }, thresholdRange: { max: 0.5 }, interval: "30s" },
    { name: "none", templateRef: { name: "none" }, thresholdRange: { max: 0.5 }, interval: "30s" },
  ]
  const { checks } = measured(metrics, { templates, allow: [`shop=127.0.0.1:${server.port}`] })
  expect(await checks).toEqual([
    { name: "errors", verdict: "Bad", value: 0.75, why: "0.75 is above 0.5" },
    { name: "none", verdict: "NoData", why: expect.any(String) },
  ])
  expect(server.seen.map(({ url }) => url).sort()).toEqual(["/v1?service=other", "/v1?service=web-canary&window=30s"])
})

test("another round is another question, and a Canary without metrics has an answer at once", async () => {
  const { url, port, seen } = await prometheus()
  const { wiring, deps } = judgingWorld({ allow: [`shop=127.0.0.1:${port}`] })
  const measuring = createMeasuring(wiring, deps)
  const canary = canaryWith({ metrics: [{ name: "x", query: "up" }] }, { metricsServer: url })
  for (const number of [1, 2]) await untilThere(() => measuring.checksOf(roundOf(canary, { number })))
  expect(seen).toHaveLength(2)
  expect(measuring.checksOf(roundOf(canaryWith({})))).toEqual([])
})

test("a relative metric asks the same of both revisions", async () => {
  const { url, port, queries } = await prometheus(query => one(query.includes("7d9f") ? "150" : "100"))
  const metrics: Metrics = [
    { name: "latency", query: 'l{d="{{ target }}"}', relativeTo: "Source", thresholdRange: { max: 1.2 } },
  ]
  const { checks } = measured(metrics, { allow: [`shop=127.0.0.1:${port}`] }, { spec: { metricsServer: url } })
  expect(await checks).toEqual([
    { name: "latency", verdict: "Bad", value: 1.5, why: "new by running: 1.5 is above 1.2" },
  ])
  expect(queries().sort()).toEqual(['l{d="web"}', 'l{d="web-7d9f"}'])
})

test("no window reaches back before the present weight", async () => {
  const { url, port, queries } = await prometheus()
  const metrics: Metrics = [{ name: "x", query: "x[{{ interval }}]", interval: "5m" }]
  const world = { allow: [`shop=127.0.0.1:${port}`] }
  await measured(metrics, world, { spec: { metricsServer: url }, round: { atThisWeightMs: 42_000 } }).checks
  expect(queries()).toEqual(["x[42s]"])
})

test("a service that is told the window beside the query gets the same, and the keys of the Secret", async () => {
  const server = await serve((_, response) => json(response, { status: "ok", series: [{ pointlist: [[1, 7]] }] }))
  const provider = { type: "datadog", address: server.url, secretRef: { name: "keys" } }
  const { checks } = measured(
    [{ name: "x", templateRef: { name: "t" }, interval: "5m", thresholdRange: { max: 8 } }],
    {
      allow: [`shop=127.0.0.1:${server.port}`],
      templates: { "shop/t": { provider, query: "avg:errors{service:{{ service }}}" } },
      secrets: { "shop/keys": { datadog_api_key: "api", datadog_application_key: "app" } },
    },
    { round: { atThisWeightMs: 42_000 } },
  )
  expect(await checks).toEqual([{ name: "x", verdict: "Good", value: 7 }])
  const [{ url, headers }] = server.seen as [(typeof server.seen)[number]]
  const { query, from, to } = Object.fromEntries(new URL(url, "http://x").searchParams)
  expect(query).toBe("avg:errors{service:web}")
  expect(Number(to) - Number(from)).toBe(42)
  expect(Math.abs(Number(to) * 1000 - Date.now())).toBeLessThan(60_000)
  expect(headers).toMatchObject({ "dd-api-key": "api", "dd-application-key": "app" })
})

test("a template has its own address, headers and credentials", async () => {
  const { url, port, seen } = await prometheus()
  const provider = { type: "prometheus", address: url, headers: { "X-Scope": ["a"] }, secretRef: { name: "login" } }
  const templates = { "shop/errors": { provider, query: '{{ variables.way }}{a="{{ service }}-canary"}' } }
  const metrics: Metrics = [
    { name: "e", templateRef: { name: "errors" }, templateVariables: { way: "in" }, thresholdRange: { max: 1 } },
  ]
  const world = {
    allow: [`shop=127.0.0.1:${port}`],
    templates,
    secrets: { "shop/login": { username: "u", password: "p" } },
  }
  expect(await measured(metrics, world).checks).toEqual([{ name: "e", verdict: "Good", value: 1 }])
  expect(seen[0]).toMatchObject({
    url: "/api/v1/query?query=in%7Ba%3D%22web-canary%22%7D",
    headers: { "x-scope": "a", authorization: "Basic dTpw" },
  })
})

test("a shared template is asked as its own namespace, and says nothing of it", async () => {
  const { url, port } = await prometheus(() => ({ status: "error", errorType: "bad_data", error: "internal" }))
  const template = { provider: { type: "prometheus", address: url, secretRef: { name: "login" } }, query: "up" }
  const templates = {
    "monitoring/errors": template,
    "monitoring/far": { ...template, provider: { type: "prometheus", address: "http://10.9.8.7/" } },
  }
  const at = (name: string): Metrics => [{ name: "e", templateRef: { name, namespace: "monitoring" } }]
  const world: JudgingWorld = {
    allow: [`monitoring=127.0.0.1:${port}`],
    templates,
    shared: ["monitoring"],
    secrets: { "monitoring/login": { token: "t" }, "shop/login": { token: "wrong" } },
  }
  const { checks, secretsRead } = measured(at("errors"), world)
  expect(await checks).toEqual([
    { name: "e", verdict: "Error", why: "the metric service refused the query (bad_data)" },
  ])
  expect(secretsRead).toEqual(["monitoring/login"])
  expect(await measured(at("far"), world).checks).toMatchObject([
    { verdict: "Error", why: "the MetricTemplate cannot be used: its own status says why (ForbiddenAddress)" },
  ])
  expect(await measured(at("errors"), { ...world, secrets: {} }).checks).toMatchObject([
    { verdict: "Error", reason: "SecretMissing", why: "the MetricTemplate cannot be used: its own status says why" },
  ])
})

test("an administrator's metric server is for queries of all namespaces, and not a way out", async () => {
  const { url, port } = await prometheus()
  const { wiring, deps } = judgingWorld()
  const allowances = readAllowances([`*=127.0.0.1:${port}`])
  const egress = createEgress({ clock: systemClock, rules: { allowances, serviceAt: () => undefined } })
  const measuring = createMeasuring(wiring, { ...deps, metricsServer: { url, egress } })
  const metrics: Metrics = [{ name: "x", query: "up", threshold: 1 }]
  const [ours, theirs] = [canaryWith({ metrics }), canaryWith({ metrics }, { metricsServer: url }, { name: "other" })]
  expect(await untilThere(() => measuring.checksOf(roundOf(ours)))).toMatchObject([{ verdict: "Good" }])
  // The same address, named by a tenant.
  expect(await untilThere(() => measuring.checksOf(roundOf(theirs)))).toMatchObject([{ reason: "AddressForbidden" }])
})

test("a service that hangs ends with the round, and delays no other Canary", async () => {
  const server = await serve(({ url }, response) => url.includes("hang") || json(response, one("1")))
  const { wiring, deps } = judgingWorld({ allow: [`*=127.0.0.1:${server.port}`] })
  const timers: { ms: number; call: () => void }[] = []
  const after = (ms: number, call: () => void) => {
    timers.push({ ms, call })
    return () => {}
  }
  const clock = { ...systemClock, after }
  const measuring = createMeasuring({ ...wiring, clock }, deps)
  const hanging = Array.from({ length: 30 }, (_, i) => ({ name: `m${i}`, query: "hang" }))
  const [slow, quick] = [
    canaryWith({ interval: "15s", metrics: hanging }, { metricsServer: server.url }),
    canaryWith(
      { metrics: [{ name: "x", query: "up", threshold: 1 }] },
      { metricsServer: server.url },
      { namespace: "other" },
    ),
  ]
  expect(measuring.checksOf(roundOf(slow))).toBeUndefined()
  expect(await untilThere(() => measuring.checksOf(roundOf(quick)))).toMatchObject([{ verdict: "Good" }])
  await server.arrived(2)
  expect(server.seen.filter(({ url }) => url.includes("hang")).length).toBeLessThanOrEqual(6)
  const { ms, call } = timers[0]!
  expect(ms).toBe(15_000)
  call()
  const checks = await untilThere(() => measuring.checksOf(roundOf(slow)))
  expect(checks).toHaveLength(30)
  expect(new Set(checks.map(check => "why" in check && check.why))).toEqual(new Set(["no answer within 15 s"]))
})

test("templates that cannot be listed: the check names the kind and the right, and does not wait for its end", async () => {
  const { wiring, deps } = judgingWorld()
  const timers: (() => void)[] = []
  const after = (_: number, call: () => void) => {
    timers.push(call)
    return () => {}
  }
  const never = (signal?: AbortSignal) => new Promise<void>((_, reject) => signal?.addEventListener("abort", reject))
  let failure: KubeError | undefined
  const cache = {
    get: () => undefined,
    hasSynced: false,
    synced: never,
    get failure() {
      return failure
    },
  }
  const measuring = createMeasuring({ ...wiring, clock: { ...systemClock, after } }, { ...deps, templates: cache })
  const canary = canaryWith({ metrics: [{ name: "x", templateRef: { name: "t" }, threshold: 1 }] })
  const checks = (number: number) => untilThere(() => measuring.checksOf(roundOf(canary, { number })))
  const forbidden = "aim may not list metrictemplates: apply the output of aim manifests rbac"
  // The first list is refused while the check waits for it.
  expect(measuring.checksOf(roundOf(canary))).toBeUndefined()
  failure = new KubeError("Forbidden", "metrictemplates is forbidden")
  timers[0]!()
  expect(await checks(1)).toEqual([{ name: "x", verdict: "Error", why: forbidden }])
  expect(await checks(2)).toEqual([{ name: "x", verdict: "Error", why: forbidden }])
  failure = new KubeError("NotFound", "no such kind")
  expect(await checks(3)).toMatchObject([{ why: expect.stringContaining("does not serve MetricTemplate") }])
  // What may pass is waited for.
  failure = new KubeError("Unreachable", "no route")
  const open = timers.length
  expect(measuring.checksOf(roundOf(canary, { number: 4 }))).toBeUndefined()
  timers[open]!()
  expect(await checks(4)).toEqual([{ name: "x", verdict: "Error", why: "no answer within 60 s" }])
})

test.each<[string, Metrics, JudgingWorld, Partial<CanarySpecInput>, unknown]>([
  [
    "no metric server",
    [{ name: "x", query: "up" }],
    {},
    {},
    { reason: "InvalidSpec", why: expect.stringContaining("spec.metricsServer") },
  ],
  [
    "no template",
    [{ name: "x", templateRef: { name: "t" } }],
    {},
    {},
    { reason: "TemplateMissing", why: expect.stringContaining("does not exist in shop") },
  ],
  [
    "a template that is not shared",
    [{ name: "x", templateRef: { name: "t", namespace: "bank" } }],
    { templates: { "bank/t": { provider: { type: "prometheus", address: "http://p" }, query: "q" } } },
    {},
    { reason: "TemplateMissing", why: expect.stringContaining("namespace bank does not share its MetricTemplate t") },
  ],
  [
    "a service that is not here",
    [{ name: "x", templateRef: { name: "t" } }],
    { templates: { "shop/t": { provider: { type: "cloudwatch" }, query: "q" } } },
    {},
    { reason: "NotSupported", why: expect.stringContaining("prometheus") },
  ],
  [
    "no address",
    [{ name: "x", templateRef: { name: "t" } }],
    { templates: { "shop/t": { provider: { type: "prometheus" }, query: "q" } } },
    {},
    { reason: "InvalidSpec", why: expect.stringContaining("provider.address") },
  ],
  [
    "a variable that is missing",
    [{ name: "x", templateRef: { name: "t" } }],
    { templates: { "shop/t": { provider: { type: "prometheus", address: "http://p" }, query: "{{ variables.a }}" } } },
    {},
    { reason: "InvalidQuery", why: expect.stringContaining("templateVariables has no a") },
  ],
  [
    "a Secret that may not be read",
    [{ name: "x", templateRef: { name: "t" } }],
    {
      secrets: { "shop/s": null },
      templates: {
        "shop/t": { provider: { type: "prometheus", address: "http://p", secretRef: { name: "s" } }, query: "q" },
      },
    },
    {},
    { reason: "Forbidden", why: "aim may not read Secret s: run aim grant shop --secrets s" },
  ],
  [
    "a router without built-in metrics",
    [{ name: "request-duration" }],
    {},
    { provider: "linkerd", metricsServer: "http://p" },
    { reason: "NotSupported", why: expect.stringContaining("linkerd") },
  ],
])("%s", async (_, metrics, world, spec, expected) => {
  expect(await measured(metrics, world, { spec }).checks).toEqual([
    { name: metrics[0]!.name, verdict: "Error", ...(expected as object) },
  ])
})

test("few questions of a namespace are under way at once", async () => {
  let [open, most] = [0, 0]
  const egress = {
    async request() {
      most = Math.max(most, ++open)
      await nextTurn()
      open--
      return { ok: true as const, status: 200, headers: {}, body: Buffer.from(JSON.stringify(one("1"))) }
    },
  }
  const { wiring, deps } = judgingWorld()
  const measuring = createMeasuring(wiring, { ...deps, egress })
  const metrics = Array.from({ length: 32 }, (_, i) => ({ name: `m${i}`, query: "up", threshold: 1 }))
  const canary = canaryWith({ metrics }, { metricsServer: "http://p.test" })
  const checks = await untilThere(() => measuring.checksOf(roundOf(canary)))
  expect(checks.every(({ verdict }) => verdict === "Good")).toBe(true)
  expect(most).toBe(6)
})
