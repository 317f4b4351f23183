import { expect, test } from "vitest"
import { findingsOf } from "../findings.ts"
import { builtInQuery } from "../queries.ts"
import type { RouteContext, RouteObject, Split } from "../router.ts"
import { serviceNamesOf } from "../services.ts"
import { canaryOf } from "../test-canary.ts"
import type { Ref } from "./http-route.ts"
import { routerOf, withoutEffect } from "./index.ts"
import { traefik } from "./traefik.ts"

type Spec = NonNullable<Parameters<typeof canaryOf>[0]>

const canary = (spec: Spec = {}) => canaryOf({ provider: "traefik", ...spec })
const context = (spec: Spec = {}): RouteContext => ({
  canary: canary(spec),
  services: serviceNamesOf(canaryOf()),
  hashes: { source: "a", target: "b" },
})
const to = (weight: number): Split => ({ weight, isMirrored: false })
const stored = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const weights = ({ spec }: RouteObject) =>
  (spec as { weighted: { services: Ref[] } }).weighted.services
    .map(({ name, weight }) => `${name} ${weight}`)
    .join(", ")

const owners = (spec: object, metadata: object = {}): RouteObject => ({
  apiVersion: "traefik.io/v1alpha1",
  kind: "TraefikService",
  metadata: { name: "web", namespace: "shop", ...metadata },
  spec,
})

test("one that is made names the Services that have a share, and no other: Traefik drops it for one without pods", () => {
  const made = stored(traefik.routed(context(), undefined, to(0)))
  expect(made).toMatchObject({
    apiVersion: "traefik.io/v1alpha1",
    kind: "TraefikService",
    metadata: { name: "web", namespace: "shop", ownerReferences: [{ kind: "Canary" }] },
  })
  const service = (name: string, weight: number) => ({ name, namespace: "shop", port: 80, weight })
  expect(made.spec).toEqual({ weighted: { services: [service("web-primary", 100)] } })
  const seen: RouteObject[] = [made]
  for (const weight of [30, 100, 50, 0]) seen.push(stored(traefik.routed(context(), seen.at(-1)!, to(weight))))
  expect(seen.map(weights)).toEqual([
    "web-primary 100",
    "web-primary 70, web-canary 30",
    "web-canary 100",
    "web-primary 50, web-canary 50",
    "web-primary 100",
  ])
  expect(seen.map(each => traefik.splitIn(context(), each)?.weight)).toEqual([0, 30, 100, 50, 0])
  expect(seen.at(-1)).toEqual(made)
  for (const each of seen) {
    expect(traefik.isAccepted(context(), each)).toEqual({ ok: true })
    expect(traefik.isUnderWay!(context(), each)).toBe(false)
    expect(traefik.restored(context(), each)).toBeUndefined()
  }
})

test("one that is made follows its spec, and keeps what its owner adds to it", () => {
  const made = stored(traefik.routed(context(), undefined, to(20)))
  const sticky = { cookie: { name: "stay" } }
  const { weighted } = made.spec as { weighted: object }
  const changed = { ...made, spec: { weighted: { ...weighted, sticky } } }
  const next = traefik.routed(context({ service: { port: 8080 } }), changed, to(20))
  expect(next.spec).toEqual({
    weighted: {
      sticky,
      services: [
        { name: "web-primary", namespace: "shop", port: 8080, weight: 80 },
        { name: "web-canary", namespace: "shop", port: 8080, weight: 20 },
      ],
    },
  })
  const emptied = { ...made, spec: { weighted: { services: [] } } }
  expect(traefik.splitIn(context(), emptied)).toBeUndefined()
  expect(weights(traefik.routed(context(), emptied, to(20)))).toBe("web-primary 80, web-canary 20")
})

