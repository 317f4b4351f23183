import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { RouteContext, RouteObject, Router, Split } from "../router.ts"
import { isRouter } from "../router.ts"
import { serviceNamesOf } from "../services.ts"
import { canaryOf } from "../test-canary.ts"
import { gatewayApi } from "./gateway-api.ts"
import type { Match, Rule } from "./http-route.ts"
import { routerOf, withoutEffect } from "./index.ts"
import { kubernetes } from "./kubernetes.ts"

type Spec = NonNullable<Parameters<typeof canaryOf>[0]>
type Given = Spec & Partial<Pick<RouteContext, "hashes" | "cookies">>

const gatewayRefs = [{ name: "public", namespace: "gateways" }]
const context = ({ hashes = { source: "a", target: "b" }, cookies, service, ...spec }: Given = {}): RouteContext => ({
  canary: canaryOf({ ...spec, service: { gatewayRefs, ...service } }),
  services: serviceNamesOf(canaryOf()),
  hashes,
  ...(cookies && { cookies }),
})
const to = (weight: number, more: Partial<Split> = {}): Split => ({ weight, isMirrored: false, ...more })
const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const rulesOf = (object: RouteObject) => (object.spec as { rules: Rule[] }).rules
const weights = ({ backendRefs = [] }: Rule) => backendRefs.map(({ name, weight }) => `${name} ${weight}`).join(", ")
const headersOf = ({ matches = [] }: Rule) =>
  (matches as Match[]).map(({ headers = [] }) => headers.map(({ name, value }) => `${name}=${value}`).join("&"))

const namedIn = (object: RouteObject, least: number) =>
  new Set(
    rulesOf(object).flatMap(({ backendRefs = [] }) =>
      backendRefs.filter(({ weight = 1 }) => weight >= least).map(({ name }) => name),
    ),
  )

/**
 * Takes stages until nothing changes. A gateway may know no Service but those that a stage and the one before it have in
 * common: what gets requests was named before, and what goes had none.
 */
function inStages(before: RouteObject, next: (now: RouteObject) => RouteObject): RouteObject {
  let now = before
  for (let stages = 0; stages < 5; stages++) {
    const after = stored(next(now))
    if (JSON.stringify(after) === JSON.stringify(now)) return now
    expect([...namedIn(after, 1)].filter(name => !namedIn(now, 0).has(name))).toEqual([])
    expect([...namedIn(now, 1)].filter(name => !namedIn(after, 0).has(name))).toEqual([])
    now = after
  }
  throw new Error("it never comes to an end")
}
const divide = (about: RouteContext, before: RouteObject, split: Split) =>
  inStages(before, now => gatewayApi.routed(about, now, split))
const giveBack = (about: RouteContext, before: RouteObject) => inStages(before, now => gatewayApi.restored(about, now)!)

const route = (rules: object[], metadata: object = {}): RouteObject => ({
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "HTTPRoute",
  metadata: { name: "web", namespace: "shop", generation: 3, ...metadata },
  spec: { parentRefs: gatewayRefs, hostnames: ["shop.example.com"], rules },
})
const toWeb = { group: "", kind: "Service", name: "web", port: 80, weight: 1 }

describe("which router", () => {
  const of = (spec: Spec) => {
    const found = routerOf(canaryOf(spec))
    return isRouter(found) ? found.kind.kind : found
  }
  test("is told by the provider, or by what the spec has", () => {
    expect(of({})).toBe("Service")
    expect(of({ service: { gatewayRefs } })).toBe("HTTPRoute")
    for (const provider of ["gatewayapi", "gatewayapi:v1", "gatewayapi:v1beta1"] as const)
      expect(of({ provider, service: { gatewayRefs } })).toBe("HTTPRoute")
  })
  test("one that is not here is named with those that are, and is never another one in silence", () => {
    expect(of({ provider: "linkerd" })).toEqual({
      reason: "NotSupported",
      field: "provider",
      message:
        "provider linkerd has no router here: write one of gatewayapi, gatewayapi:v1, gatewayapi:v1beta1, contour, traefik, kubernetes",
    })
  })
})

