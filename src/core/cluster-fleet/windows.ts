import { Cron } from "croner"
import type { Window } from "#api/v1alpha1/clustergroupupgrade/index.ts"
import type { Instant } from "#lib/instant.ts"

/** Whether something may begin now. */
export type Opening =
  | { isOpen: true; closesAt: Instant | undefined }
  | { isOpen: false; opensAt: Instant | undefined; closedAt: Instant | undefined }

const minuteMs = 60_000

/** Why a window cannot be used, in words that name what to write; undefined if it can. */
export function windowProblem({ schedule, timeZone }: Window, now: Instant): string | undefined {
  try {
    new Intl.DateTimeFormat("en-US", { timeZone })
  } catch {
    return `timeZone ${JSON.stringify(timeZone)} is unknown: write a time zone such as Europe/Berlin`
  }
  let cron: Cron
  try {
    cron = cronOf({ schedule, timeZone })
  } catch {
    return `schedule ${JSON.stringify(schedule)} is no schedule: write five fields as in cron, such as 0 1 * * 6`
  }
  return cron.nextRun(new Date(now)) ? undefined : `schedule ${JSON.stringify(schedule)} never opens`
}

/**
 * Whether one of the windows is open, until when, and when the next one opens. No window is always open. Windows that
 * overlap or touch are one.
 */
export function openingOf(windows: readonly Window[], now: Instant): Opening {
  if (windows.length === 0) return { isOpen: true, closesAt: undefined }
  const first = endAt(windows, now)
  if (first !== undefined) {
    let closesAt = first
    for (let looked = 0; looked < windowsInARow; looked++) {
      const later = endAt(windows, closesAt)
      if (later === undefined) return { isOpen: true, closesAt }
      closesAt = later
    }
    return { isOpen: true, closesAt: undefined }
  }
  const opensAt = windows.map(window => nextOf(window, now)).filter(at => at !== undefined)
  const closedAt = windows.map(window => lastEndOf(window, now)).filter(at => at !== undefined)
  return {
    isOpen: false,
    opensAt: opensAt.length > 0 ? Math.min(...opensAt) : undefined,
    closedAt: closedAt.length > 0 ? Math.max(...closedAt) : undefined,
  }
}

/** Open only where both are: those of a run and those of a cluster. */
export function bothOpen(a: Opening, b: Opening): Opening {
  if (a.isOpen && b.isOpen) return { isOpen: true, closesAt: least(a.closesAt, b.closesAt) }
  const shut = [a, b].filter(each => !each.isOpen)
  const opensAt = shut.some(({ opensAt }) => opensAt === undefined)
    ? undefined
    : Math.max(...shut.map(({ opensAt }) => opensAt!))
  const closedAt = shut.map(({ closedAt }) => closedAt).filter(at => at !== undefined)
  return { isOpen: false, opensAt, closedAt: closedAt.length > 0 ? Math.max(...closedAt) : undefined }
}

/** Whether what was begun in a window may go on: while it is open, and for a while after. */
export const mayGoOn = (opening: Opening, graceMs: number, now: Instant) =>
  opening.isOpen || (opening.closedAt !== undefined && now < opening.closedAt + graceMs)

const least = (a: Instant | undefined, b: Instant | undefined) =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b)

/** So many windows without a gap have no end in sight. */
const windowsInARow = 32

const parsed = new Map<string, Cron>()
const parsedMost = 1000

/** Without a function to call, it starts no timer and reads no clock. */
function cronOf({ schedule, timeZone }: Pick<Window, "schedule" | "timeZone">): Cron {
  const key = `${timeZone} ${schedule}`
  let cron = parsed.get(key)
  if (!cron) {
    cron = new Cron(schedule, { timezone: timeZone, paused: true })
    if (parsed.size >= parsedMost) parsed.clear()
    parsed.set(key, cron)
  }
  return cron
}

const nextOf = (window: Window, after: Instant) => cronOf(window).nextRun(new Date(after))?.getTime()

/** When the last of the windows closes that are open at this time. */
function endAt(windows: readonly Window[], at: Instant): Instant | undefined {
  const ends = windows.flatMap(window => {
    const lengthMs = window.durationMinutes * minuteMs
    // A window that opened exactly its length ago is closed.
    const opened = lastOpening(window, at - lengthMs, at)
    return opened === undefined ? [] : [opened + lengthMs]
  })
  return ends.length > 0 ? Math.max(...ends) : undefined
}

/** When it last closed, looking back as far as a grace may reach. */
function lastEndOf(window: Window, now: Instant): Instant | undefined {
  const lengthMs = window.durationMinutes * minuteMs
  const opened = lastOpening(window, now - lengthMs - graceMsMost, now - lengthMs)
  return opened === undefined ? undefined : opened + lengthMs
}

/** The last opening after `from` and not after `to`. The search goes back in growing steps: schedules may be dense. */
function lastOpening(window: Window, from: Instant, to: Instant): Instant | undefined {
  for (let backMs = 2 * minuteMs; ; backMs *= 8) {
    const start = Math.max(from, to - backMs)
    let last: Instant | undefined
    for (let next = nextOf(window, start); next !== undefined && next <= to; next = nextOf(window, next)) last = next
    if (last !== undefined || start === from) return last
  }
}

/** The longest grace of a spec, and a little. */
const graceMsMost = 25 * 60 * minuteMs
