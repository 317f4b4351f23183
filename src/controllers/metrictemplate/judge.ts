import type { MetricTemplate, Reason } from "#api/v1alpha1/metrictemplate/index.ts"
import { addressOf, metricServiceOf } from "#core/canary/metric-services/index.ts"
import { templateProblem } from "#core/canary/query-check.ts"
import type { Seen } from "../usable.ts"

/** The first reason for which no Canary can measure with it. What the service answers is not asked. */
export function judge({ object, secret, unreachable }: Seen<MetricTemplate>): { reason: Reason; message: string } {
  const { provider, query } = object.spec
  const service = metricServiceOf(provider)
  if ("reason" in service) return { reason: "NotSupported", message: `spec.${service.message}` }
  const lacking = service.problemOf(provider)
  if (lacking) {
    const reason =
      lacking.reason === "InvalidQuery" || lacking.reason === "SecretMissing" ? lacking.reason : "AddressMissing"
    return { reason, message: `spec.${lacking.message}` }
  }
  const wrong = templateProblem(query, service)
  if (wrong !== undefined) return { reason: "InvalidQuery", message: `spec.query: ${wrong}` }
  const { insecureSkipVerify: isUnchecked, headers = {} } = provider
  const forbidden = unreachable({ url: addressOf(provider) ?? "", isUnchecked, headers })
  if (forbidden) return { ...forbidden, message: `spec.provider: ${forbidden.message}` }
  if (secret && !secret.ok) return secret
  const credentials = secret && new Map([...secret.keys].map(([key, bytes]) => [key, bytes.toString("utf8")]))
  const request = service.requestOf({ provider, query: "1", credentials, window: { from: 0, to: 0 } })
  // The query has been looked at; this one only stands in its place.
  if ("reason" in request && request.reason !== "InvalidQuery")
    return { reason: credentials ? "SecretMissing" : "InvalidAddress", message: `spec.provider: ${request.message}` }
  return { reason: "Usable", message: `Canaries can ask ${provider.type} with it` }
}
