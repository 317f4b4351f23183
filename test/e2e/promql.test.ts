import { beforeAll, expect, test } from "vitest"
import type { Json } from "#tools/kube/api.ts"
import { preparePrometheus, prometheusWith } from "../support/prometheus.ts"
import { application, backend, httpRoute, service, throughGateway, trafficStory } from "../support/traffic.ts"

const v1 = "registry.example.com/web:1"
const v2 = "registry.example.com/web:2"

/** The forms of our built-in queries, of Flagger's, and of the examples. */
const queries = [
  `sum(rate(envoy_cluster_upstream_rq{envoy_cluster_name=~"default_web-canary_.+",envoy_response_code!~"5.*"}[1m])) / sum(rate(envoy_cluster_upstream_rq{envoy_cluster_name=~"default_web-canary_.+"}[1m])) * 100`,
  `histogram_quantile(0.99, sum(rate(envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name=~"default_web-.*"}[1m])) by (le))`,
  `sum(rate(http_request_duration_seconds_count{kubernetes_namespace="default",kubernetes_pod_name=~"trial-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)",status!~"5.*"}[1m])) / sum(rate(http_request_duration_seconds_count{kubernetes_namespace="default",kubernetes_pod_name=~"trial-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)"}[1m])) * 100`,
  `histogram_quantile(0.99, sum(rate(http_request_duration_seconds_bucket{kubernetes_pod_name=~"trial-.*"}[1m])) by (le)) * 1000`,
  `histogram_quantile(0.5, sum(rate(http_request_duration_seconds_bucket[2m])) by (le))`,
  `sum(increase(http_requests_total{status="500"}[1m])) or vector(0)`,
  `sum(rate(http_requests_total{status="404"}[1m])) or vector(0)`,
  `sum by (pod) (rate(http_requests_total[30s]))`,
  `sum(http_requests_total) by (status)`,
  `count(http_requests_total) > 2`,
  `rate(envoy_cluster_upstream_rq{envoy_response_code!="200"}[47s])`,
  `100 * (1 - sum(rate(http_requests_total{status=~"5.."}[90s])) / sum(rate(http_requests_total[90s])))`,
  `sum(rate(http_request_duration_seconds_sum[1m])) / sum(rate(http_request_duration_seconds_count[1m])) * 1000`,
  `avg(rate(http_requests_total[1m] offset 30s))`,
  `scalar(sum(rate(http_requests_total[1m]))) > bool 10`,
]

// Other files may be installing packages of theirs.
beforeAll(preparePrometheus, 1_800_000)

test("the same counters and queries in a real Prometheus agree within one percent", async () => {
  const {
    world,
    traffic,
    prometheus: simulated,
  } = await trafficStory({
    versions: { [v1]: { latencyMs: 30 }, [v2]: { latencyMs: 180, errorRate: 0.1 } },
  })
  await world.apply(
    application("web", { image: v1 }),
    application("trial", { image: v2 }),
    service("web-primary", { app: "web" }),
    service("web-canary", { app: "trial" }),
    httpRoute("web", [{ backendRefs: [backend("web-primary", 80), backend("web-canary", 20)] }]),
  )
  await world.advance("1m")
  traffic.send({ perSecond: 40, through: throughGateway })
  await world.advance("3m17s")
  const times = [world.clock.now() - 130_000, world.clock.now() - 41_500, world.clock.now()]

  const real = await prometheusWith(openMetrics(simulated.series()))
  const seen: string[] = []
  for (const query of queries)
    for (const at of times) {
      const { data: ours } = JSON.parse(
        simulated.answer(`/api/v1/query?query=${encodeURIComponent(query)}&time=${at / 1000}`).body,
      )
      const theirs = await real(query, at)
      expect(ours.resultType, query).toBe(theirs.resultType)
      expect(numbers(ours), query).toHaveLength(numbers(theirs).length)
      for (const [index, [labels, value]] of numbers(theirs).entries()) {
        const [ownLabels, own] = numbers(ours)[index]!
        expect(ownLabels, query).toBe(labels)
        if (Number.isNaN(value)) expect(own, query).toBeNaN()
        else
          expect(Math.abs(own - value), `${query} at ${at}: ${own}, not ${value}`).toBeLessThanOrEqual(
            0.01 * Math.abs(value),
          )
        seen.push(`${labels} ${value}`)
      }
    }
  expect(seen.filter(each => !each.endsWith("NaN")).length).toBeGreaterThan(60)
})

/** By labels, in a fixed order. */
function numbers({ resultType, result }: Json): [string, number][] {
  const all: [string, number][] =
    resultType === "scalar"
      ? [["", Number(result[1])]]
      : result.map(({ metric, value }: Json) => [JSON.stringify(Object.entries(metric).sort()), Number(value[1])])
  return all.sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Samples with their times, for a Prometheus to begin with. */
function openMetrics(series: Iterable<{ labels: Json; samples: Json }>): string {
  const lines: [string, string][] = []
  for (const { labels, samples } of series) {
    const { __name__: name, ...rest } = labels
    const text = Object.entries(rest).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    for (const { at, value } of samples) lines.push([name, `${name}{${text.join(",")}} ${value} ${at / 1000}\n`])
  }
  // The series of a family stand together.
  return `${lines
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, line]) => line)
    .join("")}# EOF\n`
}