describe("a new HTTPRoute", () => {
  const made = (given: Given, split = to(10)) => gatewayApi.routed(context(given), undefined, split)
  test("divides every request, with what a server would fill in written out", () => {
    const found = made({ service: { hosts: ["shop.example.com"], apex: { labels: { team: "a" } } } })
    expect(found.metadata).toMatchObject({ name: "web", namespace: "shop", labels: { team: "a" } })
    expect(found.metadata.ownerReferences).toEqual([expect.objectContaining({ kind: "Canary", uid: "uid-of-web" })])
    expect(found.spec).toEqual({
      parentRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "public", namespace: "gateways" }],
      hostnames: ["shop.example.com"],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: "/" } }],
          backendRefs: [
            { group: "", kind: "Service", name: "web-primary", port: 80, weight: 90 },
            { group: "", kind: "Service", name: "web-canary", port: 80, weight: 10 },
          ],
        },
      ],
    })
  })

  const rules: Record<string, { service: NonNullable<Spec["service"]>; rule: object }> = {
    timeouts: { service: { timeout: "1.5s", backendTimeout: "500ms" }, rule: { timeouts: { request: "1s500ms", backendRequest: "500ms" } } },
    "a path and a method": { service: { match: [{ uri: { exact: "/a" }, method: { exact: "GET" } }] }, rule: { matches: [{ path: { type: "Exact", value: "/a" }, method: "GET" }] } },
    "a prefix of a header": { service: { match: [{ headers: { x: { prefix: "a.b" } } }] }, rule: { matches: [{ headers: [{ type: "RegularExpression", name: "x", value: "^a\\.b.*" }] }] } },
    "another path": { service: { rewrite: { uri: "/", authority: "b" } }, rule: { filters: [{ type: "URLRewrite", urlRewrite: { hostname: "b", path: { type: "ReplaceFullPath", replaceFullPath: "/" } } }] } },
    headers: { service: { headers: { request: { add: { a: "1" } }, response: { remove: ["b"] } } }, rule: { filters: [{ type: "RequestHeaderModifier", requestHeaderModifier: { add: [{ name: "a", value: "1" }] } }, { type: "ResponseHeaderModifier", responseHeaderModifier: { remove: ["b"] } }] } },
    origins: { service: { corsPolicy: { allowOrigins: [{ exact: "https://a.b" }], maxAge: "24h" } }, rule: { filters: [{ type: "CORS", cors: { allowOrigins: ["https://a.b"], maxAge: 86_400 } }] } },
    copies: { service: { mirror: [{ backendRef: { name: "log", port: 80 } }] }, rule: { filters: [{ type: "RequestMirror", requestMirror: { backendRef: { name: "log", port: 80 } } }] } },
  } // biome-ignore format: a table
  for (const [name, { service, rule }] of Object.entries(rules))
    test(`has the ${name} of the spec`, () => expect(rulesOf(made({ service }))[0]).toMatchObject(rule))

  test("follows its spec, and keeps rules that others have added", () => {
    const first = stored(made({ service: { timeout: "5s" } }))
    const other = {
      matches: [{ path: { type: "PathPrefix", value: "/other" } }],
      backendRefs: [{ name: "other", port: 1 }],
    }
    const edited = { ...first, spec: { ...(first.spec as object), rules: [...rulesOf(first), other] } }
    const next = gatewayApi.routed(context({ service: { timeout: "9s" } }), edited, to(20))
    expect(rulesOf(next)).toMatchObject([{ timeouts: { request: "9s" } }, other])
    expect(gatewayApi.splitIn(context(), next)).toEqual(to(20))
  })

  test("is deleted where it is to go back", () => expect(gatewayApi.restored(context(), made({}))).toBeUndefined())

  const match = [
    { headers: { cookie: { regex: "^(.*?;)?(canary=always)(;.*)?$" } } },
    { queryParams: { beta: { exact: "1" } } },
  ]
  test("sends matching requests to the target, before the rule for the others", () => {
    const given = { analysis: { iterations: 3, match } }
    const [first, rest] = rulesOf(made(given, to(100)))
    expect([first!, rest!].map(weights)).toEqual(["web-primary 0, web-canary 100", "web-primary 100, web-canary 0"])
    expect(first!.matches).toEqual([
      {
        path: { type: "PathPrefix", value: "/" },
        headers: [{ type: "RegularExpression", name: "cookie", value: match[0]!.headers!.cookie.regex }],
      },
      { path: { type: "PathPrefix", value: "/" }, queryParams: [{ type: "Exact", name: "beta", value: "1" }] },
    ])
    expect(rulesOf(made(given, to(0)))).toHaveLength(1)
    // A promotion is for every request: the Canary comes without its matches.
    expect(rulesOf(made({ analysis: { iterations: 3 } }, to(100))).map(weights)).toEqual([
      "web-primary 0, web-canary 100",
    ])
  })

  test("copies requests, all or a part", () => {
    const given = (mirrorWeight?: number) => ({
      analysis: { iterations: 3, mirror: true, ...(mirrorWeight !== undefined && { mirrorWeight }) },
    })
    const mirror = { backendRef: { group: "", kind: "Service", name: "web-canary", port: 80 } }
    const filters = (mirrorWeight?: number) =>
      rulesOf(made(given(mirrorWeight), to(0, { isMirrored: true })))[0]!.filters
    expect(filters()).toEqual([{ type: "RequestMirror", requestMirror: mirror }])
    expect(filters(20)).toEqual([{ type: "RequestMirror", requestMirror: { ...mirror, percent: 20 } }])
    expect(rulesOf(made(given(), to(0)))[0]!.filters).toBeUndefined()
  })

  describe("with session affinity", () => {
    const affinity = { cookieName: "c.k", primaryCookieName: "pk", path: "/", secure: true }
    const given = { analysis: { sessionAffinity: affinity } }
    const cookieOf = (rule: Rule, index: number) =>
      rule.backendRefs![index]!.filters?.[0]?.responseHeaderModifier?.add?.[0]?.value
    test("a client stays with the revision that answered it", () => {
      const rules = rulesOf(made({ ...given, cookies: { target: "c.k=x1", source: "pk=x2" } }, to(20)))
      expect(rules.map(weights)).toEqual([
        "web-primary 0, web-canary 100",
        "web-primary 100, web-canary 0",
        "web-primary 80, web-canary 20",
      ])
      expect(rules.map(headersOf)).toEqual([["Cookie=(.*; *)?c\\.k=x1(;.*)?"], ["Cookie=(.*; *)?pk=x2(;.*)?"], [""]])
      expect(cookieOf(rules[2]!, 1)).toBe("c.k=x1; Max-Age=86400; Path=/; Secure")
      expect(cookieOf(rules[2]!, 0)).toBe("pk=x2; Max-Age=60; Path=/; Secure")
      const pattern = new RegExp(`^${(rules[0]!.matches as Match[])[0]!.headers![0]!.value}$`)
      expect(["c.k=x1", "a=b; c.k=x1; d=e", "cxk=x1", "c.k=x12", "xc.k=x1"].map(each => pattern.test(each))).toEqual([
        true,
        true,
        false,
        false,
        false,
      ])
    })
    test("afterwards the cookie is taken back", () => {
      const service = { headers: { response: { add: { a: "1" } } } }
      const rules = rulesOf(made({ ...given, service, cookies: { previous: "c.k=x1" } }, to(0)))
      expect(rules.map(weights)).toEqual(Array(2).fill("web-primary 100, web-canary 0"))
      // A rule may change the headers of answers once.
      expect(rules[0]!.filters).toEqual([
        {
          type: "ResponseHeaderModifier",
          responseHeaderModifier: {
            add: [
              { name: "a", value: "1" },
              { name: "Set-Cookie", value: "c.k=x1; Max-Age=-1; Path=/; Secure" },
            ],
          },
        },
      ])
    })
  })
})

