import type { Kind } from "./kind.ts"
import type { StructuralSchema } from "./structural-schema.ts"

/** The CustomResourceDefinition of a kind, ready for `kubectl apply`. */
export function crdOf(kind: Kind) {
  const { group, version, plural, singular, shortNames, categories, scope, printerColumns, selectableFields } = kind
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural,
        singular,
        // The server drops an empty list, so `kubectl diff` would never be empty.
        ...(shortNames.length > 0 && { shortNames }),
        categories,
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: printerColumns,
          ...(selectableFields && { selectableFields: selectableFields.map(jsonPath => ({ jsonPath })) }),
          schema: { openAPIV3Schema: withoutHints(kind.schema) },
        },
      ],
    },
  }
}

/** Hints are for our validator only: the server drops them, so `kubectl diff` would never be empty. */
function withoutHints({ hint: _, ...schema }: StructuralSchema): StructuralSchema {
  const { properties, items, additionalProperties } = schema
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, withoutHints(child)])),
    }),
    ...(items && { items: withoutHints(items) }),
    ...(additionalProperties && { additionalProperties: withoutHints(additionalProperties) }),
  }
}
