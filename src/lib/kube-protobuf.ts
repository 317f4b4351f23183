import { formatInstant } from "./instant.ts"
import table from "./kube-protobuf.generated.json" with { type: "json" }
import { ProtobufError, Reader } from "./protobuf.ts"

/**
 * Reads Kubernetes' protobuf into the very objects that its JSON would give, by a table of all fields
 * (`tools/generate/kube-protobuf.ts`).
 */

// biome-ignore lint/suspicious/noExplicitAny: the shape of an object is known to its reader alone
type Json = any

type Entry = [name: string, type: string, how?: "list" | "map" | "inline" | "omitted"]
const messages = table as unknown as Record<string, Record<string, Entry>>

export const protobufType = "application/vnd.kubernetes.protobuf"

const magic = Buffer.from("k8s\0")
const nothing = Buffer.alloc(0)

export type ReadOptions = {
  /** Fields of metadata that are passed over: `managedFields` is the larger part of many objects. */
  without?: "managedFields"
}

/** One object: four bytes of magic number, then an envelope that names the content. */
export function readKubeObject(body: Buffer, { without }: ReadOptions = {}): Json {
  if (!body.subarray(0, 4).equals(magic))
    throw new ProtobufError("provided data does not appear to be a protobuf message")
  const envelope = new Reader(body, 4)
  let [apiVersion, kind] = ["", ""]
  let raw: Buffer = nothing
  while (envelope.next())
    if (envelope.number === 1) [apiVersion, kind] = typeOf(envelope.inner())
    else if (envelope.number === 2) raw = envelope.bytes()
    else envelope.skip()
  const message = messageOf(apiVersion, kind)
  return { apiVersion, kind, ...message(new Reader(raw), without) }
}

/** One event of a watch: its type, and an object as above. */
export function readKubeEvent(frame: Buffer, options?: ReadOptions): { type: string; object: Json } {
  const event = new Reader(frame)
  let type = ""
  let object: Buffer = nothing
  while (event.next())
    if (event.number === 1) type = event.text()
    else if (event.number === 2) object = rawOf(event.inner())
    else event.skip()
  return { type, object: readKubeObject(object, options) }
}

function typeOf(reader: Reader): [apiVersion: string, kind: string] {
  let [apiVersion, kind] = ["", ""]
  while (reader.next())
    if (reader.number === 1) apiVersion = reader.text()
    else if (reader.number === 2) kind = reader.text()
    else reader.skip()
  return [apiVersion, kind]
}

/** The only field of a message, as bytes. */
function rawOf(reader: Reader): Buffer {
  let raw: Buffer = nothing
  while (reader.next())
    if (reader.number === 1) raw = reader.bytes()
    else reader.skip()
  return raw
}

type ReadMessage = (reader: Reader, without?: string) => Json
type ReadValue = (reader: Reader, without?: string) => Json

/** `apps/v1` Deployment is `apps.v1.Deployment` in the table; a Status or options are the same in every group. */
function messageOf(apiVersion: string, kind: string): ReadMessage {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["core", apiVersion]
  const own = `${group?.split(".", 1)[0]}.${version}.${kind}`
  const name = Object.hasOwn(messages, own) ? own : `meta.v1.${kind}`
  if (!Object.hasOwn(messages, name)) throw new ProtobufError(`no protobuf of ${kind} in ${apiVersion} is known`)
  return reading(name)
}

const known = new Map<string, ReadMessage>()

/** The function that reads a message, made once. */
function reading(name: string): ReadMessage {
  const read = known.get(name) ?? Object.getOwnPropertyDescriptor(specials, name)?.value ?? compile(name)
  known.set(name, read)
  return read
}

type Field = { key: string; how: Entry[2]; read: ReadValue }

function compile(name: string): ReadMessage {
  const fields: (Field | undefined)[] = []
  for (const [number, [key, type, how]] of Object.entries(messages[name] ?? {}))
    fields[Number(number)] = { key, how, read: valueReader(type) }
  const isList = isListAlone(messages[name] ?? {})
  return (reader, without) => {
    const object: Json = {}
    while (reader.next()) {
      const field = fields[reader.number]
      // From a newer server, or not wanted.
      if (!field || field.key === without) reader.skip()
      else if (field.how === "map") addEntry(own(object, field.key, {}), reader.inner(), field.read)
      else {
        const value = field.read(reader, without)
        if (field.how === "list") own(object, field.key, []).push(value)
        else if (field.how === "inline") Object.assign(object, value)
        else if (field.how !== "omitted" || !isZero(value)) object[field.key] = value
      }
    }
    return isList ? (object.items ?? []) : object
  }
}

