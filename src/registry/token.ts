import { type Failure, failure } from "#core/image/resolution.ts"

export const maxTokenAnswerBytes = 64 * 1024
const maxTokenLength = 12 * 1024

/** Given up this much before it ends, so that none ends on its way. */
const marginMs = 10_000
const longestMs = 3_600_000

export type Token = { ok: true; value: string; lastsMs: number }

/** Reads what a token server answered with 200. */
export function readToken(body: Buffer, hostname: string): Token | Failure {
  const invalid = failure("InvalidAnswer", `${hostname} sent no token that can be used`)
  let answer: unknown
  try {
    answer = JSON.parse(body.toString("utf8"))
  } catch {
    return invalid
  }
  if (typeof answer !== "object" || answer === null) return invalid
  const { token, access_token, expires_in } = answer as Record<string, unknown>
  const value = token || access_token
  // It goes into a header: what cannot stand there must not get that far.
  if (typeof value !== "string" || value.length > maxTokenLength || !/^[\x21-\x7e]+$/.test(value)) return invalid
  const seconds = typeof expires_in === "number" && expires_in > 0 ? expires_in : 60
  return { ok: true, value, lastsMs: Math.min(seconds * 1000, longestMs) - marginMs }
}
