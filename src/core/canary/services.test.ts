import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { RouteObject } from "./router.ts"
import { releasedService, restoredApex, type Services, serviceProblemsOf, servicesOf } from "./services.ts"
import { canaryOf } from "./test-canary.ts"

const selector = { app: "web" }
const label = "pod-template-hash"
type Given = Parameters<typeof canaryOf>[0] & {
  hashes?: { source: string; target?: string }
  existing?: Partial<Services>
}

const made = ({ hashes = { source: "a" }, existing = {}, ...spec }: Given = {}, containers = [] as never[]) =>
  servicesOf(canaryOf(spec), hashes, existing, selector, label, containers)
const specOf = (object: RouteObject) => object.spec as Record<string, unknown>
const selectorOf = (object: RouteObject) => specOf(object).selector
const portsOf = (object: RouteObject) => specOf(object).ports

const owned = (spec: object = {}, metadata: object = {}): RouteObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "shop", uid: "1", resourceVersion: "7", ...metadata },
  spec: {
    type: "NodePort",
    clusterIP: "10.96.0.7",
    clusterIPs: ["10.96.0.7"],
    sessionAffinity: "None",
    selector: { app: "web" },
    ports: [{ name: "web", port: 80, protocol: "TCP", targetPort: "http", nodePort: 30080 }],
    ...spec,
  },
})

describe("new Services", () => {
  test("have the port of the spec, and select one revision each", () => {
    const { apex, source, target } = made({ service: { targetPort: 8080 }, hashes: { source: "a", target: "b" } })
    const ports = [{ name: "http", port: 80, protocol: "TCP", targetPort: 8080 }]
    expect([apex, source, target].map(({ metadata }) => metadata.name)).toEqual(["web", "web-primary", "web-canary"])
    expect([apex, source, target].map(portsOf)).toEqual([ports, ports, ports])
    expect([source, target].map(selectorOf)).toEqual([
      { app: "web", [label]: "a" },
      { app: "web", [label]: "b" },
    ])
    expect(apex.metadata.ownerReferences).toEqual([
      expect.objectContaining({ kind: "Canary", name: "web", uid: "uid-of-web", controller: true }),
    ])
  })

  const cases: Record<string, { service: NonNullable<Given["service"]>; spec: object }> = {
    "port alone": { service: {}, spec: { ports: [{ name: "http", port: 80, protocol: "TCP", targetPort: 80 }] } },
    "a container's port by name": { service: { targetPort: "web" }, spec: { ports: [expect.objectContaining({ targetPort: "web" })] } },
    "the name of the port": { service: { portName: "grpc" }, spec: { ports: [expect.objectContaining({ name: "grpc" })] } },
    "the protocol": { service: { appProtocol: "kubernetes.io/h2c" }, spec: { ports: [expect.objectContaining({ appProtocol: "kubernetes.io/h2c" })] } },
    headless: { service: { headless: true }, spec: { clusterIP: "None" } },
    "traffic distribution": { service: { trafficDistribution: "PreferClose" }, spec: { trafficDistribution: "PreferClose" } },
  } // biome-ignore format: a table
  for (const [name, { service, spec }] of Object.entries(cases))
    test(`of a spec with ${name}`, () => {
      for (const each of Object.values(made({ service }))) expect(each.spec).toMatchObject(spec)
    })

  test("have the metadata of the spec", () => {
    const { apex, source, target } = made({
      service: { apex: { labels: { a: "1" } }, primary: { annotations: { b: "2" } }, canary: { labels: { c: "3" } } },
    })
    expect(apex.metadata.labels).toEqual({ a: "1" })
    expect(source.metadata.annotations).toMatchObject({ b: "2" })
    expect(target.metadata.labels).toEqual({ c: "3" })
  })

  test("get every port of the containers but those of a mesh, each once", () => {
    const containers = [
      { name: "web", ports: [{ name: "http", containerPort: 8080 }, { containerPort: 9090 }, { name: "dns", containerPort: 53, protocol: "UDP" }] },
      { name: "second", ports: [{ name: "more", containerPort: 9090 }] },
      { name: "istio-proxy", ports: [{ containerPort: 15_001 }] },
      { name: "envoy", ports: [{ containerPort: 15_002 }] },
    ] as never[] // biome-ignore format: a table
    const { source } = made({ service: { targetPort: "http", portDiscovery: true } }, containers)
    expect(portsOf(source)).toEqual([
      { name: "http", port: 80, protocol: "TCP", targetPort: "http" },
      { name: "tcp-web-1", port: 9090, protocol: "TCP", targetPort: 9090 },
      { name: "dns", port: 53, protocol: "UDP", targetPort: 53 },
    ])
  })
})

