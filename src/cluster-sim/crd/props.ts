import type { Json } from "../object.ts"
import type { Schema } from "../schema/schema.ts"

/** A node of a CRD's schema as it is written: `JSONSchemaProps`. */
export type Props = {
  type?: string
  format?: string
  description?: string
  default?: Json
  nullable?: boolean
  enum?: Json[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
  required?: string[]
  properties?: Record<string, Props>
  additionalProperties?: Props | boolean
  items?: Props
  allOf?: Props[]
  anyOf?: Props[]
  oneOf?: Props[]
  not?: Props
  $ref?: string
  "x-kubernetes-validations"?: Rule[]
  "x-kubernetes-int-or-string"?: boolean
  "x-kubernetes-preserve-unknown-fields"?: boolean
  "x-kubernetes-embedded-resource"?: boolean
  "x-kubernetes-list-type"?: string
  "x-kubernetes-list-map-keys"?: string[]
  "x-kubernetes-map-type"?: string
}

export type Rule = {
  rule: string
  message?: string
  messageExpression?: string
  reason?: string
  fieldPath?: string
  optionalOldSelf?: boolean
}

/** The schema of the values, if this is a map. */
export const valuesOf = ({ additionalProperties }: Props): Props | undefined =>
  typeof additionalProperties === "object" ? additionalProperties : undefined

const objectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

/** The schema of a custom kind as patches, server-side apply and pruning need it. */
export function schemaOf(root: Props): Schema {
  const { type: _, properties = {}, ...rest } = convert(root)
  return { ...rest, type: "object", properties: { ...properties, ...header } }
}

const header = {
  apiVersion: { type: "string" },
  kind: { type: "string" },
  metadata: objectMeta,
} as const

function convert(props: Props): Schema {
  const { description, format, required } = props
  const preservesUnknown = props["x-kubernetes-preserve-unknown-fields"] === true
  const common = {
    ...(description && { description }),
    ...(format && { format }),
    ...(props.default !== undefined && { default: props.default }),
    ...(preservesUnknown && { preservesUnknown }),
  }
  if (props["x-kubernetes-int-or-string"]) return { ...common, type: "int-or-string" }
  if (props.type === "array") {
    const listType = props["x-kubernetes-list-type"]
    const listMapKeys = props["x-kubernetes-list-map-keys"]
    return {
      ...common,
      type: "array",
      items: convert(props.items ?? {}),
      listType: listType === "set" || listType === "map" ? listType : "atomic",
      ...(listMapKeys && { listMapKeys }),
    }
  }
  if (props.type === "object") {
    const own = Object.entries(props.properties ?? {}).map(([name, child]) => [name, convert(child)])
    const isEmbedded = props["x-kubernetes-embedded-resource"]
    const values = props.additionalProperties === true ? {} : valuesOf(props)
    return {
      ...common,
      type: "object",
      ...((own.length > 0 || isEmbedded) && {
        properties: { ...Object.fromEntries(own), ...(isEmbedded && header) },
      }),
      ...(values && { additional: convert(values) }),
      ...(required && { required }),
      ...(props["x-kubernetes-map-type"] === "atomic" && { isAtomic: true }),
    }
  }
  const type = props.type as "string" | "integer" | "number" | "boolean" | undefined
  return { ...common, type: type ?? "any" }
}
