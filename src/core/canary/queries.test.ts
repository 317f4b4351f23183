import { describe, expect, test } from "vitest"
import type { CanarySpec } from "#api/v1alpha1/canary/index.ts"
import { type BuiltIn, builtInQuery, questionsOf, variableProblem } from "./queries.ts"
import type { QueryValues } from "./query-template.ts"
import { queryValues as values } from "./test-values.ts"

const spec = (more: Record<string, unknown> = {}) =>
  ({
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { port: 80 },
    analysis: { interval: "1m", threshold: 1, stepWeights: [10] },
    ...more,
  }) as CanarySpec
const gateway = spec({ provider: "gatewayapi:v1", service: { port: 80, gatewayRefs: [{ name: "g" }] } })
const names: BuiltIn[] = ["request-success-rate", "request-duration"]

function asked(
  name: BuiltIn,
  canary: CanarySpec,
  more: Record<string, unknown> = {},
  with_: Partial<QueryValues> = {},
) {
  const query = builtInQuery(name, canary)
  if (typeof query !== "string") return query
  return questionsOf({ name, interval: "1m", ...more }, query, { ...values, ...with_ }, 3_600_000)
}

describe("built-in metrics", () => {
  test("Envoy counts requests of the new revision's Service", () => {
    const which = 'envoy_cluster_name=~"shop_web-canary_[0-9a-zA-Z-]+"'
    expect(asked("request-success-rate", gateway)).toEqual({
      target:
        `(sum(rate(envoy_cluster_upstream_rq{${which}, envoy_response_code!~"5.*"}[60s])) or vector(0))` +
        ` / sum(rate(envoy_cluster_upstream_rq{${which}}[60s])) * 100`,
      windowMs: 60_000,
    })
    expect(asked("request-duration", gateway)).toEqual({
      target: `histogram_quantile(0.99, sum(rate(envoy_cluster_upstream_rq_time_bucket{${which}}[60s])) by (le))`,
      windowMs: 60_000,
    })
  })

  test("without a gateway the pods count themselves, in seconds", () => {
    const letters = "[bcdfghjklmnpqrstvwxz2456789]"
    const which = `kubernetes_namespace="shop", kubernetes_pod_name=~"web-7d9f-${letters}{1,10}-${letters}{5}"`
    expect(asked("request-success-rate", spec())).toEqual({
      target:
        `(sum(rate(http_request_duration_seconds_count{${which}, status!~"5.*"}[60s])) or vector(0))` +
        ` / sum(rate(http_request_duration_seconds_count{${which}}[60s])) * 100`,
      windowMs: 60_000,
    })
    expect(asked("request-duration", spec())).toEqual({
      target: `histogram_quantile(0.99, sum(rate(http_request_duration_seconds_bucket{${which}}[60s])) by (le)) * 1000`,
      windowMs: 60_000,
    })
  })

  test("Blue/Green behind a gateway asks the pods as long as Envoy has counted nothing", () => {
    const blueGreen = { interval: "1m", threshold: 1, iterations: 5 }
    const of = (name: BuiltIn, analysis: object) => builtInQuery(name, { ...gateway, analysis } as CanarySpec)
    for (const name of names) {
      const [envoy, pods] = [builtInQuery(name, gateway), builtInQuery(name, spec())]
      expect(of(name, blueGreen)).toBe(`${envoy} >= 0 or ${pods}`)
      // Here the gateway sends the new revision requests from the first round on.
      expect(of(name, { ...blueGreen, mirror: true })).toBe(envoy)
      expect(of(name, { ...blueGreen, match: [{ headers: { a: { exact: "b" } } }] })).toBe(envoy)
    }
  })

  test("the running revision is asked for what the new one is asked for", () => {
    for (const canary of [gateway, spec()])
      for (const name of names) {
        const both = asked(name, canary, { relativeTo: "Source" }) as { target: string; source: string }
        const swapped = canary === gateway ? ["web-canary", "web-primary"] : ["web-7d9f-", "web-"]
        expect(both.source).toBe(both.target.replaceAll(swapped[0]!, swapped[1]!))
      }
  })

  /** Label values that a query selects, of those that there are. */
  const selected = (query: string, candidates: readonly string[]) => {
    const pattern = /(?:kubernetes_pod_name|envoy_cluster_name)=~"([^"]*)"/.exec(query)![1]!.replaceAll("\\\\", "\\")
    return candidates.filter(each => new RegExp(`^(?:${pattern})$`).test(each))
  }
  const pods = [
    "web-6d4b9c7f5d-x2v4k", // of the source
    "web-7d9f-6d4b9c7f5d-x2v4k", // of the target
    "web-7d9f-7-x2v4k",
    "web-5c8b-6d4b9c7f5d-x2v4k", // of an earlier run
    "web-worker-0", // of a StatefulSet
    "web-worker-6d4b9c7f5d-x2v4k", // of another Deployment
    "web-7d9f-worker-x2v4k",
    "webx7d9f-6d4b9c7f5d-x2v4k",
    "a-web-7d9f-6d4b9c7f5d-x2v4k",
  ]

  test("a query selects the pods of one revision and no others", () => {
    const { target, source } = asked("request-duration", spec(), { relativeTo: "Source" }) as Record<string, string>
    expect(selected(target!, pods)).toEqual(["web-7d9f-6d4b9c7f5d-x2v4k", "web-7d9f-7-x2v4k"])
    expect(selected(source!, pods)).toEqual(["web-6d4b9c7f5d-x2v4k"])
  })

  test("a dot in a name is a dot", () => {
    const { target } = asked("request-duration", spec(), {}, { target: "web.7d9f" }) as Record<string, string>
    expect(selected(target!, [...pods, "web.7d9f-6d4b9c7f5d-x2v4k"])).toEqual(["web.7d9f-6d4b9c7f5d-x2v4k"])
  })

  test("a query selects one Service and no other", () => {
    const clusters = [
      "shop_web-canary_80",
      "shop_web-primary_80",
      "shop_web_80",
      "a-shop_web-canary_80",
      "shop_x-web-canary_80",
    ]
    for (const name of names) {
      const both = asked(name, gateway, { relativeTo: "Source" }) as { target: string; source: string }
      expect(selected(both.target, clusters)).toEqual(["shop_web-canary_80"])
      expect(selected(both.source, clusters)).toEqual(["shop_web-primary_80"])
    }
  })

  test.each([
    ["gatewayapi", gateway.service, "envoy_"],
    ["gatewayapi:v1beta1", gateway.service, "envoy_"],
    [undefined, gateway.service, "envoy_"],
    [undefined, { port: 80 }, "http_"],
    ["kubernetes", gateway.service, "http_"],
  ])("provider %s", (provider, service, series) =>
    expect(asked("request-duration", spec({ provider, service }))).toMatchObject({
      target: expect.stringContaining(series),
    }),
  )

  test.each([
    [
      { provider: "linkerd" },
      /^request-duration is built in for the providers gatewayapi, contour, traefik, istio, kubernetes, not for linkerd/,
    ],
    [{ provider: "constructor" }, /not for constructor/],
    [
      { targetRef: { apiVersion: "apps/v1", kind: "StatefulSet", name: "db" } },
      /both revisions of a StatefulSet apart/,
    ],
  ])("%j is not supported", (more, message) =>
    expect(asked("request-duration", spec(more))).toEqual({
      reason: "NotSupported",
      message: expect.stringMatching(message),
    }),
  )
})

