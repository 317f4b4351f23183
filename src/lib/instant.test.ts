import { expect, test } from "vitest"
import { formatInstant, formatMicroInstant, parseInstant } from "./instant.ts"

const at = Date.UTC(2026, 6, 8, 9, 10, 11, 12)

test("a time has whole seconds, a micro time six digits", () => {
  expect(formatInstant(at)).toBe("2026-07-08T09:10:11Z")
  expect(formatMicroInstant(at)).toBe("2026-07-08T09:10:11.012000Z")
})

test("a time that cannot be written again is none: years have four digits", () => {
  const kept = ["2026-07-08T09:10:11Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
  for (const text of kept) expect(formatInstant(parseInstant(text)!)).toBe(text)
  const refused = ["+010000-01-01T00:00:00Z", "+012345-01-01T00:00:00Z", "-000001-01-01T00:00:00Z", "10000", "never", 7]
  for (const text of refused) expect(parseInstant(text), String(text)).toBeUndefined()
})
