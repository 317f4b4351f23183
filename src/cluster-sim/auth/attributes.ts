import { forbidden, quote } from "../apiserver/refusals.ts"
import { StatusError } from "../status-error.ts"
import type { Attributes, User } from "./user.ts"

const verbs: Record<string, string> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
}

/** What a request asks for, read from its method, path and query. Whether the resource exists is not known yet. */
export function attributesOf(method: string, segments: readonly string[], query: URLSearchParams): Attributes {
  // A segment with an escaped slash counts as two, so that the judged path is the path that is served.
  const [root, ...rest] = segments.join("/").split("/")
  const isCore = root === "api"
  const tail = isCore ? rest.slice(1) : rest.slice(2)
  if ((!isCore && root !== "apis") || tail.length === 0)
    return { verb: method.toLowerCase(), path: `/${segments.join("/")}` }
  const [group = "", version = ""] = isCore ? ["", rest[0]] : rest
  const isInside = tail[0] === "namespaces" && tail[1] !== undefined
  const isOfNamespace = tail[2] === undefined || tail[2] === "status" || tail[2] === "finalize"
  const [resource = "", name = "", subresource = ""] = isInside && !isOfNamespace ? tail.slice(2) : tail
  const namespace = isInside ? (tail[1] ?? "") : ""
  const place = { group, version, resource, namespace, ...(subresource && { subresource }) }
  const verb = verbs[method] ?? ""
  if (name !== "") return { ...place, verb, name }
  if (verb === "delete") return { ...place, verb: "deletecollection" }
  if (verb !== "get") return { ...place, verb }
  const watch = query.get("watch")
  const isWatch = watch !== null && watch !== "0" && watch.toLowerCase() !== "false"
  const selected = /(?:^|,)metadata\.name==?([^,!=]+)(?:,|$)/.exec(query.get("fieldSelector") ?? "")?.[1]
  return { ...place, verb: isWatch ? "watch" : "list", ...(selected && { name: selected }) }
}

const escaped: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" }

/** The refusal of a request that the user may not make. */
export function refused(user: User, attributes: Attributes, reason: string): StatusError {
  const { verb, group = "", resource = "", subresource, namespace, name = "", path } = attributes
  const full = subresource ? `${resource}/${subresource}` : resource
  const what =
    path === undefined
      ? `${verb} resource ${quote(full)} in API group ${quote(group)} ${namespace ? `in the namespace ${quote(namespace)}` : "at the cluster scope"}`
      : `${verb} path ${quote(path)}`
  const sentence = `User ${quote(user.name)} cannot ${what}`.replace(/[&<>]/g, found => escaped[found] ?? found)
  const words = reason ? `${sentence}: ${reason}` : sentence
  if (path !== undefined) return new StatusError(403, "Forbidden", `forbidden: ${words}`, {})
  return forbidden({ group, plural: resource }, name, words)
}
