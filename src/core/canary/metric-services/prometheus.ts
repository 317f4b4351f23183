import { answerOf } from "../prometheus.ts"
import { promqlProblem } from "../promql.ts"
import type { Problem } from "../queries.ts"
import { authorizationOf, headersWithout } from "./authorization.ts"
import type { MetricService } from "./service.ts"

/** Servers take addresses of 8 kB at least. What is longer goes into a body, which some proxies refuse. */
const longestInAddress = 6000

/** Prometheus, and what answers as it does: Thanos, Mimir, VictoriaMetrics. */
export const prometheus: MetricService = {
  type: "prometheus",

  problemOf: ({ address }) =>
    address ? undefined : invalid("provider.address is missing: write http://HOST:PORT of a Prometheus"),

  syntaxProblemOf: promqlProblem,

  requestOf({ provider, query, credentials }) {
    const url = URL.parse(provider.address ?? "")
    if (!url) return invalid("provider.address cannot be used: write http://HOST:PORT of a Prometheus")
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v1/query`
    const authorization = authorizationOf(credentials)
    if (typeof authorization === "object") return authorization
    const ours = authorization === undefined ? {} : { authorization }
    const headers = { ...headersWithout(provider.headers, "content-type", ...Object.keys(ours)), ...ours }
    const parameters = new URLSearchParams({ query: query.replaceAll(/\s+/g, " ").trim() }).toString()
    if (parameters.length > longestInAddress) {
      const form = { ...headers, "content-type": "application/x-www-form-urlencoded" }
      return { url: url.href, method: "POST", headers: form, body: parameters }
    }
    url.search = url.search ? `${url.search}&${parameters}` : parameters
    return { url: url.href, method: "GET", headers }
  },

  answerOf,
}

const invalid = (message: string): Problem => ({ reason: "InvalidSpec", message })
