import { z } from "zod"

/** A CEL rule of a schema node: the server and our validator evaluate the same expression. */
export type Rule = {
  rule: string
  message: string
  /** Which field to blame when the node itself is too coarse, as `.field` below the node. */
  fieldPath?: string
  reason?: "FieldValueInvalid" | "FieldValueRequired" | "FieldValueForbidden"
}

/** The part of OpenAPI that a CustomResourceDefinition may use and that our kinds need. */
export type StructuralSchema = {
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean"
  description?: string
  default?: unknown
  format?: string
  nullable?: boolean
  enum?: unknown[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
  required?: string[]
  properties?: Record<string, StructuralSchema>
  additionalProperties?: StructuralSchema
  items?: StructuralSchema
  "x-kubernetes-validations"?: Rule[]
  "x-kubernetes-int-or-string"?: boolean
  "x-kubernetes-list-type"?: "atomic" | "set" | "map"
  "x-kubernetes-list-map-keys"?: string[]
  "x-kubernetes-map-type"?: "atomic" | "granular"
  "x-kubernetes-preserve-unknown-fields"?: boolean
  /** Our own: what to write instead, for constraints that a server reports without advice. Not part of the CRD. */
  hint?: string
}

/** In the order of the YAML: description and type, then constraints, then children. */
const keywords = [
  "description", "type", "x-kubernetes-int-or-string", "format", "nullable", "default", "enum", "pattern", "hint",
  "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties", "maxProperties",
  "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
  "required", "properties", "additionalProperties", "items", "x-kubernetes-validations",
] as const // biome-ignore format: a table of words

/** Turns a zod schema into a structural one. Throws on what a CustomResourceDefinition cannot express. */
export function structuralSchema(schema: z.ZodType): StructuralSchema {
  // "input": what a user writes, so a field with a default is not required.
  return structural(z.toJSONSchema(schema, { target: "openapi-3.0", io: "input" }) as Json, "")
}

type Json = Record<string, unknown>

function structural(node: Json, path: string): StructuralSchema {
  // zod writes the union of integer and string as anyOf; for the server the extension alone means the same.
  const { anyOf, ...rest } = node
  if (anyOf && !node["x-kubernetes-int-or-string"])
    throw new Error(`${path || "."}: a union is not structural; use one object and a rule`)
  const unknown = Object.keys(rest).find(key => !keywords.includes(key as never))
  if (unknown) throw new Error(`${path || "."}: a CustomResourceDefinition cannot say "${unknown}"`)

  const keepsUnknown = node["x-kubernetes-preserve-unknown-fields"] === true
  const result: Json = {}
  for (const keyword of keywords) {
    const value = rest[keyword]
    if (value === undefined) continue
    if (keyword === "properties") {
      const entries = Object.entries(value as Record<string, Json>)
      result[keyword] = Object.fromEntries(entries.map(([name, child]) => [name, structural(child, `${path}.${name}`)]))
    } else if (keyword === "additionalProperties" && keepsUnknown) {
      // zod says "any value" here; for the server the extension alone means that, and a value without a type is an error.
    } else if (keyword === "items" || keyword === "additionalProperties") {
      result[keyword] = structural(value as Json, `${path}[]`)
    } else result[keyword] = value
  }
  return result as StructuralSchema
}
