import { expect, test } from "vitest"
import { microTimestamp, timestamp } from "./times.ts"

const at = Date.UTC(2026, 6, 8, 9, 10, 11, 12)

test("a timestamp has whole seconds, a micro timestamp six digits", () => {
  expect(timestamp(at)).toBe("2026-07-08T09:10:11Z")
  expect(microTimestamp(at)).toBe("2026-07-08T09:10:11.012000Z")
})
