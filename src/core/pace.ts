import type { Instant } from "#lib/instant.ts"

/** How much of a rate is left: a bucket that fills evenly and holds one second's worth. */
export type Pace = { readonly tokens: number; readonly at: Instant }

export function refill(pace: Pace | undefined, perSecond: number, now: Instant): Pace {
  if (perSecond === 0) return { tokens: Number.POSITIVE_INFINITY, at: now }
  if (!pace) return { tokens: perSecond, at: now }
  const earned = (Math.max(0, now - pace.at) / 1000) * perSecond
  return { tokens: Math.min(perSecond, pace.tokens + earned), at: now }
}

export const spend = (pace: Pace, count: number): Pace => ({ ...pace, tokens: pace.tokens - count })
