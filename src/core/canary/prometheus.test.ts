import fc from "fast-check"
import { expect, test } from "vitest"
import { answerOf } from "./prometheus.ts"
import { judge } from "./verdict.ts"

const reply = (body: unknown, { status = 200, isSecret = false } = {}) =>
  answerOf({ status, body: typeof body === "string" ? body : JSON.stringify(body), isSecret })
const vector = (...values: unknown[]) => ({
  status: "success",
  data: { resultType: "vector", result: values.map((value, i) => ({ metric: { pod: `p${i}` }, value: [1, value] })) },
})
const valuesIn = (body: unknown) => {
  const answer = reply(body)
  return answer.ok ? answer.series.map(({ value }) => value) : answer.message
}

test.each<[string, unknown, unknown]>([
  ["one series", vector("99.5"), [99.5]],
  ["no series", vector(), []],
  ["several series", vector("1", "2"), [1, 2]],
  ["a scalar", { status: "success", data: { resultType: "scalar", result: [1, "0"] } }, [0]],
  ["a large number", vector("1.5e+07"), [1.5e7]],
  ["a negative number", vector("-0.25"), [-0.25]],
  ["NaN", vector("NaN"), [Number.NaN]],
  ["more than every number", vector("+Inf"), [Number.POSITIVE_INFINITY]],
  ["less than every number", vector("-Inf"), [Number.NEGATIVE_INFINITY]],
])("%s", (_, body, expected) => expect(valuesIn(body)).toEqual(expected))

const noNumber = "the metric service gave a value that is no number"
const notPrometheus = /^the metric service did not answer as Prometheus does/
test.each<[string, unknown, string | RegExp]>([
  ["a number without quotes", vector(1), noNumber],
  ["an empty text", vector(""), noNumber],
  ["a number of another language", vector("0x10"), noNumber],
  ["a number and more", vector("1 or 2"), noNumber],
  ["no value", { status: "success", data: { resultType: "vector", result: [{ metric: {} }] } }, noNumber],
  ["a value that is none", { status: "success", data: { resultType: "vector", result: [null] } }, noNumber],
  ["a scalar that is none", { status: "success", data: { resultType: "scalar", result: "1" } }, noNumber],
  ["a range", { status: "success", data: { resultType: "matrix", result: [] } }, /range of values/],
  ["a text", { status: "success", data: { resultType: "string", result: [1, "a"] } }, /gave a text/],
  [
    "a histogram",
    { status: "success", data: { resultType: "vector", result: [{ metric: {}, histogram: [1, {}] }] } },
    /gave a histogram/,
  ],
  ["no result", { status: "success", data: { resultType: "vector" } }, notPrometheus],
  ["no data", { status: "success" }, notPrometheus],
  ["another kind of answer", { value: 1 }, notPrometheus],
  ["a list", [1], notPrometheus],
  ["a page", "<html>login</html>", notPrometheus],
  ["nothing", "", notPrometheus],
  ["an unknown type", { status: "success", data: { resultType: "table", result: [] } }, notPrometheus],
])("%s is an error", (_, body, message) => {
  const answer = reply(body)
  expect(answer).toEqual({
    ok: false,
    message: message instanceof RegExp ? expect.stringMatching(message) : message,
  })
})

test("what is incomplete does not count, whatever its number is", () => {
  const body = { ...vector("100"), warnings: ["store 2 did not answer"] }
  expect(reply(body)).toEqual({
    ok: false,
    message: "the metric service says that its answer may be incomplete: store 2 did not answer",
  })
  expect(reply({ ...vector("100"), warnings: [], infos: ["metric might not be a counter"] }).ok).toBe(true)
})

test("an error of Prometheus is reported with its own word and the beginning of its text", () => {
  const error = `parse error\n\u001b[31m at char 7 ${"x".repeat(1000)}`
  const answer = reply({ status: "error", errorType: "bad_data", error }, { status: 400 })
  expect(answer).toMatchObject({
    message: expect.stringMatching(
      /^the metric service refused the query \(bad_data\): parse error .\[31m at char 7 x+…$/,
    ),
  })
  expect(JSON.stringify(answer).length).toBeLessThan(260)
  expect(reply({ status: "error", errorType: "<b>", error: 7 }, { status: 422 })).toMatchObject({
    message: "the metric service refused the query (422)",
  })
  // Also where the status says that all is well.
  expect(reply({ status: "error", errorType: "timeout" })).toMatchObject({ ok: false })
})

test("another status is reported, and not its page", () => {
  expect(reply("secret", { status: 502 })).toEqual({ ok: false, message: "the metric service answered 502" })
  expect(reply("secret", { status: 401 })).toMatchObject({ message: expect.stringContaining("secretRef") })
  expect(reply(vector("100"), { status: 302 })).toEqual({ ok: false, message: "the metric service answered 302" })
})

test("nothing is quoted of an answer to a question with credentials", () => {
  const echo = "Bearer hunter2"
  const bodies = [
    { status: "error", errorType: "bad_data", error: echo },
    { status: "error", errorType: echo },
    { ...vector("1"), warnings: [echo] },
    { status: "success", data: { resultType: echo } },
    {
      status: "success",
      data: { resultType: "vector", result: [{ metric: { [echo]: echo, a: echo }, value: [1, "1"] }] },
    },
    echo,
  ]
  for (const status of [200, 400, 401, 500])
    for (const body of bodies) expect(JSON.stringify(reply(body, { status, isSecret: true }))).not.toContain("hunter2")
})

test("labels help to find the reducer that is missing, and are bounded", () => {
  const metric = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`label_${i}`, "x".repeat(1000)]))
  const two = [
    { metric: { ...metric, pod: "a" }, value: [1, "1"] },
    { metric: { ...metric, pod: "b" }, value: [1, "1"] },
  ]
  const body = { status: "success", data: { resultType: "vector", result: two } }
  expect(JSON.stringify(reply(body)).length).toBeLessThan(8000)
  expect(judge({ name: "m" }, reply(vector("1", "2")))).toEqual({
    verdict: "Error",
    why: "the query found 2 series, which differ in pod: it must give one, as with sum()",
  })
})

test("whatever is sent, there is an answer, and it is short", () => {
  const anything = fc.oneof(fc.jsonValue(), fc.record({ status: fc.constant("success"), data: fc.jsonValue() }))
  fc.assert(
    fc.property(anything, fc.integer({ min: 100, max: 599 }), fc.boolean(), (body, status, isSecret) => {
      const answer = reply(body, { status, isSecret })
      if (!answer.ok) expect(answer.message.length).toBeLessThan(300)
    }),
  )
})
