import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { goText, goTypeName } from "./go-text.ts"
import type { Schema } from "./schema.ts"
import { resolve } from "./table.ts"

type Fields = Record<string, Json>

const directive = "$patch"
const retainKeys = "$retainKeys"
const deletePrefix = "$deleteFromPrimitiveList"
const orderPrefix = "$setElementOrder"

/** Strategic merge: lists are merged by their merge keys, with directives for what merging cannot express. */
export function applyStrategicPatch(schema: Schema, document: Json, patch: Json): Json {
  return mergeMaps(schema, structuredClone(document), structuredClone(patch))
}

const badRequest = (message: string) => new StatusError(400, "BadRequest", message)
/** For some bad patches the server has no proper refusal: it answers 500 with the bare message. */
const unforeseen = (message: string) => new StatusError(500, "", message)

const isMap = (value: Json): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value)

/** Both sides are copies of ours and are changed in place. */
function mergeMaps(schema: Schema | undefined, original: Fields, patch: Fields): Fields {
  if (Object.hasOwn(patch, directive)) {
    const { [directive]: asked, ...rest } = patch
    if (asked === "replace") return rest
    if (asked === "delete") return {}
    throw unforeseen(`unknown patch type: ${goText(asked)} in map: ${goText(patch)}`)
  }
  retain(original, patch)
  orderLists(schema, original, patch)

  for (const patchKey of Object.keys(patch)) {
    const value = patch[patchKey]
    const isDeletion = patchKey.startsWith(deletePrefix)
    const key = isDeletion ? keyAfter(patchKey, deletePrefix) : patchKey
    if (value === null) {
      delete original[key]
      continue
    }
    const old = original[key]
    if (old === undefined || kindOf(old) !== kindOf(value)) {
      if (!isDeletion) set(original, key, withoutDirectives(withoutNulls(value)))
      continue
    }
    const field = fieldOf(schema, key)
    if (isMap(value)) original[key] = strategyOf(field) === "replace" ? value : mergeMaps(field, old, value)
    else if (Array.isArray(value)) original[key] = mergeListField(field, old, value, isDeletion)
    else set(original, key, withoutDirectives(value))
  }
  return original
}

const kindOf = (value: Json) => (Array.isArray(value) ? "list" : value === null ? "null" : goTypeName(value))

function set(into: Fields, key: string, value: Json) {
  if (value === undefined) delete into[key]
  else into[key] = value
}

function keyAfter(key: string, prefix: string): string {
  const [before, ...rest] = key.split("/")
  if (before === prefix && rest.length > 0) return rest.join("/")
  throw badRequest(
    prefix === deletePrefix ? "invalid patch format of primitive list" : "invalid patch format of setElementOrder list",
  )
}

function fieldOf(schema: Schema | undefined, key: string): Schema | undefined {
  const isNamed = schema?.properties !== undefined && Object.hasOwn(schema.properties, key)
  const ref = isNamed ? schema.properties[key] : schema?.additional
  return ref === undefined ? undefined : resolve(ref)
}

/** `retainKeys` only affects how clients make patches; the rest of the strategy is how we merge them. */
const strategyOf = (schema: Schema | undefined) =>
  schema?.patchStrategy?.split(",").find(strategy => strategy !== "retainKeys")

/** `$retainKeys`: removes fields that it does not name. */
function retain(original: Fields, patch: Fields) {
  if (!Object.hasOwn(patch, retainKeys)) return
  const kept = patch[retainKeys]
  delete patch[retainKeys]
  if (!Array.isArray(kept)) throw badRequest("invalid patch format of retainKeys")
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith(deletePrefix) || key.startsWith(orderPrefix)) continue
    if (!kept.includes(key)) throw badRequest("invalid patch format of retainKeys")
  }
  for (const key of Object.keys(original)) if (!kept.includes(key)) delete original[key]
}

/** `$setElementOrder/…`: merges the list here, in the requested order. */
function orderLists(schema: Schema | undefined, original: Fields, patch: Fields) {
  for (const patchKey of Object.keys(patch).filter(key => key.startsWith(orderPrefix))) {
    const order = patch[patchKey]
    delete patch[patchKey]
    if (!Array.isArray(order)) throw unforeseen(`expected a []interface {}, but received a ${goTypeName(order)}`)
    const key = keyAfter(patchKey, orderPrefix)
    const old = original[key]
    const value = patch[key]
    for (const list of [old, value])
      if (list !== undefined && !Array.isArray(list))
        throw unforeseen(`expected a []interface {}, but received a ${goTypeName(list)}`)
    const field = fieldOf(schema, key)
    checkOrder(value ?? [], order, field?.mergeKey)
    if (old === undefined && value === undefined) continue
    const merged =
      value === undefined
        ? old
        : old === undefined
          ? withoutDirectives(value)
          : mergeListField(field, old, value, false)
    original[key] = ordered(merged, {
      order,
      live: liveOrder(old ?? [], value ?? [], field?.mergeKey),
      mergeKey: field?.mergeKey,
    })
    delete patch[key]
  }
}

/**
 * The old order of the list as the server sees it. The server deletes and appends in place, so new items take the room
 * of deleted ones.
 */
function liveOrder(live: Json[], patch: Json[], mergeKey: string | undefined): Json[] {
  if (!mergeKey) return live
  const names = (items: Json[]) => new Set(items.map(item => item[mergeKey]))
  const deleted = names(patch.filter(item => item[directive] === "delete"))
  const left = live.filter(item => !deleted.has(item[mergeKey]))
  const known = names(left)
  const added = patch.filter(item => item[directive] === undefined && !known.has(item[mergeKey]))
  return [...left, ...added].slice(0, live.length)
}

