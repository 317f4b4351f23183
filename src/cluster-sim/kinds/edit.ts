import type { Json } from "../object.ts"

/**
 * Edits that copy. Each function returns the same object if there is nothing to do, so that defaulting a stored object
 * costs a walk and no memory.
 */

/** The object with a field set; undefined removes the field. */
export function set(object: Json, field: string, value: Json): Json {
  if (object?.[field] === value) return object
  const next = { ...object, [field]: value }
  if (value === undefined) delete next[field]
  return next
}

/** Fills absent fields. For fields that are pointers in Go: 0, false and "" are values. */
export function fill(object: Json, defaults: Json): Json {
  let next = object
  for (const field in defaults)
    if (object?.[field] === undefined || object[field] === null) {
      if (next === object) next = { ...object }
      next[field] = defaults[field]
    }
  return next
}

/** Fills fields that are absent or hold Go's zero value. For fields that are no pointers in Go. */
export function fillZero(object: Json, defaults: Json): Json {
  let next = object
  for (const field in defaults)
    if (!object?.[field]) {
      if (next === object) next = { ...object }
      next[field] = defaults[field]
    }
  return next
}

/** Changes one field by a function; an absent field stays absent. */
export function edit(object: Json, field: string, change: (value: Json) => Json): Json {
  const value = object?.[field]
  return value === undefined || value === null ? object : set(object, field, change(value))
}

/** Changes every element of a list that is a field. */
export function editEach(object: Json, field: string, change: (item: Json) => Json): Json {
  return edit(object, field, list => mapped(list, change))
}

function mapped(list: Json[], change: (item: Json) => Json): Json[] {
  let next = list
  for (let i = 0; i < list.length; i++) {
    const item = change(list[i])
    if (item === list[i]) continue
    if (next === list) next = list.slice()
    next[i] = item
  }
  return next
}

/** Whether two JSON values are equal. As in Go, absent, null, empty list and empty map are all equal. */
export function same(a: Json, b: Json): boolean {
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return isNothing(a) && isNothing(b)
  if (Array.isArray(a) !== Array.isArray(b)) return false
  if (Array.isArray(a)) return a.length === b.length && a.every((item, i) => same(item, b[i]))
  for (const key in a) if (!same(a[key], b[key])) return false
  for (const key in b) if (!Object.hasOwn(a, key) && !isNothing(b[key])) return false
  return true
}

const isNothing = (value: Json) =>
  value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0)
