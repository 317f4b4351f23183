import { expect, test } from "vitest"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { validate } from "#api/validate.ts"
import { type FlaggerKind, flaggerFields, flaggerManifest, valueAt } from "#test/support/manifests/flagger-fields.ts"
import { convert } from "./index.ts"
import type { Json } from "./judged.ts"

const kinds = { Canary, MetricTemplate, AlertProvider }
const from = { apiVersion: "flagger.app/v1beta1" }

/** Converts, holds the result to our own schema, and gives its parts. */
function converted(value: Json) {
  const conversion = convert(value)
  if (!conversion.ok) throw new Error(JSON.stringify(conversion.problems))
  const object = conversion.objects[0] as Json & { kind: FlaggerKind; spec: Json; metadata: Json }
  expect(validate(kinds[object.kind], object)).toMatchObject({ errors: [], warnings: [] })
  const { remarks, allowances, notes } = conversion
  return { object, remarks, allowances, notes, said: remarks.map(({ path, message }) => `${path}: ${message}`) }
}

for (const [kind, table] of Object.entries(flaggerFields) as [FlaggerKind, Record<string, unknown[]>][])
  test(`${kind}: of every field only apiVersion changes`, () => {
    for (const [path, values] of Object.entries(table))
      for (const value of values) {
        const manifest = flaggerManifest(kind, path, value) as Json
        const { object } = converted({ ...manifest, ...from })
        expect(object).toEqual({ ...manifest, apiVersion: Canary.apiVersion })
        expect(valueAt(object.spec, path)).toEqual(value)
      }
  })

const canary = (spec: Json = {}, rest: Json = {}): Json => ({
  ...from,
  kind: "Canary",
  metadata: { name: "web", namespace: "shop" },
  spec: {
    provider: "gatewayapi:v1",
    metricsServer: "http://prometheus:9090",
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { port: 80, gatewayRefs: [{ name: "public" }] },
    analysis: { interval: "1m", threshold: 5, stepWeight: 10, maxWeight: 50 },
    ...spec,
  },
  ...rest,
})
const analysis = (more: Json) => ({ analysis: { interval: "1m", threshold: 5, stepWeight: 10, ...more } })
const leftovers =
  "spec.targetRef: Flagger's copies are not used: once the Canary is Initialized, delete Deployment web-primary and the ConfigMaps and Secrets called NAME-primary"

/** What is said beside the copies that every Canary leaves. */
const says = (value: Json) => converted(value).said.filter(line => line !== leftovers)

