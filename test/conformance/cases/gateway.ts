import { type Json, type Script, topic } from "../harness/script.ts"
import { change } from "./objects.ts"

const group = "gateway.networking.k8s.io"
const place = (on: Script, plural: string, version = "v1") =>
  `/apis/${group}/${version}/namespaces/${on.namespace}/${plural}`
const classes = `/apis/${group}/v1/gatewayclasses`
const object = (kind: string, name: string, spec: Json, version = "v1"): Json => ({
  apiVersion: `${group}/${version}`,
  kind,
  metadata: { name },
  spec,
})
const route = (fields: Json = {}, version?: string): Json =>
  change(
    object(
      "HTTPRoute",
      "web",
      {
        parentRefs: [{ name: "gateway" }],
        rules: [
          {
            backendRefs: [
              { name: "web-primary", port: 80, weight: 90 },
              { name: "web-canary", port: 80 },
            ],
          },
        ],
      },
      version,
    ),
    fields,
  )
const gateway = (fields: Json = {}): Json =>
  change(
    object("Gateway", "gateway", {
      gatewayClassName: "none",
      listeners: [{ name: "http", port: 80, protocol: "HTTP" }],
    }),
    fields,
  )
const condition = (fields: Json = {}): Json => ({
  type: "Accepted",
  status: "True",
  reason: "Accepted",
  message: "",
  observedGeneration: 1,
  lastTransitionTime: "2026-01-01T00:00:00Z",
  ...fields,
})
const parent = (conditions: Json[]): Json => ({
  parentRef: { name: "gateway" },
  controllerName: "example.com/gateway",
  conditions,
})

/** Every one of them in one case each is asked for with a dry run. */
const tried = (...routes: Json[]) => ({
  run: async (on: Script) => {
    for (const each of routes) await on.create(place(on, "httproutes"), each, { dryRun: "All" })
  },
})