describe("an HTTPRoute that was there", () => {
  const filters = [{ type: "RequestHeaderModifier", requestHeaderModifier: { set: [{ name: "a", value: "1" }] } }]
  const shop = {
    matches: [{ path: { type: "PathPrefix", value: "/shop" } }],
    filters,
    backendRefs: [{ ...toWeb, port: 8080 }],
    timeouts: { request: "3s" },
  }
  const other = {
    matches: [{ path: { type: "PathPrefix", value: "/other" } }],
    backendRefs: [{ ...toWeb, name: "other" }],
  }
  const before = route([other, shop])

  test("is divided where it reaches our Services, and nowhere else", () => {
    const after = divide(context(), before, to(25))
    const { backendRefs: _, ...rest } = shop
    expect(rulesOf(after)[0]).toEqual(other)
    expect(rulesOf(after)[1]).toMatchObject(rest)
    expect(rulesOf(after)[1]!.backendRefs!.map(({ name, port, weight }) => [name, port, weight])).toEqual([
      ["web-primary", 8080, 75],
      ["web-canary", 8080, 25],
    ])
    expect(after.metadata.ownerReferences).toBeUndefined()
    expect(giveBack(context(), after)).toEqual(before)
  })

  test("requests pass to ours and back in stages: what gets requests was named before, and what goes has none", () => {
    const stages = ["web 1"]
    const step = (next: (now: RouteObject) => RouteObject) => (now: RouteObject) => {
      const after = next(now)
      stages.push(weights(rulesOf(after)[1]!))
      const isUnderWay = stages.at(-1)!.startsWith("web ") && stages.at(-1) !== "web 1"
      expect(gatewayApi.isUnderWay!(context(), after)).toBe(isUnderWay)
      if (isUnderWay) expect(gatewayApi.splitIn(context(), after)).toBeUndefined()
      return after
    }
    const after = inStages(
      before,
      step(now => gatewayApi.routed(context(), now, to(0))),
    )
    inStages(
      after,
      step(now => gatewayApi.restored(context(), now)!),
    )
    const [joined, passed, divided] = [
      "web 100, web-primary 0, web-canary 0",
      "web 0, web-primary 100, web-canary 0",
      "web-primary 100, web-canary 0",
    ]
    expect(stages).toEqual(["web 1", joined, passed, divided, divided, passed, joined, "web 1", "web 1"])
  })

  test("a foreign backend beside ours keeps its share", () => {
    const mixed = route([
      {
        backendRefs: [
          { ...toWeb, weight: 90 },
          { ...toWeb, name: "other", weight: 10 },
        ],
      },
    ])
    const after = divide(context(), mixed, to(25))
    expect(weights(rulesOf(after)[0]!)).toBe("web-primary 6750, web-canary 2250, other 1000")
    expect(gatewayApi.splitIn(context(), after)).toEqual(to(25))
    expect(giveBack(context(), after)).toEqual(mixed)
  })

  test("its owner's own way to the new revision stays", () => {
    const own = {
      matches: [{ headers: [{ type: "Exact", name: "qa", value: "1" }] }],
      backendRefs: [{ ...toWeb, name: "web-canary" }],
    }
    expect(rulesOf(gatewayApi.routed(context(), route([own, shop]), to(5)))[0]).toEqual(own)
  })

  test("one that was put back by its owner is divided again, and edits of its owner stay", () => {
    const after = divide(context(), before, to(25))
    const reset = { ...after, spec: before.spec }
    expect(gatewayApi.splitIn(context(), reset)).toBeUndefined()
    expect(divide(context(), reset, to(25))).toEqual(after)
    const edited = {
      ...after,
      spec: {
        ...(after.spec as object),
        rules: rulesOf(after)
          .map(rule => ({ ...rule, timeouts: { request: "9s" } }))
          .reverse(),
      },
    }
    expect(gatewayApi.splitIn(context(), edited)).toEqual(to(25))
    expect(rulesOf(giveBack(context(), edited))).toEqual([
      { ...shop, timeouts: { request: "9s" } },
      { ...other, timeouts: { request: "9s" } },
    ])
  })

  test("without a rule for our Services it is left alone, and says so", () => {
    const found = route([other])
    expect(gatewayApi.routed(context(), found, to(25))).toEqual(found)
    expect(gatewayApi.splitIn(context(), found)).toBeUndefined()
    expect(gatewayApi.isAccepted(context(), found)).toMatchObject({
      ok: false,
      why: expect.stringContaining("no rule of HTTPRoute web"),
    })
  })
})

