import { apiVersionOf } from "#runtime/resource.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { badRequest } from "../apiserver/refusals.ts"
import type { Json, Obj } from "../object.ts"

/** The form in which a client asks for objects. */
export type Form = { as: "object" } | { as: "metadata" } | { as: "table"; include: "None" | "Metadata" | "Object" }

const tableColumns = (kind: ServedKind) => kind.printer.columns.map(column => ({ ...column }))

export function partial(object: Obj): Json {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata }
}

/** A list or one object as `kubectl get` prints it. Columns are left out if the client already has them. */
export function table(
  kind: ServedKind,
  objects: readonly Obj[],
  options: { include: "None" | "Metadata" | "Object"; nowMs: number; metadata: Json; hasColumns?: boolean },
): Json {
  const { include, nowMs, metadata, hasColumns = true } = options
  const shown = (object: Obj) => (include === "None" ? null : include === "Object" ? object : partial(object))
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: hasColumns ? tableColumns(kind) : null,
    rows: objects.map(object => ({ cells: kind.printer.row(object, nowMs), object: shown(object) })),
  }
}

export function includeOf(query: URLSearchParams): "None" | "Metadata" | "Object" {
  const value = query.get("includeObject") || "Metadata"
  if (value === "None" || value === "Metadata" || value === "Object") return value
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  )
}

/**
 * A list, in pieces, since a hundred thousand pods do not fit into one string. As on the server, items of built-in
 * kinds have no apiVersion and kind. Every object begins with these, so they are cut off the text without a copy.
 */
export function listBody(kind: ServedKind, items: readonly Obj[], metadata: Json): string | AsyncIterable<Uint8Array> {
  const head = JSON.stringify({ kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata }).slice(0, -1)
  const prefix = `{"apiVersion":${JSON.stringify(apiVersionOf(kind))},"kind":${JSON.stringify(kind.kind)},`
  const shown = (item: Obj) => {
    const text = JSON.stringify(item)
    return !kind.isCustom && text.startsWith(prefix) ? `{${text.slice(prefix.length)}` : text
  }
  const piece = (from: number, to: number) => items.slice(from, to).map(shown).join(",")
  if (items.length <= perPiece) return `${head},"items":[${piece(0, perPiece)}]}\n`
  return (async function* () {
    yield Buffer.from(`${head},"items":[`)
    for (let from = 0; from < items.length; from += perPiece)
      yield Buffer.from((from > 0 ? "," : "") + piece(from, from + perPiece))
    yield Buffer.from("]}\n")
  })()
}

const perPiece = 500
