import type { Json } from "../../object.ts"
import { fnv32, safeEncode } from "./hash.ts"
import types from "./pod-template-types.generated.json" with { type: "json" }

/**
 * The value of `pod-template-hash`, and of a DaemonSet's `controller-revision-hash`. It is the one that a real cluster
 * computes, so that names in transcripts and manifests of both floors agree.
 *
 * Kubernetes hashes the text that go-spew prints of the Go structs, down to unexported fields. The table holds those
 * structs (`Name json type` of each field, in order, read by reflection: tools/generate/kube-pod-template.ts), and this file prints
 * like spew's `%#v`.
 */
export function podTemplateHash(template: Json, collisionCount?: number): string {
  const hash = fnv32(dumpTemplate(template))
  return safeEncode(String(collisionCount === undefined ? hash : fnv32(littleEndian(collisionCount), { from: hash })))
}

/** The text that is hashed. */
const dumpTemplate = (template: Json): string => `(v1.PodTemplateSpec)${print("v1.PodTemplateSpec", template)}`

function littleEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setUint32(0, value, true)
  return bytes
}

type Field = { name: string; json: string; type: string }

const structs = new Map<string, Field[]>(
  Object.entries(types.structs as Record<string, string[]>).map(([struct, fields]) => [
    struct,
    fields.map(field => {
      const [name = "", json = "", ...type] = field.split(" ")
      return { name, json, type: type.join(" ") }
    }),
  ]),
)
const named = new Map<string, string>(Object.entries(types.named))

/** A value without its type. Absent values print as Go's zero values, since JSON leaves those out. */
function print(type: string, value: Json): string {
  if (type.startsWith("*")) return value === undefined || value === null ? "<nil>" : print(type.slice(1), value)
  if (type.startsWith("[]")) {
    if (!value?.length) return "<nil>" // an empty list becomes nil when it is stored as protobuf
    return `[${value.map((item: Json) => printItem(type.slice(2), item)).join(" ")}]`
  }
  const map = /^map\[([^\]]+)\](.+)$/.exec(type)
  if (map) {
    const keys = Object.keys(value ?? {})
    if (keys.length === 0) return "<nil>"
    // Spew sorts the keys by their bytes.
    const sorted = keys.map(key => ({ key, bytes: Buffer.from(key) })).sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    return `map[${sorted.map(({ key }) => `${key}:${print(map[2]!, value[key])}`).join(" ")}]`
  }
  const special = specials[type]
  if (special) return special(value)
  const fields = structs.get(type)
  if (fields) {
    const texts = fields.map(
      field => `${field.name}:${printTyped(field.type, field.json ? value?.[field.json] : value)}`,
    )
    return `{${texts.join(" ")}}`
  }
  const kind = named.get(type)
  if (kind) return print(kind, value)
  if (type === "bool") return value ? "true" : "false"
  if (type === "string") return value ?? ""
  return String(value ?? 0)
}

/** For a pointer field, spew prints the type that it points to: `(*int64)30`, `(*int64)<nil>`. */
const printTyped = (type: string, value: Json) => {
  const isAbsentPointer = type.startsWith("*") && (value === undefined || value === null)
  return `(${type})${isAbsentPointer ? "<nil>" : print(type, value)}`
}

/** In a list the type is left out, and a pointer leaves a mark. */
const printItem = (type: string, value: Json) =>
  type.startsWith("*") ? `<*>${print(type, value)}` : print(type, value)

const zeroTime = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"

const specials: Record<string, (value: Json) => string> = {
  // Times of a template are never set. If one were, its location would print as an address in the controller's memory.
  "v1.Time": () => zeroTime,
  "v1.FieldsV1": value => `{Raw:([]uint8)[${[...Buffer.from(JSON.stringify(value))].join(" ")}]}`,
  "intstr.IntOrString": value => {
    const isText = typeof value === "string"
    const number = isText ? 0 : (value ?? 0)
    return `{Type:(intstr.Type)${isText ? 1 : 0} IntVal:(int32)${number} StrVal:(string)${isText ? value : ""}}`
  },
  "resource.Quantity": value => printQuantity(String(value)),
}

const decimalScale: Record<string, number> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const binaryPower: Record<string, number> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }

/** A quantity as in memory after parsing: value and scale, and its text if that was canonical. */
function printQuantity(text: string): string {
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$/.exec(text)
  if (text === "0" || !parts) return quantity(0n, 0, text, "DecimalSI")
  const [, sign, leading = "", fraction = "", suffix = ""] = parts
  const whole = leading.replace(/^0+/, "") || "0"
  const denominator = fraction.replace(/0+$/, "")
  const shifted = whole + denominator
  const power = binaryPower[suffix]
  const isExponent = /^[eE]./.test(suffix)
  const format = power !== undefined ? "BinarySI" : isExponent ? "DecimalExponent" : "DecimalSI"
  const exponent = power ?? (isExponent ? Number(suffix.slice(1)) : decimalScale[suffix]!)
  const scale = (power !== undefined ? 0 : exponent) - denominator.length
  const value = BigInt(shifted)
  const amount = (sign === "-" ? -1n : 1n) * value * (power !== undefined ? 1n << BigInt(power) : 1n)
  const isCanonical =
    power !== undefined
      ? power % 10 === 0 && (value & 7n) !== 0n
      : scale % 3 === 0 && !shifted.endsWith("000") && !shifted.startsWith("0")
  return quantity(amount, scale, isCanonical ? text : "", format)
}

const quantity = (value: bigint, scale: number, text: string, format: string) =>
  `{i:(resource.int64Amount){value:(int64)${value} scale:(resource.Scale)${scale}} ` +
  `d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)${text} Format:(resource.Format)${format}}`
