/** A resourceVersion as every current API server makes them: a positive integer, in decimal (KEP-5504). */
export const isVersion = (version: unknown): version is string =>
  typeof version === "string" && /^[1-9][0-9]{0,38}$/.test(version)

/**
 * Negative if `a` is older than `b`, 0 if they are the same. Versions outgrow a double; without leading zeros the longer
 * number is the larger one, which spares a BigInt per event.
 */
export const compareVersions = (a: string, b: string) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)

/** Older than every version there is. */
export const noVersion = "0"
