import { isIP } from "node:net"
import { parseAuthority, withoutDot } from "./endpoint.ts"

/** What an administrator allows: a namespace, or all of them, may connect to one port of one host on any address. */
export type Allowance = { namespace: string; host: string; port: number }

export type Allowances = { has(asked: Allowance): boolean }

/** Instead of the name of a namespace. */
const everyNamespace = "*"

export function readAllowances(list: readonly string[]): Allowances {
  const keys = new Set<string>()
  for (const text of list) {
    const parsed = parseAllowance(text)
    if (!parsed.ok) throw new Error(parsed.error)
    keys.add(keyOf(parsed.allowance))
  }
  return {
    has: asked => [asked.namespace, everyNamespace].some(namespace => keys.has(keyOf({ ...asked, namespace }))),
  }
}

const keyOf = ({ namespace, host, port }: Allowance) => `${namespace} ${host} ${port}`

/** Reads `NAMESPACE=HOST:PORT`. An error names the part that is wrong, and what to write instead. */
export function parseAllowance(text: string): { ok: true; allowance: Allowance } | { ok: false; error: string } {
  const wrong = (error: string) => ({ ok: false as const, error: `${JSON.stringify(text.slice(0, 300))}: ${error}` })
  const [, namespace, place] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (namespace === undefined || place === undefined)
    return wrong(`NAMESPACE is missing: write NAMESPACE=HOST:PORT, or *=HOST:PORT for all namespaces`)
  if (namespace !== everyNamespace && !isLabel(namespace))
    return wrong("NAMESPACE is not the name of a namespace: write lower-case letters, digits and hyphens, or * for all")
  if (/^[a-z]+:\/\//i.test(place)) return wrong("HOST has a scheme: write HOST:PORT without it")
  if (place.includes("/")) return wrong("HOST:PORT has a path: an allowance is for the whole port, write HOST:PORT")
  if (place.includes("*"))
    return wrong("HOST has a *: only NAMESPACE may be *, write each host as it stands in its URL")
  if (isIP(place) === 6 || /^[0-9a-f:]*::[0-9a-f:]*$/i.test(place))
    return wrong("HOST is an IPv6 address without brackets: write [ADDRESS]:PORT")
  const [, host, digits] = /^(.*?)(?::([^:\]]*))?$/s.exec(place) ?? []
  if (!host) return wrong("HOST is missing: write NAMESPACE=HOST:PORT, for example shop=prometheus.monitoring.svc:9090")
  if (digits === undefined) return wrong(`PORT is missing: write ${namespace}=${place}:PORT, also for 80 and 443`)
  const port = Number(digits)
  if (!/^\d{1,5}$/.test(digits) || port < 1 || port > 65_535) return wrong("PORT is not a number from 1 to 65535")
  const parsed = /^[a-z0-9.-]+$|^\[[0-9a-f:.]+\]$/i.test(host) ? parseAuthority(`${host}:${port}`) : undefined
  if (!parsed) return wrong("HOST is neither a name nor an address: write it as it stands in its URL")
  const hostname = withoutDot(parsed.hostname)
  // In a URL a name without a dot is a Service of the namespace that asks; our search list would find one of ours.
  if (!isIP(hostname) && !hostname.includes(".") && hostname !== "localhost")
    return wrong("HOST has no dot: write the whole name, SERVICE.NAMESPACE.svc for a Service")
  return { ok: true, allowance: { namespace, host: hostname, port } }
}

/** For a URL that an administrator named: every namespace may have its host asked. */
export const allowanceOf = ({ hostname, port, protocol }: URL): string =>
  `${everyNamespace}=${hostname}:${port || (protocol === "https:" ? 443 : 80)}`

/** A name as namespaces and Services have it. */
export const isLabel = (text: string) => text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)
