import type { Instant } from "#lib/instant.ts"
import type { Problem } from "../queries.ts"
import type { Answer } from "../verdict.ts"
import { headersWithout } from "./authorization.ts"
import { influxTables, signalFlow } from "./formats.ts"
import type { MetricProvider, MetricService } from "./service.ts"
import { foundIn, jsonOf } from "./web.ts"

type Keys = Readonly<Record<string, string>>
type Asked = { readonly query: string; readonly from: Instant; readonly to: Instant }

/** A metric service of the web, as data: how it is asked, and where the numbers stand in what it answers. */
type Preset = {
  readonly type: MetricProvider["type"]
  /** Where it is for all of its users. Without it, each has a host of its own. */
  readonly address?: string
  /** What a template has to write as its address. */
  readonly example: string
  /** The address of queries, where that is another one. */
  readonly hostOf?: (host: string) => string
  /** The keys of the Secret. */
  readonly keys: readonly string[]
  readonly path: (keys: Keys) => string
  readonly headers: (keys: Keys) => Readonly<Record<string, string>>
  readonly parameters: (asked: Asked, keys: Keys) => Readonly<Record<string, string>>
  /** The query is sent as this kind of text, and not with the parameters. */
  readonly body?: string
  /** What the answer is, where it is no JSON. */
  readonly formatOf?: (body: string) => unknown
  /** CEL that is true of an answer which says that the query failed, or that it is not whole. */
  readonly isFailure?: string
  /** CEL that gives the values of the series. A list of numbers is one series. */
  readonly value: string
}

const seconds = (at: Instant) => String(Math.floor(at / 1000))

const all: readonly Preset[] = [
  {
    type: "datadog",
    address: "https://api.datadoghq.com",
    example: "https://api.datadoghq.eu",
    keys: ["datadog_api_key", "datadog_application_key"],
    path: () => "/api/v1/query",
    headers: keys => ({ "dd-api-key": keys.datadog_api_key!, "dd-application-key": keys.datadog_application_key! }),
    parameters: ({ query, from, to }) => ({ query, from: seconds(from), to: seconds(to) }),
    isFailure: 'has(response.status) && response.status != "ok"',
    value: "response.series.map(each, each.pointlist.map(point, point[1]))",
  },
  {
    type: "newrelic",
    address: "https://insights-api.newrelic.com",
    example: "https://insights-api.eu.newrelic.com",
    keys: ["newrelic_account_id", "newrelic_query_key"],
    path: keys => `/v1/accounts/${encodeURIComponent(keys.newrelic_account_id!)}/query`,
    headers: keys => ({ "x-query-key": keys.newrelic_query_key! }),
    parameters: ({ query, from, to }) => ({ nrql: `${query} SINCE ${seconds(to - from)} seconds ago` }),
    // The name of the one field is that of the query's function.
    value: "response.results.map(each, each.map(name, each[name]))",
  },
  {
    type: "dynatrace",
    example: "https://ENVIRONMENT.live.dynatrace.com",
    keys: ["dynatrace_token"],
    path: () => "/api/v2/metrics/query",
    headers: keys => ({ authorization: `Api-Token ${keys.dynatrace_token}` }),
    parameters: ({ query, from, to }) => ({
      metricSelector: query,
      resolution: "Inf",
      from: String(from),
      to: String(to),
    }),
    value: "response.result.map(metric, metric.data.map(each, each.values))",
  },
  {
    type: "splunk",
    example: "https://api.REALM.signalfx.com",
    hostOf: host => host.replace(/^api\./, "stream."),
    keys: ["sf_token_key"],
    path: () => "/v2/signalflow/execute",
    headers: keys => ({ "x-sf-token": keys.sf_token_key! }),
    parameters: ({ from, to }) => ({ start: String(from), stop: String(to), immediate: "true" }),
    body: "text/plain",
    formatOf: signalFlow,
    isFailure: "!response.isWhole",
    value: "response.series",
  },
  {
    type: "influxdb",
    example: "http://HOST:8086",
    keys: ["token", "org"],
    path: () => "/api/v2/query",
    headers: keys => ({ authorization: `Token ${keys.token}`, accept: "application/csv" }),
    parameters: (_, keys) => ({ org: keys.org! }),
    body: "application/vnd.flux",
    formatOf: influxTables,
    isFailure: "!response.isWhole",
    value: "response.series",
  },
]

