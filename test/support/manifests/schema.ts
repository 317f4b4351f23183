import type { StructuralSchema } from "#api/structural-schema.ts"

/** Paths of texts, lists, maps and numbers that may be of any size. */
export function unbounded(schema: StructuralSchema, path: string): string[] {
  const { type, items, properties = {}, additionalProperties } = schema
  const isBounded =
    (schema["x-kubernetes-int-or-string"] && schema.maxLength !== undefined && schema.maximum !== undefined) ||
    (type === "string" && (schema.maxLength !== undefined || schema.enum !== undefined)) ||
    ((type === "integer" || type === "number") && schema.minimum !== undefined && schema.maximum !== undefined) ||
    (type === "array" && schema.maxItems !== undefined && schema["x-kubernetes-list-type"] !== undefined) ||
    (type === "object" && (!additionalProperties || schema.maxProperties !== undefined)) ||
    type === "boolean"
  return [
    ...(isBounded ? [] : [path]),
    ...Object.entries(properties).flatMap(([name, child]) => unbounded(child, `${path}.${name}`)),
    ...(items ? unbounded(items, `${path}[]`) : []),
    ...(additionalProperties ? unbounded(additionalProperties, `${path}[]`) : []),
  ]
}

/** Paths of fields without a description. */
export const silent = ({ properties = {}, items }: StructuralSchema, path: string): string[] =>
  Object.entries({ ...properties, ...items?.properties }).flatMap(([name, child]) => [
    ...(child.description ? [] : [`${path}.${name}`]),
    ...silent(child, `${path}.${name}`),
  ])
