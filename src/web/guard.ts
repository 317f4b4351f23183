import type { IncomingMessage } from "node:http"
import type { ErrorAnswer } from "./wire.ts"

/** A request that is refused, with the status and what the page is told. */
export class Refusal extends Error {
  override name = "Refusal"
  readonly status: number
  readonly answer: ErrorAnswer

  constructor(status: number, answer: ErrorAnswer) {
    super(answer.message)
    this.status = status
    this.answer = answer
  }
}

/** On every answer. The page has no inline script or style, loads nothing from elsewhere, and is in no frame. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types aim",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
}

/**
 * Host on the list: a page of another name that resolves to this address (DNS rebinding) sends that name. Changes come
 * from our own page as JSON: a form of another page sends another origin and another content type.
 */
export function guard(
  request: IncomingMessage,
  { hosts, isTls }: { hosts: ReadonlySet<string>; isTls: boolean },
): void {
  const { host = "", origin } = request.headers
  if (!hosts.has(host.toLowerCase()))
    throw new Refusal(421, {
      error: "WrongHost",
      message: "this server has another name: use the address that it printed",
    })
  if (request.method === "GET" || request.method === "HEAD") return
  if (request.method !== "POST")
    throw new Refusal(405, { error: "BadRequest", message: "GET and POST alone are served" })
  const scheme = isTls ? ["https"] : ["http", "https"] // a proxy in front may end TLS
  if (!scheme.some(each => origin === `${each}://${host}`))
    throw new Refusal(403, {
      error: "WrongOrigin",
      message: "changes are accepted from the dashboard's own page alone",
    })
  const type = (request.headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase()
  if (type !== "application/json")
    throw new Refusal(403, { error: "WrongOrigin", message: "changes are accepted as application/json alone" })
}

const bodyMost = 64 * 1024

/** The body as an object; malformed or too long ones are refused. */
export async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > bodyMost) throw new Refusal(413, { error: "TooLarge", message: "the request is longer than 64 kB" })
    chunks.push(chunk)
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"))
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {}
  throw new Refusal(400, { error: "BadRequest", message: "the request is not a JSON object" })
}
