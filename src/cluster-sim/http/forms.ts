import { apiVersionOf } from "#runtime/resource.ts"
import type { Json, Obj } from "../object.ts"
import type { ServedKind } from "../registry/kind.ts"
import { badRequest } from "../registry/refusals.ts"

/** The form a client wants its objects in. */
export type Form = { as: "object" } | { as: "metadata" } | { as: "table"; include: "None" | "Metadata" | "Object" }

export const tableColumns = (kind: ServedKind) => kind.printer.columns.map(column => ({ ...column }))

export function partial(object: Obj): Json {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata }
}

/** A list or one object as `kubectl get` prints it. Without columns, the reader knows them already. */
export function table(
  kind: ServedKind,
  objects: readonly Obj[],
  options: { include: "None" | "Metadata" | "Object"; nowMs: number; metadata: Json; hasColumns?: boolean },
): Json {
  const { include, nowMs, metadata, hasColumns = true } = options
  const shown = (object: Obj) => (include === "None" ? undefined : include === "Object" ? object : partial(object))
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: hasColumns ? tableColumns(kind) : null,
    rows: objects.map(object => {
      const inside = shown(object)
      return { cells: kind.printer.row(object, nowMs), ...(inside && { object: inside }) }
    }),
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
 * A list as text. Items of built-in kinds do not say what they are, as on the server; since every object begins with
 * that, it is cut off rather than copied away.
 */
export function listText(kind: ServedKind, items: readonly Obj[], metadata: Json): string {
  const head = JSON.stringify({ kind: kind.listKind, apiVersion: apiVersionOf(kind), metadata }).slice(0, -1)
  const prefix = `{"apiVersion":${JSON.stringify(apiVersionOf(kind))},"kind":${JSON.stringify(kind.kind)},`
  const parts = items.map(item => {
    const text = JSON.stringify(item)
    return !kind.isCustom && text.startsWith(prefix) ? `{${text.slice(prefix.length)}` : text
  })
  return `${head},"items":[${parts.join(",")}]}\n`
}
