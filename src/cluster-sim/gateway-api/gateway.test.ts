import { expect, test } from "vitest"
import { parseDuration } from "#lib/duration.ts"
import type { Json } from "../object.ts"
import { testCluster } from "../test-cluster.ts"
import { createGateway, type GatewayOptions } from "./gateway.ts"
import { covers, overlap } from "./hosts.ts"

const under = "/apis/gateway.networking.k8s.io/v1"
const own = `${under}/namespaces/default`
const apiVersion = "gateway.networking.k8s.io/v1"
const gatewayClass = { spec: { controllerName: "projectcontour.io/gateway-controller" } }
const listeners = [{ name: "http", port: 80, protocol: "HTTP" }]
const service = { spec: { ports: [{ port: 80 }] } }
const backends = (weight: number) => [
  { name: "web-primary", port: 80, weight: 100 - weight },
  { name: "web-canary", port: 80, weight },
]
const route = (weight: number, spec: Json = {}) => ({
  spec: { parentRefs: [{ name: "gw" }], rules: [{ backendRefs: backends(weight) }], ...spec },
})

async function world(options: GatewayOptions = {}) {
  const gateway = createGateway(options)
  const told = testCluster({ parts: [gateway.part] })
  told.cluster.start()
  const create = async (path: string, kind: string, name: string, rest: Json, version = apiVersion) => {
    const sent = await told.send("POST", path, { apiVersion: version, kind, metadata: { name }, ...rest })
    expect(sent.body.message).toBeUndefined()
  }
  const services = "/api/v1/namespaces/default/services"
  await create(`${under}/gatewayclasses`, "GatewayClass", "contour", gatewayClass)
  await create(`${own}/gateways`, "Gateway", "gw", { spec: { gatewayClassName: "contour", listeners } })
  for (const name of ["web-primary", "web-canary"]) await create(services, "Service", name, service, "v1")
  const get = async (plural: string, name: string) =>
    (await told.send("GET", plural === "gatewayclasses" ? `${under}/${plural}/${name}` : `${own}/${plural}/${name}`))
      .body
  return {
    ...told,
    gateway,
    create,
    advance: (duration: string) => told.clock.advance(parseDuration(duration)!),
    get,
    /** What is said about the route's parents: type, status, reason, generation. */
    said: async (name = "web") =>
      ((await get("httproutes", name)).status?.parents ?? []).map(({ conditions }: Json) =>
        conditions.map((each: Json) => `${each.type} ${each.status} ${each.reason} ${each.observedGeneration}`),
      ),
    weights: () =>
      gateway.routes().map(({ route }) => route.spec.rules[0].backendRefs.map((each: Json) => each.weight)),
  }
}

test("a class is accepted, a gateway programmed, and a route accepted at its generation", async () => {
  const { create, advance, get, said, weights, send } = await world()
  await create(`${own}/httproutes`, "HTTPRoute", "web", route(10))
  await advance("1s")
  const [accepted] = (await get("gatewayclasses", "contour")).status.conditions
  expect(accepted).toMatchObject({ type: "Accepted", status: "True", observedGeneration: 1 })
  const { conditions, listeners } = (await get("gateways", "gw")).status
  expect(conditions.map((each: Json) => `${each.type} ${each.status}`)).toEqual(["Accepted True", "Programmed True"])
  expect(listeners).toMatchObject([{ name: "http", attachedRoutes: 1 }])
  expect(await said()).toEqual([["Accepted True Accepted 1", "ResolvedRefs True ResolvedRefs 1"]])
  await send("PATCH", `${own}/httproutes/web`, { spec: { rules: [{ backendRefs: backends(50) }] } })
  await advance("1s")
  expect(await said()).toEqual([["Accepted True Accepted 2", "ResolvedRefs True ResolvedRefs 2"]])
  expect(weights()).toEqual([[50, 50]])
})

test("new weights have an effect before they are reported, and both take their time", async () => {
  const { create, clock, advance, said, weights, send } = await world({ effectMs: 1000, reportMs: 1000 })
  await create(`${own}/httproutes`, "HTTPRoute", "web", route(10))
  await advance("5s")
  await send("PATCH", `${own}/httproutes/web`, { spec: { rules: [{ backendRefs: backends(50) }] } })
  await clock.advance(700)
  expect(weights()).toEqual([[90, 10]])
  await clock.advance(600)
  expect(weights()).toEqual([[50, 50]])
  expect((await said())[0][0]).toBe("Accepted True Accepted 1")
  await clock.advance(1300)
  expect((await said())[0][0]).toBe("Accepted True Accepted 2")
})