function own(object: Json, key: string, first: object): Json {
  object[key] ??= first
  return object[key]
}

const isZero = (value: Json) => value === "" || value === 0 || value === false || value === null

/** Protobuf cannot have a list as the value of a map, so the list is wrapped into a message (ExtraValue). */
const isListAlone = (fields: Record<string, Entry>) => {
  const all = Object.values(fields)
  return all.length === 1 && all[0]?.[0] === "items" && all[0][1] === "string"
}

function addEntry(map: Json, reader: Reader, read: ReadValue): void {
  let key = ""
  let value: Json
  while (reader.next())
    if (reader.number === 1) key = reader.text()
    else if (reader.number === 2) value = read(reader)
    else reader.skip()
  // An assignment would not make `__proto__` a field of the map.
  if (key === "__proto__") Object.defineProperty(map, key, { ...fieldOfItsOwn, value })
  else map[key] = value ?? ""
}

const fieldOfItsOwn = { writable: true, enumerable: true, configurable: true }

function valueReader(type: string): ReadValue {
  const scalar = scalars.get(type)
  if (scalar) return scalar
  // Looked up at the first use: messages refer to each other.
  let message: ReadMessage | undefined
  return (reader, without) => {
    message ??= reading(type)
    return message(reader.inner(), without)
  }
}

const scalars = new Map<string, ReadValue>([
  ["string", reader => reader.text()],
  ["bytes", reader => reader.bytes().toString("base64")],
  ["bool", reader => reader.int() !== 0],
  ["int32", reader => reader.int()],
  ["int64", reader => reader.int()],
  ["uint32", reader => Number(reader.value())],
  ["uint64", reader => Number(reader.value())],
  ["double", reader => Buffer.from(new BigUint64Array([reader.value()]).buffer).readDoubleLE()],
])

/** Types with a JSON of their own. */
const specials: Record<string, ReadMessage> = {
  "meta.v1.Time": reader => timeOf(reader)?.seconds ?? null,
  "meta.v1.MicroTime": reader => {
    const time = timeOf(reader)
    return time ? `${time.seconds.slice(0, -1)}.${String(Math.floor(time.nanos / 1000)).padStart(6, "0")}Z` : null
  },
  "api.resource.Quantity": reader => rawOf(reader).toString("utf8"),
  "util.intstr.IntOrString": reader => {
    let [isText, number, text] = [false, 0, ""]
    while (reader.next())
      if (reader.number === 1) isText = reader.int() !== 0
      else if (reader.number === 2) number = reader.int()
      else if (reader.number === 3) text = reader.text()
      else reader.skip()
    return isText ? text : number
  },
  "runtime.RawExtension": reader => JSON.parse(rawOf(reader).toString("utf8") || "null"),
  "meta.v1.FieldsV1": reader => JSON.parse(rawOf(reader).toString("utf8") || "null"),
}

const zeroTime = -62135596800

function timeOf(reader: Reader): { seconds: string; nanos: number } | undefined {
  let seconds: number | undefined
  let nanos = 0
  while (reader.next())
    if (reader.number === 1) seconds = reader.int()
    else if (reader.number === 2) nanos = reader.int()
    else reader.skip()
  // An absent time, or Go's zero time.
  return seconds === undefined || seconds <= zeroTime ? undefined : { seconds: formatSeconds(seconds), nanos }
}

/** A pod has some fifteen times, most of them the same. Formatting each would be a quarter of the work. */
const formatted = new Map<number, string>()
const formattedMost = 1000

function formatSeconds(seconds: number): string {
  const text = formatted.get(seconds) ?? formatInstant(seconds * 1000)
  if (formatted.size >= formattedMost) formatted.clear()
  formatted.set(seconds, text)
  return text
}
