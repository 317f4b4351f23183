/** `3` or `"25%"` of a total. A percentage is rounded up for maxSurge and down for maxUnavailable. */
export function intOrPercent(value: number | string | undefined, total: number, round: "up" | "down"): number {
  if (value === undefined) return 0
  if (typeof value === "number") return value
  const share = (Number.parseInt(value, 10) * total) / 100
  return round === "up" ? Math.ceil(share) : Math.floor(share)
}
