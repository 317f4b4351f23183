import { describe, expect, test } from "vitest"
import { findingsOf } from "../findings.ts"
import { builtInQuery } from "../queries.ts"
import type { RouteContext, RouteObject, Split } from "../router.ts"
import { serviceNamesOf } from "../services.ts"
import { canaryOf } from "../test-canary.ts"
import { routerOf, withoutEffect } from "./index.ts"
import { istio } from "./istio.ts"

type Spec = NonNullable<Parameters<typeof canaryOf>[0]>
type Share = { destination: { host: string; subset?: string }; weight?: number }
type Http = { route: Share[]; match?: object[]; mirror?: object; mirrors?: object[]; [other: string]: unknown }

const canary = (spec: Spec = {}) => canaryOf({ provider: "istio", ...spec })
const context = (spec: Spec = {}): RouteContext => ({
  canary: canary(spec),
  services: serviceNamesOf(canaryOf()),
  hashes: { source: "a", target: "b" },
})
const to = (weight: number, isMirrored = false): Split => ({ weight, isMirrored })
const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const httpOf = ({ spec }: RouteObject) => (spec as { http: Http[] }).http
const weights = ({ route }: Http) => route.map(({ destination: { host }, weight }) => `${host} ${weight}`).join(", ")
const insider = { headers: { "X-Canary": { exact: "insider" } } }

const owners = (http: object[], more: object = {}): RouteObject => ({
  apiVersion: "networking.istio.io/v1",
  kind: "VirtualService",
  metadata: { name: "web", namespace: "shop" },
  spec: { hosts: ["web"], ...more, http },
})

/** Takes stages until nothing changes. */
function inStages(first: RouteObject, next: (now: RouteObject) => RouteObject): RouteObject {
  let now = first
  for (let stages = 0; stages < 6; stages++) {
    const after = stored(next(now))
    if (JSON.stringify(after) === JSON.stringify(now)) return now
    now = after
  }
  throw new Error("it never comes to an end")
}