/** The patch must have its items in the order that it requests, and must not have items that the order leaves out. */
function checkOrder(patch: Json[], order: Json[], mergeKey: string | undefined) {
  if (patch.length === 0 || order.length === 0) return
  const kept = mergeKey ? patch.filter(item => item?.[directive] === undefined) : patch
  let at = 0
  for (const wanted of order) if (at < kept.length && nameOf(kept[at], mergeKey) === nameOf(wanted, mergeKey)) at++
  if (at < kept.length)
    throw unforeseen(
      `The order in patch list:\n${goText(patch)}\n doesn't match ${orderPrefix} list:\n${goText(order)}\n`,
    )
}

function nameOf(item: Json, mergeKey: string | undefined): Json {
  if (!mergeKey) return item
  if (!isMap(item)) throw unforeseen(`expected a map[string]interface {}, but received a ${goTypeName(item)}`)
  if (!Object.hasOwn(item, mergeKey)) throw unforeseen(noMergeKey(item, mergeKey))
  return item[mergeKey]
}

const noMergeKey = (item: Json, mergeKey: string) =>
  `map: ${goText(item)} does not contain declared merge key: ${mergeKey}`

function mergeListField(field: Schema | undefined, original: Json[], patch: Json[], isDeletion: boolean): Json[] {
  if (strategyOf(field) !== "merge" && !isDeletion) return patch
  return mergeLists(field, original, patch, isDeletion)
}

function mergeLists(field: Schema | undefined, original: Json[], patch: Json[], isDeletion: boolean): Json[] {
  if (original.length === 0 && patch.length === 0) return original
  const kinds = new Set([...original, ...patch].map(kindOf))
  if (kinds.has("list"))
    throw new StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})
  if (kinds.size > 1) throw unforeseen(`list element types are not identical: [${goText(original)} ${goText(patch)}]`)
  if (!isMap([...original, ...patch][0])) {
    if (isDeletion) return original.filter(item => !patch.includes(item))
    return ordered([...new Set([...original, ...patch])], { order: patch, live: original, mergeKey: undefined })
  }
  const mergeKey = field?.mergeKey
  if (!mergeKey) throw unforeseen("cannot merge lists without merge key for ")
  const { live, rest } = special(original, patch, mergeKey)
  const items = field.items === undefined ? undefined : resolve(field.items)
  const merged = [...live]
  for (const item of rest) {
    const name = nameOf(item, mergeKey)
    const at = merged.findIndex(one => one[mergeKey] === name)
    if (at < 0) merged.push(item)
    else merged[at] = mergeMaps(items, merged[at], item)
  }
  return ordered(merged, { order: rest, live, mergeKey })
}

/** Items that are directives: `$patch: delete` removes the matching items, `$patch: replace` all. */
function special(original: Json[], patch: Json[], mergeKey: string): { live: Json[]; rest: Json[] } {
  let live = original
  let replaces = false
  const rest: Json[] = []
  for (const item of patch) {
    const asked = item[directive]
    if (asked === undefined) rest.push(item)
    else if (asked === "delete") {
      const name = nameOf(item, mergeKey)
      live = live.filter(one => one[mergeKey] !== name)
    } else if (asked === "replace") replaces = true
    else if (asked === "merge") throw unforeseen("merging lists cannot yet be specified in the patch")
    else throw unforeseen(`unknown patch type: ${goText(asked)} in map: ${goText(item)}`)
  }
  return replaces ? { live: rest, rest: [] } : { live, rest }
}

/** The requested items in their order. The others are placed between them, where the live list had them if possible. */
function ordered(
  items: Json[],
  { order, live, mergeKey }: { order: Json[]; live: Json[]; mergeKey: string | undefined },
): Json[] {
  const name = (item: Json) => (mergeKey ? item?.[mergeKey] : item)
  const placeIn = (list: Json[], item: Json) => list.findIndex(one => name(one) === name(item))
  const asked = items.filter(item => placeIn(order, item) >= 0)
  asked.sort((one, other) => placeIn(order, one) - placeIn(order, other))
  const others: Json[] = []
  for (const item of items.filter(one => placeIn(order, one) < 0)) {
    // An item goes before those that follow it in the live list, and before those that the live list does not have.
    const place = placeIn(live, item)
    let at = others.length
    while (at > 0 && (place < 0 || placeIn(live, others[at - 1]) < 0 || place < placeIn(live, others[at - 1]))) at--
    others.splice(at, 0, item)
  }
  const out: Json[] = []
  while (asked.length > 0 && others.length > 0) {
    const other = placeIn(live, others[0])
    const next = placeIn(live, asked[0])
    const comesFirst = other >= 0 && next >= 0 && other < next
    out.push(comesFirst ? others.shift() : asked.shift())
  }
  return [...out, ...others, ...asked]
}

/** A new value has nothing to remove from, so nulls and maps that are directives are dropped. */
function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(item => (item === null ? item : withoutNulls(item)))
  if (!isMap(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)]])),
  )
}

function withoutDirectives(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter(item => item !== undefined)
  if (!isMap(value)) return value
  if (Object.hasOwn(value, directive)) return undefined
  const kept = Object.entries(value).map(([key, inner]): [string, Json] => [key, withoutDirectives(inner)])
  return Object.fromEntries(kept.filter(([, inner]) => inner !== undefined))
}
