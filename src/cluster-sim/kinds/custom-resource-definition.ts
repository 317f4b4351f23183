import { validateDefinition, validateDefinitionUpdate } from "../crd/definition.ts"
import type { Json } from "../object.ts"
import type { Definition } from "./define.ts"
import { edit, fill, fillZero, set } from "./edit.ts"

export const customResourceDefinition: Definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    allowsUnconditionalUpdate: false,
    default(object) {
      const spec = object.spec ?? {}
      const { kind = "" } = spec.names ?? {}
      const names = kind
        ? fillZero(spec.names, { singular: kind.toLowerCase(), listKind: `${kind}List` })
        : (spec.names ?? {})
      const conversion = edit(fillZero(spec.conversion ?? {}, { strategy: "None" }), "webhook", webhook =>
        edit(webhook, "clientConfig", client => edit(client, "service", service => fill(service, { port: 443 }))),
      )
      return set(object, "spec", set(set(spec, "names", names), "conversion", conversion))
    },
    prepareCreate: object =>
      set(object, "status", {
        conditions: null,
        acceptedNames: { plural: "", kind: "" },
        storedVersions: storedVersions(object.spec, undefined),
      }),
    prepareUpdate: object =>
      set(object, "status", {
        ...object.status,
        storedVersions: storedVersions(object.spec, object.status?.storedVersions),
      }),
    validateCreate: validateDefinition,
    validateUpdate: validateDefinitionUpdate,
  },
  row: object => [object.metadata.name, object.metadata.creationTimestamp],
}

/** Every version in which objects have been written. */
function storedVersions({ versions = [] }: Json, before: string[] | undefined): string[] | null {
  const storage = versions.find((version: Json) => version.storage)?.name
  if (!storage) return before ?? null
  return before?.includes(storage) ? before : [...(before ?? []), storage]
}
