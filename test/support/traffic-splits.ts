import type { Json } from "#cluster-sim/index.ts"

/** The CRD of SMI's TrafficSplit as the project defines it, without texts. */
export const trafficSplits: Json = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "trafficsplits.split.smi-spec.io" },
  spec: {
    group: "split.smi-spec.io",
    scope: "Namespaced",
    names: { kind: "TrafficSplit", listKind: "TrafficSplitList", plural: "trafficsplits", singular: "trafficsplit" },
    versions: [
      {
        ...{ name: "v1alpha2", served: true, storage: true },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["service", "backends"],
                properties: {
                  service: { type: "string" },
                  backends: {
                    type: "array",
                    items: {
                      type: "object",
                      required: ["service", "weight"],
                      properties: { service: { type: "string" }, weight: { type: "number" } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
}
