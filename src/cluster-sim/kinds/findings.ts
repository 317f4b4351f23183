import { dnsLabel, dnsSubdomain, labelValueRule, qualifiedName } from "../apiserver/names.ts"
import { cause } from "../apiserver/refusals.ts"
import type { Json } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { same } from "./edit.ts"

/** Collects what is wrong with an object, in the order and the words of a server. */
export class Findings {
  readonly causes: Cause[] = []

  required(field: string, why?: string) {
    this.causes.push(cause.required(field, why))
  }

  invalid(field: string, value: Json, why: string) {
    if (typeof value !== "object" || value === null) return this.causes.push(cause.invalid(field, value, why))
    const message = `Invalid value: ${goJson(sorted(value))}: ${why}`
    this.causes.push({ reason: "FieldValueInvalid", message, field })
  }

  forbidden(field: string, why: string) {
    this.causes.push(cause.forbidden(field, why))
  }

  duplicate(field: string, value: Json, why = "") {
    const message = `Duplicate value: ${JSON.stringify(sorted(value))}${why && `: ${why}`}`
    this.causes.push({ reason: "FieldValueDuplicate", message, field })
  }

  notFound(field: string, value: Json) {
    this.causes.push({ reason: "FieldValueNotFound", message: `Not found: ${JSON.stringify(value)}`, field })
  }

  unsupported(field: string, value: Json, supported: readonly string[]) {
    const words = supported.map(each => JSON.stringify(each)).join(", ")
    const message = `Unsupported value: ${JSON.stringify(sorted(value))}: supported values: ${words}`
    this.causes.push({ reason: "FieldValueNotSupported", message, field })
  }

  /** One of the supported values; an absent value is required. */
  oneOf(field: string, value: string | undefined, supported: readonly string[]) {
    if (!value) this.required(field)
    else if (!supported.includes(value)) this.unsupported(field, value, supported)
  }

  notNegative(field: string, value: number | undefined | null) {
    if (value !== undefined && value !== null && value < 0)
      this.invalid(field, value, "must be greater than or equal to 0")
  }

  between(field: string, value: number, from: number, to: number) {
    if (value < from || value > to) this.invalid(field, value, `must be between ${from} and ${to}, inclusive`)
  }

  port(field: string, value: number) {
    this.between(field, value, 1, 65_535)
  }

  /** A port number, or the name of a container's port. */
  portOrName(field: string, value: number | string | undefined) {
    if (typeof value === "string") this.rule(field, value, portName)
    else this.port(field, value ?? 0)
  }

  rule(field: string, value: string, check: (value: string) => string[]) {
    for (const why of check(value)) this.invalid(field, value, why)
  }

  label(field: string, value: string) {
    this.rule(field, value, dnsLabel)
  }

  subdomain(field: string, value: string) {
    this.rule(field, value, dnsSubdomain)
  }

  qualifiedName(field: string, value: string) {
    this.rule(field, value, qualifiedName)
  }

  /** A map of labels. Problems of keys and of values are both reported at the map. */
  labels(field: string, labels: Record<string, string> | undefined) {
    for (const [key, value] of Object.entries(labels ?? {})) {
      this.rule(field, key, qualifiedName)
      this.rule(field, value, labelValueRule)
    }
  }

  immutable(field: string, value: Json, old: Json) {
    if (!same(value, old)) this.invalid(field, value ?? null, "field is immutable")
  }

  /** Returns whether the selector is valid. */
  selector(field: string, selector: Json): boolean {
    const before = this.causes.length
    this.labels(`${field}.matchLabels`, selector?.matchLabels)
    for (const [index, { key = "", operator, values = [] }] of (selector?.matchExpressions ?? []).entries()) {
      const at = `${field}.matchExpressions[${index}]`
      if (operator === "In" || operator === "NotIn") {
        if (values.length === 0) this.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'")
      } else if (operator === "Exists" || operator === "DoesNotExist") {
        if (values.length > 0)
          this.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
      } else this.invalid(`${at}.operator`, operator ?? "", "not a valid selector operator")
      this.qualifiedName(`${at}.key`, key)
      for (const [i, value] of values.entries()) this.rule(`${at}.values[${i}]`, value, labelValueRule)
    }
    return this.causes.length === before
  }

  intOrPercent(field: string, value: number | string) {
    if (typeof value === "number") this.notNegative(field, value)
    else if (!/^[0-9]+%$/.test(value))
      this.invalid(
        field,
        value,
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      )
  }

  atMostAll(field: string, value: number | string) {
    if (typeof value === "string" && /^[0-9]+%$/.test(value) && Number.parseInt(value, 10) > 100)
      this.invalid(field, value, "must not be greater than 100%")
  }
}

/** A text that is neither a share nor a number is taken for zero; what else is wrong with it is reported apart. */
export const isZero = (value: number | string) =>
  value === 0 || (typeof value === "string" && !/^[+-]?\d*[1-9]\d*%?$/.test(value))

/** JSON as Go writes it, escaped for HTML. */
const goJson = (value: Json) =>
  JSON.stringify(value).replaceAll(/[<>&]/g, mark => `\\u00${mark.charCodeAt(0).toString(16)}`)

/** Sorts maps by key, as Go writes them. Structs have capitalized keys and keep the order of their fields. */
function sorted(value: Json): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  const keys = Object.keys(value)
  if (keys.some(key => /^[A-Z]/.test(key))) return value
  return Object.fromEntries(keys.sort().map(key => [key, sorted(value[key])]))
}

/** Whether a selector matches labels. A missing selector matches nothing. */
export function selects(selector: Json, labels: Record<string, string> = {}): boolean {
  if (!selector) return false
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels[key] !== value) return false
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const isThere = Object.hasOwn(labels, key)
    if (operator === "In" && !(isThere && values.includes(labels[key]))) return false
    if (operator === "NotIn" && isThere && values.includes(labels[key])) return false
    if (operator === "Exists" && !isThere) return false
    if (operator === "DoesNotExist" && isThere) return false
  }
  return true
}

export const isEmptySelector = (selector: Json) =>
  Object.keys(selector?.matchLabels ?? {}).length + (selector?.matchExpressions?.length ?? 0) === 0

/** The rule for names of container ports. */
export function portName(name: string): string[] {
  const wrong: string[] = []
  if (name.length > 15) wrong.push("must be no more than 15 characters")
  if (!/^[-a-z0-9]+$/.test(name)) wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
  else if (!/[a-z]/.test(name)) wrong.push("must contain at least one letter (a-z)")
  if (name.includes("--")) wrong.push("must not contain consecutive hyphens")
  if (name.startsWith("-") || name.endsWith("-")) wrong.push("must not begin or end with a hyphen")
  return wrong
}

/** The rule for keys of ConfigMaps and Secrets. */
export function configKey(key: string): string[] {
  const wrong: string[] = []
  if (key.length > 253) wrong.push("must be no more than 253 characters")
  if (!/^[-._a-zA-Z0-9]+$/.test(key))
    wrong.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    )
  if (key === "." || key === "..") wrong.push(`must not be '${key}'`)
  else if (key.startsWith("..")) wrong.push("must not start with '..'")
  return wrong
}
