import { matches } from "#lib/cel.ts"
import { equal } from "../apiserver/equal.ts"
import type { Json } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { oldField, oldItem } from "./correlation.ts"
import { formats } from "./formats.ts"
import { type Props, valuesOf } from "./props.ts"

/**
 * What a server finds wrong with a value by its schema. With `old`, it validates an update, which may keep values that
 * were already wrong. `prefix` is the path of the value: messages contain the path below it, fields the whole path.
 */
export function validateStructure(
  value: Json,
  props: Props,
  { old, prefix = "" }: { old?: Json; prefix?: string } = {},
): Cause[] {
  const report = new Report(prefix)
  check(report, value, props, "", old)
  return report.causes
}

class Report {
  causes: Cause[] = []
  readonly prefix: string

  constructor(prefix: string) {
    this.prefix = prefix
  }

  add(reason: string, path: string, message: string) {
    const field = this.prefix && path ? `${this.prefix}.${path}` : this.prefix || path
    this.causes.push({ reason, message, field: field || "<nil>" })
  }

  invalid(path: string, value: Json, why: string) {
    this.add("FieldValueInvalid", path, `Invalid value: ${JSON.stringify(value)}: ${path} in body ${why}`)
  }

  /** Some of the server's findings have no field. */
  general(why: string) {
    this.causes.push({ reason: "FieldValueInvalid", message: `Invalid value: "": ${why}`, field: "<nil>" })
  }

  wrongType(path: string, got: string, wanted: string) {
    const message = `Invalid value: ${JSON.stringify(got)}: ${path} in body must be of type ${wanted}: ${JSON.stringify(got)}`
    this.add("FieldValueTypeInvalid", path, message)
  }
}

function check(report: Report, value: Json, props: Props, path: string, old: Json): void {
  const before = report.causes.length
  checkType(report, value, props, path)
  if (value !== null) {
    checkAlternatives(report, value, props, path)
    if (typeof value === "string") checkString(report, value, props, path)
    else if (typeof value === "number") checkNumber(report, value, props, path)
    else if (Array.isArray(value)) checkList(report, value, props, path, old)
  }
  if (props.enum && !props.enum.some(each => equal(each, value))) {
    const words = props.enum.map(each => JSON.stringify(typeof each === "string" ? each : JSON.stringify(each)))
    const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${words.join(", ")}`
    report.add("FieldValueNotSupported", path, message)
  }
  if (isObject(value)) checkObject(report, value, props, path, old)
  // An unchanged value was accepted before.
  if (old !== undefined && report.causes.length > before && equal(value, old)) report.causes.length = before
}

const isObject = (value: Json): value is Record<string, Json> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

function checkType(report: Report, value: Json, props: Props, path: string): void {
  const types = props["x-kubernetes-int-or-string"] ? ["integer", "string"] : props.type ? [props.type] : []
  if (value === null) {
    if (!props.nullable && types.length > 0) report.wrongType(path, "null", types.join(","))
    return
  }
  if (types.length === 0) return
  const got = jsonType(value)
  const isNumber = got === "integer" && types.includes("number")
  if (types.includes(got) || isNumber) return
  // For numbers the server reports the format, if the schema has one.
  if (props.format && typeof value !== "string" && !Array.isArray(value))
    report.wrongType(path, typeof value === "number" ? (got === "integer" ? "int64" : "float64") : "", props.format)
  else report.wrongType(path, got, types.join(","))
}

function jsonType(value: Json): string {
  if (Array.isArray(value)) return "array"
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number"
  return typeof value
}

function checkString(report: Report, value: string, props: Props, path: string): void {
  const { maxLength, minLength, pattern, format } = props
  const length = maxLength !== undefined || minLength !== undefined ? [...value].length : 0
  // Only the first of these problems is reported.
  if (maxLength !== undefined && length > maxLength)
    report.add("FieldValueTooLong", path, `Too long: may not be more than ${count(maxLength, "byte")}`)
  else if (minLength !== undefined && length < minLength)
    report.invalid(path, value, `should be at least ${minLength} chars long`)
  else if (pattern && !matches(value, pattern)) report.invalid(path, value, `should match '${pattern}'`)
  if (format && props.type === "string" && formats[format]?.(value) === false)
    report.add(
      "FieldValueTypeInvalid",
      path,
      `Invalid value: ${JSON.stringify(value)}: ${path} in body must be of type ${format}: ${JSON.stringify(value)}`,
    )
}

const count = (number: number, word: string) => `${number} ${word}${number === 1 ? "" : "s"}`

function checkNumber(report: Report, value: number, props: Props, path: string): void {
  const { maximum, minimum, multipleOf, format, exclusiveMaximum, exclusiveMinimum } = props
  if (!format && props.type === "integer" && !Number.isInteger(value))
    report.general(`Checked value must be of type integer (default format) in ${path}`)
  if (format === "int32" && props.type === "integer" && value !== (value | 0))
    report.general(`Checked value must be of type integer with format int32 in ${path}`)
  if (multipleOf !== undefined) {
    // The server divides whole numbers by a whole factor, and reports a factor that becomes zero.
    const factor = Number.isInteger(value) ? Math.trunc(multipleOf) : multipleOf
    if (factor <= 0)
      report.add(
        "FieldValueInvalid",
        path,
        `Invalid value: ${factor}: factor MultipleOf declared for ${path} must be positive: ${factor}`,
      )
    else if (!Number.isInteger(value / factor)) report.invalid(path, value, `should be a multiple of ${multipleOf}`)
  }
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum))
    report.invalid(path, value, `should be less than ${exclusiveMaximum ? "" : "or equal to "}${maximum}`)
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum))
    report.invalid(path, value, `should be greater than ${exclusiveMinimum ? "" : "or equal to "}${minimum}`)
}

function checkList(report: Report, list: Json[], props: Props, path: string, old: Json): void {
  const { items, minItems, maxItems } = props
  if (items)
    for (const [index, item] of list.entries())
      check(report, item, items, `${path}[${index}]`, oldItem(old, item, props))
  if (minItems !== undefined && list.length < minItems)
    report.invalid(path, list.length, `should have at least ${minItems} items`)
  if (maxItems !== undefined && list.length > maxItems) tooMany(report, path, list.length, maxItems)
}

function tooMany(report: Report, path: string, is: number, most: number): void {
  report.add("FieldValueTooMany", path, `Too many: ${is}: must have at most ${count(most, "item")}`)
}

function checkObject(report: Report, object: Record<string, Json>, props: Props, path: string, old: Json): void {
  const { properties = {}, required, minProperties, maxProperties } = props
  const values = valuesOf(props)
  if (minProperties !== undefined || maxProperties !== undefined) {
    const size = Object.keys(object).length
    if (minProperties !== undefined && size < minProperties)
      report.invalid(path, size, `should have at least ${minProperties} properties`)
    if (maxProperties !== undefined && size > maxProperties) tooMany(report, path, size, maxProperties)
  }
  for (const name in object) {
    const child = Object.hasOwn(properties, name) ? properties[name] : values
    if (child) check(report, object[name], child, below(path, name), oldField(old, name, props))
  }
  const needed = props["x-kubernetes-embedded-resource"] ? [...(required ?? []), "apiVersion", "kind"] : required
  for (const name of needed ?? [])
    if (!Object.hasOwn(object, name)) report.add("FieldValueRequired", below(path, name), "Required value")
}

const below = (path: string, name: string) => (path ? `${path}.${name}` : name)

function checkAlternatives(report: Report, value: Json, { allOf, anyOf, oneOf, not }: Props, path: string): void {
  const problems = (props: Props) => {
    const inner = new Report(report.prefix)
    check(inner, value, props, path, undefined)
    return inner.causes
  }
  const name = JSON.stringify(path)
  if (anyOf) {
    const found = anyOf.map(problems)
    if (found.every(each => each.length > 0)) {
      report.general(`${name} must validate at least one schema (anyOf)`)
      report.causes.push(...best(found))
    }
  }
  if (oneOf) {
    const found = oneOf.map(problems)
    const valid = found.filter(each => each.length === 0).length
    if (valid !== 1) {
      const how = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`
      report.general(`${name} must validate one and only one schema (oneOf). ${how}`)
      if (valid === 0) report.causes.push(...best(found))
    }
  }
  if (allOf) {
    const found = allOf.map(problems)
    const valid = found.filter(each => each.length === 0).length
    for (const each of found) report.causes.push(...each)
    if (valid !== allOf.length)
      report.general(`${name} must validate all the schemas (allOf)${valid === 0 ? ". None validated" : ""}`)
  }
  if (not && problems(not).length === 0) report.general(`${name} must not validate the schema (not)`)
}

