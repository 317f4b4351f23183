import { describe, expect, test } from "vitest"
import { judge } from "../verdict.ts"
import { addressOf, metricServiceOf } from "./index.ts"
import type { MetricProvider } from "./service.ts"

type Type = "datadog" | "newrelic" | "dynatrace" | "splunk" | "influxdb"
const serviceOf = (type: Type) => {
  const service = metricServiceOf({ type })
  if (!("requestOf" in service)) throw new Error(`${type} is here`)
  return service
}
const addresses: Partial<Record<Type, string>> = {
  dynatrace: "https://abc.live.dynatrace.com",
  splunk: "https://api.us1.signalfx.com",
  influxdb: "http://influxdb:8086",
}
const keys: Record<Type, Record<string, string>> = {
  datadog: { datadog_api_key: "api\n", datadog_application_key: "app" },
  newrelic: { newrelic_account_id: "12/../3", newrelic_query_key: "query" },
  dynatrace: { dynatrace_token: "dt" },
  splunk: { sf_token_key: "sf" },
  influxdb: { token: "t", org: "shop & co" },
}
const types = Object.keys(keys) as Type[]
const provider = (type: Type, more: Partial<MetricProvider> = {}): MetricProvider => ({
  type,
  ...(addresses[type] !== undefined && { address: addresses[type] }),
  secretRef: { name: "keys" },
  insecureSkipVerify: false,
  ...more,
})
const request = (type: Type, query: string, more: Partial<MetricProvider> = {}, secret = keys[type]) =>
  serviceOf(type).requestOf({
    provider: provider(type, more),
    query,
    window: { from: 1_700_000_000_500, to: 1_700_000_042_500 },
    credentials: new Map(Object.entries(secret)),
  })

describe("what is sent", () => {
  const cases: Record<Type, unknown> = {
    datadog: {
      url: "https://api.datadoghq.com/api/v1/query?query=sum%3Aa%7Bb%3Ac%7D+%2F+2&from=1700000000&to=1700000042",
      method: "GET",
      headers: { "dd-api-key": "api", "dd-application-key": "app" },
    },
    newrelic: {
      url: "https://insights-api.newrelic.com/v1/accounts/12%2F..%2F3/query?nrql=sum%3Aa%7Bb%3Ac%7D+%2F+2+SINCE+42+seconds+ago",
      method: "GET",
      headers: { "x-query-key": "query" },
    },
    dynatrace: {
      url: "https://abc.live.dynatrace.com/api/v2/metrics/query?metricSelector=sum%3Aa%7Bb%3Ac%7D+%2F+2&resolution=Inf&from=1700000000500&to=1700000042500",
      method: "GET",
      headers: { authorization: "Api-Token dt" },
    },
    splunk: {
      url: "https://stream.us1.signalfx.com/v2/signalflow/execute?start=1700000000500&stop=1700000042500&immediate=true",
      method: "POST",
      headers: { "x-sf-token": "sf", "content-type": "text/plain" },
      body: "sum:a{b:c}\n  / 2",
    },
    influxdb: {
      url: "http://influxdb:8086/api/v2/query?org=shop+%26+co",
      method: "POST",
      headers: { authorization: "Token t", accept: "application/csv", "content-type": "application/vnd.flux" },
      body: "sum:a{b:c}\n  / 2",
    },
  }
  test.each(types)("%s", type => expect(request(type, " sum:a{b:c}\n  / 2\n")).toEqual(cases[type]))

  test("another address, and headers of the template beside those of the Secret", () => {
    const more = { address: "https://proxy.test/dd/", headers: { "DD-API-KEY": ["own"], "X-Site": ["eu"] } }
    const sent = request("datadog", "q", more)
    expect(sent).toMatchObject({ headers: { "dd-api-key": "api", "X-Site": ["eu"] } })
    expect(sent).not.toHaveProperty("headers.DD-API-KEY")
    expect(sent).toHaveProperty("url", expect.stringMatching(/^https:\/\/proxy\.test\/dd\/api\/v1\/query\?/))
  })

  test("the address that is asked is the one that rules are held against", () => {
    expect(types.map(type => addressOf(provider(type)))).toEqual([
      "https://api.datadoghq.com/",
      "https://insights-api.newrelic.com/",
      "https://abc.live.dynatrace.com/",
      "https://stream.us1.signalfx.com/",
      "http://influxdb:8086/",
    ])
    for (const type of types) {
      const { url } = request(type, "q") as { url: string }
      expect(new URL(url).origin).toBe(new URL(addressOf(provider(type))!).origin)
    }
  })
})