describe("accepted", () => {
  const good = [
    { type: "Accepted", status: "True", observedGeneration: 3 },
    { type: "ResolvedRefs", status: "True", observedGeneration: 3 },
  ]
  const seen = (conditions: object[], parentRef: object = gatewayRefs[0]!) =>
    gatewayApi.isAccepted(context(), {
      ...route([{ backendRefs: [toWeb] }]),
      status: {
        parents: [
          { parentRef: { name: "else" }, conditions: [] },
          { parentRef, conditions },
        ],
      },
    })
  const cases: Record<string, { found: ReturnType<typeof seen>; why?: string }> = {
    "as it is now": { found: seen(good) },
    "with the kind written out": { found: seen(good, { ...gatewayRefs[0], group: "gateway.networking.k8s.io", kind: "Gateway" }) },
    "at an earlier generation": { found: seen(good.map(each => ({ ...each, observedGeneration: 2 }))), why: "has not looked" },
    "without ResolvedRefs": { found: seen(good.slice(0, 1)), why: "has not looked" },
    "with a missing backend": { found: seen([good[0]!, { ...good[1], status: "False", reason: "BackendNotFound" }]), why: "ResolvedRefs=False, BackendNotFound" },
    "by another listener": { found: seen(good, { ...gatewayRefs[0], sectionName: "https" }), why: "has not reported" },
  } // biome-ignore format: a table
  for (const [name, { found, why }] of Object.entries(cases))
    test(`a route ${name}: ${why ?? "yes"}`, () =>
      expect(found).toEqual(why ? { ok: false, why: expect.stringContaining(why) } : { ok: true }))

  test("a Service as parent has the group core or none", () => {
    const parent = { kind: "Service", name: "web", port: 80 }
    const given = context({ service: { gatewayRefs: [{ ...parent, group: "core" }] } })
    const found = {
      ...route([{ backendRefs: [toWeb] }]),
      status: { parents: [{ parentRef: { ...parent, group: "" }, conditions: good }] },
    }
    const attached = { ...found, spec: { ...(found.spec as object), parentRefs: [{ ...parent, group: "" }] } }
    expect(gatewayApi.isAccepted(given, attached)).toEqual({ ok: true })
    expect(gatewayApi.isAccepted(given, found)).toMatchObject({ why: expect.stringContaining("not attached") })
  })
})

