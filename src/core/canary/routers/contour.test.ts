import { describe, expect, test } from "vitest"
import type { RouteContext, RouteObject, Split } from "../router.ts"
import { serviceNamesOf } from "../services.ts"
import { canaryOf } from "../test-canary.ts"
import { contour } from "./contour.ts"
import { routerOf, withoutEffect } from "./index.ts"

type Spec = NonNullable<Parameters<typeof canaryOf>[0]>

const canary = (spec: Spec = {}) => canaryOf({ provider: "contour", ...spec })
const context = (spec: Spec = {}): RouteContext => ({
  canary: canary(spec),
  services: serviceNamesOf(canaryOf()),
  hashes: { source: "a", target: "b" },
})
const to = (weight: number, isMirrored = false): Split => ({ weight, isMirrored })
const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

type Route = { conditions?: object[]; services: { name: string; weight?: number; mirror?: boolean }[] }
const routesOf = ({ spec }: RouteObject) => (spec as { routes: Route[] }).routes
const weights = ({ services }: Route) =>
  services.map(({ name, weight, mirror }) => `${name} ${mirror ? "copies " : ""}${weight}`).join(", ")

/** As its owner has it: a root with a route of its own beside the one to us. */
const proxy = (routes: object[]): RouteObject => ({
  apiVersion: "projectcontour.io/v1",
  kind: "HTTPProxy",
  metadata: { name: "web", namespace: "shop", generation: 3 },
  spec: { virtualhost: { fqdn: "shop.example.com" }, routes },
})
const images = { conditions: [{ prefix: "/images" }], services: [{ name: "images", port: 80 }] }
const web = { name: "web", port: 80, protocol: "h2c" }
const toWeb = { conditions: [{ prefix: "/" }], enableWebsockets: true, services: [web] }

/** Every object on the way, until nothing changes. */
function stages(before: RouteObject, next: (now: RouteObject) => RouteObject): RouteObject[] {
  const all = [before]
  for (let count = 0; count < 6; count++) {
    const after = stored(next(all.at(-1)!))
    if (JSON.stringify(after) === JSON.stringify(all.at(-1))) return all
    all.push(after)
  }
  throw new Error("it never comes to an end")
}

test("an HTTPProxy of its owner's is divided in stages, keeps what is foreign, and goes back as it was", () => {
  const before = proxy([images, toWeb])
  const there = stages(before, now => contour.routed(context(), now, to(20)))
  expect(there.map(object => weights(routesOf(object)[1]!))).toEqual([
    "web undefined",
    "web 100, web-primary 0, web-canary 0",
    "web 0, web-primary 80, web-canary 20",
    "web-primary 80, web-canary 20",
  ])
  const divided = there.at(-1)!
  expect(routesOf(divided)[0]).toEqual(images)
  expect(routesOf(divided)[1]).toMatchObject({ enableWebsockets: true, services: [{ protocol: "h2c" }, {}] })
  expect(contour.splitIn(context(), divided)).toEqual(to(20))
  expect(there.slice(1, 3).map(object => contour.isUnderWay!(context(), object))).toEqual([true, true])
  expect(stages(divided, now => contour.restored(context(), now)!).at(-1)).toEqual(before)
})

describe("weights of its owner's", () => {
  const shares: Record<string, { services: object[]; divided: string }> = {
    "a foreign Service keeps its share": {
      services: [
        { ...web, weight: 3 },
        { name: "other", port: 80, weight: 1 },
      ],
      divided: "web-primary 240, web-canary 60, other 100",
    },
    "one without a weight beside one that has one gets nothing": {
      services: [
        { ...web, weight: 3 },
        { name: "other", port: 80 },
      ],
      divided: "web-primary 240, web-canary 60, other 0",
    },
    "without any weight all have the same": {
      services: [web, { name: "other", port: 80 }],
      divided: "web-primary 80, web-canary 20, other 100",
    },
  }
  for (const [name, { services, divided }] of Object.entries(shares))
    test(name, () => {
      const all = stages(proxy([{ services }]), now => contour.routed(context(), now, to(20)))
      expect(weights(routesOf(all.at(-1)!)[0]!)).toBe(divided)
    })
})

test("one that is made follows the spec, and names no host", () => {
  const about = context({
    service: {
      timeout: "30s",
      retries: { attempts: 0, perTryTimeout: "5s" },
      rewrite: { uri: "/v2", authority: "inside.example.com", type: "ReplacePrefixMatch" },
      headers: { request: { set: { "x-by": "aim" }, remove: ["x-old"] } },
      match: [{ uri: { prefix: "/api" } }, { uri: { prefix: "/ajax" }, headers: { "x-kind": { prefix: "b.c" } } }],
    },
  })
  const made = contour.routed(about, undefined, to(0))
  const policies = {
    timeoutPolicy: { response: "30s", idle: "5m" },
    retryPolicy: { count: -1, perTryTimeout: "5s" },
    pathRewritePolicy: { replacePrefix: [{ replacement: "/v2" }] },
    requestHeadersPolicy: {
      set: [
        { name: "x-by", value: "aim" },
        { name: "Host", value: "inside.example.com" },
      ],
      remove: ["x-old"],
    },
    services: [
      { name: "web-primary", port: 80, weight: 100 },
      { name: "web-canary", port: 80, weight: 0 },
    ],
  }
  expect(made.spec).toEqual({
    routes: [
      { conditions: [{ prefix: "/api" }], ...policies },
      { conditions: [{ prefix: "/ajax" }, { header: { name: "x-kind", regex: "^b\\.c.*" } }], ...policies },
    ],
  })
  const next = contour.routed(about, stored(made), to(30))
  expect(routesOf(next).map(weights)).toEqual(Array(2).fill("web-primary 70, web-canary 30"))
  expect(contour.splitIn(about, next)).toEqual(to(30))
  expect(contour.restored(about, next)).toBeUndefined()
})

