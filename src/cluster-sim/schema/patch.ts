import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { type Decoded, duplicatesIn, type FieldValidation, readValue, WrongValue } from "./decode.ts"
import { goText, jsonKind } from "./go-text.ts"
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
  /** The body as it came, to see keys that stand in it twice. */
  text?: string | undefined
  kind: string
  validation?: FieldValidation | undefined
  isCustom?: boolean | undefined
}

/** The object with the patch in it, read as if it had been sent whole: not to be decoded again. Throws StatusError. */
export function applyPatch(input: PatchInput): Decoded {
  const { type, schema, current, body, text, kind, validation = "Warn", isCustom = false } = input
  const patched = applied(input)
  const duplicates = validation === "Ignore" ? [] : duplicatesIn(text)
  const shown = () => (type === "strategic" ? goText(body) : JSON.stringify(patched))
  try {
    const whole = patched.kind === undefined && type === "json" ? patched : { ...headerOf(current), ...patched }
    if (whole.kind !== undefined && whole.kind !== kind)
      throw new WrongValue(`no kind "${whole.kind}" is registered for version "${whole.apiVersion}"`)
    const { value, unknown } = readValue(schema, whole, { kind, isCustom })
    if (validation === "Ignore") return { value, warnings: [] }
    const strict = [...duplicates, ...operationFields(type, body), ...unknown.map(path => `unknown field "${path}"`)]
    if (strict.length > 0 && validation === "Strict")
      throw new WrongValue(`strict decoding error: ${strict.join(", ")}`)
    return { value, warnings: strict }
  } catch (error) {
    throw error instanceof WrongValue ? invalid(shown(), error.message) : error
  }
}

/** The JSON of a patch's body. Throws the server's 400 for what is no JSON. */
export function parsePatch(text: string, type: PatchInput["type"]): Json {
  try {
    return readJson(text).value
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    throw badRequest(`${type === "strategic" ? "" : "error decoding patch: "}${error.message}`)
  }
}

const headerOf = ({ apiVersion, kind }: Obj) => ({ apiVersion, kind })

function applied({ type, schema, current, body, isCustom }: PatchInput): Json {
  const isMap = typeof body === "object" && body !== null && !Array.isArray(body)
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
      if (!isMap) throw badRequest(`error decoding patch: ${wrong(body, "map[string]interface {}")}`)
      return applyMergePatch(current, body)
    case "strategic":
      if (isCustom)
        throw new StatusError(
          415,
          "UnsupportedMediaType",
          "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )
      if (body !== null && !isMap) throw badRequest(wrong(body, "map[string]interface {}"))
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
