import { expect, test } from "vitest"
import { scheduleProblem } from "./cron-schedule.ts"

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
