import type { Counters, Target } from "./counters.ts"
import type { Backend } from "./route.ts"

const secondsBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const millisecondsBounds = [0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** Counts answers under the names that Envoy (with Contour's names of clusters), Traefik and usual applications expose. */
export function showIn(counters: Counters) {
  const traefik: Target = { labels: { job: "traefik", instance: "traefik-0" } }
  const envoy: Target = { labels: { job: "envoy", instance: "envoy-0" } }
  return {
    /** `ms` is missing where no server answered. */
    gateway({ namespace, service, port, pods: isOfTraefik }: Backend, code: string, ms?: number) {
      if (isOfTraefik) {
        const labels = {
          service: `${namespace}-${service}-${port}@kubernetescrd`,
          code,
          method: "GET",
          protocol: "http",
        }
        counters.observe(traefik, "traefik_service_request_duration_seconds", labels, (ms ?? 0) / 1000, secondsBounds)
        return
      }
      const cluster = { envoy_cluster_name: `${namespace}_${service}_${port}` }
      counters.add(envoy, "envoy_cluster_upstream_rq", { envoy_response_code: code, ...cluster })
      counters.add(envoy, "envoy_cluster_upstream_rq_xx", { envoy_response_code_class: code[0]!, ...cluster })
      if (ms !== undefined) counters.observe(envoy, "envoy_cluster_upstream_rq_time", cluster, ms, millisecondsBounds)
    },
    application(target: Target, status: string, ms: number) {
      const labels = { method: "GET", status }
      counters.add(target, "http_requests_total", labels)
      counters.observe(target, "http_request_duration_seconds", labels, ms / 1000, secondsBounds)
    },
  }
}