const cases: Record<string, [spec: Json, ...says: string[]]> = {
  "a manifest that works": [{}],
  "a provider that has no router here": [
    { provider: "linkerd" },
    "spec.provider: aim refuses it: provider linkerd has no router here",
  ],
  "no provider": [{ provider: undefined }, "spec: no provider: gatewayapi:v1 here, where Flagger takes the flag"],
  "fields that nothing reads": [
    {
      autoscalerRef: {
        apiVersion: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        name: "web",
        primaryScalerReplicas: { minReplicas: 3 },
      },
    },
    "spec.autoscalerRef.primaryScalerReplicas: has no effect: no copy of the workload",
    "spec.targetRef: Flagger's copies are not used: once the Canary is Initialized, delete Deployment web-primary, HorizontalPodAutoscaler web-primary and",
  ],
  "a step beyond the maximum": [
    analysis({ stepWeight: 20, maxWeight: 50 }),
    "spec.analysis.maxWeight: the last step ends at 50, where Flagger goes beyond it",
  ],
  "weights without a router": [
    { provider: "kubernetes", service: { port: 80 }, ...analysis({ maxWeight: 50 }) },
    "spec.analysis: weights are given by the number of pods",
  ],
  "Blue/Green without a router": [
    { provider: "kubernetes", service: { port: 80 }, ...analysis({ iterations: 5, stepWeight: undefined }) },
    "spec.analysis.iterations: the new revision answers all requests for the last interval",
  ],
  "metrics that are built in, and no Prometheus": [
    {
      metricsServer: undefined,
      ...analysis({ metrics: [{ name: "request-success-rate", thresholdRange: { min: 99 } }] }),
    },
    "spec.metricsServer: no Prometheus is named",
    "spec.analysis.metrics[0].name: measured at the gateway",
  ],
  "a query that cannot be rendered": [
    analysis({ metrics: [{ name: "own", query: "x{{ if a }}" }] }),
    "spec.analysis.metrics[0].query: aim refuses it: {{ if a }} at line 1, column 2",
  ],
  "a query and a hook about Flagger's copy": [
    analysis({
      metrics: [{ name: "own", query: 'x{pod=~"{{ target }}-primary-.*"}' }],
      webhooks: [{ name: "load", url: "http://loadtester/", metadata: { cmd: "kubectl get deploy/web-primary" } }],
    }),
    "spec.analysis.metrics[0].query: -primary is the name of a Service here and of no pods: write {{ source }}",
    "spec.analysis.webhooks[0].metadata.cmd: web-primary is a Service here and no Deployment",
  ],
  "objects of another namespace": [
    analysis({
      metrics: [{ name: "own", templateRef: { name: "own", namespace: "flagger" } }],
      alerts: [{ name: "chat", severity: "", providerRef: { name: "chat", namespace: "flagger" } }],
    }),
    "spec.analysis.alerts[0].severity: without a severity all alerts are sent",
    "spec.analysis.metrics[0].templateRef: an administrator must share namespace flagger: `kubectl annotate namespace flagger autoimagemanager.io/shared=true`",
    "spec.analysis.alerts[0].providerRef: an administrator must share namespace flagger",
  ],
  addresses: [
    analysis({
      webhooks: [
        { name: "load", url: "http://flagger-loadtester.test/" },
        { name: "gate", url: "https://gate.example.com/", disableTLS: true },
        { name: "own", url: "http://loadtester/" },
      ],
    }),
    "spec.analysis.webhooks[0].url: an administrator must allow it with --allow-egress shop=flagger-loadtester.test:80, unless it is a public host: it may be Service flagger-loadtester of namespace test",
    "spec.analysis.webhooks[1].url: an administrator must allow it with --allow-egress shop=gate.example.com:443: certificates",
  ],
}
for (const [name, [spec, ...want]] of Object.entries(cases))
  test(name, () => {
    const said = says(canary(spec))
    expect(said).toEqual(want.map(start => expect.stringContaining(start)))
  })

test("canaryAnalysis is analysis, and what is said of it has the line of the manifest", () => {
  const { analysis: steps, ...spec } = canary({ ...analysis({ stepWeight: 20, maxWeight: 50 }) }).spec as Json
  const { object, said } = converted({ ...canary(), spec: { ...spec, canaryAnalysis: steps } })
  expect(object.spec.analysis).toEqual(steps)
  expect(said).toEqual([
    expect.stringContaining("spec.canaryAnalysis.maxWeight: the last step ends at 50"),
    leftovers,
    "spec.canaryAnalysis: renamed to analysis",
  ])
  const both = converted({ ...canary(), spec: { ...spec, canaryAnalysis: { interval: "2m" }, analysis: steps } })
  expect(both.object.spec.analysis).toEqual(steps)
  expect(both.said).toContain("spec.canaryAnalysis: dropped: analysis is there too, and counts")
})

test("flags that an administrator must give are listed, and a manifest without a namespace has a word for it", () => {
  const hook = { name: "load", url: "http://flagger-loadtester.test.svc/" }
  expect(converted(canary(analysis({ webhooks: [hook, hook] }))).allowances).toEqual([
    "--allow-egress shop=flagger-loadtester.test.svc:80",
    "--allow-egress shop=flagger-loadtester.test.svc:80",
  ])
  const without = canary(analysis({ webhooks: [hook] }), { metadata: { name: "web" } })
  expect(converted(without).allowances).toEqual(["--allow-egress NAMESPACE=flagger-loadtester.test.svc:80"])
})

test("a Canary that Flagger has not at rest", () => {
  const failed = canary({}, { status: { phase: "Failed" } })
  expect(says(failed)[0]).toMatch(
    /^status.phase: Failed: Deployment web may have a template that web-primary does not run/,
  )
  expect(says(canary({}, { status: { phase: "Succeeded" } }))).toEqual([
    "status: dropped: the controller writes its own",
  ])
})

