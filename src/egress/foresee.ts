import { isIP } from "node:net"
import { forbiddenAddress } from "./address.ts"
import { type Allowances, parseAllowance } from "./allowances.ts"
import { hostAndPort } from "./endpoint.ts"
import { type Asked, routeOf } from "./rules.ts"
import { type Headers, targetOf } from "./target.ts"

/** What can be said of an address without a cluster. */
export type Foreseen =
  /** A public host, as far as its name says, a Service of the namespace that asks, or what is allowed already. */
  | { need: "None" }
  /** `flag` allows it. Where `isCertain` is false it may be a public host: `shop.com` is also a Service of a namespace. */
  | { need: "Allowance"; flag: string; isCertain: boolean; why: string }
  /** No flag allows it as it is written. */
  | { need: "Change"; why: string }

const none = { has: () => false }
/** A Service of the namespace that asks is taken to be in order: whether it is, only a cluster can say. */
const inOrder = { type: "ClusterIP", hasSelector: true, endpoints: [] }

type Named = {
  namespace: string
  url: string
  /** Any certificate will do. */
  isUnchecked?: boolean
  headers?: Headers
  /** What an administrator has allowed, where that is known. */
  allowances?: Allowances
}

/** Which flag an administrator needs before this URL can be used from this namespace. */
export function foresee({ namespace, url, headers, isUnchecked = false, allowances = none }: Named): Foreseen {
  const target = targetOf({ namespace, url, ...(headers && { headers }) }, { allowances })
  if ("ok" in target) return { need: "Change", why: target.message }
  const { hostname: host, port, isSecure } = target
  const place = { namespace, host, port }
  if (allowances.has(place)) return { need: "None" }
  const route = routeOf(place, { allowances: none, serviceAt: () => inOrder })
  // Without ready pods such a Service is unreachable, which is no matter of rules.
  const isOwnService = route.ok ? route.by === "Service" : route.class === "Unreachable"
  const flag = flagOf(place)
  if (isUnchecked && isSecure)
    return allowance(flag, "certificates are left unchecked for hosts that an administrator allows, and for no others")
  if (isOwnService) return { need: "None" }
  if (!route.ok) return allowance(flag, `${host} is not a Service of the same namespace`)
  const kind = isIP(host) || host === "localhost" ? forbiddenAddress(isIP(host) ? host : "127.0.0.1") : undefined
  if (kind !== undefined) return allowance(flag, `${host} is ${kind} address`)
  if (host.split(".").length !== 2 || isIP(host)) return { need: "None" }
  const [name, other] = host.split(".")
  const needed = allowance(flag, `it may be Service ${name} of namespace ${other}`)
  return needed.need === "Allowance" ? { ...needed, isCertain: false } : needed
}

type Needed = Extract<Foreseen, { need: "Allowance" | "Change" }>

function allowance(flag: string, why: string): Needed {
  const text = flag.replace("--allow-egress ", "")
  // A name without a dot cannot be allowed: what it means depends on the namespace that asks.
  return parseAllowance(text).ok
    ? { need: "Allowance", flag, isCertain: true, why }
    : { need: "Change", why: `${why}: write the whole name, SERVICE.NAMESPACE.svc` }
}

const flagOf = ({ namespace, host, port }: Asked) => `--allow-egress ${namespace}=${hostAndPort(host, port)}`
