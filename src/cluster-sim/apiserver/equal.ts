import type { Json } from "../object.ts"

/** Whether two JSON values are equal. An absent field and an undefined one are equal. */
export function equal(a: Json, b: Json): boolean {
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    return a.every((each, index) => equal(each, b[index]))
  }
  if (Array.isArray(b)) return false
  for (const key in a) if (!equal(a[key], b[key])) return false
  for (const key in b) if (b[key] !== undefined && a[key] === undefined) return false
  return true
}
