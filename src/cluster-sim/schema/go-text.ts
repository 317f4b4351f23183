import type { Json } from "../object.ts"

/** Go's name for the type of a JSON value, as in its error messages. */
export function jsonKind(value: Json): string {
  if (Array.isArray(value)) return "array"
  if (value === null) return "null"
  if (typeof value === "boolean") return "bool"
  return typeof value
}

/** A value as Go prints it with %v: `map[name:d]`. */
export function goText(value: Json): string {
  if (value === null || value === undefined) return "<nil>"
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`
  if (typeof value !== "object") return String(value)
  const pairs = Object.keys(value)
    .sort()
    .map(key => `${key}:${goText(value[key])}`)
  return `map[${pairs.join(" ")}]`
}

/** Go's name for the type that untyped JSON is decoded into. */
export function goTypeName(value: Json): string {
  if (value === null || value === undefined) return "<nil>"
  if (Array.isArray(value)) return "[]interface {}"
  if (typeof value === "object") return "map[string]interface {}"
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64"
  return typeof value === "boolean" ? "bool" : "string"
}

/** Group, version and kind as Go prints them: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`. */
export function kindText(object: Json): string {
  const { apiVersion = "", kind = "" } = object ?? {}
  return `${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${kind}`
}

/** JSON as Go writes it, escaped for HTML. */
export const goJson = (value: Json): string =>
  JSON.stringify(value).replace(/[<>&]/g, sign => `\\u00${sign.charCodeAt(0).toString(16)}`)
