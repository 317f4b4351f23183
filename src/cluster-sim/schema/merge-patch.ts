import type { Json } from "../object.ts"

const isMap = (value: Json) => typeof value === "object" && value !== null && !Array.isArray(value)

/** RFC 7386: maps are merged, null removes, everything else replaces. */
export function applyMergePatch(document: Json, patch: Json): Json {
  if (!isMap(patch)) return patch
  const merged = isMap(document) ? { ...document } : {}
  for (const key of Object.keys(patch)) {
    if (patch[key] === null) delete merged[key]
    else merged[key] = applyMergePatch(merged[key], patch[key])
  }
  return merged
}
