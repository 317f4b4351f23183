/** Protobuf's wire format (proto3), by tables that say which number a field has: no generated code runs. */

/** The bytes are not what the table says, or end too early. */
export class ProtobufError extends Error {
  override name = "ProtobufError"
}

const varintKind = 0
const eightBytesKind = 1
const delimitedKind = 2
const fourBytesKind = 5

/**
 * Goes over the fields of one message: `next`, then exactly one of `value`, `bytes`, `text`, `inner` or `skip`. Keys and
 * lengths are plain numbers: a list of a hundred containers has thousands of them, and a bigint each would cost most of
 * the time.
 */
export class Reader {
  number = 0
  kind = 0
  #bytes: Buffer
  #at: number
  #end: number

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  next(): boolean {
    if (this.#at >= this.#end) return false
    const key = this.#small()
    this.number = Math.floor(key / 8)
    this.kind = key % 8
    return true
  }

  value(): bigint {
    if (this.kind === eightBytesKind) return this.#bytes.readBigUInt64LE(this.#take(8))
    if (this.kind === fourBytesKind) return BigInt(this.#bytes.readUInt32LE(this.#take(4)))
    if (this.kind !== varintKind) throw new ProtobufError(`proto: illegal wireType ${this.kind}`)
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      if (shift > 63n) throw new ProtobufError("unexpected EOF")
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  /** A signed number. Negative ones take ten bytes, and only they need a bigint. */
  int(): number {
    const at = this.#at
    const value = this.kind === varintKind ? this.#upTo49Bits() : undefined
    if (value !== undefined) return value
    this.#at = at
    return Number(BigInt.asIntN(64, this.value()))
  }

  bytes(): Buffer {
    const at = this.#delimited()
    return this.#bytes.subarray(at, this.#at)
  }

  text(): string {
    const at = this.#delimited()
    // Many fields of Kubernetes are sent empty.
    return at === this.#at ? "" : this.#bytes.toString("utf8", at, this.#at)
  }

  inner(): Reader {
    const at = this.#delimited()
    return new Reader(this.#bytes, at, this.#at)
  }

  skip(): void {
    if (this.kind === delimitedKind) this.#delimited()
    else this.value()
  }

  #delimited(): number {
    if (this.kind !== delimitedKind) throw new ProtobufError(`proto: illegal wireType ${this.kind}`)
    return this.#take(this.#small())
  }

  #small(): number {
    const value = this.#upTo49Bits()
    if (value === undefined) throw new ProtobufError("unexpected EOF")
    return value
  }

  /** The next seven bytes at most, or undefined where the number takes more. */
  #upTo49Bits(): number | undefined {
    let value = 0
    for (let factor = 1; factor <= 2 ** 42; factor *= 0x80) {
      const byte = this.#byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
    return undefined
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new ProtobufError("unexpected EOF")
    return this.#bytes[this.#at++]!
  }

  /** Goes on by this many bytes and gives where they begin. */
  #take(length: number): number {
    const at = this.#at
    if (at + length > this.#end) throw new ProtobufError("unexpected EOF")
    this.#at += length
    return at
  }
}

/** A scalar, or the name of another message of the table. Maps have text as keys and values. */
export type FieldType = "string" | "bytes" | "bool" | "int32" | "uint32" | "int64" | "uint64" | (string & {})
export type Field = readonly [name: string, type: FieldType, many?: "list" | "map"]
/** Messages by name, their fields by number. */
export type MessageTable = Readonly<Record<string, Readonly<Record<number, Field>>>>

type Message = Record<string, unknown>

/** Fields that were not sent have proto3's default: "", 0, 0n, false, an empty list or map; a message is undefined. */
export function decodeMessage(table: MessageTable, name: string, bytes: Buffer): Message {
  return decode(table, name, new Reader(bytes))
}

function decode(table: MessageTable, name: string, reader: Reader): Message {
  const fields = table[name]!
  const message: Message = {}
  for (const number in fields) {
    const [key, type, many] = fields[number]!
    message[key] = defaultOf(table, type, many)
  }
  while (reader.next()) {
    const field = fields[reader.number]
    // Not in our table, or from a newer runtime.
    if (!field) reader.skip()
    else if (field[2] === "map") addEntry(message[field[0]] as Record<string, string>, reader.inner())
    else if (field[2] === "list") (message[field[0]] as unknown[]).push(decodeField(table, field[1], reader))
    else message[field[0]] = decodeField(table, field[1], reader)
  }
  return message
}

const defaults: Record<string, unknown> = {
  ...{ string: "", bytes: Buffer.alloc(0), bool: false, int32: 0, uint32: 0, int64: 0n, uint64: 0n },
}

function defaultOf(table: MessageTable, type: FieldType, many: Field[2]): unknown {
  if (many === "list") return []
  if (many === "map") return {}
  return table[type] ? undefined : defaults[type]
}

function decodeField(table: MessageTable, type: FieldType, reader: Reader): unknown {
  switch (type) {
    case "string":
      return reader.text()
    case "bytes":
      return reader.bytes()
    case "bool":
      return reader.value() !== 0n
    case "int32":
      return Number(BigInt.asIntN(32, reader.value()))
    case "uint32":
      return Number(BigInt.asUintN(32, reader.value()))
    case "int64":
      return BigInt.asIntN(64, reader.value())
    case "uint64":
      return BigInt.asUintN(64, reader.value())
    default:
      return decode(table, type, reader.inner())
  }
}

function addEntry(map: Record<string, string>, reader: Reader): void {
  let key = ""
  let value = ""
  while (reader.next()) {
    if (reader.number === 1) key = reader.text()
    else if (reader.number === 2) value = reader.text()
    else reader.skip()
  }
  // An assignment would not make it a field of the map.
  if (key === "__proto__")
    Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true })
  else map[key] = value
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
