/**
 * What to keep of a JSON value: all of it; one plain value, where an object or list becomes an empty one; some fields of
 * an object; or the same of each element of a list. A name that ends with `*` means every field that begins so.
 */
export type Shape = "all" | "value" | readonly [Shape] | { readonly [name: string]: Shape }

/** A copy of `value` with nothing in it that the shape does not name. What is of another form stays, as empty as can be. */
export function shaped(value: unknown, shape: Shape): unknown {
  if (shape === "all" || typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return isList(shape) ? value.map(each => shaped(each, shape[0])) : []
  if (shape === "value" || isList(shape)) return {}
  const kept: [string, unknown][] = []
  for (const [name, inner] of Object.entries(shape))
    for (const field of fieldsOf(value, name))
      kept.push([field, shaped((value as Record<string, unknown>)[field], inner)])
  return Object.fromEntries(kept)
}

function fieldsOf(value: object, name: string): string[] {
  if (!name.endsWith("*")) return Object.hasOwn(value, name) ? [name] : []
  return Object.keys(value).filter(field => field.startsWith(name.slice(0, -1)))
}

/** Keeps what either of them keeps. */
export function both(a: Shape, b: Shape): Shape {
  if (a === "all" || b === "all") return "all"
  if (a === "value") return b
  if (b === "value") return a
  if (isList(a)) return isList(b) ? [both(a[0], b[0])] : "all"
  if (isList(b)) return "all"
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return Object.fromEntries(
    names.map(name => {
      const [left, right] = [fieldOf(a, name), fieldOf(b, name)]
      return [name, left && right ? both(left, right) : (left ?? right)!]
    }),
  )
}

/** `["spec", "image"]` as a shape that ends in `leaf`. */
export const along = (path: readonly string[], leaf: Shape): Shape =>
  path.reduceRight<Shape>((inner, name) => ({ [name]: inner }), leaf)

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape)
const fieldOf = (shape: { readonly [name: string]: Shape }, name: string) =>
  Object.hasOwn(shape, name) ? shape[name] : undefined
