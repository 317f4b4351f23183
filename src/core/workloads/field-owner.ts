import { type Instant, parseInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import { fieldOf, isObject, textOf } from "./object-facts.ts"

/** The field manager of aim's own writes. */
const ourManager = "aim"

/** The other field manager that last wrote one of these fields. They are named as in `metadata.managedFields`. */
export function otherOwnerOf(metadata: object, fields: readonly (readonly string[])[]): string | undefined {
  const entries = fieldOf(metadata, "managedFields")
  if (!Array.isArray(entries)) return undefined
  let newest: { manager: string; at: number } | undefined
  for (const entry of entries) {
    const manager = textOf(fieldOf(entry, "manager"))
    if (manager === ourManager || manager === "") continue
    const at = parseInstant(fieldOf(entry, "time")) ?? 0
    if (newest && newest.at > at) continue
    if (fields.some(field => owns(fieldOf(entry, "fieldsV1"), field))) newest = { manager, at }
  }
  return newest && clip(newest.manager.replaceAll(/[^\x20-\x7e]/g, "?"), 64)
}

/** When the object itself, or a subresource of it, was last changed, by `metadata.managedFields`. */
export function lastChangeOf(metadata: object, subresource = ""): Instant | undefined {
  const entries = fieldOf(metadata, "managedFields")
  if (!Array.isArray(entries)) return undefined
  const ofIt = entries.filter(entry => textOf(fieldOf(entry, "subresource")) === subresource)
  return Math.max(0, ...ofIt.map(entry => parseInstant(fieldOf(entry, "time")) ?? 0)) || undefined
}

/** Nothing below a field means all of it: an atomic object is owned as a whole. */
function owns(fieldsV1: unknown, field: readonly string[]): boolean {
  let node = fieldsV1
  for (const name of field) {
    node = fieldOf(node, name)
    if (!isObject(node)) return false
    if (Object.keys(node).length === 0) return true
  }
  return true
}
