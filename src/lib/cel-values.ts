import { type Environment, Optional } from "@marcbachmann/cel-js"
import { Duration, UnsignedInt } from "@marcbachmann/cel-js/evaluator"
import { payComparison, spend } from "./cel-meter.ts"

/** `Object.spec{replicas: 1}`: what an ApplyConfiguration says of a part of an object. */
export class ObjectLiteral {
  readonly type: string
  readonly fields: ReadonlyMap<string, unknown>

  constructor(type: string, fields: ReadonlyMap<string, unknown>) {
    this.type = type
    this.fields = fields
  }
}

/** `JSONPatch{op: 'add', path: '/a', value: 1}`: one operation. */
export class JsonPatchLiteral {
  readonly op: string
  readonly path: string
  readonly from: string
  readonly value: unknown

  constructor(fields: ReadonlyMap<string, unknown>) {
    const text = (name: string) => {
      const value = fields.get(name) ?? ""
      if (typeof value !== "string")
        throw new Error(`unexpected type ${goType(value)} for JSONPatchType '${name}' field`)
      return value
    }
    for (const name of fields.keys())
      if (!["op", "path", "from", "value"].includes(name)) throw new Error(`unexpected JSONPatchType field: ${name}`)
    this.op = text("op")
    this.path = text("path")
    this.from = text("from")
    this.value = fields.get("value")
  }
}

const goType = (value: unknown) => ({ bigint: "int64", number: "float64", boolean: "bool" })[typeof value as "bigint"]

/** The fields of a literal. One that is optional is there when its value is. */
function fieldsOf(names: readonly string[], values: readonly unknown[]): Map<string, unknown> {
  const fields = new Map<string, unknown>()
  for (const [index, name] of names.entries()) {
    const value = values[index]
    if (!name.startsWith("?")) fields.set(name, value)
    else if (!(value instanceof Optional)) throw new Error(`cannot initialize optional entry '${name.slice(1)}'`)
    else if (value.hasValue()) fields.set(name.slice(1), value.value())
  }
  return fields
}

class SetFunctions {}
class JsonPatchFunctions {}

/** What Kubernetes' own libraries add: literals of patches, loops with two variables, sets, keys in JSON pointers. */
export const registerValues = (environment: Environment): Environment =>
  environment
    .registerType("Object", ObjectLiteral)
    .registerType("JSONPatch", JsonPatchLiteral)
    .registerFunction(
      "objectLiteral(string, list, list): Object",
      (type: string, names: string[], values: unknown[]) => new ObjectLiteral(type, fieldsOf(names, values)),
    )
    .registerFunction(
      "jsonPatchLiteral(list, list): JSONPatch",
      (names: string[], values: unknown[]) => new JsonPatchLiteral(fieldsOf(names, values)),
    )
    .registerFunction("entriesOf(dyn): list<dyn>", entriesOf)
    .registerFunction("mapOf(list<dyn>): map<dyn, dyn>", (entries: [unknown, unknown][]) => new Map(entries))
    .registerOperator("optional<dyn> == optional<dyn>", isSameOptional)
    .registerType("SetFunctions", SetFunctions)
    .registerConstant("sets", "SetFunctions", new SetFunctions())
    .registerFunction("SetFunctions.contains(list, list): bool", (_: unknown, all: unknown[], some: unknown[]) =>
      some.every(each => isIn(all, each)),
    )
    .registerFunction("SetFunctions.intersects(list, list): bool", (_: unknown, one: unknown[], other: unknown[]) =>
      one.some(each => isIn(other, each)),
    )
    .registerFunction(
      "SetFunctions.equivalent(list, list): bool",
      (_: unknown, one: unknown[], other: unknown[]) =>
        one.every(each => isIn(other, each)) && other.every(each => isIn(one, each)),
    )
    .registerType("JsonPatchFunctions", JsonPatchFunctions)
    .registerConstant("jsonpatch", "JsonPatchFunctions", new JsonPatchFunctions())
    .registerFunction("JsonPatchFunctions.escapeKey(string): string", (_: unknown, key: string) =>
      key.replaceAll("~", "~0").replaceAll("/", "~1"),
    )
    .registerFunction("string.replace(string, string): string", (text: string, from: string, to: string) => {
      spend((text.length * (1 + to.length)) / 64)
      return text.replaceAll(from, () => to)
    })
    .registerFunction("string.charAt(int): string", (text: string, index: bigint) => {
      if (index < 0n || index > BigInt(text.length)) throw new Error(`index out of range: ${index}`)
      return text.charAt(Number(index))
    })

/** Index and item of a list, key and value of a map: what a loop with two variables goes through. */
function entriesOf(value: unknown): unknown[][] {
  if (Array.isArray(value)) return value.map((item, index) => [BigInt(index), item])
  if (value instanceof Map) return [...value]
  if (typeof value === "object" && value !== null) return Object.entries(value)
  throw new Error("no such overload")
}

/** Two values that are not there are equal. */
function isSameOptional(one: Optional, other: Optional): boolean {
  if (!one.hasValue() || !other.hasValue()) return one.hasValue() === other.hasValue()
  payComparison(one.value(), other.value())
  return isSame(one.value(), other.value())
}

function isIn(list: readonly unknown[], item: unknown): boolean {
  return list.some(each => {
    payComparison(each, item)
    return isSame(each, item)
  })
}

const entries = (value: object) => (value instanceof Map ? value : new Map(Object.entries(value)))

/** As CEL compares: whatever the type of a number. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || !one || !other)
    return isNumber(one) && isNumber(other) ? Number(one) === Number(other) : one === other
  if (Array.isArray(one) || Array.isArray(other))
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, i) => isSame(item, other[i]))
    )
  if (one instanceof Date || other instanceof Date) return Number(one) === Number(other)
  const [left, right] = [entries(one), entries(other)]
  return left.size === right.size && [...left].every(([key, value]) => right.has(key) && isSame(value, right.get(key)))
}

const isNumber = (value: unknown) => typeof value === "bigint" || typeof value === "number"

/** What an expression gave, as JSON: what a patch puts into an object. */
export function jsonOf(value: unknown): unknown {
  spend(1)
  if (typeof value === "bigint") return Number(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(jsonOf)
  if (value instanceof UnsignedInt) return Number(value.value)
  if (value instanceof Date) return value.toISOString().replace(".000Z", "Z")
  if (value instanceof Duration) return `${Number(value.seconds) + value.nanos / 1e9}s`
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64")
  if (value instanceof Optional || value instanceof JsonPatchLiteral)
    throw new Error("JSONPath valueExpression evaluated to a type that could not marshal to JSON")
  const fields = value instanceof ObjectLiteral ? value.fields : entries(value)
  return Object.fromEntries([...fields].map(([name, field]) => [String(name), jsonOf(field)]))
}

/** Literals that are not named after the field they are in: `Object{spec: Object.status{}}`. */
export function misnamed(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap(item => misnamed(item, path))
  if (value instanceof Map) return [...value.values()].flatMap(item => misnamed(item, path))
  if (!(value instanceof ObjectLiteral)) return []
  const expected = path.join(".")
  const own =
    value.type === expected
      ? []
      : [
          `unexpected type name ${JSON.stringify(value.type)}, expected ${JSON.stringify(expected)}, which matches field name path from root Object type`,
        ]
  return [...own, ...[...value.fields].flatMap(([name, field]) => misnamed(field, [...path, name]))]
}
