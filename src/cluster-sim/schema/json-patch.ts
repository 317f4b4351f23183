import { isDeepStrictEqual } from "node:util"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"

export type JsonPatchOperation = { op: string; path: string; from?: string; value?: Json }

const mostOperations = 10_000

/** RFC 6902 as the server's library reads it: it knows negative indexes, and replaces what is not there. */
export function applyJsonPatch(document: Json, operations: readonly JsonPatchOperation[]): Json {
  if (operations.length > mostOperations)
    throw new StatusError(
      413,
      "RequestEntityTooLarge",
      `Request entity is too large: The allowed maximum operations in a JSON patch is ${mostOperations}, got ${operations.length}`,
    )
  return operations.reduce(step, structuredClone(document))
}

/** The document is a copy of ours, so it is changed in place. */
function step(document: Json, { op, path, from, value = null }: JsonPatchOperation): Json {
  if (typeof path !== "string") throw refused()
  switch (op) {
    case "add":
      return put(document, path, value, "insert")
    case "replace":
      return put(document, path, value, "replace")
    case "remove":
      take(document, path)
      return document
    case "move":
      return put(document, path, take(document, from), "insert")
    case "copy":
      return put(document, path, structuredClone(get(document, from) ?? null), "insert")
    case "test":
      if (!isDeepStrictEqual(get(document, path) ?? null, value)) throw refused()
      return document
    default:
      throw refused()
  }
}

/** The server tells no more than this. */
const refused = () =>
  new StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})

/** The place a path names. What stands before the first slash is not looked at. */
function place(document: Json, path: string | undefined): { parent: Json; key: string } {
  if (typeof path !== "string") throw refused()
  const steps = path.split("/").slice(1)
  if (steps.length === 0) throw refused()
  const [key = "", ...way] = steps.map(one => one.replaceAll("~1", "/").replaceAll("~0", "~")).reverse()
  const parent = way.reverse().reduce((at, name) => child(at, name), document)
  if (parent === null || typeof parent !== "object") throw refused()
  return { parent, key }
}

function child(parent: Json, key: string): Json {
  if (Array.isArray(parent)) return parent[index(parent, key, parent.length - 1)]
  if (parent === null || typeof parent !== "object") throw refused()
  return parent[key]
}

function index(list: Json[], key: string, most: number): number {
  if (!/^-?\d+$/.test(key)) throw refused()
  const asked = Number(key)
  const found = asked < 0 ? asked + list.length : asked
  if (found < 0 || found > most) throw refused()
  return found
}

function get(document: Json, path: string | undefined): Json {
  if (path === "") return document
  const { parent, key } = place(document, path)
  return child(parent, key)
}

function put(document: Json, path: string, value: Json, how: "insert" | "replace"): Json {
  if (path === "") return value
  const { parent, key } = place(document, path)
  if (!Array.isArray(parent)) parent[key] = value
  else if (how === "replace") parent[index(parent, key, parent.length - 1)] = value
  else if (key === "-") parent.push(value)
  else parent.splice(index(parent, key, parent.length), 0, value)
  return document
}

function take(document: Json, path: string | undefined): Json {
  const { parent, key } = place(document, path)
  if (Array.isArray(parent)) return parent.splice(index(parent, key, parent.length - 1), 1)[0]
  if (!Object.hasOwn(parent, key)) throw refused()
  const value = parent[key]
  delete parent[key]
  return value
}
