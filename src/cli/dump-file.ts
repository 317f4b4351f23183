import type { Kind } from "#api/kind.ts"
import { kinds } from "#api/kinds.ts"
import { validate } from "#api/validate.ts"
import { Inventory } from "#explain/inventory.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { keep, type Piece } from "./collect.ts"
import { Failure, type World } from "./command.ts"
import { inputName, readLines } from "./input.ts"
import { isObjectName } from "./names.ts"

/** Raised with every change of the format that an older reader would misread. */
const version = 1
/** No object of a cluster is larger than this: the server refuses larger ones. */
const lineLengthMax = 4_000_000

/**
 * A dump is lines of JSON: a header, then list by list the objects as manifests, then an end line.
 *
 *     {"aimDump":1,"takenAt":"2026-01-01T00:00:00.000Z","by":"aim 0.1.0"}
 *     {"list":{"apiVersion":"apps/v1","kind":"Deployment"}}
 *     {"apiVersion":"apps/v1","kind":"Deployment","metadata":{…},…}
 *     {"end":true,"objects":1}
 */
export async function* linesOf(
  pieces: AsyncIterable<Piece>,
  { takenAt, serverTime, by }: { takenAt: Instant; serverTime(): Instant | undefined; by: string },
): AsyncGenerator<string> {
  yield line({ aimDump: version, takenAt: new Date(takenAt).toISOString(), by })
  let objects = 0
  for await (const piece of pieces) {
    if ("object" in piece) objects++
    yield line("object" in piece ? piece.object : piece)
  }
  // By the cluster's own clock, which is known once it has answered.
  const at = serverTime()
  yield line({ end: true, objects, ...(at !== undefined && { serverTime: new Date(at).toISOString() }) })
}

const line = (value: object) => `${JSON.stringify(value)}\n`

/** Reads a dump. The file is not trusted: an invalid one is refused with the number of the bad line. */
export async function readDump(
  file: string,
  world: Pick<World, "stdin">,
): Promise<{ inventory: Inventory; takenAt: Instant; serverTime: Instant | undefined }> {
  const inventory = new Inventory()
  let [takenAt, serverTime]: (Instant | undefined)[] = []
  let [number, objects, hasEnded] = [0, 0, false]
  const name = inputName(file)
  const refuse = (why: string) => new Failure(`${name}:${number}: ${why}`)
  for await (const text of readLines(file, world, lineLengthMax)) {
    number++
    if (text === "") continue
    const value = parse(text)
    if (takenAt === undefined) takenAt = begin(value)
    else if (!value) throw refuse("not a line of a dump")
    else if (value.end === true) {
      if (value.objects !== objects) throw refuse(`${value.objects} objects were dumped, and the file has ${objects}`)
      hasEnded = true
      serverTime = parseInstant(value.serverTime)
    } else keep(inventory, pieceOf(value))
  }
  if (takenAt === undefined) throw new Failure(`${name} is empty`)
  if (!hasEnded)
    throw new Failure(`${name} is truncated after ${objects} objects: its last line is missing; dump again`)
  return { inventory, takenAt, serverTime }

  function begin(value: Json | undefined): Instant {
    if (typeof value?.aimDump !== "number")
      throw refuse("not a dump: write the output of aim dump into a file; for manifests use aim plan -f")
    if (value.aimDump !== version)
      throw refuse(
        `a dump of version ${value.aimDump}, and this aim reads version ${version}: use the aim that wrote it, or dump again`,
      )
    const at = parseInstant(value.takenAt)
    if (at === undefined) throw refuse("takenAt is not a time")
    return at
  }

  function pieceOf(value: Json): Piece {
    const { list, failed, message, metadata } = value
    if (isKind(list)) return { list }
    if (isKind(failed)) return { failed, message: String(message ?? "") }
    if (!isKind(value) || !isMetadata(metadata)) throw refuse("an object needs apiVersion, kind and metadata.name")
    objects++
    const ours = kinds.find(({ apiVersion, kind }) => value.apiVersion === apiVersion && value.kind === kind)
    if (!ours) return { object: value as never }
    const { errors, object } = validate<Kind>(ours, value)
    if (!object) throw refuse(`${ours.kind} ${metadata.name}: ${errors[0]!.path}: ${errors[0]!.message}`)
    return { object: object as never }
  }
}

type Json = Record<string, unknown>

function parse(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

const isKind = (value: unknown): value is { apiVersion: string; kind: string } =>
  typeof (value as Json | undefined)?.apiVersion === "string" && typeof (value as Json).kind === "string"

const isMetadata = (value: unknown): value is { name: string } =>
  isObjectName(String((value as Json | undefined)?.name ?? ""))
