import type { Instant } from "#lib/instant.ts"

/** A parsed schedule of five fields. */
export type Schedule = { fields: readonly ReadonlySet<number>[]; isAnyDay: { ofMonth: boolean; ofWeek: boolean } }

const ranges = [
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

/** Undefined for text that is no schedule. */
export function parseSchedule(text: string): Schedule | undefined {
  const parts = (shorthands[text.trim()] ?? text).trim().split(/\s+/)
  if (parts.length !== 5) return undefined
  const fields = parts.map((part, index) => parseField(part, ranges[index]!))
  if (fields.some(field => field === undefined)) return undefined
  const isAny = (part: string) => part.startsWith("*") || part.startsWith("?")
  return { fields: fields as Set<number>[], isAnyDay: { ofMonth: isAny(parts[2]!), ofWeek: isAny(parts[4]!) } }
}

function parseField(text: string, { min, max, names }: { min: number; max: number; names?: string[] }) {
  const values = new Set<number>()
  const value = (word: string) => {
    const named = names?.indexOf(word.toLowerCase()) ?? -1
    return named >= 0 ? named + min : /^\d+$/.test(word) ? Number(word) : Number.NaN
  }
  for (const part of text.split(",")) {
    const [range = "", stepText] = part.split("/")
    const step = stepText === undefined ? 1 : Number(stepText)
    const [from = "", to] = range.split("-")
    const isAny = from === "*" || from === "?"
    const first = isAny ? min : value(from)
    const last = isAny ? max : to !== undefined ? value(to) : stepText !== undefined ? max : first
    const isRange = first >= min && last <= max && first <= last
    if (!isRange || !(step >= 1)) return undefined
    for (let each = first; each <= last; each += step) values.add(each)
  }
  return values
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
    // Of two restrictions of the day one is enough, as in every cron.
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

/** How far the clocks of a zone are ahead of UTC. Throws a RangeError for a zone nobody knows. */
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
