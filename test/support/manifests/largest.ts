import type { StructuralSchema } from "#api/structural-schema.ts"

/**
 * The largest value a schema's types and bounds admit, as JSON. Rules that bound several fields together are the
 * caller's to keep, and every pattern must admit one of the characters tried here.
 */
export function largest(schema: StructuralSchema): unknown {
  if (schema.enum)
    return schema.enum.map(String).reduce((longest, word) => (word.length > longest.length ? word : longest))
  if (schema.format === "date-time") return "2026-01-31T12:00:00.123456Z"
  switch (schema.type) {
    case "string":
      return largestText(schema, "")
    case "integer":
      return schema.minimum! < 0 ? schema.minimum : schema.maximum
    case "boolean":
      return false
    case "array":
      return Array.from({ length: schema.maxItems! }, (_, index) => distinct(largest(schema.items!), schema, index))
    case "object": {
      const fields = Object.entries(schema.properties ?? {}).map(([name, child]) => [name, largest(child)])
      const { additionalProperties, maxProperties } = schema
      // The only maps are by tier, whose names have 63 characters.
      const keys = additionalProperties ? Array.from({ length: maxProperties! }, (_, index) => numbered(index, 63)) : []
      return Object.fromEntries([...fields, ...keys.map(key => [key, largest(additionalProperties!)])])
    }
    default:
      throw new Error(`no largest ${JSON.stringify(schema)}`)
  }
}

/** A control character takes six bytes in JSON, some others four, most one. */
const characters = [String.fromCharCode(1), "😀", '"', "z", "f"]

function largestText({ pattern, maxLength }: StructuralSchema, suffix: string): string {
  const texts = characters.map(character => character.repeat(maxLength! - suffix.length) + suffix)
  const text = texts.find(text => !pattern || new RegExp(pattern, "u").test(text))
  if (text === undefined) throw new Error(`none of the characters tried fits ${pattern}`)
  return text
}

const numbered = (index: number, length: number) =>
  `a${String(index).padStart(4, "0")}`.padStart(length, "z").slice(0, length)

/** Elements of a set or a list map must differ. */
function distinct(item: unknown, list: StructuralSchema, index: number): unknown {
  if (list["x-kubernetes-list-type"] === "set") return largestText(list.items!, numbered(index, 5))
  const keys = list["x-kubernetes-list-map-keys"] ?? []
  const renamed = keys.map(key => [key, largestText(list.items!.properties![key]!, numbered(index, 5))])
  return keys.length === 0 ? item : { ...(item as object), ...Object.fromEntries(renamed) }
}
