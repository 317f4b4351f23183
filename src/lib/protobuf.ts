/** Protobuf's wire format (proto3), by tables that say which number a field has: no generated code runs. */

/** The bytes are not what the table says, or end too early. */
export class ProtobufError extends Error {
  override name = "ProtobufError"
}

/** One field as it came: `bytes` for text, bytes and messages, `value` for numbers. */
export type Wire = { number: number; value: bigint; bytes?: Buffer }

export function wiresOf(bytes: Buffer): Wire[] {
  const found: Wire[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined || shift > 63n) throw new ProtobufError("unexpected EOF")
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => {
    if (at + length > bytes.length) throw new ProtobufError("unexpected EOF")
    at += length
    return bytes.subarray(at - length, at)
  }
  while (at < bytes.length) {
    const key = Number(varint())
    const number = key >>> 3
    const wire = key & 7
    if (wire === 0) found.push({ number, value: varint() })
    else if (wire === 1) found.push({ number, value: take(8).readBigUInt64LE() })
    else if (wire === 2) found.push({ number, value: 0n, bytes: take(Number(varint())) })
    else if (wire === 5) found.push({ number, value: BigInt(take(4).readUInt32LE()) })
    else throw new ProtobufError(`proto: illegal wireType ${wire}`)
  }
  return found
}

/** A scalar, or the name of another message of the table. Maps have text as keys and values. */
export type FieldType = "string" | "bytes" | "bool" | "int32" | "uint32" | "int64" | "uint64" | (string & {})
export type Field = readonly [name: string, type: FieldType, many?: "list" | "map"]
/** Messages by name, their fields by number. */
export type MessageTable = Readonly<Record<string, Readonly<Record<number, Field>>>>

type Message = Record<string, unknown>

/** Fields that were not sent have proto3's default: "", 0, 0n, false, an empty list or map; a message is undefined. */
export function decodeMessage(table: MessageTable, name: string, bytes: Buffer): Message {
  const fields = table[name]!
  const message: Message = {}
  for (const [key, type, many] of Object.values(fields)) message[key] = defaultOf(table, type, many)
  for (const wire of wiresOf(bytes)) {
    const field = fields[wire.number]
    if (!field) continue // not in our table, or from a newer runtime
    const [key, type, many] = field
    if (many === "list") (message[key] as unknown[]).push(decodeField(table, type, wire))
    else if (many === "map") addEntry(message[key] as Record<string, string>, wire)
    else message[key] = decodeField(table, type, wire)
  }
  return message
}

function defaultOf(table: MessageTable, type: FieldType, many: Field[2]): unknown {
  if (many === "list") return []
  if (many === "map") return {}
  return table[type] ? undefined : decodeField(table, type, { number: 0, value: 0n })
}

function decodeField(table: MessageTable, type: FieldType, { value, bytes = Buffer.alloc(0) }: Wire): unknown {
  switch (type) {
    case "string":
      return bytes.toString("utf8")
    case "bytes":
      return bytes
    case "bool":
      return value !== 0n
    case "int32":
      return Number(BigInt.asIntN(32, value))
    case "uint32":
      return Number(BigInt.asUintN(32, value))
    case "int64":
      return BigInt.asIntN(64, value)
    case "uint64":
      return value
    default:
      return decodeMessage(table, type, bytes)
  }
}

function addEntry(map: Record<string, string>, { bytes = Buffer.alloc(0) }: Wire): void {
  let key = ""
  let value = ""
  for (const wire of wiresOf(bytes)) {
    if (wire.number === 1) key = wire.bytes?.toString("utf8") ?? ""
    else if (wire.number === 2) value = wire.bytes?.toString("utf8") ?? ""
  }
  // Defined, not assigned: a label may be called __proto__.
  Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true })
}

/** Fields that are undefined or have proto3's default are left out. */
export function encodeMessage(table: MessageTable, name: string, message: object): Buffer {
  const parts: Buffer[] = []
  const given = message as Message
  for (const [number, [key, type, many]] of Object.entries(table[name]!)) {
    const value = given[key]
    if (value === undefined) continue
    if (many === "list")
      for (const item of value as unknown[]) parts.push(encodeField(table, Number(number), type, item))
    else if (many === "map")
      for (const entry of Object.entries(value as object)) parts.push(encodeEntry(Number(number), entry))
    else if (!isDefault(value)) parts.push(encodeField(table, Number(number), type, value))
  }
  return Buffer.concat(parts)
}

const isDefault = (value: unknown) => value === "" || value === 0 || value === 0n || value === false

function encodeField(table: MessageTable, number: number, type: FieldType, value: unknown): Buffer {
  if (type === "string") return delimited(number, Buffer.from(value as string, "utf8"))
  if (type === "bytes") return delimited(number, value as Buffer)
  if (table[type]) return delimited(number, encodeMessage(table, type, value as object))
  return Buffer.concat([varintOf(BigInt(number << 3)), varintOf(BigInt.asUintN(64, BigInt(value as number | bigint)))])
}

const encodeEntry = (number: number, [key, value]: [string, string]) =>
  delimited(number, Buffer.concat([delimited(1, Buffer.from(key)), delimited(2, Buffer.from(value))]))

const delimited = (number: number, bytes: Buffer) =>
  Buffer.concat([varintOf(BigInt((number << 3) | 2)), varintOf(BigInt(bytes.length)), bytes])

function varintOf(value: bigint): Buffer {
  const bytes: number[] = []
  let left = value
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(left)])
}
