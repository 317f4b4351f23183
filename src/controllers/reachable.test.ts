import { expect, test } from "vitest"
import type { EgressRequest } from "#egress/index.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { createReachable, mayNameService } from "./reachable.ts"

const meta = (name: string, more: object = {}) => ({
  metadata: { namespace: "shop", name, resourceVersion: "1", ...more },
})
const service = (spec: object = {}) => ({
  ...meta("web"),
  spec: { selector: { app: "web" }, ports: [{ name: "http", port: 80 }], ...spec },
})
const target = { kind: "Pod", name: "web-1", namespace: "shop" }
const slice = (endpoint: object = {}, more: object = {}) => ({
  ...meta("web-abc", { labels: { "kubernetes.io/service-name": "web" } }),
  ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  endpoints: [{ addresses: ["10.1.0.7"], conditions: { ready: true }, targetRef: target, ...endpoint }],
  ...more,
})
const pod = (more: object = {}, spec: object = {}) => ({
  ...meta("web-1"),
  spec,
  status: { phase: "Running", podIP: "10.1.0.7", ...more },
})

/** Caches with these objects, and which of them were opened. */
function world(objects: { services?: object[]; endpointslices?: object[]; pods?: object[] }) {
  const opened: string[] = []
  // biome-ignore lint/suspicious/noExplicitAny: the cache of any kind
  const watch = ({ plural }: Resource, { project, indexes = {} }: any): any => {
    opened.push(plural)
    const all = (objects as Record<string, KubeObject[]>)[plural] ?? []
    const held = new Map(all.map(each => [`${each.metadata.namespace}/${each.metadata.name}`, project(each)]))
    return {
      get: (key: string) => held.get(key),
      keysBy: (name: string, value: string) =>
        [...held].filter(([, each]) => indexes[name](each).includes(value)).map(([key]) => key),
      synced: async () => {},
    }
  }
  const reachable = createReachable({ watch })
  const asked: string[] = []
  const egress = reachable.waiting({
    async request({ url }) {
      asked.push(url)
      return { ok: false, class: "Unreachable", message: "" }
    },
  })
  const ask = (url: string) =>
    egress.request({ url, namespace: "shop", method: "GET", timeoutMs: 1 } satisfies EgressRequest)
  return {
    opened,
    asked,
    ask,
    async seen(port: number) {
      await ask("http://web")
      return reachable.serviceAt({ namespace: "shop", name: "web", port })
    },
  }
}

test("nothing is watched before a request may name a Service, and then once", async () => {
  const { opened, asked, ask } = world({})
  for (const url of ["https://hooks.example.com/", "http://1.1.1.1/", "http://[2606:4700::1]/", "nonsense"])
    await ask(url)
  expect(opened).toEqual([])
  for (const url of ["http://web:80/", "http://web.shop.svc/"]) await ask(url)
  expect(opened).toEqual(["services", "endpointslices", "pods"])
  expect(asked).toHaveLength(6)
})

test.each([
  "http://web",
  "http://web.shop",
  "http://web.shop.svc:9090/x",
  "http://web.shop.svc.cluster.local.",
  "http://WEB/",
])("%s may be a Service", url => expect(mayNameService(url)).toBe(true))

const found = {
  address: "10.1.0.7",
  port: 8080,
  pod: { namespace: "shop", addresses: ["10.1.0.7"], isHostNetwork: false },
}
const { pod: _, ...withoutPod } = found

test.each<[string, Parameters<typeof world>[0], number, unknown]>([
  [
    "a Service with a pod",
    { services: [service()], endpointslices: [slice()], pods: [pod()] },
    80,
    { type: "ClusterIP", hasSelector: true, endpoints: [found] },
  ],
  ["no Service", { endpointslices: [slice()], pods: [pod()] }, 80, undefined],
  [
    "another port",
    { services: [service()], endpointslices: [slice()], pods: [pod()] },
    81,
    { type: "ClusterIP", hasSelector: true, endpoints: undefined },
  ],
  [
    "no selector",
    { services: [service({ selector: undefined })], endpointslices: [slice()], pods: [pod()] },
    80,
    { hasSelector: false },
  ],
  [
    "another name for it",
    { services: [service({ type: "ExternalName", selector: {} })] },
    80,
    { type: "ExternalName", hasSelector: false },
  ],
  [
    "a pod that is not ready",
    { services: [service()], endpointslices: [slice({ conditions: { ready: false } })], pods: [pod()] },
    80,
    { endpoints: [] },
  ],
  ["no pod of that name", { services: [service()], endpointslices: [slice()] }, 80, { endpoints: [withoutPod] }],
  [
    "a pod of another namespace",
    { services: [service()], endpointslices: [slice({ targetRef: { ...target, namespace: "bank" } })], pods: [pod()] },
    80,
    { endpoints: [withoutPod] },
  ],
  [
    "something that is no pod",
    { services: [service()], endpointslices: [slice({ targetRef: { ...target, kind: "Node" } })], pods: [pod()] },
    80,
    { endpoints: [withoutPod] },
  ],
  [
    "a pod that has ended",
    { services: [service()], endpointslices: [slice()], pods: [pod({ phase: "Failed" })] },
    80,
    { endpoints: [{ pod: { addresses: [] } }] },
  ],
  [
    "a pod with its node's network",
    { services: [service()], endpointslices: [slice()], pods: [pod({}, { hostNetwork: true })] },
    80,
    { endpoints: [{ pod: { isHostNetwork: true } }] },
  ],
  [
    "another Service's slice",
    {
      services: [service()],
      endpointslices: [{ ...slice(), ...meta("x", { labels: { "kubernetes.io/service-name": "y" } }) }],
      pods: [pod()],
    },
    80,
    { endpoints: [] },
  ],
])("%s", async (_, objects, port, expected) => {
  const seen = await world(objects).seen(port)
  if (expected === undefined) expect(seen).toBeUndefined()
  else expect(seen).toMatchObject(expected as object)
  if (seen?.endpoints?.[0] && !("pod" in ((expected as { endpoints: object[] }).endpoints?.[0] ?? { pod: 1 })))
    expect(seen.endpoints[0]).not.toHaveProperty("pod")
})
