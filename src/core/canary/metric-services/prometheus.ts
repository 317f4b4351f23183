import { answerOf } from "../prometheus.ts"
import type { Problem } from "../queries.ts"
import type { MetricService } from "./service.ts"

/** Servers take addresses of 8 kB at least. What is longer goes into a body, which some proxies refuse. */
const longestInAddress = 6000

/** Prometheus, and what answers as it does: Thanos, Mimir, VictoriaMetrics. */
export const prometheus: MetricService = {
  type: "prometheus",

  problemOf: ({ address }) =>
    address ? undefined : invalid("provider.address is missing: write http://HOST:PORT of a Prometheus"),

  requestOf({ provider, query, credentials }) {
    const url = URL.parse(provider.address ?? "")
    if (!url) return invalid("provider.address cannot be used: write http://HOST:PORT of a Prometheus")
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v1/query`
    const authorization = authorizationOf(credentials)
    if (typeof authorization === "object") return authorization
    const isOurs = (name: string) =>
      name === "content-type" || (name === "authorization" && authorization !== undefined)
    const headers = {
      ...Object.fromEntries(Object.entries(provider.headers ?? {}).filter(([name]) => !isOurs(name.toLowerCase()))),
      ...(authorization !== undefined && { authorization }),
    }
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

/** A token comes before a user, as in Flagger. */
function authorizationOf(credentials: ReadonlyMap<string, string> | undefined): string | Problem | undefined {
  if (!credentials) return undefined
  const token = credentials.get("token")?.trim()
  if (token) return `Bearer ${token}`
  const [username, password] = [credentials.get("username"), credentials.get("password")]
  if (username === undefined || password === undefined)
    return {
      reason: "SecretMissing",
      message: "the Secret of secretRef has neither the key token nor both username and password",
    }
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`
}

const invalid = (message: string): Problem => ({ reason: "InvalidSpec", message })
