import type { Instant } from "#lib/instant.ts"

/**
 * How many pods may be disturbed now: a bucket that fills evenly and holds a tenth of a second's worth. Its content may
 * be spent at once, so it fills by that much less: then no second sees more than its share, wherever it begins. An
 * object with more pods than the bucket holds goes when it is full; the next one waits until those pods are paid for.
 */
export type Pace = { readonly pods: number; readonly at: Instant }

const most = (perSecond: number) => Math.max(1, perSecond / 10)
const earnedPerSecond = (perSecond: number) => perSecond + 1 - most(perSecond)

export function refill(pace: Pace | undefined, perSecond: number, now: Instant): Pace {
  if (perSecond === 0) return { pods: Number.POSITIVE_INFINITY, at: now }
  if (!pace) return { pods: most(perSecond), at: now }
  const earned = (Math.max(0, now - pace.at) / 1000) * earnedPerSecond(perSecond)
  return { pods: Math.min(most(perSecond), pace.pods + earned), at: now }
}

export const spend = (pace: Pace, pods: number): Pace => ({ ...pace, pods: pace.pods - pods })

/** When the next pod may be disturbed. */
export const readyAt = ({ pods, at }: Pace, perSecond: number): Instant =>
  pods >= 1 || perSecond === 0 ? at : at + Math.ceil(((1 - pods) / earnedPerSecond(perSecond)) * 1000)
