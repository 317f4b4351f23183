import { celValue, compile, type Expression, matches } from "#lib/cel.ts"
import { closest } from "#lib/closest.ts"
import type { Kind, ObjectOf } from "./kind.ts"
import { objectMetaSchema } from "./object-meta.ts"
import type { Rule, StructuralSchema } from "./structural-schema.ts"

/** A message for the author: the field, and what to write instead. */
export type Problem = { path: string; message: string }

export type Verdict<T> = {
  /** Empty exactly when the server would accept the object. */
  errors: Problem[]
  /** Fields that the server would drop silently. */
  warnings: Problem[]
  /** The object as the server would store it: defaults filled in, unknown fields gone. Only without errors. */
  object?: T
}

/**
 * Judges an object as the server would: the same defaults, bounds and CEL rules, from the same schema.
 * With `old`, an update is judged, so that rules about what may not change apply.
 */
export function validate<K extends Kind>(
  kind: K,
  written: unknown,
  options: { old?: unknown } = {},
): Verdict<ObjectOf<K>> {
  const warnings: Problem[] = []
  const identity = identityProblems(kind, written)
  if (identity.length > 0) return { errors: identity, warnings }

  const schema = { ...kind.schema, properties: { ...kind.schema.properties, metadata: objectMetaSchema } }
  const object = admitted(written, schema, "", warnings)
  const old = options.old === undefined ? undefined : admitted(options.old, schema, "", [])
  const structural = structuralProblems(object, schema, "")
  const errors = [...nameProblems(object), ...structural]
  warnings.push(...scopeProblems(kind, object))
  // A rule may assume a valid node, so it is evaluated only where the schema holds.
  errors.push(
    ...ruleProblems(object, old, schema, "", path => structural.some(problem => isWithin(problem.path, path))),
  )
  return errors.length > 0 ? { errors, warnings } : { errors, warnings, object: object as ObjectOf<K> }
}

function identityProblems(kind: Kind, object: unknown): Problem[] {
  if (!isObject(object))
    return [{ path: "", message: `is ${describe(object)}: write an object with apiVersion and kind` }]
  return (["apiVersion", "kind"] as const)
    .filter(field => object[field] !== kind[field])
    .map(field => ({ path: field, message: `is ${describe(object[field])}: write ${kind[field]}` }))
}

function nameProblems(object: unknown): Problem[] {
  const { name, generateName } = metadataOf(object)
  return name || generateName ? [] : [{ path: "metadata.name", message: "is missing: write a name" }]
}

function scopeProblems(kind: Kind, object: unknown): Problem[] {
  if (kind.scope === "Namespaced" || !metadataOf(object).namespace) return []
  return [
    {
      path: "metadata.namespace",
      message: `a ${kind.kind} belongs to the whole cluster; the server drops the namespace`,
    },
  ]
}

const metadataOf = (object: unknown) =>
  (object as { metadata?: { name?: string; generateName?: string; namespace?: string } }).metadata ?? {}

/** The object as the server validates it: unknown fields dropped, null treated as absent, defaults filled in. */
function admitted(value: unknown, schema: StructuralSchema, path: string, warnings: Problem[]): unknown {
  if (!hasType(value, schema)) return value
  if (Array.isArray(value)) {
    const items = schema.items ?? {}
    return value.map((item, index) => admitted(orDefault(item, items), items, `${path}[${index}]`, warnings))
  }
  if (!isObject(value)) return value

  const { properties = {}, additionalProperties } = schema
  const keepsUnknown = schema["x-kubernetes-preserve-unknown-fields"]
  const result: [string, unknown][] = []
  for (const [name, written] of Object.entries(value)) {
    if (written === undefined) continue // JSON has no undefined, so the field is absent
    const child = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
    const childPath = child === additionalProperties ? `${path}[${name}]` : join(path, name)
    if (child === undefined) {
      if (keepsUnknown) result.push([name, written])
      else
        warnings.push({
          path: join(path, name),
          message: `is not a field${suggestion(name, Object.keys(properties))}; the server drops it`,
        })
      continue
    }
    const given = orDefault(written, child)
    if (given === null && !child.nullable) continue
    result.push([name, admitted(given, child, childPath, warnings)])
  }
  for (const [name, child] of Object.entries(properties))
    if (child.default !== undefined && ownProperty(value, name) === undefined)
      result.push([name, admitted(structuredClone(child.default), child, join(path, name), warnings)])
  return Object.fromEntries(result)
}

