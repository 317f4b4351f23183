import { isDeepStrictEqual } from "node:util"
import { ownValue } from "#lib/own.ts"
import type { Json } from "../object.ts"
import { type FieldSet, has, insert, inside, isEmpty } from "./field-set.ts"
import { goText, goTypeName } from "./go-text.ts"
import type { Schema } from "./schema.ts"
import { resolve } from "./table.ts"

// How server-side apply sees a value: a map or a list is granular (each field or item has owners of its own) or atomic
// (one leaf). Walks share one path that grows and shrinks. `undefined` is an absent value; null is an empty one.

const untyped: Schema = { type: "any" }

type Shape = "map" | "list" | "scalar"

/** The shape of a value by its schema. A null fits every shape. */
function shapeOf(schema: Schema, value: Json): Shape {
  switch (schema.type) {
    case "object":
      return "map"
    case "array":
      return "list"
    case "any":
      if (Array.isArray(value)) return "list"
      return typeof value === "object" ? "map" : "scalar"
    default:
      return "scalar"
  }
}

/** The keys of a list map, none for a set; undefined: the list is one leaf. */
function keysOf(schema: Schema): readonly string[] | undefined {
  if (schema.type !== "array") return undefined
  if (schema.listType)
    return schema.listType === "map" ? schema.listMapKeys : schema.listType === "set" ? [] : undefined
  if (schema.patchStrategy === "merge" || schema.patchStrategy === "merge,retainKeys")
    return schema.mergeKey ? [schema.mergeKey] : []
  return undefined
}

const isNamed = (schema: Schema, name: string) =>
  schema.properties !== undefined && Object.hasOwn(schema.properties, name)

/** The schema of a field; undefined: the field is unknown. */
function fieldOf(schema: Schema, name: string): Schema | undefined {
  if (isNamed(schema, name)) return resolve(schema.properties![name]!)
  if (schema.additional) return resolve(schema.additional)
  return schema.properties === undefined || schema.preservesUnknown ? untyped : undefined
}

const itemsOf = (schema: Schema) => (schema.items ? resolve(schema.items) : untyped)