describe("problems", () => {
  const all = "HTTPRouteRequestMirror HTTPRouteQueryParamMatching HTTPRouteResponseHeaderModification"
  const fieldsOf = (router: Router, spec: Spec, features?: string) =>
    router
      .problemsOf(canaryOf(spec), features === undefined ? undefined : new Set(features.split(" ")))
      .map(({ reason, field }) => `${reason} ${field}`)
  const cases: [Router, Spec, string | undefined, ...string[]][] = [
    [gatewayApi, { service: { gatewayRefs } }, "HTTPRouteMethodMatching"],
    [gatewayApi, {}, undefined, "InvalidSpec service.gatewayRefs"],
    [gatewayApi, { service: { gatewayRefs }, analysis: { iterations: 1, mirror: true } }, undefined],
    [gatewayApi, { service: { gatewayRefs }, analysis: { iterations: 1, mirror: true } }, all],
    [gatewayApi, { service: { gatewayRefs }, analysis: { iterations: 1, mirror: true, mirrorWeight: 10 } }, all, "FeatureMissing analysis.mirrorWeight"],
    [gatewayApi, { service: { gatewayRefs }, analysis: { iterations: 1, mirror: true } }, "HTTPRouteCORS", "FeatureMissing analysis.mirror"],
    [gatewayApi, { service: { gatewayRefs }, analysis: { sessionAffinity: { cookieName: "c" } } }, "HTTPRouteCORS", "FeatureMissing analysis.sessionAffinity"],
    [gatewayApi, { service: { gatewayRefs, timeout: "5s", rewrite: { uri: "/" } } }, all, "FeatureMissing service.rewrite.uri", "FeatureMissing service.timeout"],
    [gatewayApi, { service: { gatewayRefs, match: [{ method: { prefix: "P" } }] } }, undefined, "InvalidSpec service.match[0].method"],
    [gatewayApi, { service: { gatewayRefs, timeout: "5s", backendTimeout: "6s" } }, undefined, "InvalidSpec service.backendTimeout"],
    [gatewayApi, { service: { gatewayRefs }, analysis: { iterations: 1, match: [{ sourceLabels: { a: "b" } }] } }, undefined, "InvalidSpec analysis.match[0]"],
    [gatewayApi, { service: { gatewayRefs, hosts: Array(17).fill("a") } }, undefined, "InvalidSpec service.hosts"],
    [kubernetes, {}, undefined],
    [kubernetes, { analysis: { iterations: 5 } }, undefined],
    [kubernetes, { analysis: { iterations: 5, match: [{ headers: { a: { exact: "b" } } }] } }, undefined, "NotSupported analysis.match"],
    [kubernetes, { analysis: { iterations: 5, mirror: true } }, undefined],
    [kubernetes, { analysis: { sessionAffinity: { cookieName: "c" } } }, undefined, "NotSupported analysis.sessionAffinity"],
    [kubernetes, { analysis: { stepWeights: [50, 60] } }, undefined, "WeightNotPossible analysis.stepWeights"],
    [kubernetes, { analysis: { stepWeights: [50, 100] } }, undefined],
    [kubernetes, { canaryReplicas: 2 }, undefined, "InvalidSpec canaryReplicas"],
  ] // biome-ignore format: a table
  test.each(cases)("%#", (router, spec, features, ...fields) =>
    expect(fieldsOf(router, spec, features)).toEqual(fields),
  )

  test("fields that the router does not use are named", () => {
    expect(withoutEffect(canaryOf({ service: { gatewayRefs } }))).toEqual([])
    expect(
      withoutEffect(
        canaryOf({ service: { gatewayRefs, gateways: ["mesh"], retries: { attempts: 1 }, match: [{ port: 1 }] } }),
      ),
    ).toEqual(["service.gateways", "service.retries", "service.match[0].port"])
    expect(withoutEffect(canaryOf({ service: { timeout: "5s", match: [{ port: 1 }] } }))).toEqual([
      "service.timeout",
      "service.match",
    ])
  })
})

