import { expect, test } from "vitest"
import type { Json, Obj } from "../object.ts"
import { planTraefik, traefikVersion } from "./traefik.ts"

const objectOf = (kind: string, name: string, spec: Json): Obj => ({
  apiVersion: traefikVersion,
  kind,
  metadata: { name, namespace: "shop", uid: `uid-${name}`, generation: 1 } as Obj["metadata"],
  spec,
})
const services = [
  { name: "web-primary", port: 80, weight: 70 },
  { name: "web-canary", port: "http", weight: 30 },
]
const ingressRoute = objectOf("IngressRoute", "public", {
  routes: [{ match: "Host(`web.example.com`)", services: [{ kind: "TraefikService", name: "web" }] }],
})
const withPort = (port: Json): Obj => objectOf("Service", "web", { ports: [port] })
const found = withPort({ name: "http", port: 80 })
const calm = {
  ingressRoutes: [ingressRoute],
  traefikServices: [objectOf("TraefikService", "web", { weighted: { services } })],
  gateways: ["default/gateway"],
  service: () => found,
  pods: ({ name }: { name: string }) => [
    { uid: `${name}-1`, isEnding: false },
    { uid: `${name}-2`, isEnding: true },
  ],
  refusal: () => undefined,
}

test("an IngressRoute is in effect by the weights of its TraefikService", () => {
  const [applied] = planTraefik(calm)
  const backendRefs = services.map(each => ({ ...each, pods: [`${each.name}-1`] }))
  expect(applied?.gateways).toEqual(["default/gateway"])
  expect(applied?.route.spec).toEqual({ hostnames: ["web.example.com"], rules: [{ backendRefs }] })
})

test.each([
  ["its TraefikService is missing", { traefikServices: [] }],
  [
    "the TraefikService is of another type",
    { traefikServices: [objectOf("TraefikService", "web", { mirroring: {} })] },
  ],
  ["a Service is missing", { service: ({ name }: { name: string }) => (name === "web-canary" ? undefined : found) }],
  ["a Service has no such port", { service: () => withPort({ port: 81 }) }],
  [
    "a Service has no pods",
    { pods: ({ name }: { name: string }) => (name === "web-canary" ? [] : calm.pods({ name })) },
  ],
  ["it is refused", { refusal: () => "not this one" }],
])("nothing is in effect when %s", (_, given) => expect(planTraefik({ ...calm, ...given })).toEqual([]))

const routed = (route: Json) =>
  planTraefik({ ...calm, ingressRoutes: [objectOf("IngressRoute", "public", { routes: [route] })] })
const [route] = ingressRoute.spec.routes

test("a route for several hosts is in effect for each", () => {
  const [applied] = routed({ ...route, match: "Host(`a.example.com`) || Host(`b.example.com`)" })
  expect(applied?.route.spec.hostnames).toEqual(["a.example.com", "b.example.com"])
})

test.each([
  ["by a path", { match: "PathPrefix(`/`)" }],
  ["by a host and a path", { match: "Host(`web.example.com`) && PathPrefix(`/a`)" }],
  ["to a Service", { services: [{ name: "web", port: 80 }] }],
  ["to nothing", { services: [] }],
])("a route %s is not played: nothing is in effect, and not too much", (_, given) =>
  expect(routed({ ...route, ...given })).toEqual([]),
)