const orDefault = (value: unknown, schema: StructuralSchema) =>
  value === null && !schema.nullable && schema.default !== undefined ? structuredClone(schema.default) : value

function structuralProblems(value: unknown, schema: StructuralSchema, path: string): Problem[] {
  if (value === null && schema.nullable) return []
  const say = (message: string) => ({ path, message: schema.hint ? `${message}: ${schema.hint}` : message })
  if (!hasType(value, schema)) return [say(`is ${describe(value)}, not ${typeName(schema)}`)]

  const own = [...violations(value, schema)].map(say)
  if (Array.isArray(value)) {
    const inner = value.flatMap((item, index) => structuralProblems(item, schema.items ?? {}, `${path}[${index}]`))
    return [...own, ...duplicates(value, schema, path), ...inner]
  }
  if (!isObject(value)) return own

  const { properties = {}, required = [], additionalProperties } = schema
  const missing = required
    .filter(name => !Object.hasOwn(value, name))
    .map(name => ({ path: join(path, name), message: `is missing: ${properties[name]?.hint ?? "it is required"}` }))
  const inner = Object.entries(value).flatMap(([name, child]) => {
    if (Object.hasOwn(properties, name)) return structuralProblems(child, properties[name]!, join(path, name))
    return additionalProperties ? structuralProblems(child, additionalProperties, `${path}[${name}]`) : []
  })
  return [...own, ...missing, ...inner]
}

function* violations(value: unknown, schema: StructuralSchema): Generator<string> {
  if (schema.enum && !schema.enum.includes(value))
    yield `is ${describe(value)}: write ${oneOf(schema.enum.map(String))}${suggestion(String(value), schema.enum.map(String))}`
  if (typeof value === "string") {
    const length = [...value].length
    if (schema.maxLength !== undefined && length > schema.maxLength)
      yield `has ${length} characters; at most ${schema.maxLength} are allowed`
    if (schema.minLength !== undefined && length < schema.minLength)
      yield `has ${length} characters; at least ${schema.minLength} are needed`
    if (schema.pattern && !matches(value, schema.pattern))
      yield `is ${describe(value)}${schema.hint ? "" : `, which does not match ${schema.pattern}`}`
    if (schema.format === "date-time" && !isTime(value))
      yield `is ${describe(value)}: write a time such as 2026-01-31T12:00:00Z`
  }
  if (typeof value === "number") {
    if (schema.minimum !== undefined && value < schema.minimum) yield `is ${value}; the least is ${schema.minimum}`
    if (schema.maximum !== undefined && value > schema.maximum) yield `is ${value}; the most is ${schema.maximum}`
  }
  const size = Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 0
  const most = Array.isArray(value) ? schema.maxItems : schema.maxProperties
  const least = Array.isArray(value) ? schema.minItems : schema.minProperties
  if (most !== undefined && size > most) yield `has ${size} entries; at most ${most} are allowed`
  if (least !== undefined && size < least && typeof value === "object")
    yield `has ${size} entries; at least ${least} are needed`
}

function duplicates(list: unknown[], schema: StructuralSchema, path: string): Problem[] {
  const identify = identifier(schema)
  if (!identify) return []
  const first = new Map<string, number>()
  return list.flatMap((item, index) => {
    const identity = identify(item)
    const earlier = first.get(identity)
    if (earlier === undefined) first.set(identity, index)
    return earlier === undefined
      ? []
      : [{ path: `${path}[${index}]`, message: `repeats ${path}[${earlier}]: ${identity} is there already` }]
  })
}

