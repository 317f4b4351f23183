import { describe, expect, test } from "vitest"
import { nextTime, parseSchedule, scheduleProblem } from "./cron.ts"

for (const schedule of ["* * * * *", "*/5 0-6 1,15 jan-mar mon", "0 0 ? * 0", "@daily", "@every 5m", "5/10 * * * *"])
  test(`${schedule} is a schedule`, () => expect(scheduleProblem(schedule)).toBeUndefined())

const problems: Record<string, string> = {
  "now and then": "expected exactly 5 fields, found 3: [now and then]",
  "60 * * * *": "end of range (60) above maximum (59): 60",
  "* * 0 * *": "beginning of range (0) below minimum (1): 0",
  "5-1 * * * *": "beginning of range (5) beyond end of range (1): 5-1",
  "a * * * *": 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax',
  "*/0 * * * *": "step of range should be a positive number: */0",
  "@sometimes": "unrecognized descriptor: @sometimes",
}
for (const [schedule, problem] of Object.entries(problems))
  test(`${schedule}: ${problem}`, () => expect(scheduleProblem(schedule)).toBe(problem))

describe("the next time", () => {
  const next = (text: string, after: string, zone?: string) => {
    const at = nextTime(parseSchedule(text)!, Date.parse(after), zone)
    return at === undefined ? undefined : new Date(at).toISOString()
  }
  const cases: [text: string, after: string, next: string, zone?: string][] = [
    ["* * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01:00.000Z"],
    ["*/15 * * * *", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00.000Z"],
    ["0 9-17/4 * * mon-fri", "2026-01-02T18:00:00Z", "2026-01-05T09:00:00.000Z"],
    ["30 2 29 feb *", "2026-01-01T00:00:00Z", "2028-02-29T02:30:00.000Z"],
    ["0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00.000Z"],
    ["@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00.000Z"],
    ["0 3 * * *", "2026-06-01T00:30:00Z", "2026-06-01T01:00:00.000Z", "Europe/Berlin"],
    ["30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00.000Z", "Europe/Berlin"], // 02:30 was skipped on the 29th
  ]
  test.each(cases)("%s after %s is %s %s", (text, after, want, zone) => expect(next(text, after, zone)).toBe(want))
  test.each(["* * * *", "60 * * * *", "a * * * *", "*/0 * * * *", "5-1 * * * *"])("%s is none", text =>
    expect(parseSchedule(text)).toBeUndefined(),
  )
})
