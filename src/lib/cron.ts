import type { Instant } from "./instant.ts"

/** A parsed schedule of five fields. */
export type Schedule = { fields: readonly ReadonlySet<number>[]; isAnyDay: { ofMonth: boolean; ofWeek: boolean } }

type Bounds = { min: number; max: number; names?: readonly string[] }

const bounds: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: "jan feb mar apr may jun jul aug sep oct nov dec".split(" ") },
  { min: 0, max: 6, names: "sun mon tue wed thu fri sat".split(" ") },
]
const shorthands: Record<string, string> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
}

/** Undefined for text that is not a schedule, and for `@every 5m`, which has no fields. */
export function parseSchedule(text: string): Schedule | undefined {
  const read = readSchedule(text)
  return typeof read === "string" ? undefined : read
}

/** The error that a Kubernetes server reports for a schedule; undefined for a valid one. */
export function scheduleProblem(text: string): string | undefined {
  if (/^@every \d+(\.\d+)?(ns|us|µs|ms|s|m|h)/.test(text)) return undefined
  if (text.startsWith("@every "))
    return `failed to parse duration ${text}: time: invalid duration ${JSON.stringify(text.slice(7))}`
  const read = readSchedule(text)
  return typeof read === "string" ? read : undefined
}

/** The schedule, or what is wrong with it. */
function readSchedule(text: string): Schedule | string {
  const long = shorthands[text.trim()] ?? text.trim()
  if (long.startsWith("@")) return `unrecognized descriptor: ${text}`
  const parts = long.split(/\s+/)
  if (parts.length !== 5) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(" ")}]`
  const fields: Set<number>[] = []
  for (const [index, part] of parts.entries()) {
    const field = readField(part, bounds[index]!)
    if (typeof field === "string") return field
    fields.push(field)
  }
  const isAny = (part: string) => part.startsWith("*") || part.startsWith("?")
  return { fields, isAnyDay: { ofMonth: isAny(parts[2]!), ofWeek: isAny(parts[4]!) } }
}

function readField(text: string, within: Bounds): Set<number> | string {
  const values = new Set<number>()
  for (const part of text.split(",")) {
    const range = readRange(part, within)
    if (typeof range === "string") return range
    for (let each = range.first; each <= range.last; each += range.step) values.add(each)
  }
  return values
}

// A star, `5`, `1-5`, a star by 10, `mon-fri/2`.
function readRange(part: string, { min, max, names }: Bounds): { first: number; last: number; step: number } | string {
  const [range = "", by, ...more] = part.split("/")
  if (more.length > 0) return `too many slashes: ${part}`
  const [from = "", to, ...rest] = range.split("-")
  if (rest.length > 0) return `too many hyphens: ${part}`
  const isAll = from === "*" || from === "?"
  const number = (text: string) => {
    const named = names?.indexOf(text.toLowerCase()) ?? -1
    return named >= 0 ? named + min : /^[+-]?\d+$/.test(text) ? Number(text) : undefined
  }
  for (const text of [isAll ? undefined : from, isAll ? undefined : to, by]) {
    if (text === undefined) continue
    const value = number(text)
    if (value === undefined)
      return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
    if (value < 0) return `negative number (${value}) not allowed: ${text}`
  }
  const first = isAll ? min : number(from)!
  const last = isAll || (to === undefined && by !== undefined) ? max : to === undefined ? first : number(to)!
  const step = by === undefined ? 1 : number(by)!
  if (first < min) return `beginning of range (${first}) below minimum (${min}): ${part}`
  if (last > max) return `end of range (${last}) above maximum (${max}): ${part}`
  if (first > last) return `beginning of range (${first}) beyond end of range (${last}): ${part}`
  if (step === 0) return `step of range should be a positive number: ${part}`
  return { first, last, step }
}

const minuteMs = 60_000

/**
 * The first whole minute after `after` that the schedule names, in a time zone. A minute that a change of the clocks
 * skips is not named; undefined if there is none in five years.
 */
export function nextTime({ fields, isAnyDay }: Schedule, after: Instant, timeZone?: string): Instant | undefined {
  const [minutes, hours, days, months, weekdays] = fields as Set<number>[]
  const end = after + 5 * 366 * 24 * 60 * minuteMs
  let at = (Math.floor(after / minuteMs) + 1) * minuteMs
  while (at < end) {
    const wall = wallTime(at, timeZone)
    // If both day fields are restricted, one match is enough, as in every cron.
    const byMonth = days!.has(wall.day)
    const byWeek = weekdays!.has(wall.weekday)
    const isDay = isAnyDay.ofMonth || isAnyDay.ofWeek ? byMonth && byWeek : byMonth || byWeek
    if (!months!.has(wall.month) || !isDay) at += ((23 - wall.hour) * 60 + 60 - wall.minute) * minuteMs
    else if (!hours!.has(wall.hour)) at += (60 - wall.minute) * minuteMs
    else if (!minutes!.has(wall.minute)) at += minuteMs
    else return at
  }
  return undefined
}

type WallTime = { month: number; day: number; weekday: number; hour: number; minute: number }

function wallTime(at: Instant, timeZone: string | undefined): WallTime {
  const date = new Date(at + offsetMs(at, timeZone))
  return {
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    weekday: date.getUTCDay(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
  }
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** How far the clocks of a zone are ahead of UTC. Throws a RangeError for an unknown zone. */
export function offsetMs(at: Instant, timeZone: string | undefined): number {
  if (!timeZone || timeZone === "UTC" || timeZone === "Etc/UTC") return 0
  let format = formats.get(timeZone)
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" })
    formats.set(timeZone, format)
  }
  const name = format.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "GMT"
  const offset = /GMT([+-])(\d{2}):(\d{2})/.exec(name)
  if (!offset) return 0
  const ms = (Number(offset[2]) * 60 + Number(offset[3])) * minuteMs
  return offset[1] === "-" ? -ms : ms
}
