import { isIP } from "node:net"
import { canBeAPods, forbiddenAddress } from "./address.ts"
import { type Allowances, isLabel } from "./allowances.ts"
import type { Place } from "./connect.ts"
import { hostAndPort } from "./endpoint.ts"
import { type Failure, failure } from "./failure.ts"

/** What decides where a namespace may connect: what an administrator allowed, and what our caches know of the cluster. */
export type Rules = {
  allowances: Allowances
  /** A Service as our caches know it; undefined if there is none. */
  serviceAt(asked: { namespace: string; name: string; port: number }): ServiceSeen | undefined
  /** Default: `cluster.local`. */
  clusterDomain?: string
  /** Public addresses that are the cluster's own: some give them to pods, Services and nodes. Default: none is known. */
  isOfCluster?(address: string): boolean
}

export type ServiceSeen = {
  /** `spec.type`. */
  type: string
  hasSelector: boolean
  /**
   * Ready endpoints for the port that was asked for, of all EndpointSlices of the Service. Undefined if it has no such
   * port.
   */
  endpoints: readonly EndpointSeen[] | undefined
}

export type EndpointSeen = {
  address: string
  /** The container's, where the port that was asked for leads. */
  port: number
  /** The pod of `targetRef`, as our cache of pods knows it: an author of an EndpointSlice can write any reference. */
  pod?: { namespace: string; addresses: readonly string[]; isHostNetwork: boolean }
}

/** A host and a port as in a URL (the host in lower case, without brackets), and the namespace that asks. */
export type Asked = { namespace: string; host: string; port: number }

/** By which rule a connection is allowed, and where its addresses come from. */
export type Route =
  /** An administrator allowed it: any address that a name server gives, or this machine's hosts file. */
  | { ok: true; by: "Allowance" }
  /** A Service of the namespace that asks: these addresses of pods, and no name server's. */
  | { ok: true; by: "Service"; places: readonly Place[] }
  /** Every other host: what a name server gives, if it is public. */
  | { ok: true; by: "PublicAddress" }

/**
 * Whether a namespace may connect to this address of a host. Pure: the same rules always give the same verdict. It is
 * asked about each address before any is connected to, and what is connected to is the address it was asked about.
 */
export function mayConnect(asked: Asked & { address: string }, rules: Rules): Route | Failure {
  const { host, address } = asked
  const route = routeOf(asked, rules)
  if (!route.ok || route.by === "Allowance") return route
  if (route.by === "Service")
    return route.places.some(place => place.address === address)
      ? route
      : forbidden(asked, `${host} is a Service, and none of its pods has the address`)
  // The address itself is not reported: an author of a host name must not read a cluster's own name server.
  const what = forbiddenAddress(address) ?? (rules.isOfCluster?.(address) ? "a cluster's own" : undefined)
  return what === undefined ? route : forbidden(asked, `${host} has ${what} address`)
}

/** Where the addresses of a host come from, or why it may not be connected to, whatever its addresses are. */
export function routeOf(asked: Asked, rules: Rules): Route | Failure {
  const { namespace, host, port } = asked
  if (rules.allowances.has(asked)) return { ok: true, by: "Allowance" }
  const named = serviceNamedBy(host, rules.clusterDomain ?? "cluster.local")
  if (!named) return { ok: true, by: "PublicAddress" }
  if (named === "Unknown") return forbidden(asked, `${host} is inside the cluster and not a Service`)
  if ((named.namespace ?? namespace) !== namespace)
    return named.isCertain
      ? forbidden(asked, `${host} is a Service of another namespace than ${namespace}`)
      : { ok: true, by: "PublicAddress" }
  const seen = rules.serviceAt({ namespace, name: named.name, port })
  if (seen) return placesOf(asked, named.name, seen)
  return named.isCertain
    ? failure("Unreachable", `namespace ${namespace} has no Service ${named.name}, which ${host} names`)
    : { ok: true, by: "PublicAddress" }
}

/**
 * The pods behind a Service. Its own address would lead to wherever the cluster sends it at that moment: connecting to the
 * pods is connecting to what was checked.
 */
function placesOf(asked: Asked, name: string, { type, hasSelector, endpoints }: ServiceSeen): Route | Failure {
  const { namespace, port } = asked
  const service = `Service ${name} of namespace ${namespace}`
  if (type === "ExternalName") return forbidden(asked, `${service} is an ExternalName, which may lead anywhere`)
  if (!hasSelector) return forbidden(asked, `${service} has no selector, so that it may lead anywhere`)
  if (!endpoints) return failure("Unreachable", `${service} has no port ${port}`)
  if (endpoints.length === 0) return failure("Unreachable", `${service} has no ready pods`)
  // One is enough: whether it is used would otherwise be a matter of chance.
  for (const { address, pod } of endpoints) {
    if (pod?.namespace !== namespace || !pod.addresses.includes(address) || !canBeAPods(address))
      return forbidden(asked, `${service} has an endpoint that is not a pod of its namespace`)
    if (pod.isHostNetwork) return forbidden(asked, `${service} has a pod that uses the network of its node`)
  }
  return { ok: true, by: "Service", places: endpoints.map(({ address, port }) => ({ address, port })) }
}

type Named = {
  name: string
  /** Undefined: that of the namespace that asks. */
  namespace?: string
  /** It cannot be a host outside the cluster. `shop.com` can, and is also how a Service `shop` of a namespace `com` is written. */
  isCertain: boolean
}

/** The Service that a host may name; `Unknown` for names inside the cluster that are no Service. */
function serviceNamedBy(host: string, clusterDomain: string): Named | "Unknown" | undefined {
  if (isIP(host) || host === "localhost" || host.endsWith(".localhost")) return undefined
  const inside = [`.svc.${clusterDomain}`, ".svc"].find(end => host.endsWith(end))
  if (!inside && host.endsWith(`.pod.${clusterDomain}`)) return "Unknown"
  const [name = "", namespace, ...more] = (inside ? host.slice(0, -inside.length) : host).split(".")
  const isName = isLabel(name) && (namespace === undefined || isLabel(namespace)) && more.length === 0
  if (inside) return isName && namespace !== undefined ? { name, namespace, isCertain: true } : "Unknown"
  if (namespace === undefined) return isName ? { name, isCertain: true } : "Unknown"
  return isName ? { name, namespace, isCertain: false } : undefined
}

/** What to do where a rule forbids a connection, with the flag as an administrator would have to write it. */
export function howToAllow({ namespace, host, port }: Asked): string {
  const flag = (host: string) => `--allow-egress ${namespace}=${hostAndPort(host, port)}`
  if (isIP(host) || host.includes(".") || host === "localhost")
    return `an administrator may allow it with ${flag(host)}`
  // A name without a dot cannot be allowed: its meaning depends on the namespace that asks.
  const whole = `${host}.${namespace}.svc`
  return `an administrator may allow it with ${flag(whole)}, if the URL names it ${whole}`
}

const forbidden = (asked: Asked, why: string) => failure("ForbiddenAddress", `${why}: ${howToAllow(asked)}`)
