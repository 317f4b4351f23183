import { isDeepStrictEqual } from "node:util"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"

export type JsonPatchOperation = { op: string; path: string; from?: string; value?: Json }

const mostOperations = 10_000

/** Why a patch does not apply, in the words of the server's library. */
export class JsonPatchProblem extends Error {
  /** A test operation failed: the patch is not meant for this document. */
  readonly isTest: boolean

  constructor(message: string, isTest = false) {
    super(message)
    this.isTest = isTest
  }
}

/** Applies the patch of a request. */
export function applyJsonPatch(document: Json, operations: readonly JsonPatchOperation[]): Json {
  if (operations.length > mostOperations)
    throw new StatusError(
      413,
      "RequestEntityTooLarge",
      `Request entity is too large: The allowed maximum operations in a JSON patch is ${mostOperations}, got ${operations.length}`,
    )
  try {
    return patchedJson(document, operations)
  } catch (error) {
    if (!(error instanceof JsonPatchProblem)) throw error
    // The server's message has no details.
    throw new StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})
  }
}

/** RFC 6902 as in the server's library, which accepts negative indexes and replaces missing values. */
export const patchedJson = (document: Json, operations: readonly JsonPatchOperation[]): Json =>
  operations.reduce(step, structuredClone(document))

/** The document is a copy of ours, so it is changed in place. */
function step(document: Json, { op, path, from, value = null }: JsonPatchOperation): Json {
  if (typeof path !== "string") throw new JsonPatchProblem(`${op} operation failed to decode path: ${missing}`)
  switch (op) {
    case "add":
      return put(document, { op, path, value })
    case "replace":
      return replace(document, path, value)
    case "remove":
      take(document, { op, path })
      return document
    case "move":
      return put(document, { op, path, value: take(document, { op, path: from }) })
    case "copy":
      return put(document, { op, path, value: structuredClone(get(document, { op, path: from }) ?? null) })
    case "test":
      if (
        path === "" ? isDeepStrictEqual(document, value) : isDeepStrictEqual(get(document, { op, path }) ?? null, value)
      )
        return document
      throw new JsonPatchProblem(`testing value ${path} failed: test failed`, true)
    default:
      throw new JsonPatchProblem(`Unexpected kind: ${op}`)
  }
}

const missing = "missing value"

type Place = { parent: Json; key: string }
type Where = { op: string; path: string | undefined }

/** The place that a path names; undefined: its parent does not exist. Text before the first slash is ignored. */
function place(document: Json, path: string): Place | undefined {
  const steps = path.split("/").slice(1)
  if (steps.length === 0) return undefined
  const [key = "", ...way] = steps.map(one => one.replaceAll("~1", "/").replaceAll("~0", "~")).reverse()
  let parent = document
  for (const name of way.reverse()) {
    if (Array.isArray(parent)) parent = /^-?\d+$/.test(name) ? parent.at(Number(name)) : undefined
    else if (parent !== null && typeof parent === "object") parent = parent[name]
    else return undefined
  }
  return parent !== null && typeof parent === "object" ? { parent, key } : undefined
}

/** The words for the two paths of an operation. */
const sides: Record<string, { source: string; target: string } | undefined> = {
  move: { source: " from", target: " destination" },
  copy: { source: " from", target: " destination" },
}

function found(document: Json, { op, path }: Where, side: "source" | "target"): Place {
  if (typeof path !== "string") throw new JsonPatchProblem(`${op} operation failed to decode from: ${missing}`)
  const at = place(document, path)
  if (at) return at
  const which = sides[op]?.[side] ?? ""
  const quoted = op === "add" || op === "remove" ? JSON.stringify(path) : path
  const doc = op === "test" ? "is" : "doc is"
  throw new JsonPatchProblem(`${op} operation does not apply: ${doc} missing${which} path: ${quoted}: ${missing}`)
}

function index(list: Json[], key: string, most: number): number {
  if (!/^[+-]?\d+$/.test(key))
    throw new JsonPatchProblem(`strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`)
  const asked = Number(key)
  const at = asked < 0 ? asked + list.length : asked
  if (at < 0 || at > most)
    throw new JsonPatchProblem(`Unable to access invalid index: ${asked}: invalid index referenced`)
  return at
}

/** Adds the place to an error. */
function at<T>(prefix: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (!(error instanceof JsonPatchProblem)) throw error
    throw new JsonPatchProblem(`${prefix}: ${error.message}`)
  }
}

const child = ({ parent, key }: Place): Json =>
  Array.isArray(parent) ? parent[index(parent, key, parent.length - 1)] : parent[key]

function get(document: Json, where: Where): Json {
  const { op, path } = where
  const from = found(document, where, "source")
  return at(`error in ${op} for ${op === "copy" ? "from" : "path"}: '${path}'`, () => child(from))
}

function put(document: Json, { op, path, value }: { op: string; path: string; value: Json }): Json {
  if (path === "") return value
  const { parent, key } = found(document, { op, path }, "target")
  if (!Array.isArray(parent)) parent[key] = value
  else if (key === "-") parent.push(value)
  else {
    const prefix = op === "copy" ? "error while adding value during copy" : `error in ${op} for path: '${path}'`
    const to = at(prefix, () => {
      if (!/^[+-]?\d+$/.test(key))
        return at(`value was not a proper array index: '${key}'`, () => index(parent, key, parent.length))
      return index(parent, key, parent.length)
    })
    parent.splice(to, 0, value)
  }
  return document
}

function replace(document: Json, path: string, value: Json): Json {
  if (path === "") return value
  const { parent, key } = found(document, { op: "replace", path }, "target")
  if (!Array.isArray(parent)) parent[key] = value
  else {
    if (!/^[+-]?\d+$/.test(key) || parent.at(Number(key)) === undefined)
      throw new JsonPatchProblem(`replace operation does not apply: doc is missing key: ${path}: ${missing}`)
    parent[index(parent, key, parent.length - 1)] = value
  }
  return document
}

function take(document: Json, where: Where): Json {
  const { op, path } = where
  const { parent, key } = found(document, where, "source")
  return at(`error in ${op} for path: '${op === "move" ? key : path}'`, () => {
    if (Array.isArray(parent)) return parent.splice(index(parent, key, parent.length - 1), 1)[0]
    if (!Object.hasOwn(parent, key)) throw new JsonPatchProblem(`Unable to remove nonexistent key: ${key}: ${missing}`)
    const value = parent[key]
    delete parent[key]
    return value
  })
}
