import type { Problem } from "../queries.ts"
import { prometheus } from "./prometheus.ts"
import type { MetricProvider, MetricService } from "./service.ts"

export type { MetricProvider, MetricService, Question, ServiceRequest } from "./service.ts"

/** Every metric service that there is. */
const services: readonly MetricService[] = [prometheus]

export function metricServiceOf({ type }: Pick<MetricProvider, "type">): MetricService | Problem {
  const known = services.map(service => service.type).join(", ")
  const message = `provider.type ${type} has no implementation here: those that have one are ${known}`
  return services.find(service => service.type === type) ?? { reason: "NotSupported", message }
}