test("what Flagger refuses too is refused, with its field", () => {
  expect(convert(canary({ targetRef: { kind: "Deployment" } }))).toMatchObject({ ok: false })
})

const template = (provider: Json, query = "sum(x)"): Json => ({
  ...from,
  kind: "MetricTemplate",
  metadata: { name: "own", namespace: "shop" },
  spec: { provider, query },
})

test("templates: metric services that are not here, addresses, Secrets, queries", () => {
  expect(converted(template({ type: "prometheus", address: "http://prometheus:9090" })).said).toEqual([])
  expect(converted(template({ type: "cloudwatch", secretRef: { name: "keys" } })).said).toEqual([
    expect.stringContaining("spec.provider.type: aim refuses it: provider.type cloudwatch has no implementation here"),
    "spec.provider.secretRef: aim reads a Secret only where it is granted: run `aim grant shop --secrets keys`",
  ])
  const far = template(
    { type: "prometheus", address: "http://prometheus.istio-system:9090" },
    "{{ variables.a }}{{ b }}",
  )
  expect(converted(far)).toMatchObject({
    said: [
      expect.stringContaining("spec.query: aim refuses it: {{ b }} at line 1, column 18"),
      expect.stringContaining("spec.provider.address: an administrator must allow it"),
    ],
    allowances: ["--allow-egress shop=prometheus.istio-system:9090"],
  })
})

test("templates of other services than Prometheus: what is measured, where, and with which keys", () => {
  const grant =
    "spec.provider.secretRef: aim reads a Secret only where it is granted: run `aim grant shop --secrets keys`"
  const secretRef = { name: "keys" }
  expect(converted(template({ type: "datadog", secretRef }))).toMatchObject({
    said: [expect.stringContaining("spec.provider.type: measured over the interval of the metric"), grant],
    allowances: [],
  })
  expect(converted(template({ type: "datadog" })).said).toContain(
    "spec.provider: aim refuses it: provider.secretRef is missing: name a Secret with the keys datadog_api_key and datadog_application_key",
  )
  expect(converted(template({ type: "newrelic", secretRef })).said).toEqual([grant])
  const sockets = converted(template({ type: "splunk", address: "wss://stream.us1.signalfx.com", secretRef }))
  expect(sockets.object.spec).toMatchObject({ provider: { address: "https://stream.us1.signalfx.com" } })
  expect(sockets.said).toContain("spec.provider.address: asked by HTTP: written as http")
  const inside = converted(template({ type: "splunk", address: "http://api.monitoring.svc", secretRef }))
  expect(inside.allowances).toEqual(["--allow-egress shop=stream.monitoring.svc:80"])
})

test("a template of Graphite", () => {
  const graphite = { type: "graphite", address: "http://graphite.monitoring" }
  expect(converted(template(graphite, "target=sum(a.*)"))).toMatchObject({
    said: [expect.stringContaining("spec.query: the mean over the interval"), expect.stringContaining("must allow it")],
    allowances: ["--allow-egress shop=graphite.monitoring:80"],
  })
  expect(converted(template({ ...graphite, address: "http://graphite" }, "target=sum(a.*)&from=-5min")).said).toEqual(
    [],
  )
  expect(converted(template({ ...graphite, address: "http://graphite" }, "target=sum(a.*&from=-5min")).said).toEqual([
    "spec.query: aim refuses it: the query does not parse at line 1, column 11: ( is not closed by )",
  ])
})

test("an AlertProvider: its Secret and its proxy", () => {
  const provider = {
    ...from,
    kind: "AlertProvider",
    metadata: { name: "chat", namespace: "shop" },
    spec: { type: "slack", proxy: "http://proxy:3128", secretRef: { name: "chat" } },
  }
  expect(converted(provider).said).toEqual([
    "spec.proxy: not supported: no alert is sent until it is left out",
    "spec.secretRef: aim reads a Secret only where it is granted: run `aim grant shop --secrets chat`",
  ])
})
