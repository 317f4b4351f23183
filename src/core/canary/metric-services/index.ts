import type { Problem } from "../queries.ts"
import { externalMetrics } from "./external-metrics.ts"
import { graphite } from "./graphite.ts"
import { presets } from "./presets.ts"
import { prometheus } from "./prometheus.ts"
import type { MetricProvider, MetricService } from "./service.ts"
import { web } from "./web.ts"

export type { MetricProvider, MetricService, Question, ServiceRequest } from "./service.ts"

/** Every metric service that there is. */
const services: readonly MetricService[] = [prometheus, graphite, ...presets, web, externalMetrics]

export function metricServiceOf({ type }: Pick<MetricProvider, "type">): MetricService | Problem {
  const known = services.map(service => service.type).join(", ")
  const message = `provider.type ${type} has no implementation here: those that have one are ${known}`
  return services.find(service => service.type === type) ?? { reason: "NotSupported", message }
}

/** Where a template's service is asked, as far as that is known. */
export function addressOf(provider: MetricProvider): string | undefined {
  const service = metricServiceOf(provider)
  return "addressOf" in service && service.addressOf ? service.addressOf(provider) : provider.address
}
