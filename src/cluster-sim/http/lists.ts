import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { badRequest, expired } from "../apiserver/refusals.ts"
import { selector } from "../apiserver/selectors.ts"
import type { Obj } from "../object.ts"
import { readJson } from "../schema/json-text.ts"
import { StatusError } from "../status-error.ts"
import { type ListRequest, revisionOf } from "./query.ts"

export type Page = {
  items: Obj[]
  resourceVersion: string
  continue?: string
  remainingItemCount?: number
}

/** One page of a list. All pages are from one snapshot, whatever is written in between. */
export function listPage(
  storage: ServerStorage,
  kind: ServedKind,
  namespace: string | undefined,
  request: ListRequest,
): Page {
  const { store } = storage
  const matches = selector(kind, request)
  const token = request.continue ? decodeToken(request.continue) : undefined
  if (token && request.resourceVersion && request.resourceVersion !== "0")
    throw badRequest("specifying resource version is not allowed when using continue")

  // "0" is answered from the server's cache, which has no pages.
  const limit = request.resourceVersion === "0" && !token ? 0 : request.limit
  let revision = store.revision
  if (token && token.revision >= 0) revision = token.revision
  else if (!token && request.resourceVersion && request.resourceVersion !== "0") {
    const asked = revisionOf(request.resourceVersion, "list")
    if (asked > store.revision) throw tooLarge(asked, store.revision)
    // With a limit and without resourceVersionMatch, the server reads exactly that version, for old clients.
    const isExact = request.resourceVersionMatch === "Exact" || (limit > 0 && !request.resourceVersionMatch)
    if (isExact) revision = asked
  }

  const snapshot = store.listAt(kind.storage, revision, namespace)
  if (!snapshot) throw token ? tokenExpired(token) : expired("The resourceVersion for the provided list is too old.")

  const start = token ? firstFrom(snapshot, token.start) : 0
  const items: Obj[] = []
  let index = start
  for (; index < snapshot.length; index++) {
    const object = storage.present(kind, snapshot[index] as Obj)
    if (matches && !matches(object)) continue
    if (limit > 0 && items.length === limit) break
    items.push(object)
  }
  const resourceVersion = String(revision)
  if (index >= snapshot.length) return { items, resourceVersion }
  const next = encodeToken({ revision, start: `${keyOf(items.at(-1) as Obj)}\0` })
  // Counting the remaining matches of a selector would mean reading all objects; the server does not.
  return { items, resourceVersion, continue: next, ...(!matches && { remainingItemCount: snapshot.length - index }) }
}

export const tooLarge = (asked: number, current: number) =>
  new StatusError(504, "Timeout", `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version", field: "" }],
    retryAfterSeconds: 1,
  })

type Token = { revision: number; start: string }

const encodeToken = ({ revision, start }: Token) =>
  Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start })).toString("base64url")

function decodeToken(text: string): Token {
  const bad = (why: string) => badRequest(`invalid continue token: continue key is not valid: ${why}`)
  const illegal = text.search(/[^A-Za-z0-9_-]/)
  if (illegal >= 0) throw bad(`illegal base64 data at input byte ${illegal}`)
  let token: { v?: unknown; rv?: unknown; start?: unknown }
  try {
    token = readJson(Buffer.from(text, "base64url").toString("latin1")).value
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw bad(why.replace(/[\x80-\x9f\xad]/g, byte => `\\u00${byte.charCodeAt(0).toString(16)}`))
  }
  const { v, rv, start } = token ?? {}
  if (v !== "meta.k8s.io/v1") throw bad(`server does not recognize this encoded version ${JSON.stringify(v ?? "")}`)
  if (typeof rv !== "number" || rv === 0) throw bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
  if (typeof start !== "string" || start === "") throw bad("encoded start key is required") // for other types too
  return { revision: rv, start }
}

/** A client that pages too slowly may continue from the same key in the current state, which is another list. */
function tokenExpired({ start }: Token): StatusError {
  const error = expired(
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without " +
      "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
      "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or " +
      "deleted between the time the first chunk was returned and now may show up in the list.",
  )
  error.continue = encodeToken({ revision: -1, start })
  return error
}

const keyOf = ({ metadata: { namespace, name } }: Obj) => (namespace ? `${namespace}/${name}` : name)

function firstFrom(list: readonly Obj[], start: string): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keyOf(list[middle] as Obj) < start) low = middle + 1
    else high = middle
  }
  return low
}
