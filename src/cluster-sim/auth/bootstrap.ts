import type { Registry } from "../apiserver/registry.ts"
import type { Json } from "../object.ts"
import recorded from "./roles.generated.json" with { type: "json" }

/** Makes the roles and bindings that a real API server makes at its start, where they are missing. */
export function bootstrapRoles(registry: Registry) {
  for (const { apiVersion, kind, ...object } of recorded as Json[]) {
    const served = registry.kind(apiVersion, kind)
    if (served && !registry.find(served, object.metadata))
      registry.create(served, object, { fieldManager: "kube-apiserver" })
  }
}
