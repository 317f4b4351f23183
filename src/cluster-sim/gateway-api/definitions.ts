import type { KindStorage } from "../apiserver/storage.ts"
import type { Json } from "../object.ts"
import contourDefinitions from "./contour-definitions.generated.json" with { type: "json" }
import definitions from "./definitions.generated.json" with { type: "json" }
import traefikDefinitions from "./traefik-definitions.generated.json" with { type: "json" }

/** The CustomResourceDefinitions of GatewayClass, Gateway, HTTPRoute and ReferenceGrant, to be applied like any other. */
export const gatewayApiDefinitions: readonly Json[] = definitions

/** The same of Contour's HTTPProxy, and of Traefik's IngressRoute and TraefikService. */
const otherKinds: readonly Json[] = [...contourDefinitions, ...traefikDefinitions]

/** Serves the kinds of the Gateway API, Contour's and Traefik's, unless the cluster has them. */
export function installGatewayApi(storage: KindStorage): void {
  const kind = storage.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
  if (!kind) throw new Error("a cluster without CustomResourceDefinitions cannot serve the Gateway API")
  for (const definition of [...gatewayApiDefinitions, ...otherKinds])
    if (!storage.find(kind, { name: definition.metadata.name }))
      storage.create(kind, definition, { fieldManager: "gateway-api" })
}