const best = (found: Cause[][]) => found.toSorted((a, b) => a.length - b.length)[0] ?? []

/** Duplicate elements of a list of type set or map. Each is reported once. */
export function duplicatesIn(value: Json, props: Props, path: string): Cause[] {
  const causes: Cause[] = []
  collectDuplicates(causes, value, props, path)
  return causes
}

function collectDuplicates(causes: Cause[], value: Json, props: Props, path: string): void {
  if (!hasUniqueLists(props)) return
  if (Array.isArray(value)) {
    causes.push(...duplicateItems(value, props, path))
    if (props.items)
      for (const [index, item] of value.entries()) collectDuplicates(causes, item, props.items, `${path}[${index}]`)
  } else if (isObject(value)) {
    const values = valuesOf(props)
    for (const name in value) {
      const property = props.properties && Object.hasOwn(props.properties, name) ? props.properties[name] : undefined
      if (property) collectDuplicates(causes, value[name], property, below(path, name))
      else if (values) collectDuplicates(causes, value[name], values, `${path}[${name}]`)
    }
  }
}

/** Known per schema: every write of a custom object asks, and most of its fields cannot hold such a list. */
const uniqueLists = new WeakMap<Props, boolean>()

function hasUniqueLists(props: Props): boolean {
  let known = uniqueLists.get(props)
  if (known === undefined) {
    const { items, properties = {} } = props
    const below = [items, valuesOf(props), ...Object.values(properties)].filter(each => each !== undefined)
    known = ["set", "map"].includes(props["x-kubernetes-list-type"] ?? "") || below.some(hasUniqueLists)
    uniqueLists.set(props, known)
  }
  return known
}

function duplicateItems(list: Json[], props: Props, path: string): Cause[] {
  const type = props["x-kubernetes-list-type"]
  const keys = props["x-kubernetes-list-map-keys"] ?? []
  if (type !== "set" && type !== "map") return []
  const causes: Cause[] = []
  if (type === "map") {
    for (const [index, item] of list.entries())
      if (item !== null && !isObject(item))
        causes.push({
          reason: "FieldValueInvalid",
          message: `Invalid value: ${JSON.stringify(item)}: must be an object for an array of list-type map`,
          field: `${path}[${index}]`,
        })
    if (causes.length > 0) return causes
  }
  const seen = new Map<string, number>()
  for (const [index, item] of list.entries()) {
    const identity = type === "set" ? item : Object.fromEntries(keys.toSorted().map(key => [key, item?.[key]]))
    const text = JSON.stringify(identity)
    const times = (seen.get(text) ?? 0) + 1
    seen.set(text, times)
    if (times === 2)
      causes.push({ reason: "FieldValueDuplicate", message: `Duplicate value: ${text}`, field: `${path}[${index}]` })
  }
  return causes
}
