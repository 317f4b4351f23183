import fc from "fast-check"
import { expect, test } from "vitest"
import { formatDuration, parseDuration } from "./duration.ts"

const minute = 60_000
const read: Record<string, number | undefined> = {
  "0": 0,
  "0s": 0,
  "250ms": 250,
  "90s": 90_000,
  "10m": 10 * minute,
  "1h30m": 90 * minute,
  "1.5h": 90 * minute,
  "1m500ms": minute + 500,
  "2d": 2880 * minute,
  "": undefined,
  "10": undefined,
  "1m30h": undefined,
  "5m5m": undefined,
  "-5m": undefined,
  "10 m": undefined,
  "1H": undefined,
  ten: undefined,
}
for (const [text, ms] of Object.entries(read))
  test(`${JSON.stringify(text)} is ${ms === undefined ? "no duration" : `${ms} ms`}`, () =>
    expect(parseDuration(text)).toBe(ms))

const written: [number, string][] = [
  [0, "0s"],
  [850, "850ms"],
  [42_999, "42s"],
  [190_000, "3m10s"],
  [125 * minute, "2h5m"],
  [120 * minute + 5000, "2h"],
  [4 * 1440 * minute + minute, "4d"],
  [-5000, "-5s"],
]
for (const [ms, text] of written) test(`${ms} ms reads ${text}`, () => expect(formatDuration(ms)).toBe(text))

test("what is written can be read back, and is never longer than what it came from", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 400 * 1440 * minute }), ms => {
      const back = parseDuration(formatDuration(ms))
      expect(back).toBeDefined()
      expect(back!).toBeLessThanOrEqual(ms)
      expect(back!).toBeGreaterThan(ms * 0.95 - 1000)
    }),
  )
})