test("requests that match go to the target: a route for each match, before the one for all", () => {
  const analysis = {
    iterations: 3,
    match: [
      { headers: { "x-canary": { exact: "insider" } } },
      { headers: { cookie: { regex: "^(.*?;)?(canary=always)(;.*)?$" } } },
    ],
  }
  const about = context({ analysis })
  const next = stored(contour.routed(about, undefined, to(100)))
  expect(routesOf(next).map(route => [route.conditions, weights(route)])).toEqual([
    [[{ prefix: "/" }, { header: { name: "x-canary", exact: "insider" } }], "web-primary 0, web-canary 100"],
    [
      [{ prefix: "/" }, { header: { name: "cookie", regex: "^(.*?;)?(canary=always)(;.*)?$" } }],
      "web-primary 0, web-canary 100",
    ],
    [[{ prefix: "/" }], "web-primary 100, web-canary 0"],
  ])
  expect(contour.splitIn(about, next)).toEqual(to(100))
  expect(routesOf(contour.routed(about, next, to(0))).map(weights)).toEqual(["web-primary 100, web-canary 0"])
  const adopted = stages(proxy([toWeb]), now => contour.routed(about, now, to(100)))
  expect(routesOf(adopted.at(-1)!)).toHaveLength(3)
  expect(stages(adopted.at(-1)!, now => contour.restored(about, now)!).at(-1)).toEqual(proxy([toWeb]))
})

test("copies of requests go to the target, all or some, and end", () => {
  const about = context({ analysis: { iterations: 3, mirror: true, mirrorWeight: 25 } })
  const next = stored(contour.routed(about, undefined, to(0, true)))
  expect(routesOf(next).map(weights)).toEqual(["web-primary 100, web-canary 0, web-canary copies 25"])
  expect(contour.splitIn(about, next)).toEqual(to(0, true))
  expect(stored(contour.routed(about, next, to(0, true)))).toEqual(next)
  expect(routesOf(contour.routed(about, next, to(100))).map(weights)).toEqual(["web-primary 0, web-canary 100"])
  const adopted = stages(proxy([toWeb]), now => contour.routed(about, now, to(0, true))).at(-1)!
  expect(stages(adopted, now => contour.restored(about, now)!).at(-1)).toEqual(proxy([toWeb]))
})

describe("what Contour says", () => {
  const valid = { type: "Valid", status: "True", observedGeneration: 3 }
  const error = (type: string, message: string) => ({
    ...{ ...valid, status: "False" },
    errors: [{ type, message }],
  })
  const cases: Record<string, { conditions?: object[]; routes?: object[]; why?: string }> = {
    "valid as it is now": { conditions: [valid] },
    "not looked at yet": { why: "Contour has not looked at HTTPProxy web as it is now" },
    "valid as it was": {
      conditions: [{ ...valid, observedGeneration: 2 }],
      why: "Contour has not looked at HTTPProxy web as it is now",
    },
    "in no root": {
      conditions: [error("Orphaned", "this HTTPProxy is not part of a delegation chain")],
      why: "no HTTPProxy with a virtualhost includes HTTPProxy web: add includes: [{name: web, namespace: shop}] to yours",
    },
    "not valid": {
      conditions: [error("ServiceError", "service not found")],
      why: "Contour says that HTTPProxy web is not valid: service not found",
    },
    "no route to us": {
      conditions: [valid],
      routes: [images],
      why: "no route of HTTPProxy web sends requests to Service web: add it to services",
    },
  }
  for (const [name, { conditions, routes = [toWeb], why }] of Object.entries(cases))
    test(name, () => {
      const object = { ...proxy(routes), ...(conditions && { status: { conditions } }) }
      expect(contour.isAccepted(context(), object)).toEqual(why === undefined ? { ok: true } : { ok: false, why })
    })
})

test("what an HTTPProxy cannot do is refused, and what it has no use for is named", () => {
  expect(routerOf(canary())).toBe(contour)
  const bad = canary({
    analysis: { stepWeights: [10], sessionAffinity: { cookieName: "c" } },
    service: {
      match: [{ uri: { exact: "/" }, method: { exact: "GET" } }],
      headers: { response: { add: { a: "b" } } },
      rewrite: { uri: "/", type: "ReplacePrefixMatch" },
    },
  })
  expect(contour.problemsOf(bad).map(({ reason, field }) => `${reason} ${field}`)).toEqual([
    "NotSupported analysis.sessionAffinity",
    "InvalidSpec service.match[0].method",
    "InvalidSpec service.headers.response.add",
    "InvalidSpec service.rewrite.type",
  ])
  expect(contour.problemsOf(canary({ analysis: { iterations: 1, match: [{}] } }))).toMatchObject([
    { field: "analysis.match[0]" },
  ])
  const idle = { hosts: ["a"], corsPolicy: { allowOrigin: ["*"] }, retries: { attempts: 2, retryOn: "5xx" } }
  expect(withoutEffect(canary({ service: idle }))).toEqual([
    "service.hosts",
    "service.corsPolicy",
    "service.retries.retryOn",
  ])
})
