import { BlockList, isIP } from "node:net"

/** A server to connect to. Made in one place, so that the checked address is the one that is used. */
export type Endpoint = {
  isSecure: boolean
  /** A name or an address, without brackets, in lower case. */
  hostname: string
  port: number
  /** As in the Host header: without the default port of the scheme. */
  authority: string
  /** Scheme and authority: what was learned over TLS must not be used for the plain port of the same host. */
  origin: string
  /** An administrator allowed it on any address, also a private one. */
  isAllowed: boolean
}

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
  return endpoint({ hostname, port, isSecure: entry?.isSecure ?? true, isAllowed: entry !== undefined })
}

/** The server of a URL, if its scheme is allowed: TLS, or plain HTTP where allowed. */
export function urlEndpoint(url: URL, allowed: Allowed): Endpoint | undefined {
  const isSecure = url.protocol === "https:"
  if (!isSecure && url.protocol !== "http:") return undefined
  const hostname = bare(url.hostname)
  const port = url.port ? Number(url.port) : isSecure ? 443 : 80
  const entry = allowed.get(keyOf(hostname, port))
  if (!isSecure && entry?.isSecure !== false) return undefined
  return endpoint({ hostname, port, isSecure, isAllowed: entry !== undefined && entry.isSecure === isSecure })
}

function endpoint(parts: Omit<Endpoint, "authority" | "origin">): Endpoint | undefined {
  const { hostname, port, isSecure } = parts
  // No name is longer, but the URL parser would accept one; and this one appears in messages.
  if (hostname.length > maxNameLength) return undefined
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname
  const authority = port === (isSecure ? 443 : 80) ? host : `${host}:${port}`
  return { ...parts, authority, origin: `${isSecure ? "https" : "http"}://${authority}` }
}

/** The URL parser knows every spelling of an address (0x7f.1) and refuses invalid hosts. */
function parseAuthority(authority: string): { hostname: string; port?: number } | undefined {
  const url = URL.parse(`https://${authority}`)
  if (url?.pathname !== "/" || url.username || url.password || url.search || url.hash) return undefined
  // Read from the text: the parser drops the default port of the scheme, and no scheme was chosen yet.
  const written = /:([0-9]+)$/.exec(authority)?.[1]
  const port = written === undefined ? undefined : Number(written)
  if (port === 0) return undefined
  return { hostname: bare(url.hostname), ...(port !== undefined && { port }) }
}

const maxNameLength = 253

const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, "")

const keyOf = (hostname: string, port: number) => `${hostname} ${port}`

const loopback = new BlockList()
loopback.addSubnet("127.0.0.0", 8, "ipv4")
loopback.addAddress("::1", "ipv6")
const isLoopback = (hostname: string) =>
  hostname === "localhost" || (isIP(hostname) !== 0 && loopback.check(hostname, isIP(hostname) === 6 ? "ipv6" : "ipv4"))
