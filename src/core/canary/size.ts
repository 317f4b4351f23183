import type { Strategy } from "./steps.ts"

type Wish = {
  readonly strategy: Strategy
  /** The share of requests that the target answers, or is about to. */
  readonly weight: number
  /** How many pods the source had at the start of the run, or has now if they are more. */
  readonly full: number
  /** What the user asked for, instead of the share. */
  readonly canaryReplicas?: number | undefined
  /** The autoscaler's least number of pods. */
  readonly least?: number | undefined
}

/**
 * How many pods the new revision needs before it may answer this share of the requests. A share is answered by the same
 * share of pods, so that a pod of either revision has as much to do; where all matching or all requests can come, it is
 * all of them.
 */
export function sizeFor({ strategy, weight, full, canaryReplicas, least = 0 }: Wish): number {
  if (weight >= 100) return full
  if (canaryReplicas !== undefined) return Math.min(full, canaryReplicas)
  if (strategy !== "Weighted") return full
  return Math.min(full, Math.max(1, shareOf(full, weight), shareOf(least, weight)))
}

/** Rounded first: 100 × 0.07 is 7.000000000000001 to a computer. */
const shareOf = (pods: number, weight: number) => Math.ceil(Number(((pods * weight) / 100).toFixed(6)))