describe("the Service that clients use", () => {
  test("selects the source alone while the target is another revision, and everything otherwise", () => {
    const during = made({ provider: "gatewayapi:v1", hashes: { source: "a", target: "b" } })
    expect(selectorOf(during.apex)).toEqual({ app: "web", [label]: "a" })
    const swapped = made({ provider: "gatewayapi:v1", hashes: { source: "b", target: "b" }, existing: during })
    expect(selectorOf(swapped.apex)).toEqual({ app: "web" })
    const after = made({ provider: "gatewayapi:v1", hashes: { source: "b" }, existing: swapped })
    expect(selectorOf(after.apex)).toEqual({ app: "web" })
    expect([after.source, after.target].map(selectorOf)).toEqual(Array(2).fill({ app: "web", [label]: "b" }))
  })

  test("keeps the selector that a router has written", () => {
    const apex = owned({ selector: { app: "web", [label]: "b" } })
    const { apex: wanted } = made({ provider: "kubernetes", hashes: { source: "a", target: "b" }, existing: { apex } })
    expect(selectorOf(wanted)).toEqual({ app: "web", [label]: "b" })
  })

  test("is adopted without a change where it has the port", () => {
    const apex = owned()
    const { apex: wanted, source } = made({ existing: { apex } })
    expect(wanted).toEqual(apex)
    // The other two reach the same port of the containers.
    expect(portsOf(source)).toEqual([{ name: "http", port: 80, protocol: "TCP", targetPort: "http" }])
  })

  test("gets what the spec says, and keeps address, node port and other ports", () => {
    const metrics = { name: "http", port: 9090, protocol: "TCP", targetPort: 9090, nodePort: 30090 }
    const apex = owned(
      { ports: [{ port: 81, protocol: "TCP", targetPort: 81 }, metrics] },
      { annotations: { mine: "1" } },
    )
    const { apex: wanted } = made({
      service: { targetPort: 8080, apex: { annotations: { ours: "2" } } },
      existing: { apex },
    })
    expect(wanted.metadata.annotations).toMatchObject({ mine: "1", ours: "2" })
    expect(wanted.metadata.ownerReferences).toBeUndefined()
    expect(wanted.spec).toMatchObject({
      clusterIP: "10.96.0.7",
      ports: [{ name: "port-81", port: 81 }, metrics, { name: "http-80", port: 80, protocol: "TCP", targetPort: 8080 }],
    })
    expect(restoredApex(wanted)).toEqual(apex)
  })

  test("keeps the node port that the server gave to our port", () => {
    const { apex } = made({ existing: { apex: owned({ ports: [{ name: "x", port: 81, protocol: "TCP" }] }) } })
    const spec = specOf(apex)
    const given = {
      ...apex,
      spec: { ...spec, ports: (spec.ports as object[]).map(each => ({ nodePort: 31_000, ...each })) },
    }
    expect(made({ existing: { apex: given } }).apex).toEqual(given)
  })

  test("loses what an earlier spec said", () => {
    const apex = owned()
    const before = made({
      service: { port: 81, apex: { labels: { a: "1" } }, trafficDistribution: "PreferClose" },
      existing: { apex },
    })
    expect(specOf(before.apex)).toMatchObject({ trafficDistribution: "PreferClose" })
    expect(made({ existing: { apex: before.apex } }).apex).toEqual(apex)
  })

  test("keeps keys that another writer owns, once they are there", () => {
    const service = { apex: { labels: { team: "ours" } }, unmanagedMetadata: { labels: ["team"] } }
    expect(made({ service }).apex.metadata.labels).toEqual({ team: "ours" })
    const apex = owned({}, { labels: { team: "theirs" } })
    expect(made({ service, existing: { apex } }).apex.metadata.labels).toEqual({ team: "theirs" })
  })
})

describe("afterwards", () => {
  test("what was made is deleted, and what was adopted goes back", () => {
    expect(restoredApex(made().apex)).toBeUndefined()
    const apex = owned({}, { ownerReferences: [{ apiVersion: "v1", kind: "Other", name: "x", uid: "2" }] })
    expect(restoredApex(made({ existing: { apex } }).apex)).toEqual(apex)
  })

  test("Services that stay have no owner and select every revision", () => {
    for (const each of Object.values(made({ provider: "gatewayapi:v1", hashes: { source: "a", target: "b" } }))) {
      const free = releasedService(each, label)
      expect(free.metadata.ownerReferences).toBeUndefined()
      expect(free.metadata.annotations).toBeUndefined()
      expect(selectorOf(free)).toEqual({ app: "web" })
      expect(portsOf(free)).toEqual(portsOf(each))
    }
  })

  test("they are adopted by the next Canary, exactly", () => {
    const source = releasedService(made().source, label)
    const { source: wanted } = made({ existing: { source } })
    expect(selectorOf(wanted)).toEqual({ app: "web", [label]: "a" })
    expect(restoredApex(wanted)).toEqual(source)
  })
})

