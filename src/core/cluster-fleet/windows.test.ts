import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { bothOpen, mayGoOn, openingOf, windowProblem } from "./windows.ts"

const at = (text: string) => Date.parse(text)
const window = (schedule: string, durationMinutes: number, timeZone = "UTC") => ({
  schedule,
  durationMinutes,
  timeZone,
})
const shown = (given: ReturnType<typeof openingOf>) => {
  const time = given.isOpen ? given.closesAt : given.opensAt
  return `${given.isOpen ? "open until" : "opens"} ${time === undefined ? "never" : new Date(time).toISOString().slice(0, 16)}`
}

const berlin = window("0 1 * * 6", 240, "Europe/Berlin")
const cases: Record<string, { windows: ReturnType<typeof window>[]; now: string; gives: string }> = {
  "none is always open": { windows: [], now: "2026-01-01T00:00:00Z", gives: "open until never" },
  "the moment it opens": { windows: [berlin], now: "2026-01-03T00:00:00Z", gives: "open until 2026-01-03T04:00" },
  "a moment before": { windows: [berlin], now: "2026-01-02T23:59:59Z", gives: "opens 2026-01-03T00:00" },
  "the moment it closes": { windows: [berlin], now: "2026-01-03T04:00:00Z", gives: "opens 2026-01-10T00:00" },
  "in summer it opens an hour earlier by UTC": {
    windows: [berlin],
    now: "2026-07-01T00:00:00Z",
    gives: "opens 2026-07-03T23:00",
  },
  "the night clocks go forward: 02:30 does not exist, and the window opens all the same": {
    windows: [window("30 2 * * *", 60, "Europe/Berlin")],
    now: "2026-03-28T12:00:00Z",
    gives: "opens 2026-03-29T01:30",
  },
  "the night clocks go back: four hours are four hours": {
    windows: [window("0 1 * * *", 240, "Europe/Berlin")],
    now: "2026-10-25T00:30:00Z",
    gives: "open until 2026-10-25T03:00",
  },
  "windows that touch are one": {
    windows: [window("0 1 * * *", 60), window("0 2 * * *", 60)],
    now: "2026-01-01T01:30:00Z",
    gives: "open until 2026-01-01T03:00",
  },
  "the first of several counts": {
    windows: [window("0 9 * * *", 60), window("0 5 * * *", 60)],
    now: "2026-01-01T00:00:00Z",
    gives: "opens 2026-01-01T05:00",
  },
}

describe("windows", () => {
  for (const [name, { windows, now, gives }] of Object.entries(cases))
    test(name, () => expect(shown(openingOf(windows, at(now)))).toBe(gives))

  test("what is open closes in the future, what is closed opens in it", () => {
    const times = fc.integer({ min: at("2026-01-01T00:00:00Z"), max: at("2027-12-31T00:00:00Z") })
    const zones = fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
    const schedules = fc.constantFrom("0 1 * * 6", "30 2 * * *", "15 */6 * * *", "0 0 1 * *")
    fc.assert(
      fc.property(times, zones, schedules, fc.integer({ min: 1, max: 2000 }), (now, timeZone, schedule, minutes) => {
        const windows = [window(schedule, minutes, timeZone)]
        const opening = openingOf(windows, now)
        if (!opening.isOpen) {
          expect(opening.opensAt).toBeGreaterThan(now)
          expect(openingOf(windows, opening.opensAt!).isOpen).toBe(true)
        } else if (opening.closesAt !== undefined) {
          expect(opening.closesAt).toBeGreaterThan(now)
          expect(openingOf(windows, opening.closesAt! - 1).isOpen).toBe(true)
          expect(openingOf(windows, opening.closesAt!).isOpen).toBe(false)
        }
      }),
      { numRuns: 100 },
    )
  })

  test("a cluster's windows narrow those of the run", () => {
    const now = at("2026-01-01T01:30:00Z")
    const run = openingOf([window("0 1 * * *", 240)], now)
    expect(shown(bothOpen(run, openingOf([window("0 1 * * *", 60)], now)))).toBe("open until 2026-01-01T02:00")
    expect(shown(bothOpen(run, openingOf([window("0 3 * * *", 60)], now)))).toBe("opens 2026-01-01T03:00")
    expect(shown(bothOpen(run, openingOf([], now)))).toBe("open until 2026-01-01T05:00")
  })

  test("what was begun may go on for the grace, and not longer", () => {
    const opening = openingOf([window("0 1 * * *", 60)], at("2026-01-01T02:10:00Z"))
    expect(mayGoOn(opening, 30 * 60_000, at("2026-01-01T02:10:00Z"))).toBe(true)
    expect(mayGoOn(opening, 30 * 60_000, at("2026-01-01T02:30:00Z"))).toBe(false)
  })

  test("what cannot be used is said with a remedy", () => {
    const now = at("2026-01-01T00:00:00Z")
    expect(windowProblem(berlin, now)).toBeUndefined()
    expect(windowProblem(window("0 1 * * 6", 1, "Europe/Nowhere"), now)).toContain("is unknown")
    expect(windowProblem(window("99 1 * * 6", 1), now)).toContain("is no schedule")
    expect(windowProblem(window("0 0 30 2 *", 1), now)).toContain("never opens")
  })
})
