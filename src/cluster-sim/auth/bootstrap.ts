import type { KindStorage } from "../apiserver/storage.ts"
import type { Json } from "../object.ts"
import recorded from "./roles.generated.json" with { type: "json" }

/** Creates the missing ones of the roles and bindings that a real API server creates at its start. */
export function bootstrapRoles(storage: KindStorage) {
  for (const { apiVersion, kind, ...object } of recorded as Json[]) {
    const served = storage.kind(apiVersion, kind)
    if (served && !storage.find(served, object.metadata))
      storage.create(served, object, { fieldManager: "kube-apiserver" })
  }
}
