/** `3` or `"25%"` of a total; a share is rounded up for what may come on top and down for what may be missing. */
export function intOrPercent(value: number | string | undefined, total: number, round: "up" | "down"): number {
  if (value === undefined) return 0
  if (typeof value === "number") return value
  const share = (Number.parseInt(value, 10) * total) / 100
  return round === "up" ? Math.ceil(share) : Math.floor(share)
}
