import type { Instant } from "#lib/instant.ts"

/** How many were done at a point in time. */
export type Sample = { at: Instant; done: number }

/** An estimate from the last minutes; absent where it would be a guess. */
export type Outlook = { perMinute?: number; msLeft?: number }

/** Long enough to even out a pace of small batches, short enough to notice when it changes. */
const windowMs = 180_000
/** A rate over less than this would be a guess. */
const leastMs = 10_000

/** Adds a sample, and drops those older than the window or from before a fresh start. */
export function addSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const last = samples.at(-1)
  if (last && (sample.done < last.done || sample.at < last.at)) return [sample]
  if (last?.done === sample.done) return [...samples]
  // The newest sample before the window stays: it is the count at the start of the window.
  const begins = samples.findLastIndex(({ at }) => at <= sample.at - windowMs)
  return [...samples.slice(Math.max(0, begins)), sample]
}

/** The rate of the last minutes, and how long the rest takes at that rate. */
export function outlook(samples: readonly Sample[], { left, now }: { left: number; now: Instant }): Outlook {
  const last = samples.at(-1)
  const first = samples.findLast(({ at }) => at <= now - windowMs) ?? samples[0]
  if (!first || !last) return {}
  const gained = last.done - first.done
  const ms = now - Math.max(first.at, now - windowMs)
  if (gained <= 0 || ms < leastMs) return {}
  const perMinute = (gained / ms) * 60_000
  return left > 0 ? { perMinute, msLeft: (left / perMinute) * 60_000 } : { perMinute }
}

/** `12 a minute`, `4.5 a minute`, `20 an hour`: with significant digits only. */
export function rateWords(perMinute: number): string {
  if (perMinute >= 9.5) return `${Math.round(perMinute)} a minute`
  if (perMinute >= 1) return `${Number(perMinute.toFixed(1))} a minute`
  return `${Math.max(1, Math.round(perMinute * 60))} an hour`
}

/** `about 4 min left`. Rounded, because the rate is no more exact. */
export function leftWords(ms: number): string {
  const minutes = ms / 60_000
  if (minutes < 1) return "less than a minute left"
  if (minutes < 90) return `about ${Math.round(minutes)} min left`
  const hours = minutes / 60
  if (hours < 36) return `about ${Math.round(hours)} h left`
  return `about ${Math.round(hours / 24)} days left`
}
