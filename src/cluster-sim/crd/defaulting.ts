import type { Json } from "../object.ts"
import { type Props, valuesOf } from "./props.ts"

/**
 * An object as the server prepares it for validation: nulls that are not allowed are removed, and absent fields get
 * their defaults, also inside of defaults. Returns the same object if there is nothing to do.
 */
export function withDefaults(value: Json, props: Props): Json {
  if (Array.isArray(value)) return listWithDefaults(value, props.items)
  if (typeof value !== "object" || value === null) return value
  const { properties } = props
  const values = valuesOf(props)
  let next = value
  const put = (name: string, child: Json) => {
    if (next === value) next = { ...value }
    if (child === undefined) delete next[name]
    else next[name] = child
  }
  for (const name in value) {
    const child = properties && Object.hasOwn(properties, name) ? properties[name] : values
    if (!child) continue
    let given = value[name]
    if (given === null && !child.nullable) given = structuredClone(child.default)
    const filled = given === undefined ? undefined : withDefaults(given, child)
    if (filled !== value[name]) put(name, filled)
  }
  for (const name in properties) {
    const child = properties[name]!
    if (child.default !== undefined && value[name] === undefined)
      put(name, withDefaults(structuredClone(child.default), child))
  }
  return next
}

function listWithDefaults(list: Json[], items: Props | undefined): Json[] {
  if (!items) return list
  let next = list
  for (const [index, item] of list.entries()) {
    const given =
      item === null && !items.nullable && items.default !== undefined ? structuredClone(items.default) : item
    const filled = withDefaults(given, items)
    if (filled === item) continue
    if (next === list) next = list.slice()
    next[index] = filled
  }
  return next
}
