import { formatInstant } from "#lib/instant.ts"
import { ProtobufError, type Wire, wiresOf } from "#lib/protobuf.ts"
import { badRequest } from "../apiserver/refusals.ts"
import type { Json } from "../object.ts"
import table from "./protobuf.generated.json" with { type: "json" }

/**
 * Reads bodies in Kubernetes' protobuf into the equivalent JSON. kubectl's own commands send them (`create namespace`,
 * `auth can-i`). Answers are JSON, which every client accepts.
 */
type Field = [name: string, type: string, many?: string]
const messages = table as unknown as Record<string, Record<string, Field>>

export const protobufType = "application/vnd.kubernetes.protobuf"

const magic = Buffer.from("k8s\0")

/** Reads a body. Bytes that are no protobuf are the sender's mistake. */
export function readProtobuf(body: Buffer): Json {
  try {
    return readBody(body)
  } catch (error) {
    throw error instanceof ProtobufError ? badRequest(error.message) : error
  }
}

/** Four bytes of magic number, then an envelope that names the content. */
function readBody(body: Buffer): Json {
  if (!body.subarray(0, 4).equals(magic)) throw badRequest("provided data does not appear to be a protobuf message")
  let raw: Buffer = Buffer.alloc(0)
  let header: Json = {}
  for (const { number, bytes } of wiresOf(body.subarray(4))) {
    if (number === 1 && bytes) header = stringsOf(bytes)
    if (number === 2 && bytes) raw = bytes
  }
  const { 1: apiVersion = "", 2: kind = "" } = header
  const name = messageName(apiVersion, kind)
  if (!messages[name]) throw badRequest(`cluster-sim reads no protobuf of ${kind} in ${apiVersion}: send JSON`)
  return { apiVersion, kind, ...read(name, raw) }
}

const stringsOf = (bytes: Buffer): Record<number, string> =>
  Object.fromEntries(wiresOf(bytes).map(({ number, bytes: text }) => [number, text?.toString("utf8") ?? ""]))

/** `apps/v1` Deployment → `apps.v1.Deployment`; options are the same in every group. */
function messageName(apiVersion: string, kind: string): string {
  if (kind === "DeleteOptions") return "meta.v1.DeleteOptions"
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["core", apiVersion]
  return `${group?.split(".", 1)[0]}.${version}.${kind}`
}

function read(name: string, bytes: Buffer): Json {
  const special = specials[name]
  if (special) return special(bytes)
  const fields = messages[name] ?? {}
  const object: Json = {}
  for (const wire of wiresOf(bytes)) {
    const field = fields[wire.number]
    if (!field) continue // from a newer client
    const [given, type, many] = field
    const key = renamed[given] ?? given
    if (many === "list") object[key] = [...(object[key] ?? []), readField(type, wire)]
    else if (many === "map") object[key] = { ...object[key], ...entryOf(type, wire.bytes ?? Buffer.alloc(0)) }
    else if (inlined.has(given) && Object.hasOwn(messages, type)) Object.assign(object, readField(type, wire))
    else object[key] = readField(type, wire)
  }
  return isList(fields) ? (object.items ?? []) : object
}

/** Go embeds these structs: their fields are among those of the outer struct. */
const inlined = new Set([
  "ephemeralContainerCommon",
  "handler",
  "ingressRuleValue",
  "localObjectReference",
  "persistentVolumeSource",
  "volumeSource",
])
const renamed: Record<string, string> = { uID: "uid", aPIGroup: "apiGroup" }

/** Protobuf cannot have a list as the value of a map, so the list is wrapped into a message (ExtraValue). */
const isList = (fields: Record<string, Field>) => {
  const all = Object.values(fields)
  return all.length === 1 && all[0]?.[0] === "items" && all[0][1] === "string"
}

function entryOf(type: string, bytes: Buffer): Json {
  let key = ""
  let value: Json = type === "string" || type === "bytes" ? "" : {}
  for (const wire of wiresOf(bytes)) {
    if (wire.number === 1) key = wire.bytes?.toString("utf8") ?? ""
    else value = readField(type, wire)
  }
  return { [key]: value }
}

function readField(type: string, { value, bytes = Buffer.alloc(0) }: Wire): Json {
  if (type === "string") return bytes.toString("utf8")
  if (type === "bytes") return bytes.toString("base64")
  if (type === "bool") return value !== 0n
  if (type === "double") return Buffer.from(new BigUint64Array([value]).buffer).readDoubleLE()
  if (/^u?int(32|64)$/.test(type)) return Number(type.startsWith("u") ? value : BigInt.asIntN(64, value))
  return read(type, bytes)
}

const numbers = (bytes: Buffer): Record<number, number> =>
  Object.fromEntries(wiresOf(bytes).map(({ number, value }) => [number, Number(BigInt.asIntN(64, value))]))

const text = (bytes: Buffer) => wiresOf(bytes)[0]?.bytes?.toString("utf8") ?? ""

function time(bytes: Buffer): { seconds: string; nanos: number } | null {
  const { 1: seconds, 2: nanos = 0 } = numbers(bytes)
  // An absent time, or Go's zero time.
  if (seconds === undefined || seconds <= -62135596800) return null
  return { seconds: formatInstant(seconds * 1000), nanos }
}

/** Types with a JSON of their own. */
const specials: Record<string, (bytes: Buffer) => Json> = {
  "meta.v1.Time": bytes => time(bytes)?.seconds ?? null,
  "meta.v1.MicroTime": bytes => {
    const found = time(bytes)
    if (!found) return null
    return `${found.seconds.slice(0, -1)}.${String(Math.floor(found.nanos / 1000)).padStart(6, "0")}Z`
  },
  "api.resource.Quantity": text,
  "util.intstr.IntOrString": bytes => {
    const { 1: type = 0, 2: number = 0 } = numbers(bytes)
    return type === 0
      ? number
      : (wiresOf(bytes)
          .find(each => each.number === 3)
          ?.bytes?.toString("utf8") ?? "")
  },
  "runtime.RawExtension": bytes => JSON.parse(text(bytes) || "null"),
  "meta.v1.FieldsV1": bytes => JSON.parse(text(bytes) || "null"),
}
