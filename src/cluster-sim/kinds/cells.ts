import type { Json } from "../object.ts"

/** Cells of `kubectl get` that many kinds share. */

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** A length of time as kubectl writes it: `42s`, `3m10s`, `17m`, `5h3m`, `2d4h`, `400d`. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / second)
  if (seconds < -1) return "<invalid>"
  if (seconds < 0) return "0s"
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.trunc(ms / minute)
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s")
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(ms / hour)
  if (hours < 8) return two(hours, "h", minutes % 60, "m")
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (hours < 24 * 8) return two(days, "d", hours % 24, "h")
  if (hours < 24 * 365 * 2) return `${days}d`
  if (hours < 24 * 365 * 8) return two(Math.trunc(days / 365), "y", days % 365, "d")
  return `${Math.trunc(days / 365)}y`
}

const two = (large: number, unit: string, small: number, smallUnit: string) =>
  small === 0 ? `${large}${unit}` : `${large}${unit}${small}${smallUnit}`

/** The age of a time; Go's zero time is unknown. */
export const since = (time: string | undefined | null, nowMs: number) =>
  time ? humanDuration(nowMs - Date.parse(time)) : "<unknown>"

export const age = (object: Json, nowMs: number) => since(object.metadata.creationTimestamp, nowMs)

/** `a=1,b=2`, sorted, or `<none>`. */
export function formatLabels(labels: Record<string, string> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return pairs.length > 0 ? pairs.sort().join(",") : "<none>"
}

/** A label selector as the server writes it: `app=web,tier in (a,b),!x`, by key. */
export function selectorText(selector: Json): string {
  if (!selector) return ""
  const requirements: [string, string][] = Object.entries<string>(selector.matchLabels ?? {}).map(([key, value]) => [
    key,
    `${key}=${value}`,
  ])
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const list = [...values].sort().join(",")
    if (operator === "In") requirements.push([key, `${key} in (${list})`])
    else if (operator === "NotIn") requirements.push([key, `${key} notin (${list})`])
    else requirements.push([key, operator === "Exists" ? key : `!${key}`])
  }
  return requirements
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, text]) => text)
    .join(",")
}

export const formatSelector = (selector: Json) => selectorText(selector) || "<none>"

/** Names and images of a template's containers. */
export function containerCells(podSpec: Json): [string, string] {
  const containers: Json[] = podSpec?.containers ?? []
  return [containers.map(({ name }) => name).join(","), containers.map(({ image }) => image ?? "").join(",")]
}

export const printBool = (value: boolean | undefined | null) =>
  value === undefined || value === null ? "<unset>" : value ? "True" : "False"
