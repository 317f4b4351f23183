import { bare, type Endpoint, endpointAt, withoutDot } from "./endpoint.ts"
import { type Failure, failure } from "./failure.ts"
import type { Rules } from "./rules.ts"

/** What a URL names: a server, and what to ask it for. */
export type Target = Endpoint & { path: string }

export type Headers = Readonly<Record<string, string | string[]>>

/** Parses the URL once: what is checked is what is used. Messages do not quote it, since URLs of hooks hold secrets. */
export function targetOf(
  { namespace, url: text, headers = {} }: { namespace: string; url: string; headers?: Headers },
  { allowances }: Pick<Rules, "allowances">,
): Target | Failure<"InvalidRequest"> {
  const invalid = (why: string) => failure("InvalidRequest", why)
  const url = URL.parse(text)
  if (!url || !["http:", "https:"].includes(url.protocol))
    return invalid("the URL cannot be used: write http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH")
  if (url.username || url.password)
    return invalid("the URL has a user or a password: write them to a Secret, and name it with secretRef")
  const isSecure = url.protocol === "https:"
  const port = url.port ? Number(url.port) : isSecure ? 443 : 80
  const hostname = withoutDot(bare(url.hostname))
  const isAllowed = allowances.has({ namespace, host: hostname, port })
  const endpoint = port > 0 ? endpointAt({ hostname, port, isSecure, isAllowed }) : undefined
  if (!endpoint)
    return invalid("the URL names a host or a port that cannot exist: write a HOST of at most 253 characters")
  const header = headerProblem(headers)
  return header === undefined ? { ...endpoint, path: url.pathname + url.search } : invalid(header)
}

/** They say where a message ends, which server it is for, or what becomes of the connection: the client writes them. */
const ours = new Set([
  ...["host", "content-length", "transfer-encoding", "accept-encoding", "connection", "keep-alive", "upgrade"],
  ...["te", "trailer", "expect", "proxy-authorization", "proxy-connection"],
])

function headerProblem(headers: Headers): string | undefined {
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name))
      return "a header has a name that HTTP does not know: write letters, digits and hyphens"
    if (ours.has(name.toLowerCase())) return `header ${name} cannot be set: leave it out`
    // The value is not quoted: it may be a credential.
    if (![value].flat().every(line => /^[\t\x20-\x7e\x80-\xff]*$/.test(line)))
      return `header ${name} has a value that HTTP cannot send: write one line of plain characters`
  }
  return undefined
}
