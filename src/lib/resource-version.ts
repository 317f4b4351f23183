/**
 * Negative if `a` is older than `b`, 0 if they are the same. resourceVersions are integers within one resource
 * (KEP-5504) and outgrow a double; without leading zeros the longer one is the larger, which spares a BigInt per event.
 */
export const compareVersions = (a: string, b: string) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)
