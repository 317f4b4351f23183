const unitMs = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const
type Unit = keyof typeof unitMs

/**
 * Milliseconds of a duration as people write it: `90s`, `10m`, `1h30m`, `1.5h`, `250ms`, `2d`, `0`. Each unit at most
 * once and from large to small, so that a typing error (`1m30h`) gives undefined and not a long wait.
 */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0
  const matched =
    /^(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?$/.exec(text)
  if (!matched || text === "") return undefined
  const sizes = [unitMs.d, unitMs.h, unitMs.m, unitMs.s, unitMs.ms]
  const ms = sizes.reduce((sum, size, i) => sum + Number(matched[i + 1] ?? 0) * size, 0)
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined
}

/** The two largest units, short enough for a table column: `850ms`, `42s`, `3m10s`, `2h5m`, `4d`. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms > 0 && ms < 1000) return `${Math.floor(ms)}ms`
  let left = Math.floor(ms / 1000) * 1000
  const parts: string[] = []
  for (const unit of ["d", "h", "m", "s"] satisfies Unit[]) {
    const count = Math.floor(left / unitMs[unit])
    left -= count * unitMs[unit]
    if (count > 0) parts.push(`${count}${unit}`)
    // After days only hours are shown; seconds would suggest a precision that does not matter.
    else if (parts.length > 0) break
    if (parts.length === 2) break
  }
  return parts.join("") || "0s"
}