/** The step that identifies an item of a list: `k:{"name":"c"}`, or `v:"x"`. Throws TypeProblem. */
function stepOf(schema: Schema, keys: readonly string[], item: Json): string {
  if (keys.length === 0) {
    if (item === null) throw new TypeProblem("associative list without keys has an element that's an explicit null")
    if (Array.isArray(item)) throw new TypeProblem("not supported: associative list with lists as elements")
    if (typeof item === "object")
      throw new TypeProblem("associative list without keys has an element that's a map type")
    return `v:${JSON.stringify(item)}`
  }
  if (item === null) throw new TypeProblem("associative list with keys may not have a null element")
  if (typeof item !== "object" || Array.isArray(item))
    throw new TypeProblem("associative list with keys may not have non-map elements")
  const key: Record<string, Json> = {}
  for (const name of keys.length === 1 ? keys : keys.toSorted()) {
    const value = item[name] === undefined ? keyDefault(itemsOf(schema), name) : item[name]
    if (value !== undefined) key[name] = value
  }
  if (Object.keys(key).length === 0) {
    const names = keys.map(name => JSON.stringify(name)).join(" ")
    throw new TypeProblem(
      `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
    )
  }
  return `k:${JSON.stringify(key)}`
}

/** Ports are keyed by number and protocol, and manifests usually omit `protocol: TCP`. */
function keyDefault(items: Schema, name: string): Json {
  const field = fieldOf(items, name)
  return field?.default ?? field?.zero ?? undefined
}

export class TypeProblem extends Error {
  override name = "TypeProblem"
}

const isEmptyValue = (value: Json) => {
  if (value === undefined || value === null) return true
  for (const _ in value) return false
  return true
}

/** What is wrong with an applied configuration, in the server's words: `.spec.foo: field not declared in schema`. */
export function problemsOf(schema: Schema, value: Json): string[] {
  const problems: string[] = []
  validate(schema, value, {
    path: "",
    allowsUnknown: false,
    tell: (path, text) => problems.push(path ? `${path}: ${text}` : text),
  })
  return problems
}

type Validation = { path: string; allowsUnknown: boolean; tell: (path: string, text: string) => void }

function validate(schema: Schema, value: Json, context: Validation) {
  const { path, tell } = context
  const shown = () => `&{${goText(value)}}`
  if (value === null || value === undefined) return
  const allowsUnknown = context.allowsUnknown || (schema.preservesUnknown ?? false)
  switch (shapeOf(schema, value)) {
    case "map": {
      if (typeof value !== "object" || Array.isArray(value)) return tell(path, `expected map, got ${shown()}`)
      for (const name of Object.keys(value)) {
        const field = fieldOf(schema, name) ?? (allowsUnknown ? untyped : undefined)
        if (!field) return tell(`${path}.${name}`, "field not declared in schema")
        validate(field, value[name], { ...context, path: `${path}.${name}`, allowsUnknown })
      }
      return
    }
    case "list": {
      if (!Array.isArray(value)) return tell(path, `expected list, got ${shown()}`)
      const keys = keysOf(schema)
      const seen = new Set<string>()
      for (const [index, item] of value.entries()) {
        let step = `i:${index}`
        try {
          if (keys) step = stepOf(schema, keys, item)
        } catch (error) {
          if (error instanceof TypeProblem) return tell(path, `element ${index}: ${error.message}`)
          throw error
        }
        if (seen.has(step)) tell(path, `duplicate entries for key ${stepText(step)}`)
        seen.add(step)
        validate(itemsOf(schema), item, { ...context, path: path + stepText(step), allowsUnknown })
      }
      return
    }
    case "scalar":
      return validateScalar(schema, value, context)
  }
}

function validateScalar(schema: Schema, value: Json, { path, tell }: Validation) {
  const isNumeric = schema.type === "integer" || schema.type === "number"
  if (isNumeric && typeof value !== "number") tell(path, `expected numeric (int or float), got ${goTypeName(value)}`)
  else if (schema.type === "boolean" && typeof value !== "boolean")
    tell(path, `expected boolean, got &{${goText(value)}}`)
  else if (schema.type === "string" && (schema.format ?? "byte") === "byte" && typeof value !== "string")
    tell(path, `expected string, got &value.valueUnstructured{Value:${goText(value)}}`)
  else if (typeof value === "object") tell(path, `expected any scalar, got &{${goText(value)}}`)
}

function stepText(step: string): string {
  const rest = step.slice(2)
  if (step.startsWith("i:")) return `[${rest}]`
  if (step.startsWith("v:")) return `[=${rest}]`
  return `[${Object.entries(JSON.parse(rest))
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(",")}]`
}

/** Every field of a value: its manager owns these after an apply. */
export function fieldsOf(schema: Schema, value: Json): FieldSet {
  const set: Record<string, Json> = {}
  collect(schema, value, [], set)
  return set
}

function collect(schema: Schema, value: Json, path: string[], set: Record<string, Json>) {
  const shape = shapeOf(schema, value)
  if (shape === "scalar" || isAtomic(schema, shape)) return insert(set, path)
  if (value === null || value === undefined) return
  if (shape === "map") {
    for (const name of Object.keys(value)) {
      const child = value[name]
      path.push(`f:${name}`)
      collect(fieldOf(schema, name) ?? untyped, child, path, set)
      const isEmptyMap = child !== null && typeof child === "object" && !Array.isArray(child) && isEmptyValue(child)
      if (child === null || isEmptyMap || !isNamed(schema, name)) insert(set, path)
      path.pop()
    }
    return
  }
  const items = itemsOf(schema)
  const steps = value.map((item: Json) => stepOf(schema, keysOf(schema)!, item))
  for (const [index, step] of steps.entries()) {
    path.push(step)
    const isDouble = steps.indexOf(step) !== steps.lastIndexOf(step)
    if (!isDouble) collect(items, value[index], path, set)
    insert(set, path)
    path.pop()
  }
}

function isAtomic(schema: Schema, shape: Shape): boolean {
  if (shape === "map") return schema.isAtomic === true
  return shape === "list" && keysOf(schema) === undefined
}

/** The paths of lists or maps that are one leaf: `.spec.nodeSelector`. */
export function atomicsIn(schema: Schema, value: Json, path = ""): string[] {
  const shape = shapeOf(schema, value)
  if (value === null || value === undefined || shape === "scalar") return []
  const own = isAtomic(schema, shape) ? [path] : []
  if (shape === "list")
    return [...own, ...value.flatMap((item: Json, at: number) => atomicsIn(itemsOf(schema), item, `${path}[${at}]`))]
  const inner = Object.entries<Json>(value).flatMap(([name, field]) =>
    isNamed(schema, name) ? atomicsIn(fieldOf(schema, name)!, field, `${path}.${name}`) : [],
  )
  return [...own, ...inner]
}

export type Comparison = { removed: FieldSet; modified: FieldSet; added: FieldSet }

/** Which fields differ between two values of a type. */
export function compare(schema: Schema, before: Json, after: Json): Comparison {
  const comparison = { removed: {}, modified: {}, added: {} }
  compareInto(schema, before, after, [], comparison)
  return comparison
}

type Differences = { [Key in keyof Comparison]: Record<string, Json> }

function compareInto(schema: Schema, before: Json, after: Json, path: string[], into: Differences) {
  if (before === after) return // also by identity: versions share unchanged parts
  const shape = shapeOf(schema, before ?? after ?? null)
  const isLeaf = shape === "scalar" || isAtomic(schema, shape) || (isEmptyValue(before) && isEmptyValue(after))
  if (isLeaf || shapeOf(schema, after ?? before ?? null) !== shape) {
    if (before === undefined) insert(into.added, path)
    else if (after === undefined) insert(into.removed, path)
    else if (!equalValues(before, after)) insert(into.modified, path)
    return
  }
  if (shape === "map") {
    const left = before ?? {}
    const right = after ?? {}
    const visit = (name: string) => {
      path.push(`f:${name}`)
      compareInto(fieldOf(schema, name) ?? untyped, ownValue(left, name), ownValue(right, name), path, into)
      path.pop()
    }
    for (const name of Object.keys(left)) visit(name)
    for (const name of Object.keys(right)) if (ownValue(left, name) === undefined) visit(name)
  } else compareLists(schema, before ?? [], after ?? [], path, into)
  if (before === undefined) insert(into.added, path)
  else if (after === undefined) insert(into.removed, path)
}

function compareLists(schema: Schema, before: Json[], after: Json[], path: string[], into: Differences) {
  const keys = keysOf(schema)!
  const left = Map.groupBy(before, item => stepOf(schema, keys, item))
  const right = Map.groupBy(after, item => stepOf(schema, keys, item))
  const items = itemsOf(schema)
  for (const step of new Set([...left.keys(), ...right.keys()])) {
    const olds = left.get(step) ?? []
    const news = right.get(step) ?? []
    path.push(step)
    if (olds.length <= 1 && news.length <= 1) compareInto(items, olds[0], news[0], path, into)
    // Duplicate items, which only an update can store, are one leaf together.
    else if (olds.length >= 2 && news.length >= 2) {
      if (!equalValues(olds, news)) insert(into.modified, path)
    } else if (olds.length >= 2) {
      if (news.length > 0) compareInto(items, undefined, news[0], path, into)
      insert(into.removed, path)
    } else {
      if (olds.length > 0) compareInto(items, olds[0], undefined, path, into)
      insert(into.added, path)
    }
    path.pop()
  }
}

/** Equality as on the server: an absent and an empty value differ, the order of keys does not matter. */
export const equalValues = (left: Json, right: Json) => left === right || isDeepStrictEqual(left, right)

/** Merges an applied value into the live one. Throws TypeProblem where `problemsOf` would have reported a problem. */
export function merge(schema: Schema, live: Json, applied: Json): Json {
  if (applied === undefined) return live
  const shape = shapeOf(schema, applied ?? live ?? null)
  const isLeaf = shape === "scalar" || isAtomic(schema, shape) || (isEmptyValue(live) && isEmptyValue(applied))
  if (isLeaf) return applied
  if (shape === "map") {
    const out: Record<string, Json> = {}
    for (const name of new Set([...Object.keys(live ?? {}), ...Object.keys(applied ?? {})])) {
      const merged = merge(fieldOf(schema, name) ?? untyped, ownValue(live, name), ownValue(applied, name))
      if (merged !== undefined) out[name] = merged
    }
    return isEmptyValue(out) ? undefined : out
  }
  const merged = mergeLists(schema, live ?? [], applied ?? [])
  return merged.length > 0 ? merged : undefined
}

/** The order of the applied list wins. Items of the live list alone keep their place between the common items. */
function mergeLists(schema: Schema, live: Json[], applied: Json[]): Json[] {
  const keys = keysOf(schema)!
  const items = itemsOf(schema)
  const leftSteps = live.map(item => stepOf(schema, keys, item))
  const rightSteps = applied.map(item => stepOf(schema, keys, item))
  const left = new Map<string, Json>()
  for (const [index, step] of leftSteps.entries()) left.set(step, left.has(step) ? undefined : live[index])
  const right = new Map(rightSteps.map((step, index) => [step, applied[index]]))
  const shared = rightSteps.filter(step => left.has(step))
  const out: Json[] = []
  const done = new Set<string>()
  const take = (step: string) => {
    done.add(step)
    out.push(merge(items, left.get(step), right.get(step)))
    if (shared[0] === step) shared.shift()
  }
  let l = 0
  let r = 0
  while (l < leftSteps.length || r < rightSteps.length) {
    const leftStep = leftSteps[l]
    const rightStep = rightSteps[r]
    if (leftStep !== undefined && rightStep !== undefined) {
      if (leftStep === rightStep) {
        take(leftStep)
        l++
        r++
        continue
      }
      if (right.has(leftStep) && shared[0] !== undefined && shared[0] !== leftStep) {
        l++ // in both, but later in the applied list
        continue
      }
    }
    if (leftStep !== undefined) {
      if (!right.has(leftStep)) {
        out.push(live[l])
        l++
        continue
      }
      if (done.has(leftStep)) l++
    }
    if (rightStep !== undefined) {
      take(rightStep)
      r++
    }
  }
  return out
}

/** The value without these fields. An object or list that becomes empty is removed as well. */
export function remove(schema: Schema, value: Json, gone: FieldSet): Json {
  if (isEmpty(gone) || value === null || typeof value !== "object") return value
  const shape = shapeOf(schema, value)
  if (isEmptyValue(value) || isAtomic(schema, shape)) return undefined
  if (shape === "list") {
    const keys = keysOf(schema)!
    const items = itemsOf(schema)
    const left = value.flatMap((item: Json) => {
      const step = stepOf(schema, keys, item)
      return has(gone, step) ? [] : [below(items, item, gone, step)]
    })
    return left.length > 0 ? left : undefined
  }
  const out: Record<string, Json> = {}
  for (const name of Object.keys(value)) {
    const step = `f:${name}`
    if (!has(gone, step)) out[name] = below(fieldOf(schema, name) ?? untyped, value[name], gone, step)
  }
  return isEmptyValue(out) ? undefined : out
}

/** A field that stays, without its removed parts. An emptied field becomes null, which is read as absent. */
function below(schema: Schema, value: Json, gone: FieldSet, step: string): Json {
  const inner = inside(gone, step)
  if (isEmpty(inner)) return value
  return remove(schema, value, inner) ?? null
}

/** Removes nulls that had a value before, where the field is declared. Values without a schema keep them. */
export function withoutEmptied(schema: Schema, value: Json, before: Json): Json {
  if (value === before || value === null || typeof value !== "object" || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries<Json>(value).flatMap(([name, inner]) => {
      const isDeclared = isNamed(schema, name) || schema.additional !== undefined
      if (inner === null && before?.[name] !== null && isDeclared) return []
      return [[name, withoutEmptied(fieldOf(schema, name) ?? untyped, inner, before?.[name])]]
    }),
  )
}

/** Adds the declared fields on the way as members: an owner of `spec.template.x` also owns `spec.template`. */
export function withNamedFields(schema: Schema | undefined, set: FieldSet): FieldSet {
  const out: Record<string, FieldSet> = {}
  for (const step of Object.keys(set)) {
    if (step === ".") continue
    const child = set[step]!
    const below = inside(set, step)
    if (isEmpty(below)) {
      out[step] = child
      continue
    }
    const isField = step.startsWith("f:")
    const name = step.slice(2)
    const inner = schema && (isField ? fieldOf(schema, name) : schema.type === "array" ? itemsOf(schema) : untyped)
    const isMember = "." in child || (isField && schema !== undefined && isNamed(schema, name))
    const named = withNamedFields(inner, below)
    out[step] = isMember ? { ".": {}, ...named } : named
  }
  return out
}
