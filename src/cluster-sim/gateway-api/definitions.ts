import type { KindStorage } from "../apiserver/storage.ts"
import type { Json } from "../object.ts"
import definitions from "./definitions.generated.json" with { type: "json" }

/** The CustomResourceDefinitions of GatewayClass, Gateway, HTTPRoute and ReferenceGrant, to be applied like any other. */
export const gatewayApiDefinitions: readonly Json[] = definitions

/** Serves the kinds of the Gateway API, unless the cluster has them. */
export function installGatewayApi(storage: KindStorage): void {
  const kind = storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
  if (!kind) throw new Error("a cluster without CustomResourceDefinitions cannot serve the Gateway API")
  for (const definition of gatewayApiDefinitions)
    if (!storage.find(kind, { name: definition.metadata.name }))
      storage.create(kind, definition, { fieldManager: "gateway-api" })
}
