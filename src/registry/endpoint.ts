import { BlockList, isIP } from "node:net"
import { bare, type Endpoint, endpointAt, parseAuthority } from "#egress/endpoint.ts"

/** Registries on addresses that are otherwise refused, by `HOST:PORT`; the value says whether they use TLS. */
export type Allowed = ReadonlyMap<string, { isSecure: boolean }>

/**
 * Reads `[http://|https://]HOST:PORT`. Without a scheme TLS is used, except on loopback, as container runtimes do it.
 * Never both: an attacker could force a fallback to plain text.
 */
export function parseAllowed(
  text: string,
): { ok: true; key: string; isSecure: boolean } | { ok: false; error: string } {
  const wrong = {
    ok: false as const,
    error: `${text} is not a registry: write HOST:PORT, or http://HOST:PORT for plain HTTP`,
  }
  const parts = /^(?:(https?):\/\/)?((?:[a-z0-9.-]+|\[[0-9a-f:]+\]):[0-9]{1,5})$/i.exec(text)
  const url = parts && parseAuthority(parts[2]!)
  if (!url || url.port === undefined) return wrong
  const scheme = parts[1]?.toLowerCase()
  const isSecure = scheme ? scheme === "https" : !isLoopback(url.hostname)
  return { ok: true, key: keyOf(url.hostname, url.port), isSecure }
}

export function readAllowed(list: readonly string[]): Allowed {
  const allowed = new Map<string, { isSecure: boolean }>()
  for (const text of list) {
    const parsed = parseAllowed(text)
    if (!parsed.ok) throw new Error(parsed.error)
    allowed.set(parsed.key, { isSecure: parsed.isSecure })
  }
  return allowed
}

/** Where the registry of a reference is, by the host that the reference names; undefined if that cannot be a host. */
export function registryEndpoint(host: string, allowed: Allowed): Endpoint | undefined {
  const parsed = parseAuthority(host === "docker.io" ? "registry-1.docker.io" : host)
  if (!parsed) return undefined
  const { hostname } = parsed
  // Without a port it is that of the scheme, and plain HTTP is used only where allowed.
  const isPlainByDefault = parsed.port === undefined && allowed.get(keyOf(hostname, 80))?.isSecure === false
  const port = parsed.port ?? (isPlainByDefault ? 80 : 443)
  const entry = allowed.get(keyOf(hostname, port))
  return endpointAt({ hostname, port, isSecure: entry?.isSecure ?? true, isAllowed: entry !== undefined })
}

/** The server of a URL, if its scheme is allowed: TLS, or plain HTTP where allowed. */
export function urlEndpoint(url: URL, allowed: Allowed): Endpoint | undefined {
  const isSecure = url.protocol === "https:"
  if (!isSecure && url.protocol !== "http:") return undefined
  const hostname = bare(url.hostname)
  const port = url.port ? Number(url.port) : isSecure ? 443 : 80
  const entry = allowed.get(keyOf(hostname, port))
  if (!isSecure && entry?.isSecure !== false) return undefined
  return endpointAt({ hostname, port, isSecure, isAllowed: entry !== undefined && entry.isSecure === isSecure })
}

const keyOf = (hostname: string, port: number) => `${hostname} ${port}`

const loopback = new BlockList()
loopback.addSubnet("127.0.0.0", 8, "ipv4")
loopback.addAddress("::1", "ipv6")
const isLoopback = (hostname: string) =>
  hostname === "localhost" || (isIP(hostname) !== 0 && loopback.check(hostname, isIP(hostname) === 6 ? "ipv6" : "ipv4"))