test.each([
  ["alone", { weighted: { services: [{ name: "web", port: "http", nativeLB: true }] } }, 100, []],
  [
    "beside others, one of them without a share",
    {
      weighted: {
        sticky: { cookie: {} },
        services: [
          { name: "old", port: 80, weight: 0 },
          { name: "web", port: 80, weight: 9 },
          { name: "web-canary", kind: "TraefikService", weight: 1 },
        ],
      },
    },
    900,
    ["old 0", "web-canary 100"],
  ],
] as const)("one that was there, %s, is divided at once and given back as it was", (_, spec, all, foreign) => {
  const before = owners(spec, { labels: { a: "b" } })
  const seen = [before]
  for (const weight of [0, 25, 100, 25]) seen.push(stored(traefik.routed(context(), seen.at(-1)!, to(weight))))
  const [first = [], last = []] = [foreign.slice(0, 1), foreign.slice(1)]
  const listed = (...own: string[]) => [...first, ...own, ...last].join(", ")
  expect(seen.slice(1).map(weights)).toEqual([
    listed(`web-primary ${all}`),
    listed(`web-primary ${all * 0.75}`, `web-canary ${all / 4}`),
    listed(`web-canary ${all}`),
    listed(`web-primary ${all * 0.75}`, `web-canary ${all / 4}`),
  ])
  expect(seen.slice(1).map(each => traefik.splitIn(context(), each)?.weight)).toEqual([0, 25, 100, 25])
  for (const each of seen) expect(stored(traefik.restored(context(), each))).toEqual(before)
})

test("one that does not name the Service is not accepted, and stays as it is", () => {
  for (const spec of [
    { weighted: { services: [{ name: "other", port: 80, weight: 0 }] } },
    { weighted: {} },
    { mirroring: { name: "web", port: 80 } },
    {},
  ]) {
    const foreign = owners(spec)
    expect(traefik.isAccepted(context(), foreign)).toEqual({
      ok: false,
      why: "TraefikService web has no Service web in weighted.services: add it with its port",
    })
    expect(traefik.routed(context(), foreign, to(50))).toEqual(foreign)
    expect(traefik.splitIn(context(), foreign)).toBeUndefined()
  }
})

test("it is on, and what it cannot do is refused", () => {
  expect(routerOf(canary(), [])).toBe(traefik)
  expect(findingsOf(canary())).toEqual([])
  const asked = { iterations: 1, mirror: true, match: [{ headers: { a: { exact: "b" } } }] }
  const affinity = { stepWeights: [10], sessionAffinity: { cookieName: "c" } }
  const problems = (analysis: object) =>
    traefik.problemsOf(canary({ analysis })).map(({ field, message }) => `${field}: ${message}`)
  expect([problems(asked), problems(affinity), problems({ iterations: 2 })]).toEqual([
    [
      "analysis.match: a weighted TraefikService tells no requests apart: write provider: gatewayapi:v1 with service.gatewayRefs, or leave it out",
      expect.stringMatching(/^analysis.mirror: a weighted TraefikService copies no requests/),
    ],
    [expect.stringMatching(/^analysis.sessionAffinity: a weighted TraefikService sets no cookies/)],
    [],
  ])
  const service = { hosts: ["a"], timeout: "5s", gatewayRefs: [{ name: "g" }], retries: { attempts: 2 } }
  expect(withoutEffect(canary({ service })).toSorted()).toEqual([
    "service.gatewayRefs",
    "service.hosts",
    "service.retries",
    "service.timeout",
  ])
})

test("the built-in metrics ask Traefik, which names a Service NAMESPACE-SERVICE-PORT", () => {
  const query = builtInQuery("request-duration", canary({ analysis: { stepWeights: [10] } }).spec) as string
  const which = /service=~"([^"]*)"/.exec(query)![1]!.replace("{{ namespace }}", "shop").replace("{{ service }}", "web")
  const names = ["web-canary-80", "web-canary-http", "web-primary-80", "web-80", "web-canary-old-80", "x-web-canary-80"]
  const isAsked = (name: string) => new RegExp(`^(?:${which})$`).test(`shop-${name}@kubernetescrd`)
  expect(names.filter(isAsked)).toEqual(["web-canary-80", "web-canary-http"])
  // Seconds are counted, and milliseconds are compared.
  expect(query).toMatch(/^histogram_quantile\(0\.99, .*\) \* 1000$/)
})
