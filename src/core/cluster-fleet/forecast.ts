import { counted } from "#lib/text.ts"

export type ForecastGiven = {
  /** How long clusters took that are complete, the slowest of each batch. */
  batchMs: readonly number[]
  batchesLeft: number
  clustersLeft: number
  /** How long is left of the window; undefined: no end. */
  leftMs: number | undefined
  /** How long a whole window is. */
  windowMs?: number | undefined
  /** What a node has to pull at most, each layer once; undefined: not known, or there already. */
  bytes?: number | undefined
  bytesPerSecond?: number | undefined
}

export type Forecasted = {
  fits: boolean
  message: string
  secondsPerCluster?: number
  secondsLeft?: number
  bytes?: number
  bytesPerSecond?: number
}

/**
 * Whether what is left fits into the window, with the time that a rollback of the current batch would take: as long as
 * its upgrade took. Without a measured time nothing is promised, and nothing is held back.
 */
export function forecast(given: ForecastGiven): Forecasted {
  const { batchMs, batchesLeft, clustersLeft, leftMs, windowMs = leftMs, bytes, bytesPerSecond } = given
  const numbers = { ...(bytes !== undefined && { bytes }), ...(bytesPerSecond !== undefined && { bytesPerSecond }) }
  const pullMs = bytes !== undefined && bytesPerSecond ? (bytes / bytesPerSecond) * 1000 : 0
  const rest = `${counted(clustersLeft, "cluster")} in ${batchesLeft === 1 ? "1 batch" : `${batchesLeft} batches`}`
  if (batchesLeft === 0) return { ...numbers, fits: true, message: "nothing is left to do", secondsLeft: 0 }
  if (batchMs.length === 0 && pullMs === 0)
    return { ...numbers, fits: true, message: `${rest} left; how long a cluster takes is not known yet` }
  const oneMs = (batchMs.length > 0 ? batchMs.reduce((sum, ms) => sum + ms, 0) / batchMs.length : 0) + pullMs
  const secondsPerCluster = Math.round(oneMs / 1000)
  const neededMs = oneMs * batchesLeft
  const found = { ...numbers, secondsPerCluster, secondsLeft: Math.round(neededMs / 1000) }
  const needs = `${rest} left, about ${minutes(neededMs)}`
  if (leftMs === undefined) return { ...found, fits: true, message: needs }
  // One batch and its rollback must fit; what does not goes on in the next window. Where no window is long enough for
  // both, the batch alone must fit, and where none is long enough for that, waiting would not help.
  const needed = [2 * oneMs, oneMs].find(ms => ms <= windowMs!) ?? 0
  const fits = needed <= leftMs
  const words = `${needs}; the window is open for ${minutes(leftMs)}`
  return {
    ...found,
    fits,
    message: fits ? words : `${words}, and one batch with its rollback takes ${minutes(2 * oneMs)}`,
  }
}

const minutes = (ms: number) => (ms < 60_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`)