test.each(types)("%s: what is missing is named with what to write", type => {
  const service = serviceOf(type)
  expect(service.problemOf(provider(type))).toBeUndefined()
  const { secretRef: _, ...without } = provider(type)
  const names = Object.keys(keys[type])
  expect(service.problemOf(without)).toMatchObject({
    reason: "SecretMissing",
    message: expect.stringContaining(names.join(" and ")),
  })
  const problem = service.problemOf(provider(type, { address: "" }))
  if (type === "datadog" || type === "newrelic") expect(problem).toBeUndefined()
  else expect(problem).toMatchObject({ reason: "InvalidSpec", message: expect.stringContaining("such as http") })
  const last = names.at(-1)!
  expect(request(type, "q", {}, { ...keys[type], [last]: " \n" })).toEqual({
    reason: "SecretMissing",
    message: `the Secret of secretRef lacks the key ${last}`,
  })
  expect(request(type, "q", { address: "https://" })).toMatchObject({ reason: "InvalidSpec" })
})

/** Answers in the form that the services document. */
describe("what is read", () => {
  const answer = (type: Type, body: unknown, status = 200) =>
    judge(
      { name: "errors", thresholdRange: { max: 5 } },
      serviceOf(type).answerOf(
        { status, body: typeof body === "string" ? body : JSON.stringify(body), isSecret: true },
        provider(type),
      ),
    )
  const event = (type: string, data: unknown) =>
    `event: ${type}\nid: 1\n${JSON.stringify(data, null, 1)
      .split("\n")
      .map(line => `data: ${line}\n`)
      .join("")}\n`
  const flow = (...data: unknown[]) =>
    [
      event("control-message", { event: "STREAM_START", timestampMs: 1 }),
      event("metadata", { tsId: "AAAA", properties: { sf_metric: "x" } }),
      ...data.map(each => event("data", { data: each, logicalTimestampMs: 1, maxDelayMs: 1000 })),
    ].join("")
  const end = event("control-message", { event: "END_OF_CHANNEL", timestampMs: 2 })
  const csv = (...rows: string[]) =>
    `,result,table,_start,_stop,_value,host\r\n${rows.map(row => `${row}\r\n`).join("")}\r\n`
  const good = (value: number) => ({ verdict: "Good", value })
  const none = { verdict: "NoData" }
  const several = { verdict: "Error", why: "the query found 2 series: it must give one, as with sum()" }
  const failed = { verdict: "Error", why: expect.stringContaining("says that the query failed") }
  const strange = { verdict: "Error", why: expect.stringContaining("is its address right?") }

  const cases: readonly [Type, string, unknown, unknown][] = [
    ["datadog", "the mean of a series", { status: "ok", series: [{ pointlist: [[1, 2], [2, 4], [3, null]], scope: "*" }] }, good(3)],
    ["datadog", "no series", { status: "ok", res_type: "time_series", series: [] }, none],
    ["datadog", "no point", { status: "ok", series: [{ pointlist: [] }] }, none],
    ["datadog", "several series", { status: "ok", series: [{ pointlist: [[1, 2]] }, { pointlist: [[1, 2]] }] }, several],
    ["datadog", "a query that fails", { status: "error", error: "Rate limit", series: [] }, failed],
    ["datadog", "another service", [1], strange],
    ["datadog", "a page", "<html>", strange],
    ["newrelic", "a result", { results: [{ result: 4.5 }], performanceStats: {} }, good(4.5)],
    ["newrelic", "by the name of its function", { results: [{ average: 2 }] }, good(2)],
    ["newrelic", "nothing counted", { results: [{ average: null }], metadata: { messages: ["No events found"] } }, none],
    ["newrelic", "several results", { results: [{ count: 1 }, { count: 2 }] }, several],
    ["newrelic", "facets", { facets: [{ name: "a", results: [{ count: 1 }] }] }, strange],
    ["newrelic", "percentiles by their names", { results: [{ percentiles: { 95: 1 } }] }, strange],
    ["dynatrace", "one number", { resolution: "Inf", result: [{ metricId: "a:avg", data: [{ dimensions: [], timestamps: [1], values: [4] }] }] }, good(4)],
    ["dynatrace", "null", { result: [{ data: [{ timestamps: [1], values: [null] }] }] }, none],
    ["dynatrace", "no data", { totalCount: 0, result: [{ metricId: "a", data: [] }] }, none],
    ["dynatrace", "several dimensions", { result: [{ data: [{ values: [1] }, { values: [2] }] }] }, several],
    ["splunk", "the mean of a series", flow([{ tsId: "AAAA", value: 2 }], [{ tsId: "AAAA", value: 4 }]) + end, good(3)],
    ["splunk", "no value", flow([{ tsId: "AAAA", value: null }]) + end, none],
    ["splunk", "no data", flow() + end, none],
    ["splunk", "several series", flow([{ tsId: "AAAA", value: 2 }, { tsId: "BBBB", value: 2 }]) + end, several],
    ["splunk", "an answer that was cut", flow([{ tsId: "AAAA", value: 2 }]), failed],
    ["splunk", "an error", flow() + event("error", { errors: [{ code: "ANALYTICS_PROGRAM_NAME_ERROR" }] }), failed],
    ["splunk", "a computation that was stopped", flow([{ tsId: "A", value: 2 }]) + event("control-message", { event: "CHANNEL_ABORT" }), failed],
    ["splunk", "JSON", { results: [] }, strange],
    ["influxdb", "one number", csv(",_result,0,2022-12-31T05:41:24Z,2023-01-31T05:41:24Z,4.5,A"), good(4.5)],
    ["influxdb", "the mean of a table", csv(',_result,0,a,b,2,"x, ""y"""', ",_result,0,a,b,4,A"), good(3)],
    ["influxdb", "with annotations", `#group,false,false\r\n#datatype,string,long,double\r\n#default,_result,,\r\n,result,table,_value\r\n,,0,1e-1\r\n`, good(0.1)],
    ["influxdb", "no table", "\r\n", none],
    ["influxdb", "no value", csv(",_result,0,a,b,,A"), none],
    ["influxdb", "a share of nothing", csv(",_result,0,a,b,NaN,A"), none],
    ["influxdb", "beyond every number", csv(",_result,0,a,b,+Inf,A"), { verdict: "Error", why: "the query gave +Inf" }],
    ["influxdb", "several tables", csv(",_result,0,a,b,1,A", ",_result,1,a,b,2,B"), several],
    ["influxdb", "tables of other names", `${csv(",_result,0,a,b,1,A")},result,table,_value\r\n,_result,1,7\r\n\r\n`, several],
    ["influxdb", "an error on the way", `${csv(",_result,0,a,b,1,A")}error,reference\r\nfailed to read,897\r\n`, failed],
    ["influxdb", "a text", csv(",_result,0,a,b,many,A"), strange],
    ["influxdb", "an answer that was cut", ',result,table,_value\r\n,_result,0,"1', strange],
    ["influxdb", "a page", "<html>", strange],
  ] // biome-ignore format: a table
  test.each(cases)("%s: %s", (type, _, body, verdict) => expect(answer(type, body)).toMatchObject(verdict as object))

  const hostile = [
    "",
    "null",
    "[]",
    "[null]",
    "{}",
    '{"series": [null]}',
    '{"results": [null]}',
    '{"result": [{"data": 1}]}',
  ]
  const others = [
    `${event("data", { data: [null] })}${end}`,
    "event: data\ndata: null\n\n",
    ",result,table,_value\n,\n",
    '"',
  ]
  test.each(types)("%s: whatever is answered, there is a verdict, and no value", type => {
    for (const body of [...hostile, ...others]) expect(answer(type, body).verdict, body).toMatch(/^(Error|NoData)$/)
  })

  test.each(types)("%s: a status is said, and no more", type => {
    expect(answer(type, "secret words", 403)).toEqual({
      verdict: "Error",
      why: expect.stringMatching(new RegExp(`^${type} answered 403: the keys? .* of the Secret may be wrong$`)),
    })
    expect(answer(type, "secret words", 429)).toEqual({ verdict: "Error", why: `${type} answered 429` })
  })
})
