import { type ObjectName, type Resource, resourceName } from "../resource.ts"
import { KubeError } from "./errors.ts"

/**
 * Paths are built only here, from checked parts: a name from a tenant's object must not become a way to another object.
 * A part that Kubernetes itself would not accept as one segment is refused, and the rest is encoded.
 */

/** RBAC allows `system:node`, so names are held only to the rules that every kind has. */
const maxSegment = 253

function nameSegment(what: string, value: string): string {
  if (typeof value !== "string") throw new KubeError("Invalid", `${what} is missing`)
  const refuse = (why: string) => {
    throw new KubeError("Invalid", `${what} ${JSON.stringify(value.slice(0, 80))} ${why}`)
  }
  if (value === "") refuse("is empty")
  if (value === "." || value === ".." || /[/%]/.test(value)) refuse(`may not be "." or "..", nor contain "/" or "%"`)
  if (value.length > maxSegment) refuse(`is longer than ${maxSegment} characters`)
  if (!value.isWellFormed()) refuse("is not valid Unicode")
  return encodeURIComponent(value)
}

function dnsSegment(what: string, value: string): string {
  if (value.length > maxSegment || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(value))
    throw new KubeError("Invalid", `${what} ${JSON.stringify(value.slice(0, 80))} is not a DNS-1123 name`)
  return value
}

export type Query = Record<string, string | number | boolean | undefined>

export const groupVersionPath = (group: string, version: string) =>
  group === ""
    ? `/api/${dnsSegment("API version", version)}`
    : `/apis/${dnsSegment("API group", group)}/${dnsSegment("API version", version)}`

/** All objects of a kind, in one namespace or in all of them. */
export function collectionPath(resource: Resource, namespace: string | undefined, query: Query = {}): string {
  return collection(resource, namespace) + queryString(query)
}

/**
 * One object. Not an option of `collectionPath`: a name that is missing at run time would make the deletion of an
 * object the deletion of all of them.
 */
export function objectPath(
  resource: Resource,
  { namespace, name }: ObjectName,
  { subresource, query = {} }: { subresource?: string | undefined; query?: Query } = {},
): string {
  if (namespace === undefined && resource.namespaced)
    throw new KubeError("Invalid", `${resourceName(resource)} ${JSON.stringify(name)} needs a namespace`)
  const path = `${collection(resource, namespace)}/${nameSegment(`${resourceName(resource)}: name`, name)}`
  return (subresource === undefined ? path : `${path}/${dnsSegment("subresource", subresource)}`) + queryString(query)
}

function collection(resource: Resource, namespace: string | undefined): string {
  const group = groupVersionPath(resource.group, resource.version)
  const plural = dnsSegment("resource", resource.plural)
  if (namespace === undefined) return `${group}/${plural}`
  if (resource.namespaced) return `${group}/namespaces/${dnsSegment("namespace", namespace)}/${plural}`
  throw new KubeError(
    "Invalid",
    `${resourceName(resource)} is cluster-scoped: namespace ${JSON.stringify(namespace)} means nothing`,
  )
}

function queryString(query: Query): string {
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, String(value))
  return search.size > 0 ? `?${search}` : ""
}

/** For `/version`, `/readyz?verbose`: plain words between slashes. */
export function rawPath(path: string): string {
  const [route = "", ...query] = path.split("?")
  const isPlain = /^(\/[A-Za-z0-9._~-]+)+$/.test(route) && !/\/\.{1,2}(\/|$)/.test(route)
  if (!isPlain || query.length > 1 || !/^[A-Za-z0-9._~=&%+-]*$/.test(query[0] ?? ""))
    throw new KubeError("Invalid", `${JSON.stringify(path.slice(0, 80))} is not a plain path`)
  return path
}

/** `pods web/a`, `nodes n1`, `pods in web`, `pods`: what a request is about, for people. */
export function subject(resource: Resource, { namespace, name }: Partial<ObjectName>): string {
  const what = resourceName(resource)
  if (name === undefined) return namespace === undefined ? what : `${what} in ${namespace}`
  return `${what} ${namespace === undefined ? name : `${namespace}/${name}`}`
}
