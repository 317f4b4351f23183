import type { Instant } from "#lib/instant.ts"

const leastMs = 1000
/** A registry that asks for more is asked again after this: an hour's silence costs it one request. */
const mostMs = 3_600_000

/** Milliseconds to wait, from `Retry-After: 120` or a date; undefined where the header says nothing that can be read. */
export function parseRetryAfter(header: string | undefined, now: Instant): number | undefined {
  if (header === undefined || header.length > 40) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : readDate(header) - now
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, leastMs), mostMs)
}

/** Only the form that HTTP wants written (Sun, 06 Nov 1994 08:49:37 GMT): the parser would take `x 1` for a date. */
const readDate = (text: string) =>
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : Number.NaN