describe("Services that Flagger has left", () => {
  const left = (name: string, app: string) => owned({ selector: { app } }, { name })
  const existing = {
    apex: left("web", "web-primary"),
    source: left("web-primary", "web-primary"),
    target: left("web-canary", "web"),
  }

  test("select the workload again, and not its copy", () => {
    const { apex, source, target } = made({ existing })
    expect(selectorOf(apex)).toEqual({ app: "web" })
    expect([source, target].map(selectorOf)).toEqual([
      { app: "web", [label]: "a" },
      { app: "web", [label]: "a" },
    ])
  })

  test("do not go back to the copy, which is gone by then", () => {
    const { apex, source } = made({ existing, hashes: { source: "a", target: "b" } })
    expect([apex, source].map(each => selectorOf(restoredApex(each)!))).toEqual([{ app: "web" }, { app: "web" }])
  })

  test("another selector is its owner's", () => {
    const foreign = { apex: left("web", "other-primary") }
    expect(selectorOf(made({ existing: foreign }).apex)).toEqual({ app: "other-primary" })
  })
})

test("a Service of another owner, and one that selects nothing, cannot be used", () => {
  const flagger = { apiVersion: "flagger.app/v1beta1", kind: "Canary", name: "web", uid: "9", controller: true }
  const reasons = (existing: Partial<Services>) => serviceProblemsOf(canaryOf(), existing).map(({ reason }) => reason)
  expect(reasons({ source: owned({}, { ownerReferences: [flagger] }) })).toEqual(["NameTaken"])
  expect(reasons({ apex: owned({ type: "ExternalName" }) })).toEqual(["InvalidSpec"])
  expect(reasons({ apex: owned({ selector: undefined }) })).toEqual(["InvalidSpec"])
  expect(reasons({ apex: owned(), source: made().source })).toEqual([])
})

const port = fc.record(
  { name: fc.constantFrom("a", "b", "http"), port: fc.integer({ min: 78, max: 83 }), protocol: fc.constantFrom("TCP", "UDP"), targetPort: fc.constantFrom(8080, "web"), nodePort: fc.integer({ min: 30_000, max: 30_005 }) },
  { requiredKeys: ["port", "protocol", "name"] },
) // biome-ignore format: one line each
const texts = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2"), { minKeys: 1 })
const anyService = fc
  .record({
    ports: fc.uniqueArray(port, { selector: each => each.port, minLength: 1, maxLength: 4 }),
    labels: fc.option(texts, { nil: undefined }),
    annotations: fc.option(texts, { nil: undefined }),
    trafficDistribution: fc.option(fc.constant("PreferClose"), { nil: undefined }),
    externalIPs: fc.array(fc.ipV4(), { maxLength: 2 }),
  })
  .filter(({ ports }) => new Set(ports.map(({ name }) => name)).size === ports.length)
  .map(({ labels, annotations, ...spec }) =>
    structuredCloneOf(owned(spec, { ...(labels && { labels }), ...(annotations && { annotations }) })),
  )
/** As a server answers: without fields that are undefined. */
const structuredCloneOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const anySpec = fc.record({
  service: fc.record({
    port: fc.integer({ min: 78, max: 83 }),
    trafficDistribution: fc.constantFrom(undefined, "PreferSameZone" as const),
    appProtocol: fc.constantFrom(undefined, "http"),
    apex: fc.record({ labels: texts, annotations: texts }),
  }),
  hashes: fc.constantFrom({ source: "a" }, { source: "a", target: "b" }),
  provider: fc.constantFrom("kubernetes" as const, "istio" as const),
})

test("whatever was adopted, under whatever specs one after the other, goes back exactly", () => {
  fc.assert(
    fc.property(anyService, fc.array(anySpec, { minLength: 1, maxLength: 3 }), (apex, specs) => {
      let now = apex
      for (const spec of specs) {
        const wanted = structuredCloneOf(made({ ...spec, existing: { apex: now } } as Given).apex)
        // The second look changes nothing.
        expect(structuredCloneOf(made({ ...spec, existing: { apex: wanted } } as Given).apex)).toEqual(wanted)
        const names = (specOf(wanted).ports as { name?: string }[]).map(({ name }) => name)
        if (names.length > 1) expect(new Set(names).size).toBe(names.length)
        now = wanted
      }
      expect(restoredApex(now)).toEqual(apex)
    }),
  )
})
