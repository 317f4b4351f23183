import { type Failure, failure } from "#core/image/resolution.ts"

export const maxTokenAnswerBytes = 64 * 1024
const maxTokenLength = 12 * 1024

/** A token is dropped this long before it expires, so that none expires during a request. */
const marginMs = 10_000
const longestMs = 3_600_000

export type Token = { ok: true; value: string; lastsMs: number }

/** Reads the answer of a token server (status 200). */
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
  // It goes into a header, so characters that a header cannot hold are refused here.
  if (typeof value !== "string" || value.length > maxTokenLength || !/^[\x21-\x7e]+$/.test(value)) return invalid
  const seconds = typeof expires_in === "number" && expires_in > 0 ? expires_in : 60
  return { ok: true, value, lastsMs: Math.min(seconds * 1000, longestMs) - marginMs }
}