describe("own queries", () => {
  const metric = { name: "errors", interval: "1m" }
  const of = (query: string, more: Record<string, unknown> = {}, atThisWeightMs = 3_600_000) =>
    questionsOf({ ...metric, ...more }, query, values, atThisWeightMs)

  test("the window ends where the present weight began", () => {
    expect(of("[{{ interval }}]", { interval: "1m30s" })).toEqual({ target: "[90s]", windowMs: 90_000 })
    expect(of("[{{ interval }}]", {}, 20_900)).toEqual({ target: "[20s]", windowMs: 20_000 })
    expect(of("[{{ interval }}]", {}, 0)).toEqual({ target: "[1s]", windowMs: 1000 })
  })

  test("variables are those of the metric", () => {
    expect(of("{{ variables.way }}", { templateVariables: { way: "in" } })).toEqual({ target: "in", windowMs: 60_000 })
    expect(of("{{ variables.way }}")).toMatchObject({
      reason: "InvalidQuery",
      message: expect.stringContaining(
        "metric errors: {{ variables.way }} at line 1, column 1: templateVariables has no way",
      ),
    })
  })

  test("a relative metric needs a query that names the revision", () => {
    expect(of('x{a="{{ target }}"}', { relativeTo: "Source" })).toEqual({
      target: 'x{a="web-7d9f"}',
      source: 'x{a="web"}',
      windowMs: 60_000,
    })
    expect(of("up", { relativeTo: "Source" })).toMatchObject({ reason: "InvalidQuery" })
    expect(of("{{ revision }}", { relativeTo: "Source" })).toMatchObject({ reason: "InvalidQuery" })
  })

  test("where both revisions have one name, a query must tell them apart", () => {
    const set = { ...values, target: "db", source: "db", revision: "db-5c9", sourceRevision: "db-1f2" }
    const asked = (query: string, more = {}) => questionsOf({ ...metric, ...more }, query, set, 3_600_000)
    expect(asked('x{a="{{ target }}"}')).toMatchObject({
      reason: "InvalidQuery",
      message: expect.stringContaining("write {{ revision }} beside it"),
    })
    const exact = 'x{a="{{ target }}", hash="{{ revision }}"}'
    expect(asked(exact)).toEqual({ target: 'x{a="db", hash="db-5c9"}', windowMs: 60_000 })
    expect(asked(exact, { relativeTo: "Source" })).toEqual({
      target: 'x{a="db", hash="db-5c9"}',
      source: 'x{a="db", hash="db-1f2"}',
      windowMs: 60_000,
    })
  })

  test.each(["1mx", "0s", "5"])("interval %s is a problem", interval =>
    expect(of("up", { interval })).toMatchObject({ reason: "InvalidSpec" }),
  )

  test.each(['a"', "a'", "a`", "a\\", "a{", "a}", "a(", "a)", "a[", "a]", "a,b", "a\nb"])(
    "variable %j could change the query of another namespace",
    way =>
      expect(variableProblem({ ...metric, templateVariables: { ok: "a", way } })).toMatchObject({
        reason: "InvalidQuery",
      }),
  )

  test.each(["inbound", "2..|3..", "a-b_c.d:e/f", "99%", ""])("variable %j is plain", way =>
    expect(variableProblem({ ...metric, templateVariables: { way } })).toBeUndefined(),
  )
})
