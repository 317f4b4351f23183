import { describe, expect, test } from "vitest"
import { judge } from "../verdict.ts"
import { metricServiceOf } from "./index.ts"
import type { MetricProvider } from "./service.ts"

const provider = (more: Partial<MetricProvider> = {}): MetricProvider => ({
  type: "graphite",
  address: "http://graphite:8080",
  insecureSkipVerify: false,
  ...more,
})
const service = metricServiceOf({ type: "graphite" })
if (!("requestOf" in service)) throw new Error("Graphite is here")
const request = (query: string, more: Partial<MetricProvider> = {}, keys?: Record<string, string>) =>
  service.requestOf({
    provider: provider(more),
    query,
    window: { from: 10_000, to: 52_000 },
    ...(keys && { credentials: new Map(Object.entries(keys)) }),
  })
const ours = "maxDataPoints=1&noCache=1&format=json"

describe("what is sent", () => {
  test.each([
    ["target=web.errors", `/render?target=web.errors&from=-42s&${ours}`],
    ["target=a.b&until=-5s", `/render?target=a.b&until=-5s&from=-42s&${ours}`],
    ["target=a.b&from=-5min", `/render?target=a.b&from=-5min&${ours}`],
    ["target=a&maxDataPoints=3&format=png", "/render?target=a&maxDataPoints=3&format=json&from=-42s&noCache=1"],
    ["\n target=sum(\n  a.*,\n  b.c\n )\n", `/render?target=sum%28+a.*%2C+b.c+%29&from=-42s&${ours}`],
  ])("%j", (query, url) =>
    expect(request(query)).toEqual({ url: `http://graphite:8080${url}`, method: "GET", headers: {} }),
  )

  test("below a path, with the credentials of the Secret", () => {
    const more = {
      address: "https://metrics.test/graphite/?org=1",
      headers: { Authorization: ["own"], "X-Org": ["1"] },
    }
    expect(request("target=a", more, { username: "u", password: "p" })).toEqual({
      url: `https://metrics.test/graphite/render?org=1&target=a&from=-42s&${ours}`,
      method: "GET",
      headers: { "X-Org": ["1"], authorization: "Basic dTpw" },
    })
    expect(request("target=a", more, { username: "u" })).toMatchObject({ reason: "SecretMissing" })
    expect(request("target=a", { address: "http://" })).toMatchObject({ reason: "InvalidSpec" })
    expect(service.problemOf(provider({ address: "" }))).toMatchObject({ message: expect.stringContaining("address") })
  })
})

test.each([
  ["web.errors", { at: 0, what: expect.stringContaining("it must be target=") }],
  ["target=&from=-5s", { at: 0, what: expect.stringContaining("it must be target=") }],
  ["target=sum(a.{b,c}", { at: 10, what: "( is not closed by )" }],
  ["target=sum(a))", { at: 13, what: ") closes nothing" }],
  ["target=sum(a]", { at: 12, what: "] closes nothing" }],
  ['target=alias(a,"x', { at: 15, what: '" is not closed by "' }],
  ['target=alias(a.{b,c}[0-9],"it\'s (")', undefined],
])("the form of %j", (query, found) => expect(service.syntaxProblemOf(query)).toEqual(found))

describe("what is read", () => {
  const series = (target: string, ...values: (number | null)[]) => ({
    target,
    tags: { name: target },
    datapoints: values.map((value, index) => [value, 1_700_000_000 + index]),
  })
  const answer = (body: unknown, { status = 200, isSecret = false } = {}) =>
    judge(
      { name: "errors", thresholdRange: { max: 5 } },
      service.answerOf({ status, body: typeof body === "string" ? body : JSON.stringify(body), isSecret }, provider()),
    )
  const cases: Record<string, [unknown, unknown]> = {
    "one number": [[series("a", 4.5)], { verdict: "Good", value: 4.5 }],
    "the newest of several, where the query asks for several": [[series("a", 1, 6, null)], { verdict: "Bad", value: 6 }],
    "nothing is found": [[], { verdict: "NoData" }],
    "nothing was written in the window": [[series("a", null, null), series("b")], { verdict: "NoData" }],
    "a series that is no longer written beside another": [[series("a", null), series("b", 0)], { verdict: "Good", value: 0 }],
    "several": [[series("a", 1), series("b", 1)], { verdict: "Error", why: "the query found 2 series, which differ in name: it must give one, as with sum()" }],
    "beyond every number": ['[{"target": "a", "datapoints": [[1e9999, 1]]}]', { verdict: "Error", why: "the query gave +Inf" }],
    "a page": ["<html>", { verdict: "Error", why: expect.stringContaining("as Graphite does") }],
    "another service": [{ status: "success" }, { verdict: "Error", why: expect.stringContaining("as Graphite does") }],
    "a text": [[{ target: "a", datapoints: [["1", 1]] }], { verdict: "Error", why: expect.stringContaining("as Graphite does") }],
  } // biome-ignore format: a table
  for (const [name, [body, verdict]] of Object.entries(cases))
    test(name, () => expect(answer(body)).toMatchObject(verdict as object))

  test.each([
    "",
    "null",
    "[null]",
    "[[]]",
    '[{"datapoints": null}]',
    '[{"datapoints": [null]}]',
    '[{"datapoints": [[]]}]',
  ])("%j is no answer", body => expect(answer(body)).toMatchObject({ verdict: "Error" }))

  test("what went wrong is said by the status, and names stay out of answers to credentials", () => {
    expect(answer("Traceback", { status: 500 })).toMatchObject({ why: expect.stringContaining("within quotes") })
    expect(answer("", { status: 401 })).toMatchObject({ why: expect.stringContaining("secretRef") })
    expect(answer([series("a", 1), series("b", 1)], { isSecret: true })).toMatchObject({
      why: "the query found 2 series: it must give one, as with sum()",
    })
  })
})