describe("the selector of a Service", () => {
  const service = (selector: object, annotations?: object): RouteObject => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", ...(annotations && { annotations }) },
    spec: { clusterIP: "10.96.0.1", selector },
  })
  const label = "pod-template-hash"
  const selectorAt = (weight: number, hashes?: RouteContext["hashes"]) =>
    (
      kubernetes.routed(context(hashes && { hashes }), service({ app: "web", [label]: "old" }), to(weight)).spec as {
        selector: object
      }
    ).selector
  test("flips at 0 and 100, and selects both in between", () => {
    expect(selectorAt(0)).toEqual({ app: "web", [label]: "a" })
    expect(selectorAt(30)).toEqual({ app: "web" })
    expect(selectorAt(100)).toEqual({ app: "web", [label]: "b" })
    expect(selectorAt(0, { source: "b" })).toEqual({ app: "web" })
  })
  test("is not known where another hand has widened it during a run", () => {
    expect(kubernetes.splitIn(context(), service({ app: "web" }))).toBeUndefined()
    expect(kubernetes.splitIn(context(), service({ app: "web", [label]: "c" }))).toBeUndefined()
    expect(kubernetes.splitIn(context({ hashes: { source: "a" } }), service({ app: "web" }))).toEqual(to(0))
  })
  test("goes back exactly, and says what was written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.constantFrom(undefined, { a: "1" }), (weight, annotations) => {
        const before = service({ app: "web" }, annotations)
        const after = stored(kubernetes.routed(context(), before, to(weight)))
        expect(kubernetes.splitIn(context(), after)).toEqual(to(weight))
        expect(kubernetes.restored(context(), after)).toEqual(before)
      }),
    )
  })
})

