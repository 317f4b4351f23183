import type { Json } from "../object.ts"
import type { Schema, SchemaRef } from "./schema.ts"
import { definitions } from "./table.ts"

/** [description, fields]; a field of few values is [description, values]. */
type Descriptions = Record<string, [string, Record<string, string | [string, string[]]>]>

/** `components.schemas` of one group version's /openapi/v3 document. */
export function openApiSchemas(apiVersion: string): Promise<Record<string, Json>> {
  const isOfVersion = (kind: string) =>
    kind.startsWith(`${apiVersion}/`) && kind.split("/").length === apiVersion.split("/").length + 1
  const names = Object.entries(definitions()).filter(([, { gvk = [] }]) => gvk.some(isOfVersion))
  return openApiTypes(names.map(([name]) => name))
}

/**
 * These types and those they refer to, with the text that `kubectl explain` shows. The text is half a megabyte, so it
 * is read at the first request.
 */
export async function openApiTypes(names: readonly string[]): Promise<Record<string, Json>> {
  const { default: loaded } = await import("./descriptions.generated.json", { with: { type: "json" } })
  const descriptions = loaded as unknown as Descriptions
  const schemas: Record<string, Json> = {}
  const add = (name: string) => {
    if (Object.hasOwn(schemas, name)) return
    schemas[name] = {}
    schemas[name] = component(name, descriptions[name], add)
  }
  for (const name of names) add(name)
  return schemas
}

function component(name: string, described: Descriptions[string] | undefined, add: (name: string) => void): Json {
  const { gvk = [], ...schema } = definitions()[name]!
  const [description = "", fields = {}] = described ?? []
  const properties = Object.entries(schema.properties ?? {}).map(([field, ref]) => {
    const text = fields[field] ?? ""
    const [about, values] = Array.isArray(text) ? text : [text]
    return [field, { ...openApiOf(ref, add, about), ...(values && { enum: values }) }]
  })
  return {
    ...openApiOf(schema, add, description),
    ...(properties.length > 0 && { properties: Object.fromEntries(properties) }),
    ...(gvk.length > 0 && { "x-kubernetes-group-version-kind": gvk.map(kindOf) }),
  }
}

function kindOf(gvk: string): Json {
  const [kind = "", version = "", group = ""] = gvk.split("/").reverse()
  return { group, kind, version }
}

/** A node in OpenAPI's words. */
function openApiOf(ref: SchemaRef, add: (name: string) => void, description = ""): Json {
  if (typeof ref === "string") return openApiOf({ ref }, add, description)
  const extensions = {
    ...(description && { description }),
    ...(ref.patchStrategy && { "x-kubernetes-patch-strategy": ref.patchStrategy }),
    ...(ref.mergeKey && { "x-kubernetes-patch-merge-key": ref.mergeKey }),
    ...(ref.listType && { "x-kubernetes-list-type": ref.listType }),
    ...(ref.listMapKeys && { "x-kubernetes-list-map-keys": ref.listMapKeys }),
    ...(ref.isAtomic && { "x-kubernetes-map-type": "atomic" }),
    ...defaultOf(ref.default ?? ref.zero),
  }
  if ("ref" in ref) {
    add(ref.ref)
    const target = { $ref: `#/components/schemas/${ref.ref}` }
    // A reference cannot have other fields beside it.
    return Object.keys(extensions).length > 0 ? { allOf: [target], ...extensions } : target
  }
  return {
    ...typeOf(ref),
    ...extensions,
    ...(ref.required && { required: ref.required }),
    ...(ref.additional && { additionalProperties: openApiOf(ref.additional, add) }),
    ...(ref.items && { items: openApiOf(itemsOf(ref.items), add) }),
  }
}

/** A struct in a list is never absent. */
const itemsOf = (ref: SchemaRef): SchemaRef =>
  typeof ref === "object" && "ref" in ref && definitions()[ref.ref]?.properties ? { ...ref, zero: {} } : ref

const defaultOf = (value: unknown) => (value === undefined || value === null ? {} : { default: value })

function typeOf({ type, format }: Schema): Json {
  if (type === "int-or-string") return { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] }
  if (format === "quantity") return { oneOf: [{ type: "string" }, { type: "number" }] }
  return { ...(type !== "any" && { type }), ...(format && { format }) }
}