export const gateways = topic("gateway api", "kinds", {
  "a route gets its defaults": async on => {
    await on.create(place(on, "httproutes"), route())
    await on.get(place(on, "httproutes"), "web")
  },
  "a route is read in the other version": async on => {
    await on.create(place(on, "httproutes"), route())
    await on.get(place(on, "httproutes", "v1beta1"), "web")
    await on.patch(place(on, "httproutes", "v1beta1"), "web", "merge", { spec: { hostnames: ["web.example.com"] } })
    await on.get(place(on, "httproutes"), "web")
  },
  "a route is created in the other version": async on => {
    await on.create(place(on, "httproutes", "v1beta1"), route({}, "v1beta1"))
    await on.get(place(on, "httproutes"), "web")
  },
  "weights out of range": tried(
    route({ "spec.rules.0.backendRefs.0.weight": -1 }),
    route({ "spec.rules.0.backendRefs.0.weight": 1_000_001 }),
    route({ "spec.rules.0.backendRefs.0.weight": 0 }),
  ),
  "a Service without a port": tried(route({ "spec.rules.0.backendRefs.0.port": undefined })),
  "matches by header, cookie and query": tried(
    route({
      "spec.rules.0.matches": [
        { headers: [{ type: "RegularExpression", name: "Cookie", value: ".*canary=1.*" }] },
        { headers: [{ name: "X-Canary", value: "yes" }], queryParams: [{ name: "v", value: "2" }] },
      ],
    }),
  ),
  "a header that is matched by nothing": tried(
    route({ "spec.rules.0.matches": [{ headers: [{ type: "Prefix", name: "a", value: "b" }] }] }),
    route({ "spec.rules.0.matches": [{ headers: [{ name: "not a name", value: "b" }] }] }),
  ),
  "paths that are none": tried(
    route({ "spec.rules.0.matches": [{ path: { type: "Exact", value: "no-slash" } }] }),
    route({ "spec.rules.0.matches": [{ path: { type: "PathPrefix", value: "/a/../b" } }] }),
  ),
  "a mirror": tried(
    route({
      "spec.rules.0.filters": [{ type: "RequestMirror", requestMirror: { backendRef: { name: "copy", port: 80 } } }],
    }),
  ),
  "a filter without its fields": tried(
    route({ "spec.rules.0.filters": [{ type: "RequestMirror" }] }),
    route({
      "spec.rules.0.filters": [{ type: "RequestMirror", requestHeaderModifier: { set: [{ name: "a", value: "b" }] } }],
    }),
  ),
  "a cookie is set for one backend": tried(
    route({
      "spec.rules.0.backendRefs.1.filters": [
        {
          type: "ResponseHeaderModifier",
          responseHeaderModifier: { add: [{ name: "Set-Cookie", value: "canary=1; Max-Age=60" }] },
        },
      ],
    }),
  ),
  timeouts: tried(
    route({ "spec.rules.0.timeouts": { request: "10s", backendRequest: "2s" } }),
    route({ "spec.rules.0.timeouts": { request: "ten" } }),
    route({ "spec.rules.0.timeouts": { request: "1s", backendRequest: "2s" } }),
  ),
  "two parents without a name to tell them apart": tried(
    route({ "spec.parentRefs": [{ name: "gateway" }, { name: "gateway" }] }),
    route({
      "spec.parentRefs": [
        { name: "gateway", sectionName: "a" },
        { name: "gateway", sectionName: "b" },
      ],
    }),
  ),
  "the status of a route is written apart from it": async on => {
    await on.create(place(on, "httproutes"), route({ status: { parents: [parent([condition()])] } }))
    const patch = { status: { parents: [parent([condition()])] }, spec: { hostnames: ["no.example.com"] } }
    await on.patch(`${place(on, "httproutes")}/status`, "web", "merge", patch)
    await on.patch(place(on, "httproutes"), "web", "merge", { spec: { hostnames: ["web.example.com"] } })
    await on.get(place(on, "httproutes"), "web")
  },
  "a status that is no status": async on => {
    await on.quietly.create(place(on, "httproutes"), route())
    for (const wrong of [condition({ status: "Maybe" }), condition({ reason: "two words" }), { type: "Accepted" }])
      await on.patch(`${place(on, "httproutes")}/status`, "web", "merge", { status: { parents: [parent([wrong])] } })
  },
  "a gateway, and what its conditions are before a controller looks": async on => {
    await on.create(place(on, "gateways"), gateway())
    await on.get(place(on, "gateways"), "gateway")
  },
  "listeners that contradict each other": async on => {
    const listener = { name: "http", port: 80, protocol: "HTTP" }
    for (const listeners of [
      [],
      [listener, listener],
      [listener, { ...listener, name: "other" }],
      [{ ...listener, port: 0 }],
    ])
      await on.create(place(on, "gateways"), gateway({ "spec.listeners": listeners }), { dryRun: "All" })
  },
  "a class, whose controller does not change": async on => {
    const own = object("GatewayClass", on.id, { controllerName: "example.com/gateway" })
    await on.create(classes, own)
    await on.patch(classes, on.id, "merge", { spec: { controllerName: "example.com/other" } })
    await on.create(classes, object("GatewayClass", on.id, { controllerName: "no-path" }), { dryRun: "All" })
    await on.quietly.remove(classes, on.id)
  },
  "a grant": async on => {
    const from = [{ group, kind: "HTTPRoute", namespace: "other" }]
    const grants = place(on, "referencegrants", "v1beta1")
    await on.create(grants, object("ReferenceGrant", "a", { from, to: [{ group: "", kind: "Service" }] }, "v1beta1"))
    await on.create(grants, object("ReferenceGrant", "b", { from }, "v1beta1"), { dryRun: "All" })
  },
  "weights are applied by two managers": async on => {
    const own = route()
    await on.apply(place(on, "httproutes"), own, { fieldManager: "user" })
    const next = route({ "spec.rules.0.backendRefs.0.weight": 50 })
    await on.apply(place(on, "httproutes"), next, { fieldManager: "canary" })
    await on.apply(place(on, "httproutes"), next, { fieldManager: "canary", force: true })
  },
  "a path and a host that are rewritten": tried(
    route({
      "spec.rules.0.filters": [
        {
          type: "URLRewrite",
          urlRewrite: {
            hostname: "web.example.com",
            path: { type: "ReplacePrefixMatch", replacePrefixMatch: "/v2" },
          },
        },
      ],
    }),
    route({ "spec.rules.0.filters": [{ type: "URLRewrite", urlRewrite: { path: { type: "ReplaceFullPath" } } }] }),
    route({
      "spec.rules.0.filters": [
        { type: "URLRewrite", urlRewrite: { hostname: "a.example.com" } },
        { type: "RequestRedirect", requestRedirect: { hostname: "b.example.com" } },
      ],
    }),
  ),
  "a Service as the parent": tried(
    route({ "spec.parentRefs": [{ group: "", kind: "Service", name: "web", port: 80 }] }),
    route({ "spec.parentRefs": [{ group: "", kind: "Service", name: "web", port: 0 }] }),
  ),
  "more backends than there may be": tried(
    route({
      "spec.rules.0.backendRefs": Array.from({ length: 17 }, (_, index) => ({ name: `web-${index}`, port: 80 })),
    }),
  ),
  "a weight from an old copy is a conflict": async on => {
    const stored = await on.quietly.create(place(on, "httproutes"), route())
    await on.quietly.patch(place(on, "httproutes"), "web", "merge", { spec: { hostnames: ["web.example.com"] } })
    const { resourceVersion } = stored.metadata
    await on.replace(
      place(on, "httproutes"),
      route({ "metadata.resourceVersion": resourceVersion, "spec.rules.0.backendRefs.1.weight": 50 }),
    )
    await on.get(place(on, "httproutes"), "web")
  },
  "kubectl shows them": async on => {
    await on.quietly.create(place(on, "httproutes"), route({ "spec.hostnames": ["web.example.com"] }))
    await on.quietly.create(place(on, "gateways"), gateway())
    await on.kubectl(["get", "httproutes,gateways"])
  },
})
