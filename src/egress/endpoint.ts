import { isIP } from "node:net"

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

export function endpointAt(parts: Omit<Endpoint, "authority" | "origin">): Endpoint | undefined {
  const { hostname, port, isSecure } = parts
  // No name is longer, but the URL parser would accept one; and this one appears in messages.
  if (hostname.length > maxNameLength) return undefined
  const authority = port === (isSecure ? 443 : 80) ? inBrackets(hostname) : hostAndPort(hostname, port)
  return { ...parts, authority, origin: `${isSecure ? "https" : "http"}://${authority}` }
}

/** The URL parser knows every spelling of an address (0x7f.1) and refuses invalid hosts. */
export function parseAuthority(authority: string): { hostname: string; port?: number } | undefined {
  const url = URL.parse(`https://${authority}`)
  if (url?.pathname !== "/" || url.username || url.password || url.search || url.hash) return undefined
  // Read from the text: the parser drops the default port of the scheme, and no scheme was chosen yet.
  const written = /:([0-9]+)$/.exec(authority)?.[1]
  const port = written === undefined ? undefined : Number(written)
  if (port === 0) return undefined
  return { hostname: bare(url.hostname), ...(port !== undefined && { port }) }
}

const maxNameLength = 253

/** Without the brackets of an IPv6 address. */
export const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, "")

/** As a flag or a URL has it: `HOST:PORT`, `[ADDRESS]:PORT`. */
export const hostAndPort = (hostname: string, port: number) => `${inBrackets(hostname)}:${port}`

const inBrackets = (hostname: string) => (isIP(hostname) === 6 ? `[${hostname}]` : hostname)

/** `example.com.` is `example.com`: names are never completed by a search list, unless an administrator allowed them. */
export const withoutDot = (hostname: string) => hostname.replace(/\.$/, "")
