import { canonicalQuantity } from "#lib/quantity.ts"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { jsonKind } from "./go-text.ts"
import { JsonSyntaxError, readJson } from "./json-text.ts"
import type { Schema } from "./schema.ts"
import { definitionName, objectMeta, resolve } from "./table.ts"

export type FieldValidation = "Strict" | "Warn" | "Ignore"

export type DecodeOptions = {
  /** Of the served kind: refusals name it (`Deployment in version "v1"`), and the body must have it. */
  apiVersion: string
  kind: string
  validation?: FieldValidation | undefined // Warn when absent, as on the server
  /** The body as received, to find duplicate keys, which JSON.parse drops. */
  text?: string | undefined
  /** Custom resources are not decoded into a Go type: the validation of their schema reports wrong types. */
  isCustom?: boolean | undefined
}

export type Decoded = { value: Json; warnings: string[] }

/** The JSON of a request's body. Throws the server's 400 for a body that is no JSON object. */
export function parseBody(text: string, kind: string): Json {
  const refuse = (problem: string) =>
    new StatusError(
      400,
      "BadRequest",
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${problem} (${summary(text)})`,
    )
  try {
    const { value } = readJson(text)
    if (value === null) return {}
    if (typeof value !== "object" || Array.isArray(value)) throw new JsonSyntaxError(headerRefusal(value))
    return value
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw refuse(error.message)
    throw error
  }
}

const headerRefusal = (value: Json) =>
  `json: cannot unmarshal ${jsonKind(value)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`

function summary(text: string): string {
  if (text === "") return "<empty>"
  const isObject = text.startsWith("{")
  const shown = isObject ? text.slice(0, 30) : Buffer.from(text).subarray(0, 30).toString("hex")
  return text.length > 30 ? `${shown} ...` : shown
}

/**
 * Decodes a body as the server decodes it into its Go type. Unknown fields are dropped (Strict refuses them, Warn
 * reports them), a null is an absent field, a wrong type is a 400. Returns what the server would store: fields without
 * a value are left out, or written as Go writes them (`resources: {}`). Throws StatusError.
 */
export function decode(schema: Schema, body: Json, options: DecodeOptions): Decoded {
  const { apiVersion, kind, validation = "Warn", text, isCustom = false } = options
  const { kind: sentKind = kind, apiVersion: sentVersion = apiVersion } = body ?? {}
  const version = sentVersion.slice(sentVersion.lastIndexOf("/") + 1)
  const refuse = (problem: string) =>
    new StatusError(400, "BadRequest", `${sentKind} in version "${version}" cannot be handled as a ${kind}: ${problem}`)
  if (isCustom) checkHeader(body, options)
  else {
    const problem = otherKind({ apiVersion, kind }, { apiVersion: sentVersion, kind: sentKind })
    if (problem) throw refuse(problem)
  }
  try {
    const { value, unknown } = readValue(schema, { ...body, apiVersion, kind }, { kind, isCustom })
    if (validation === "Ignore") return { value, warnings: [] }
    const strict = [...duplicatesIn(text), ...unknown.map(path => `unknown field "${path}"`)]
    if (strict.length > 0 && validation === "Strict")
      throw new WrongValue(`strict decoding error: ${strict.join(", ")}`)
    return { value, warnings: strict }
  } catch (error) {
    throw error instanceof WrongValue ? refuse(error.message) : error
  }
}

type Header = { apiVersion: string; kind: string }

/** The message for an object of another kind; undefined if the kind is right. */
export function otherKind(wanted: Header, sent: Header): string | undefined {
  if (sent.apiVersion === wanted.apiVersion && sent.kind === wanted.kind) return undefined
  if (!definitionName(sent.apiVersion, sent.kind))
    return `no kind "${sent.kind}" is registered for version "${sent.apiVersion}" in scheme "pkg/runtime/scheme.go:111"`
  const [version, group = "core"] = wanted.apiVersion.split("/").reverse()
  return `converting (${version}.${sent.kind}) to (${group.split(".")[0]}.${wanted.kind}): unknown conversion`
}

/** Custom resources must have apiVersion and kind. The messages differ from those for built-in kinds. */
function checkHeader(body: Json, { apiVersion, kind, text = JSON.stringify(body) }: DecodeOptions) {
  const { kind: sentKind, apiVersion: sentVersion = "" } = body
  if (sentKind === undefined)
    throw new StatusError(
      400,
      "BadRequest",
      `the object provided is unrecognized (must be of type ${kind}): Object 'Kind' is missing in '${text}' (${summary(text)})`,
    )
  if (sentVersion !== apiVersion)
    throw new StatusError(
      400,
      "BadRequest",
      `the API version in the data (${sentVersion}) does not match the expected API version (${apiVersion})`,
    )
  if (sentKind === kind) return
  const group = apiVersion.split("/")[0]!
  const name = body.metadata?.name ?? ""
  const message = `Invalid value: "${sentKind}": must be ${kind}`
  throw new StatusError(422, "Invalid", `${sentKind}.${group} "${name}" is invalid: kind: ${message}`, {
    ...{ name, group, kind: sentKind },
    causes: [{ reason: "FieldValueInvalid", message, field: "kind" }],
  })
}

/** The warnings for duplicate keys in this text. */
export const duplicatesIn = (text: string | undefined): string[] =>
  text === undefined ? [] : readJson(text).duplicates.map(path => `duplicate field "${path}"`)

/** A value that does not fit the Go type, in Go's words. The caller chooses the Status. */
export class WrongValue extends Error {
  override name = "WrongValue"
  /** For a wrong type: the value and the schema that it does not fit. */
  readonly mismatch: { value: Json; schema: Schema } | undefined

  constructor(message: string, mismatch?: { value: Json; schema: Schema }) {
    super(message)
    this.mismatch = mismatch
  }
}

/** The value as it would be stored, and the paths of unknown fields. Throws WrongValue. */
export function readValue(
  schema: Schema,
  value: Json,
  { kind, isCustom }: { kind: string; isCustom: boolean },
): { value: Json; unknown: string[] } {
  const reader = new Reader()
  if (!isCustom)
    return { value: reader.struct(schema, value, { struct: kind, path: "", at: "" }), unknown: reader.unknown }
  const read = reader.custom(schema, value, "")
  // Pruned fields are reported sorted by name, after the unknown fields of metadata.
  const [inMetadata, elsewhere] = [true, false].map(is =>
    reader.unknown.filter(path => path.startsWith("metadata.") === is),
  )
  return { value: read, unknown: [...inMetadata!, ...elsewhere!.sort()] }
}

/** The current position: the Go struct, the fields up to here (for type errors), and the path with its indexes. */
type Place = { struct: string; path: string; at: string }

class Reader {
  readonly unknown: string[] = []

  /** Objects with declared fields. Unknown fields are dropped and recorded in their order. */
  struct(schema: Schema, value: Json, place: Place): Json {
    const properties = schema.properties ?? {}
    const out: Record<string, Json> = {}
    for (const name of Object.keys(value)) {
      const ref = properties[name]
      if (ref === undefined || !Object.hasOwn(properties, name)) {
        this.unknown.push(join(place.at, name))
        continue
      }
      const field = resolve(ref)
      const path = join(place.path, name)
      const read = this.value(field, value[name], { struct: place.struct, path, at: join(place.at, name) })
      if (read === undefined || (field.omitsZero && isZero(read) && path !== "metadata.managedFields")) continue
      out[name] = read
    }
    for (const [name, field] of alwaysWritten(schema)) if (!Object.hasOwn(out, name)) out[name] = zeroOf(field)
    return out
  }

  value(schema: Schema, value: Json, place: Place): Json {
    if (value === null || value === undefined) return undefined
    switch (schema.type) {
      case "string":
        return this.string(schema, value, place)
      case "integer":
        if (typeof value !== "number" || !fitsInteger(schema, value)) throw wrongType(schema, value, place)
        return value
      case "number":
        if (typeof value !== "number") throw wrongType(schema, value, place)
        return value
      case "boolean":
        if (typeof value !== "boolean") throw wrongType(schema, value, place)
        return value
      case "int-or-string":
        if (typeof value === "string" || (typeof value === "number" && fitsInteger(int32, value))) return value
        throw wrongType({ type: "int-or-string", goType: "int32" }, value, place)
      case "array":
        return this.array(schema, value, place)
      case "object":
        return this.object(schema, value, place)
      case "any":
        return schema.format === "quantity" ? quantity(value) : value
    }
  }

  string(schema: Schema, value: Json, place: Place): Json {
    if (typeof value !== "string")
      throw wrongType(schema.format === "date-time" ? { ...schema, goType: "string" } : schema, value, place)
    if (schema.format === "byte") checkBase64(value)
    if (schema.format === "date-time") return time(value, schema.goType?.endsWith("MicroTime") ?? false)
    return value
  }

  array(schema: Schema, value: Json, place: Place): Json {
    if (!Array.isArray(value)) throw wrongType(schema, value, place)
    const items = listItemOf(schema)
    return value.map((item, index) => {
      const at = `${place.at}[${index}]`
      const read = this.value(items, item, { ...place, at })
      return read === undefined ? zeroOf(items, "item") : read
    })
  }

  object(schema: Schema, value: Json, place: Place): Json {
    if (typeof value !== "object" || Array.isArray(value)) throw wrongType(schema, value, place)
    if (schema.properties) return this.struct(schema, value, { ...place, struct: structName(schema, place) })
    if (!schema.additional) return value // raw: kept as it is
    const values = mapValueOf(schema)
    const out: Record<string, Json> = {}
    for (const key of Object.keys(value)) {
      const read = this.value(values, value[key], { ...place, at: join(place.at, key) })
      out[key] = read === undefined ? zeroOf(values, "item") : read
    }
    return out
  }

  /** Custom resources: pruned, not typed. Only metadata has a Go type. */
  custom(schema: Schema, value: Json, at: string): Json {
    if (at === "metadata" && typeof value === "object" && value !== null && !Array.isArray(value))
      return this.struct(resolve(objectMeta), value, { struct: "ObjectMeta", path: "", at })
    if (Array.isArray(value)) {
      const items = schema.items && resolve(schema.items)
      return items ? value.map((item, index) => this.custom(items, item, `${at}[${index}]`)) : value
    }
    if (value === null || typeof value !== "object") return value
    if (!schema.properties && !schema.additional && (schema.preservesUnknown || schema.type === "any")) return value
    const out: Record<string, Json> = {}
    for (const key of Object.keys(value)) {
      const isNamed = schema.properties !== undefined && Object.hasOwn(schema.properties, key)
      const named = isNamed ? schema.properties[key] : schema.additional
      const ref = named ?? (at === "" ? rootField(key) : undefined)
      if (ref) out[key] = this.custom(resolve(ref), value[key], join(at, key))
      else if (schema.preservesUnknown) out[key] = value[key]
      else this.unknown.push(join(at, key))
    }
    return out
  }
}

const rootField = (key: string) =>
  key === "metadata" ? objectMeta : key === "apiVersion" || key === "kind" ? ({ type: "string" } as const) : undefined

const join = (path: string, name: string) => (path === "" ? name : `${path}.${name}`)

const int32: Schema = { type: "integer", format: "int32", goType: "int32" }

function fitsInteger(schema: Schema, value: number): boolean {
  if (!Number.isInteger(value)) return false
  return schema.format === "int32" ? value === (value | 0) : true
}

function quantity(value: Json): string {
  const read =
    typeof value === "string" || typeof value === "number" ? canonicalQuantity(String(value).trim()) : undefined
  if (read === undefined) throw new WrongValue(refusalOf(value))
  return read
}

const refusalOf = (value: Json) =>
  typeof value === "string" && /^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$/.test(value)
    ? "unable to parse quantity's suffix"
    : "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

function wrongType(schema: Schema, value: Json, { struct, path }: Place): WrongValue {
  const isNumber = typeof value === "number" && (schema.type === "integer" || schema.type === "int-or-string")
  const shown = isNumber ? `number ${value}` : jsonKind(value)
  return new WrongValue(
    `json: cannot unmarshal ${shown} into Go struct field ${struct}.${path} of type ${goType(schema)}`,
    { value, schema },
  )
}

export function goType(schema: Schema): string {
  if (schema.goType) return schema.goType
  if (schema.format === "byte") return "[]uint8"
  if (schema.type === "integer") return schema.format === "int64" ? "int64" : "int32"
  if (schema.type === "boolean") return "bool"
  if (schema.type === "number") return "float64"
  return schema.type
}

/** `v1.DeploymentSpec` → `DeploymentSpec` */
const structName = ({ goType: type }: Schema, place: Place) =>
  type ? type.slice(Math.max(type.lastIndexOf("."), type.lastIndexOf("]")) + 1) : place.struct

/** Items of a list and values of a map get their Go type from that of the list or map. */
const listItemOf = derived((schema: Schema) => element(schema, schema.items, /^\[\]/))
const mapValueOf = derived((schema: Schema) => element(schema, schema.additional, /^map\[[^\]]*\]/))

function element(schema: Schema, ref: Schema["items"], prefix: RegExp): Schema {
  const node = resolve(ref ?? { type: "any" })
  const goType = schema.goType?.replace(prefix, "")
  return goType && goType !== schema.goType && !node.goType && node.type !== "any" ? { ...node, goType } : node
}

function derived<Value>(make: (schema: Schema) => Value): (schema: Schema) => Value {
  const known = new WeakMap<Schema, Value>()
  return schema => {
    const found = known.get(schema)
    if (found !== undefined) return found
    const value = make(schema)
    known.set(schema, value)
    return value
  }
}

/** The fields that Go writes even without a value. */
const alwaysWritten = derived((schema: Schema): [string, Schema][] =>
  Object.entries(schema.properties ?? {})
    .map(([name, ref]): [string, Schema] => [name, resolve(ref)])
    .filter(([, field]) => field.zero !== undefined),
)

function zeroOf(field: Schema, as: "field" | "item" = "field"): Json {
  if (field.type === "object" && field.properties && (as === "item" || field.zero !== null))
    return Object.fromEntries(alwaysWritten(field).map(([name, inner]) => [name, zeroOf(inner)]))
  if (field.zero !== undefined) return field.zero
  const zeros: Partial<Record<Schema["type"], Json>> = { string: "", integer: 0, number: 0, boolean: false }
  return zeros[field.type] ?? null
}

/** The empty object of a kind, as in Go: a create is compared with it. */
export const emptyObject = derived((schema: Schema): Json => zeroOf(schema, "item"))

function isZero(value: Json): boolean {
  if (value === "" || value === 0 || value === false || value === null) return true
  if (typeof value !== "object") return false
  for (const _ in value) return false
  return true
}

function checkBase64(text: string) {
  const clean = text.replaceAll(/[\r\n]/g, "")
  const bad = /[^A-Za-z0-9+/]/.exec(clean.replace(/={1,2}$/, ""))
  const at = bad ? bad.index : clean.length % 4 === 0 ? -1 : clean.length - (clean.length % 4)
  if (at >= 0) throw new WrongValue(`illegal base64 data at input byte ${at}`)
}

const layouts = { seconds: "2006-01-02T15:04:05Z07:00", micros: "2006-01-02T15:04:05.000000Z07:00" }

/** Times are stored in UTC, to the second or the microsecond. */
function time(text: string, isMicro: boolean): string {
  const layout = isMicro ? layouts.micros : layouts.seconds
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(text)
  const refuse = (rest: string, wanted: string) =>
    new WrongValue(`parsing time "${text}" as "${layout}": cannot parse "${rest}" as "${wanted}"`)
  if (!parts) throw refuse(text, "2006")
  const [, seconds = "", fraction = "", zone = ""] = parts
  if (isMicro && fraction.length !== 7) throw refuse(fraction + zone, ".000000")
  if (zone === "Z") return isMicro ? text : `${seconds}Z`
  const instant = Date.parse(`${seconds}${zone}`)
  if (Number.isNaN(instant)) throw refuse(text, "2006")
  const utc = new Date(instant).toISOString().slice(0, 19)
  return isMicro ? `${utc}${fraction}Z` : `${utc}Z`
}