/** The identity of a list's elements; those of an atomic list have none. */
function identifier(schema: StructuralSchema): ((item: unknown) => string) | undefined {
  const keys = schema["x-kubernetes-list-map-keys"]
  if (schema["x-kubernetes-list-type"] === "set") return item => JSON.stringify(item)
  if (schema["x-kubernetes-list-type"] !== "map" || !keys) return undefined
  return item => (isObject(item) ? keys.map(key => `${key} ${JSON.stringify(item[key])}`).join(", ") : "")
}

function ruleProblems(
  value: unknown,
  old: unknown,
  schema: StructuralSchema,
  path: string,
  isBroken: (path: string) => boolean,
): Problem[] {
  const own = isBroken(path)
    ? []
    : (schema["x-kubernetes-validations"] ?? []).flatMap(rule => judge(rule, value, old, schema, path))
  if (Array.isArray(value)) {
    const identify = schema["x-kubernetes-list-type"] === "map" ? identifier(schema) : undefined
    const before = new Map(identify && Array.isArray(old) ? old.map(item => [identify(item), item]) : [])
    const inner = value.flatMap((item, index) =>
      ruleProblems(item, identify && before.get(identify(item)), schema.items ?? {}, `${path}[${index}]`, isBroken),
    )
    return [...own, ...inner]
  }
  if (!isObject(value)) return own
  const before = isObject(old) ? old : {}
  const inner = Object.entries(value).flatMap(([name, child]) => {
    const property = schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    const childSchema = property ?? schema.additionalProperties
    const childPath = property ? join(path, name) : `${path}[${name}]`
    return childSchema ? ruleProblems(child, ownProperty(before, name), childSchema, childPath, isBroken) : []
  })
  return [...own, ...inner]
}

function judge(rule: Rule, value: unknown, old: unknown, schema: StructuralSchema, path: string): Problem[] {
  // A rule about a change does not apply without an old value.
  if (old === undefined && /\boldSelf\b/.test(rule.rule)) return []
  const blamed = `${path}${rule.fieldPath ?? ""}`
  try {
    const holds = expressionOf(rule)({ self: celValue(value, schema), oldSelf: celValue(old, schema) })
    return holds === true ? [] : [{ path: blamed, message: rule.message }]
  } catch (error) {
    // The server treats a rule that cannot be evaluated as broken, and adds the error to its message.
    return [{ path: blamed, message: `${rule.message} (${error instanceof Error ? error.message : error})` }]
  }
}

const expressions = new Map<string, Expression>()

function expressionOf({ rule }: Rule): Expression {
  const known = expressions.get(rule)
  if (known) return known
  const compiled = compile(rule, ["self", "oldSelf"])
  expressions.set(rule, compiled)
  return compiled
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const ownProperty = (object: Record<string, unknown>, name: string) =>
  Object.hasOwn(object, name) ? object[name] : undefined

const join = (path: string, name: string) => (path ? `${path}.${name}` : name)

const isWithin = (inner: string, outer: string) =>
  inner.startsWith(outer) && (outer === "" || /^([.[]|$)/.test(inner.slice(outer.length)))

function hasType(value: unknown, schema: StructuralSchema): boolean {
  if (schema["x-kubernetes-int-or-string"]) return typeof value === "string" || Number.isInteger(value)
  switch (schema.type) {
    case "object":
      return isObject(value)
    case "array":
      return Array.isArray(value)
    case "integer":
      return Number.isInteger(value)
    case undefined:
      return true
    default:
      return typeof value === schema.type
  }
}

function typeName(schema: StructuralSchema): string {
  if (schema["x-kubernetes-int-or-string"]) return "a whole number or a text"
  const names = {
    object: "an object",
    array: "a list",
    integer: "a whole number",
    number: "a number",
    boolean: "true or false",
    string: "a text",
  }
  return names[schema.type ?? "object"]
}

function describe(value: unknown): string {
  if (value === undefined) return "missing"
  if (Array.isArray(value)) return "a list"
  if (isObject(value)) return "an object"
  const text = JSON.stringify(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

const oneOf = (words: string[]) =>
  words.length === 1 ? words[0]! : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`

function suggestion(word: string, candidates: string[]): string {
  const meant = closest(word, candidates)
  return meant ? ` (did you mean ${meant}?)` : ""
}

const isTime = (text: string) =>
  /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
