import type { Json } from "../../object.ts"

/** Fields that are maps or plain structs in Go. For these, `{}` equals absent; for pointers it does not. */
const emptyIsAbsent = new Set(["metadata", "labels", "annotations", "nodeSelector", "resources", "limits", "requests"])

/** Semantic equality as controllers compare templates: an empty list or map equals an absent one. */
export function same(a: Json, b: Json): boolean {
  if (a === b) return true
  if (a === null || a === undefined || b === null || b === undefined) return isNothing(a) && isNothing(b)
  if (typeof a !== "object" || typeof b !== "object") return false
  if (Array.isArray(a) || Array.isArray(b))
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((item: Json, index: number) => same(item, b[index]))
    )
  for (const key of Object.keys(a)) if (!sameField(key, a[key], b[key])) return false
  for (const key of Object.keys(b)) if (!Object.hasOwn(a, key) && !sameField(key, a[key], b[key])) return false
  return true
}

function sameField(key: string, a: Json, b: Json): boolean {
  if (emptyIsAbsent.has(key)) return same(a ?? {}, b ?? {})
  return same(a, b)
}

const isNothing = (value: Json) => value === null || value === undefined || (Array.isArray(value) && value.length === 0)