describe("one that is made", () => {
  const made = (spec: Spec = {}, split = to(30)) => stored(istio.routed(context(spec), undefined, split))

  test("is for the Service, in the mesh, and divides every request", () => {
    const found = made()
    expect(found).toMatchObject({ apiVersion: "networking.istio.io/v1", kind: "VirtualService" })
    expect(found.spec).toEqual({
      hosts: ["web"],
      gateways: ["mesh"],
      http: [
        {
          route: [
            { destination: { host: "web-primary" }, weight: 70 },
            { destination: { host: "web-canary" }, weight: 30 },
          ],
        },
      ],
    })
    expect(istio.splitIn(context(), found)).toEqual(to(30))
    expect(istio.isAccepted(context(), found)).toEqual({ ok: true })
    expect(istio.restored(context(), found)).toBeUndefined()
    expect(weights(httpOf(istio.routed(context(), found, to(100)))[0]!)).toBe("web-primary 0, web-canary 100")
  })

  test("has the hosts and gateways of the spec, or none of them where another names it", () => {
    const service = { hosts: ["shop.example.com"], gateways: ["istio-system/public"] }
    expect(made({ service }).spec).toMatchObject({
      hosts: ["shop.example.com", "web"],
      gateways: ["istio-system/public"],
    })
    expect(made({ service: { hosts: ["*"] } }).spec).toMatchObject({ hosts: ["*"] })
    expect(Object.keys(made({ service: { delegation: true } }).spec as object)).toEqual(["http"])
  })

  test("has what the spec says of requests, and nothing that is empty", () => {
    const service = {
      match: [{ uri: { prefix: "/api" }, sourceNamespace: "front" }],
      rewrite: { uri: "/", type: "ReplacePrefixMatch" },
      timeout: "15s",
      retries: { attempts: 3, perTryTimeout: "", retryOn: "5xx" },
      headers: { request: { add: { a: "1" } } },
      corsPolicy: { allowOrigin: ["a.b"] },
    }
    const [{ route: _, ...http }] = httpOf(made({ service })) as [Http]
    expect(http).toEqual({ ...service, rewrite: { uri: "/" }, retries: { attempts: 3, retryOn: "5xx" } })
    const [empty] = httpOf(made({ service: { timeout: "", rewrite: {}, match: [] } }))
    expect(Object.keys(empty!)).toEqual(["route"])
  })

  test("sends requests that match in a route before the other, each with both matches", () => {
    const spec: Spec = {
      service: { match: [{ uri: { prefix: "/a" }, headers: { "x-b": { exact: "1" } } }, { uri: { prefix: "/b" } }] },
      analysis: {
        iterations: 1,
        match: [insider, { headers: { cookie: { suffix: "v=2" } }, sourceLabels: { app: "front" } }],
      },
    }
    const found = made(spec, to(100))
    const regex = { regex: ".*v=2" }
    expect(httpOf(found).map(({ match }) => match)).toEqual([
      [
        { uri: { prefix: "/a" }, headers: { "x-b": { exact: "1" }, "x-canary": { exact: "insider" } } },
        { uri: { prefix: "/a" }, headers: { "x-b": { exact: "1" }, cookie: regex }, sourceLabels: { app: "front" } },
        { uri: { prefix: "/b" }, headers: { "x-canary": { exact: "insider" } } },
        { uri: { prefix: "/b" }, headers: { cookie: regex }, sourceLabels: { app: "front" } },
      ],
      spec.service!.match,
    ])
    expect(httpOf(found).map(weights)).toEqual(["web-primary 0, web-canary 100", "web-primary 100, web-canary 0"])
    expect(istio.splitIn(context(spec), found)).toEqual(to(100))
    const back = istio.routed(context(spec), found, to(0))
    expect(httpOf(back).map(weights)).toEqual(["web-primary 100, web-canary 0"])
  })

  test("copies requests, all of them or a share", () => {
    const all = made({ analysis: { iterations: 2, mirror: true } }, to(0, true))
    expect(httpOf(all)[0]).toMatchObject({ mirror: { host: "web-canary" } })
    const some = { analysis: { iterations: 2, mirror: true, mirrorWeight: 40 } }
    const found = made(some, to(0, true))
    expect(httpOf(found)[0]).toMatchObject({ mirror: { host: "web-canary" }, mirrorPercentage: { value: 40 } })
    expect(istio.splitIn(context(some), found)).toEqual(to(0, true))
    expect(Object.keys(httpOf(istio.routed(context(some), found, to(0)))[0]!)).toEqual(["route"])
  })
})

