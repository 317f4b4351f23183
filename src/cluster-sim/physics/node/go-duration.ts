/** A duration as Go prints it: `324ms`, `1.25s`, `2m40s`, `1h0m0s`. */
export function goDuration(ms: number): string {
  const whole = Math.trunc(ms)
  if (whole === 0) return "0s"
  if (whole < 1000) return `${whole}ms`
  const seconds = Number(((whole % 60_000) / 1000).toFixed(3))
  const minutes = Math.trunc(whole / 60_000)
  if (minutes === 0) return `${seconds}s`
  if (minutes < 60) return `${minutes}m${seconds}s`
  return `${Math.trunc(minutes / 60)}h${minutes % 60}m${seconds}s`
}