/** The services of the web that Flagger knows, under its types and keys. They were never tried against the services. */
export const presets: readonly MetricService[] = all.map(preset)

function preset(its: Preset): MetricService {
  const urlOf = ({ address }: MetricProvider) => {
    const url = URL.parse(address || (its.address ?? ""))
    if (url && its.hostOf) url.host = its.hostOf(url.host)
    return url
  }
  return {
    type: its.type,

    addressOf: provider => urlOf(provider)?.href ?? provider.address,

    problemOf({ address, secretRef }) {
      if (!address && !its.address)
        return invalid(`provider.address is missing: write the one of your account, such as ${its.example}`)
      return secretRef ? undefined : missing(`provider.secretRef is missing: name a Secret with ${listed(its.keys)}`)
    },

    // It is a text of the service's own.
    syntaxProblemOf: () => undefined,

    requestOf({ provider, query, credentials = new Map(), window }) {
      const url = urlOf(provider)
      if (!url) return invalid(`provider.address cannot be used: write one such as ${its.example}`)
      const keys = Object.fromEntries(its.keys.map(key => [key, credentials.get(key)?.trim() ?? ""]))
      const lacking = its.keys.filter(key => !keys[key])
      if (lacking.length > 0) return missing(`the Secret of secretRef lacks ${listed(lacking)}`)
      const text = its.body ? query.trim() : query.replaceAll(/\s+/g, " ").trim()
      url.pathname = `${url.pathname.replace(/\/+$/, "")}${its.path(keys)}`
      for (const [name, value] of Object.entries(its.parameters({ query: text, ...window }, keys)))
        url.searchParams.set(name, value)
      const ours = { ...its.headers(keys), ...(its.body && { "content-type": its.body }) }
      const headers = { ...headersWithout(provider.headers, ...Object.keys(ours)), ...ours }
      if (its.body) return { url: url.href, method: "POST", headers, body: text }
      return { url: url.href, method: "GET", headers }
    },

    answerOf({ status, body, isSecret }) {
      if (status === 401 || status === 403)
        return no(`${its.type} answered ${status}: ${listed(its.keys)} of the Secret may be wrong`)
      if (status < 200 || status >= 300) return no(`${its.type} answered ${status}`)
      const strange = no(`the metric service did not answer as ${its.type} does: is its address right?`)
      const response = (its.formatOf ?? jsonOf)(body)
      if (response === undefined) return strange
      const failure = its.isFailure ? foundIn(response, its.isFailure, isSecret) : { value: false }
      if ("ok" in failure) return strange
      if (failure.value) return no(`${its.type} says that the query failed, or did not send its whole answer`)
      const found = foundIn(response, its.value, isSecret)
      if ("ok" in found) return strange
      const series = seriesIn(found.value)
      return series ? { ok: true, series: series.map(value => ({ labels: {}, value })) } : strange
    },
  }
}

/** The mean of each series that has values. Undefined: there is something else than numbers. */
function seriesIn(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined
  if (value.every(each => each === null || typeof each === "number")) {
    const numbers = value.filter(each => each !== null)
    return numbers.length > 0 ? [numbers.reduce((sum, each) => sum + each, 0) / numbers.length] : []
  }
  const parts = value.map(seriesIn)
  return parts.includes(undefined) ? undefined : (parts as readonly (readonly number[])[]).flat()
}

const listed = (keys: readonly string[]) => `the ${keys.length === 1 ? "key" : "keys"} ${keys.join(" and ")}`
const invalid = (message: string): Problem => ({ reason: "InvalidSpec", message })
const missing = (message: string): Problem => ({ reason: "SecretMissing", message })
const no = (message: string): Answer => ({ ok: false, message })