describe("one that was there", () => {
  const full = "web.shop.svc.cluster.local"
  const kept: Record<string, object[]> = {
    "with one destination": [{ route: [{ destination: { host: "web" } }] }],
    "with full names and ports": [{ route: [{ destination: { host: full, port: { number: 80 } }, weight: 100 }] }],
    "with headers, a timeout and a copy": [
      {
        timeout: "5s",
        mirror: { host: "log.other" },
        mirrorPercentage: { value: 5 },
        route: [{ destination: { host: "web" }, headers: { response: { set: { a: "b" } } } }],
      },
    ],
    "with a list of copies": [
      { mirrors: [{ destination: { host: "log" } }], route: [{ destination: { host: "web" } }] },
    ],
    "beside another, with one without a weight, and routes for others": [
      { match: [{ uri: { exact: "/old" } }], redirect: { uri: "/" } },
      { match: [{ uri: { prefix: "/x" } }], route: [{ destination: { host: "web", subset: "v1" } }] },
      { match: [{ uri: { prefix: "/y" } }], route: [{ destination: { host: "web.elsewhere" } }] },
      {
        route: [
          { destination: { host: "web" }, weight: 90 },
          { destination: { host: "other.example.com" }, weight: 10 },
        ],
      },
    ],
  }
  for (const [name, http] of Object.entries(kept))
    for (const analysis of [{ stepWeights: [25] }, { iterations: 1, match: [insider] }])
      test(`${name}: divided ${"match" in analysis ? "by a header" : "by weights"} and given back as it was`, () => {
        const before = owners(http, { exportTo: ["."] })
        const about = context({ analysis })
        const divided = inStages(before, now => istio.routed(about, now, to(25)))
        expect(istio.splitIn(about, divided)).toEqual(to(25))
        expect(istio.isAccepted(about, divided)).toEqual({ ok: true })
        expect(inStages(divided, now => istio.restored(about, now)!)).toEqual(before)
      })

  test("keeps the way in which its owner names Services", () => {
    const before = owners(kept["with full names and ports"]!)
    const divided = inStages(before, now => istio.routed(context(), now, to(25)))
    const port = { number: 80 }
    expect(httpOf(divided)[0]!.route).toEqual([
      { destination: { host: "web-primary.shop.svc.cluster.local", port }, weight: 75 },
      { destination: { host: "web-canary.shop.svc.cluster.local", port }, weight: 25 },
    ])
  })

  test("is not accepted where no route leads to the Service, or only to a part of it", () => {
    for (const http of [[], [{ route: [{ destination: { host: "web", subset: "v1" } }] }]]) {
      const foreign = owners(http)
      expect(istio.isAccepted(context(), foreign)).toMatchObject({
        ok: false,
        why: expect.stringContaining("host web"),
      })
      expect(httpOf(istio.routed(context(), foreign, to(50))) ?? []).toEqual(http)
    }
  })
})

test("it is off unless it is allowed, and what it cannot do is refused or named", () => {
  expect(routerOf(canary(), ["istio"])).toBe(istio)
  expect(routerOf(canary(), [])).toMatchObject({
    field: "provider",
    message: expect.stringContaining("is off, unless"),
  })
  expect(findingsOf(canary())).toMatchObject([{ field: "spec.provider", kind: "Missing" }])
  const fields = (spec: Spec) => istio.problemsOf(canary(spec)).map(({ field }) => field)
  expect(fields({ analysis: { stepWeights: [10], sessionAffinity: { cookieName: "c" } } })).toEqual([
    "analysis.sessionAffinity",
  ])
  expect(fields({ service: { appProtocol: "TCP" } })).toEqual(["service.appProtocol"])
  expect(fields({ analysis: { iterations: 1, match: [insider, {}] } })).toEqual(["analysis.match[1]"])
  expect(fields({ analysis: { iterations: 1, match: [{ sourceLabels: { a: "b" } }], mirror: true } })).toEqual([])
  const service = {
    ...{ gateways: ["g"], retries: { attempts: 1 }, trafficPolicy: { tls: { mode: "DISABLE" } } },
    ...{ match: [{ scheme: { exact: "https" } }], backendTimeout: "1s" },
  }
  expect(withoutEffect(canary({ service })).toSorted()).toEqual(["service.backendTimeout", "service.trafficPolicy"])
})

test("the built-in metrics ask Istio for the workload of the new revision", () => {
  const which =
    'reporter="destination", destination_workload_namespace="{{ namespace }}", destination_workload=~"{{ target }}"'
  for (const analysis of [{ stepWeights: [10] }, { iterations: 2 }]) {
    const { spec } = canary({ analysis })
    expect(builtInQuery("request-duration", spec)).toBe(
      `histogram_quantile(0.99, sum(rate(istio_request_duration_milliseconds_bucket{${which}}[{{ interval }}])) by (le))`,
    )
  }
  const targetRef = { apiVersion: "apps/v1", kind: "StatefulSet" as const, name: "db" }
  expect(builtInQuery("request-duration", { ...canary().spec, targetRef })).toMatchObject({ reason: "NotSupported" })
})