const anyRef = fc.record({
  group: fc.constant(""),
  kind: fc.constant("Service"),
  name: fc.constantFrom("web", "web", "web-primary", "web-canary", "other"),
  port: fc.constantFrom(80, 8080),
  weight: fc.integer({ min: 0, max: 100 }),
})
const anyFilter = fc.constantFrom(
  { type: "RequestHeaderModifier", requestHeaderModifier: { set: [{ name: "a", value: "1" }] } },
  { type: "RequestMirror", requestMirror: { backendRef: { name: "log", port: 80 } } },
)
const anyRule = fc
  .record({
    matches: fc.constantFrom(undefined, [{ path: { type: "PathPrefix", value: "/a" } }]),
    filters: fc.option(fc.uniqueArray(anyFilter, { minLength: 1 }), { nil: undefined }),
    backendRefs: fc.uniqueArray(anyRef, { maxLength: 3, selector: ({ name }) => name }),
    sessionPersistence: fc.constantFrom(undefined, { type: "Cookie" }),
  })
  .map(rule => stored(rule) as Rule)
const anyGiven = fc.constantFrom<Given>(
  {},
  { analysis: { iterations: 2, mirror: true } },
  { analysis: { iterations: 2, match: [{ headers: { a: { exact: "b" } } }] } },
  { analysis: { sessionAffinity: { cookieName: "k" } }, cookies: { target: "k=1", previous: "k=0" } },
)
const anySplit = fc.record({ weight: fc.integer({ min: 0, max: 100 }), isMirrored: fc.boolean() })
const hasOwn = ({ backendRefs = [] }: Rule) =>
  backendRefs.some(({ name }) => name === "web" || name === "web-primary") &&
  backendRefs.some(({ name, weight }) => name !== "other" && weight! > 0)

test("whatever the route, and however often it is divided: it says what was written, foreign parts stay, and it goes back", () => {
  fc.assert(
    fc.property(
      fc.array(anyRule, { maxLength: 4 }),
      anyGiven,
      fc.array(anySplit, { minLength: 1, maxLength: 3 }),
      (rules, given, splits) => {
        const before = route(rules)
        const about = context(given)
        let now = before
        for (const split of splits) {
          now = divide(about, now, split)
          if (rules.some(hasOwn)) expect(gatewayApi.splitIn(about, now)).toEqual(split)
          const kept = rules.filter(rule => !hasOwn(rule))
          expect(rulesOf(now).filter(rule => kept.some(each => JSON.stringify(each) === JSON.stringify(rule)))).toEqual(
            kept,
          )
        }
        expect(giveBack(about, now)).toEqual(before)
      },
    ),
    { numRuns: 300 },
  )
})

test("a route that was made says what was written", () => {
  fc.assert(
    fc.property(anyGiven, fc.array(anySplit, { minLength: 1, maxLength: 3 }), (given, splits) => {
      const about = context(given)
      let now: RouteObject | undefined
      for (const split of splits) {
        now = stored(gatewayApi.routed(about, now, split))
        expect(gatewayApi.splitIn(about, now)).toEqual(split)
        expect(stored(gatewayApi.routed(about, now, split))).toEqual(now)
      }
    }),
  )
})
