import type { Instant } from "#lib/instant.ts"

const leastMs = 1000
/** The longest wait: a registry that wants more gets one request in this time. */
const mostMs = 3_600_000

/** Milliseconds to wait, from `Retry-After: 120` or a date; undefined for an invalid header. */
export function parseRetryAfter(header: string | undefined, now: Instant): number | undefined {
  if (header === undefined || header.length > 40) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : readDate(header) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, leastMs), mostMs)
}

/** Only the form that HTTP requires (Sun, 06 Nov 1994 08:49:37 GMT): the parser would accept `x 1` as a date. */
const readDate = (text: string) =>
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : Number.NaN
