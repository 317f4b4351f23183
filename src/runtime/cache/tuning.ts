import { KubeError } from "../client/errors.ts"
import { jitter, type Random } from "../random.ts"

/** The times and sizes of a feed. */
export type Tuning = {
  /** Ask for the first state as a stream (WatchList) where the server supports it. */
  stream: boolean
  pageSize: number
  /** A watch without a byte for this long is dead: a healthy server sends a bookmark about every minute. */
  silenceMs: number
  backoffMsMin: number
  backoffMsMax: number
  /** A watch that lived for this long was healthy, and the next failure starts a new count. */
  healthyMs: number
}

export const usualTuning: Tuning = {
  stream: true,
  pageSize: 500,
  silenceMs: 150_000,
  backoffMsMin: 800,
  backoffMsMax: 30_000,
  healthyMs: 10_000,
}

/** The longest Retry-After that we honour: a server may have meant seconds, or send nonsense. */
const retryAfterMsMax = 120_000

/** How long to wait after this many failed attempts. */
export function delayMs(
  { backoffMsMin, backoffMsMax }: Tuning,
  random: Random,
  attempt: number,
  error: KubeError | undefined,
): number {
  const backoffMs = Math.min(backoffMsMax, backoffMsMin * 2 ** Math.min(attempt, 30))
  return Math.max(jitter(random, backoffMs, 0.5), Math.min(error?.retryAfterMs ?? 0, retryAfterMsMax))
}

export const asKubeError = (thrown: unknown) =>
  thrown instanceof KubeError ? thrown : new KubeError("Unreachable", String(thrown), { cause: thrown })
