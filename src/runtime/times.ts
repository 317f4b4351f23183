import type { Instant } from "./clock.ts"

/** RFC 3339 in whole seconds, as metav1.Time is written. */
export const timestamp = (at: Instant) => new Date(at).toISOString().replace(/\.\d+Z$/, "Z")

/** Six fractional digits, as metav1.MicroTime demands: with fewer the API server answers 400. */
export const microTimestamp = (at: Instant) => new Date(at).toISOString().replace("Z", "000Z")
