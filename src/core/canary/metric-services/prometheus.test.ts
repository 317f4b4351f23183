import { expect, test } from "vitest"
import { metricServiceOf } from "./index.ts"
import type { MetricProvider } from "./service.ts"

const provider = (more: Partial<MetricProvider> = {}): MetricProvider => ({
  type: "prometheus",
  address: "http://prometheus:9090",
  insecureSkipVerify: false,
  ...more,
})
const service = metricServiceOf({ type: "prometheus" })
if (!("requestOf" in service)) throw new Error("Prometheus is here")
const request = (more: Partial<MetricProvider> = {}, credentials?: Record<string, string>, query = "up") =>
  service.requestOf({
    provider: provider(more),
    query,
    window: { from: 0, to: 0 },
    ...(credentials && { credentials: new Map(Object.entries(credentials)) }),
  })

test.each([
  ["http://prometheus:9090", "http://prometheus:9090/api/v1/query?query=up"],
  ["http://prometheus:9090/", "http://prometheus:9090/api/v1/query?query=up"],
  ["https://mimir.test/prometheus/", "https://mimir.test/prometheus/api/v1/query?query=up"],
  ["https://thanos.test/?dedup=true", "https://thanos.test/api/v1/query?dedup=true&query=up"],
])("%s", (address, url) => expect(request({ address })).toMatchObject({ method: "GET", url, headers: {} }))

test("a query is sent on one line, and cannot add parameters", () => {
  expect(request({}, undefined, ' sum(\n  up{a="b&time=0#"}\n) ')).toMatchObject({
    url: "http://prometheus:9090/api/v1/query?query=sum%28+up%7Ba%3D%22b%26time%3D0%23%22%7D+%29",
  })
})

test("a long query is sent as a form", () => {
  expect(request({ headers: { "Content-Type": ["text/plain"] } }, undefined, "a".repeat(7000))).toEqual({
    url: "http://prometheus:9090/api/v1/query",
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: `query=${"a".repeat(7000)}`,
  })
})

test("credentials: a token, or a user with a password", () => {
  const headers = { "X-Scope": ["a"], Authorization: ["own"] }
  expect(request({ headers })).toMatchObject({ headers })
  expect(request({ headers }, { token: "abc\n", username: "u" })).toMatchObject({
    headers: { "X-Scope": ["a"], authorization: "Bearer abc" },
  })
  expect(request({ headers }, { token: "abc" })).not.toHaveProperty("headers.Authorization")
  expect(request({}, { username: "u", password: "p" })).toMatchObject({ headers: { authorization: "Basic dTpw" } })
  for (const keys of [{}, { username: "u" }, { password: "p" }, { token: "" }] as Record<string, string>[])
    expect(request({}, keys)).toEqual({
      reason: "SecretMissing",
      message: "the Secret of secretRef has neither the key token nor both username and password",
    })
})

test("an address is needed", () => {
  expect(service.problemOf(provider())).toBeUndefined()
  expect(service.problemOf(provider({ address: "" }))).toMatchObject({ message: expect.stringContaining("address") })
  expect(request({ address: "http://" })).toMatchObject({ reason: "InvalidSpec" })
})

const known = "prometheus, graphite, datadog, newrelic, dynatrace, splunk, influxdb, web, externalmetrics"
test.each(["stackdriver", "cloudwatch", "keptn"] as const)("%s has no implementation", type =>
  expect(metricServiceOf({ type })).toEqual({
    reason: "NotSupported",
    message: `provider.type ${type} has no implementation here: those that have one are ${known}`,
  }),
)
