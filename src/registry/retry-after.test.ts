import { expect, test } from "vitest"
import { parseRetryAfter } from "./retry-after.ts"

const now = Date.parse("2026-11-15T10:00:00Z")
test.each([
  ["120", 120_000],
  ["0", 1000],
  ["999999999999", 3_600_000],
  ["Sun, 15 Nov 2026 10:02:00 GMT", 120_000],
  ["Sun, 15 Nov 2026 09:00:00 GMT", 1000],
  ["Sun, 15 Nov 2099 10:00:00 GMT", 3_600_000],
  ["Xxx, 99 Xxx 2026 10:02:00 GMT", undefined],
  ["-5", undefined],
  ["1.5", undefined],
  ["soon", undefined],
  ["soon 1", undefined],
  ["", undefined],
  [undefined, undefined],
])("Retry-After: %s is %s ms", (header, expected) => expect(parseRetryAfter(header, now)).toBe(expected))