test("clusters that no route names go before the routes change, and new ones come after", async () => {
  const { create, clock, advance, gateway, send } = await world({ streamMs: 1000 })
  await create(`${own}/httproutes`, "HTTPRoute", "web", route(10, { rules: [{ backendRefs: [backends(10)[0]] }] }))
  await advance("5s")
  const seen: string[] = []
  const named = () => gateway.routes()[0]!.route.spec.rules[0].backendRefs.map(({ name }: Json) => name)
  gateway.onRoutes(() => seen.push(`route to ${named()}, clusters ${[...gateway.clusters()]}`))
  await send("PATCH", `${own}/httproutes/web`, { spec: { rules: [{ backendRefs: [backends(10)[1]] }] } })
  await clock.advance(5000)
  expect(seen).toEqual([
    "route to web-primary, clusters ",
    "route to web-canary, clusters ",
    "route to web-canary, clusters default/web-canary",
  ])
})

test("a gateway that is stopped goes on with the routes it has, and reads the others when it resumes", async () => {
  const { create, advance, said, weights, gateway, send } = await world()
  await create(`${own}/httproutes`, "HTTPRoute", "web", route(10))
  await advance("1s")
  gateway.stop()
  await send("PATCH", `${own}/httproutes/web`, { spec: { rules: [{ backendRefs: backends(50) }] } })
  await advance("10m")
  expect(weights()).toEqual([[90, 10]])
  expect((await said())[0][0]).toBe("Accepted True Accepted 1")
  gateway.resume()
  await advance("1s")
  expect(weights()).toEqual([[50, 50]])
  expect((await said())[0][0]).toBe("Accepted True Accepted 2")
})

test("a route that is refused is not served, and says so at its generation", async () => {
  const { create, advance, get, said, weights, gateway } = await world()
  await create(`${own}/httproutes`, "HTTPRoute", "web", route(10))
  await advance("1s")
  gateway.refuse(({ metadata }) => (metadata.name === "web" ? "no mirrors here" : undefined))
  await advance("1s")
  expect((await said())[0][0]).toBe("Accepted False UnsupportedValue 1")
  expect((await get("httproutes", "web")).status.parents[0].conditions[0].message).toBe("no mirrors here")
  expect(weights()).toEqual([])
  gateway.refuse(undefined)
  await advance("1s")
  expect(weights()).toEqual([[90, 10]])
})

const routes: Record<string, { spec: Json; says: string[][] }> = {
  "another gateway's": { spec: { parentRefs: [{ name: "other" }] }, says: [] },
  "a listener that is not there": {
    spec: { parentRefs: [{ name: "gw", sectionName: "https" }] },
    says: [["Accepted False NoMatchingParent 1", "ResolvedRefs True ResolvedRefs 1"]],
  },
  "a Service that is not there": {
    spec: { rules: [{ backendRefs: [{ name: "web-gone", port: 80 }] }] },
    says: [["Accepted True Accepted 1", "ResolvedRefs False BackendNotFound 1"]],
  },
  "a Service of another namespace": {
    spec: { rules: [{ backendRefs: [{ name: "web", namespace: "kube-system", port: 80 }] }] },
    says: [["Accepted True Accepted 1", "ResolvedRefs False RefNotPermitted 1"]],
  },
}
for (const [name, { spec, says }] of Object.entries(routes))
  test(`a route with ${name}`, async () => {
    const { create, advance, said } = await world()
    await create(`${own}/httproutes`, "HTTPRoute", "web", route(10, spec))
    await advance("1s")
    expect(await said()).toEqual(says)
  })

test("a route may name a Service of another namespace where a grant says so", async () => {
  const { create, advance, said } = await world()
  const grants = "/apis/gateway.networking.k8s.io/v1beta1/namespaces/kube-system/referencegrants"
  const from = [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "default" }]
  const to = [{ group: "", kind: "Service" }]
  await create("/api/v1/namespaces/kube-system/services", "Service", "web", service, "v1")
  const spec = { rules: [{ backendRefs: [{ name: "web", namespace: "kube-system", port: 80 }] }] }
  await create(`${own}/httproutes`, "HTTPRoute", "web", route(10, spec))
  await create(grants, "ReferenceGrant", "g", { spec: { from, to } }, "gateway.networking.k8s.io/v1beta1")
  await advance("1s")
  expect((await said())[0][1]).toBe("ResolvedRefs True ResolvedRefs 1")
})

test("a class publishes the features it is given, and a gateway at rest writes nothing", async () => {
  const { advance, get, cluster } = await world({ supportedFeatures: ["HTTPRouteResponseHeaderModification"] })
  await advance("1s")
  expect((await get("gatewayclasses", "contour")).status.supportedFeatures).toEqual([
    { name: "HTTPRouteResponseHeaderModification" },
  ])
  const { revision } = cluster.store
  await advance("1h")
  expect(cluster.store.revision).toBe(revision)
})

test("host names with a star cover those below", () => {
  expect(covers("*.example.com", "web.example.com")).toBe(true)
  expect(covers("*.example.com", "example.com")).toBe(false)
  expect(overlap("web.example.com", "*.example.com")).toBe(true)
  expect(overlap("web.example.com", "shop.example.com")).toBe(false)
})
