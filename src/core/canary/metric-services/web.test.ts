import { describe, expect, test } from "vitest"
import { metricServiceOf } from "./index.ts"
import type { MetricProvider } from "./service.ts"

const provider = (more: Partial<MetricProvider> = {}): MetricProvider => ({
  type: "web",
  address: "https://metrics.example.com/v1?site=eu",
  value: "response.value",
  insecureSkipVerify: false,
  ...more,
})
const service = metricServiceOf({ type: "web" })
if (!("requestOf" in service)) throw new Error("web is here")

describe("what is sent", () => {
  const request = (more: Partial<MetricProvider>, query: string, keys?: Record<string, string>) =>
    service.requestOf({
      provider: provider(more),
      query,
      window: { from: 0, to: 0 },
      ...(keys && { credentials: new Map(Object.entries(keys)) }),
    })
  test("a query is parameters of the address, each as it is", () =>
    expect(request({}, " service=web-canary&filter=a b#c ")).toEqual({
      url: "https://metrics.example.com/v1?site=eu&service=web-canary&filter=a+b%23c",
      method: "GET",
      headers: {},
    }))
  test("or the body, as JSON unless a header says otherwise", () => {
    const query = '{"q": 1}'
    const json = { "content-type": "application/json" }
    expect(request({ method: "POST" }, query)).toMatchObject({ method: "POST", headers: json, body: query })
    const headers = { "Content-Type": ["text/plain"] }
    expect(request({ method: "POST", headers }, query)).toMatchObject({ headers })
  })
  test("credentials stand in place of a header of the template", () => {
    const headers = { Authorization: ["own"], "X-Site": ["eu"] }
    const sent = request({ headers }, "a=b", { token: "abc" })
    expect(sent).toMatchObject({ headers: { authorization: "Bearer abc", "X-Site": ["eu"] } })
    expect(sent).not.toHaveProperty("headers.Authorization")
    expect(request({}, "a=b", {})).toMatchObject({ reason: "SecretMissing" })
  })
})

describe("what is read", () => {
  const numbers = (value: string, body: unknown) => {
    const answer = service.answerOf(
      { status: 200, body: typeof body === "string" ? body : JSON.stringify(body), isSecret: false },
      provider({ value }),
    )
    return answer.ok ? answer.series.map(each => each.value) : answer.message
  }
  const cases: Record<string, { value: string; body: unknown; says: unknown }> = {
    "a field": { value: "response.value", body: { value: 99.5 }, says: [99.5] },
    "whole numbers are doubles too, so that a division does not lose its rest": {
      value: "response.errors / response.all * 100.0",
      body: { errors: 1, all: 8 },
      says: [12.5],
    },
    "a text is turned into a number": { value: "double(response.v)", body: { v: "0.5" }, says: [0.5] },
    "a number of elements": { value: "response.size()", body: [1, 2], says: [2] },
    "null is no data": { value: "response.value", body: { value: null }, says: [] },
    "a missing field is no data": { value: "response.series[0].value", body: { series: [] }, says: [] },
    "a list without elements is no data": { value: "response.filter(x, x > 3.0)", body: [1], says: [] },
    "a text is no number": {
      value: "response.v",
      body: { v: "5" },
      says: expect.stringContaining("something that is no number"),
    },
    "what does not fit": {
      value: "response.v + 1",
      body: { v: 5 },
      says: "provider.value cannot read the answer: no such overload",
    },
    "no JSON": { value: "response", body: "<html>", says: expect.stringContaining("did not answer with JSON") },
    "no prototype": { value: "response.constructor", body: {}, says: [] },
    "too many steps": {
      value: "response.all(a, response.all(b, response.all(c, c > 0.0)))",
      body: Array(200).fill(1),
      says: expect.stringContaining("too many steps"),
    },
  }
  for (const [name, { value, body, says }] of Object.entries(cases))
    test(name, () => expect(numbers(value, body)).toEqual(says))

  test("an answer to credentials is not quoted", () => {
    const reply = { status: 200, body: '{"v": 5}', isSecret: true }
    expect(service.answerOf(reply, provider({ value: "response.v + 1" }))).toEqual({
      ok: false,
      message: "provider.value cannot read the answer",
    })
    expect(service.answerOf({ ...reply, status: 503 }, provider())).toMatchObject({
      message: "the metric service answered 503",
    })
  })
})

test("what is missing or is no CEL is refused with what to write", () => {
  expect(service.problemOf(provider())).toBeUndefined()
  const said = (more: Partial<MetricProvider>) => service.problemOf(provider(more))
  expect(said({ address: "" })).toMatchObject({ reason: "InvalidSpec" })
  expect(said({ value: "" })).toMatchObject({ reason: "InvalidQuery", message: expect.stringContaining("is missing") })
  expect(said({ value: "response.(" })).toMatchObject({ message: expect.stringContaining("is no CEL at character 10") })
  expect(said({ value: "answer.value" })).toMatchObject({ message: expect.stringContaining("does not fit together") })
})
