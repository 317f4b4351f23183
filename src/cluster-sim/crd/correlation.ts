import { equal } from "../apiserver/equal.ts"
import type { Json } from "../object.ts"
import type { Props } from "./props.ts"

/** The value in the same place before the update; undefined if there was none or it cannot be identified. */

/** For a field of an object. */
export function oldField(old: Json, name: string, props: Props): Json {
  if (props["x-kubernetes-map-type"] === "atomic") return undefined
  return typeof old === "object" && old !== null && !Array.isArray(old) && Object.hasOwn(old, name)
    ? old[name]
    : undefined
}

/** For an element of a list: only a list of type map identifies its elements. */
export function oldItem(old: Json, item: Json, props: Props): Json {
  const keys = props["x-kubernetes-list-map-keys"]
  if (props["x-kubernetes-list-type"] !== "map" || !keys || !Array.isArray(old)) return undefined
  return old.find(each => keys.every(key => equal(each?.[key], item?.[key])))
}
