import { expect, test } from "vitest"
import { judge } from "../verdict.ts"
import { metricServiceOf } from "./index.ts"
import type { MetricProvider } from "./service.ts"

const provider: MetricProvider = {
  type: "externalmetrics",
  address: "https://kubernetes.default.svc",
  secretRef: { name: "reader" },
  insecureSkipVerify: false,
}
const service = metricServiceOf(provider)
if (!("requestOf" in service)) throw new Error("external metrics are here")
const request = (query: string, keys: Record<string, string> = { token: "abc" }) =>
  service.requestOf({ provider, query, credentials: new Map(Object.entries(keys)), window: { from: 0, to: 0 } })
const base = "https://kubernetes.default.svc/apis/external.metrics.k8s.io/v1beta1/namespaces"

test.each([
  ["shop/queue_length", `${base}/shop/queue_length`],
  [
    " shop/a.b:c?labelSelector=app%3Dweb-canary,env=eu\n",
    `${base}/shop/a.b:c?labelSelector=app%3Dweb-canary%2Cenv%3Deu`,
  ],
])("%j is asked for with the token of the template", (query, url) =>
  expect(request(query)).toEqual({ url, method: "GET", headers: { authorization: "Bearer abc" } }),
)

test.each(["queue", "/queue", "shop/", "shop/a/b", "shop/..", "../secrets", "Shop/a", "shop/a b", "shop/a?limit=1"])(
  "%s is refused: no query leads anywhere else",
  query => {
    expect(service.syntaxProblemOf(query)?.what).toContain("NAMESPACE/METRIC")
    expect(request(query)).toMatchObject({ reason: "InvalidQuery" })
  },
)

test("address and account are the template's own", () => {
  expect(service.problemOf(provider)).toBeUndefined()
  expect(service.problemOf({ ...provider, address: "" })).toMatchObject({ message: expect.stringContaining("address") })
  const { secretRef: _, ...without } = provider
  expect(service.problemOf(without)).toMatchObject({ message: expect.stringContaining("secretRef is missing") })
  expect(request("shop/a", {})).toMatchObject({ reason: "SecretMissing" })
})

test("quantities are read, one of them; what is no list says so", () => {
  const answer = (body: unknown, status = 200) =>
    judge(
      { name: "queue", thresholdRange: { max: 5 } },
      service.answerOf({ status, body: JSON.stringify(body), isSecret: true }, provider),
    )
  const item = (value: unknown) => ({ metricName: "queue", metricLabels: { app: "web" }, value })
  expect(answer({ items: [item("1500m")] })).toEqual({ verdict: "Good", value: 1.5 })
  expect(answer({ items: [item("6")] })).toMatchObject({ verdict: "Bad", value: 6 })
  expect(answer({ items: [] })).toMatchObject({ verdict: "NoData" })
  expect(answer({ items: [item("1"), item("2")] })).toMatchObject({
    verdict: "Error",
    why: expect.stringContaining("found 2 series: "),
  })
  for (const bad of [{ items: [item(6)] }, { items: [null] }, {}, "text"])
    expect(answer(bad)).toMatchObject({ verdict: "Error" })
  expect(answer({}, 403)).toMatchObject({ verdict: "Error", why: expect.stringContaining("right to list") })
  expect(answer({}, 404)).toMatchObject({ verdict: "Error", why: expect.stringContaining("not served") })
})
