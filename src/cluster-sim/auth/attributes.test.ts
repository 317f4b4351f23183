import { expect, test } from "vitest"
import { attributesOf } from "./attributes.ts"

const cases: Record<string, object> = {
  "GET /api/v1/namespaces/shop/pods": { verb: "list", resource: "pods", namespace: "shop" },
  "GET /api/v1/namespaces/shop/pods?watch=1": { verb: "watch" },
  "GET /api/v1/namespaces/shop/pods?watch=false": { verb: "list" },
  "GET /api/v1/namespaces/shop/pods/a": { verb: "get", name: "a" },
  "GET /api/v1/namespaces/shop/pods/a/log": { verb: "get", name: "a", subresource: "log" },
  "GET /api/v1/pods?fieldSelector=metadata.name%3Da": { verb: "list", name: "a", namespace: "" },
  "GET /api/v1/pods?fieldSelector=metadata.name!%3Da": {
    ...{ group: "", version: "v1", resource: "pods" },
    verb: "list",
    namespace: "",
  },
  "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn,metadata.name%3Da": { verb: "list", name: "a" },
  "DELETE /apis/apps/v1/namespaces/shop/deployments": { verb: "deletecollection", group: "apps", version: "v1" },
  "DELETE /apis/apps/v1/namespaces/shop/deployments/a": { verb: "delete", resource: "deployments" },
  "PATCH /apis/apps/v1/namespaces/shop/deployments/a/scale": { verb: "patch", subresource: "scale" },
  "PUT /api/v1/namespaces/shop/finalize": {
    ...{ verb: "update", resource: "namespaces", namespace: "shop" },
    ...{ name: "shop", subresource: "finalize" },
  },
  "GET /api/v1/namespaces": { verb: "list", resource: "namespaces", namespace: "" },
  "POST /api/v1/namespaces": { verb: "create", resource: "namespaces" },
  "GET /api": { verb: "get", path: "/api" },
  "GET /apis/apps/v1": { verb: "get", path: "/apis/apps/v1" },
  "POST /healthz/x": { verb: "post", path: "/healthz/x" },
  // A segment with an escaped slash is judged by the path that it would lead to.
  "GET /api/v1/namespaces/mine%2f..%2ftheirs/pods": { namespace: "mine", resource: "..", name: "theirs" },
}
for (const [line, wanted] of Object.entries(cases))
  test(line, () => {
    const [method = "", url = ""] = line.split(" ")
    const { pathname, searchParams } = new URL(url, "http://server")
    const segments = pathname.split("/").filter(Boolean).map(decodeURIComponent)
    expect(attributesOf(method, segments, searchParams)).toEqual(expect.objectContaining(wanted))
  })
