import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Decoded, duplicatesIn, type FieldValidation, goType, otherKind, readValue, WrongValue } from "./decode.ts"
import { goJson, goText, goTypeName, jsonKind } from "./go-text.ts"
import { applyJsonPatch } from "./json-patch.ts"
import { JsonSyntaxError, readJson } from "./json-text.ts"
import { applyMergePatch } from "./merge-patch.ts"
import type { Schema } from "./schema.ts"
import { applyStrategicPatch } from "./strategic-patch.ts"

export type PatchInput = {
  type: "json" | "merge" | "strategic"
  schema: Schema
  current: Obj
  /** Parsed JSON. */
  body: Json
  /** The body as received, to find duplicate keys. */
  text?: string | undefined
  kind: string
  validation?: FieldValidation | undefined
  isCustom?: boolean | undefined
}

/** The patched object, decoded like a sent one: it must not be decoded again. Throws StatusError. */
export function applyPatch(input: PatchInput): Decoded {
  const { type, schema, current, body, text, kind, validation = "Warn", isCustom = false } = input
  const patched = applied(input)
  const duplicates = validation === "Ignore" ? [] : duplicatesIn(text)
  const shown = () => (type === "strategic" ? goText(body) : goJson(asWritten(patched, input)))
  try {
    if (type !== "strategic") checkHeader(current, patched)
    const { value, unknown } = readValue(schema, { ...patched, ...headerOf(current) }, { kind, isCustom })
    if (validation === "Ignore") return { value, warnings: [] }
    const strict = [...duplicates, ...operationFields(type, body), ...unknown.map(path => `unknown field "${path}"`)]
    if (strict.length > 0 && validation === "Strict")
      throw new WrongValue(`strict decoding error: ${strict.join(", ")}`)
    return { value, warnings: strict }
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error
    throw invalid(shown(), type === "strategic" ? asConverted(error) : error.message)
  }
}

/** The JSON of a patch's body. Throws the server's 400 for a body that is no JSON. */
export function parsePatch(text: string, type: PatchInput["type"]): Json {
  try {
    return readJson(text).value
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw badRequest(`${type === "strategic" ? "" : "error decoding patch: "}${error.message}`)
  }
}

function checkHeader(current: Obj, { apiVersion, kind }: Json) {
  const problem = otherKind(current, { apiVersion: apiVersion ?? current.apiVersion, kind: kind ?? current.kind })
  if (problem) throw new WrongValue(problem)
}

/** A strategic patch gives a map that is converted, not JSON that is parsed: its error messages differ. */
function asConverted({ message, mismatch }: WrongValue): string {
  if (!mismatch) return message
  const { value, schema } = mismatch
  const kinds: Record<string, string> = { array: "slice", object: "map", boolean: "bool" }
  const kind = Array.isArray(value)
    ? "slice"
    : typeof value === "number"
      ? goTypeName(value)
      : (kinds[typeof value] ?? typeof value)
  if (schema.format === "date-time") return `json: cannot unmarshal ${jsonKind(value)} into Go value of type string`
  if (schema.type === "int-or-string")
    return message.replace(/into Go struct field \S+ of type/, "into Go value of type")
  if (schema.type === "array") return `cannot restore slice from ${kind}`
  if (schema.type === "object")
    return schema.properties ? `cannot restore struct from: ${kind}` : `cannot restore map from ${kind}`
  const wanted = goType(schema)
  const isConvertible = schema.type === "string" ? kind === "int64" : schema.type === "integer" && kind === "float64"
  if (isConvertible) return `cannot convert ${kind} to ${wanted}`
  return `unrecognized type: ${schema.type === "string" ? "string" : wanted}`
}

/**
 * A patched object as the server shows it: its library sorts the keys of every map that it opened and leaves the
 * others as they were. In a custom resource all keys are sorted.
 */
function asWritten(patched: Json, { type, body, isCustom }: PatchInput): Json {
  if (isCustom) return ordered(patched, () => true)
  const touched: string[] =
    type === "json" ? body.flatMap(({ path = "", from }: Json) => (from === undefined ? [path] : [path, from])) : []
  const isOpened = (path: string[]) =>
    type === "merge"
      ? isMap(path.reduce((node, key) => node?.[key], body))
      : touched.some(each => each.startsWith(["", ...path, ""].join("/")))
  return ordered(patched, path => isOpened(path) || path.includes("fieldsV1"))
}

function ordered(node: Json, isOrdered: (path: string[]) => boolean, path: string[] = []): Json {
  if (typeof node !== "object" || node === null) return node
  const inside = (child: Json, key: string | number) => ordered(child, isOrdered, [...path, String(key)])
  if (Array.isArray(node)) return node.map(inside)
  const keys = Object.keys(node)
  return Object.fromEntries((isOrdered(path) ? keys.sort() : keys).map(key => [key, inside(node[key], key)]))
}

const isMap = (value: Json) => typeof value === "object" && value !== null && !Array.isArray(value)

const headerOf = ({ apiVersion, kind }: Obj) => ({ apiVersion, kind })

function applied({ type, schema, current, body, isCustom }: PatchInput): Json {
  const wrong = (found: Json, wanted: string) =>
    `json: cannot unmarshal ${jsonKind(found)} into Go value of type ${wanted}`
  switch (type) {
    case "json": {
      if (!Array.isArray(body)) throw badRequest(`error decoding patch: ${wrong(body, "[]handlers.jsonPatchOp")}`)
      const odd = body.find(
        operation => typeof operation !== "object" || operation === null || Array.isArray(operation),
      )
      if (odd !== undefined) throw badRequest(`error decoding patch: ${wrong(odd, "handlers.jsonPatchOp")}`)
      return applyJsonPatch(current, body)
    }
    case "merge":
      if (body === null) throw badRequest("Invalid JSON Patch")
      if (!isMap(body)) throw badRequest(`error decoding patch: ${wrong(body, "map[string]interface {}")}`)
      return applyMergePatch(current, body)
    case "strategic":
      if (isCustom)
        throw new StatusError(
          415,
          "UnsupportedMediaType",
          "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )
      if (body !== null && !isMap(body)) throw badRequest(wrong(body, "map[string]interface {}"))
      return applyStrategicPatch(schema, current, body ?? {})
  }
}

const known = ["op", "path", "from", "value"]

const operationFields = (type: PatchInput["type"], body: Json): string[] =>
  type !== "json"
    ? []
    : body.flatMap((operation: Json, index: number) =>
        Object.keys(operation)
          .filter(key => !known.includes(key))
          .map(key => `json patch unknown field "[${index}].${key}"`),
      )

const badRequest = (message: string) => new StatusError(400, "BadRequest", message)

function invalid(value: string, problem: string): StatusError {
  const message = `Invalid value: ${JSON.stringify(value)}: ${problem}`
  return new StatusError(422, "Invalid", ` "" is invalid: patch: ${message}`, {
    causes: [{ reason: "FieldValueInvalid", message, field: "patch" }],
  })
}
