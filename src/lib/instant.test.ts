import { expect, test } from "vitest"
import { formatInstant, formatMicroInstant } from "./instant.ts"

const at = Date.UTC(2026, 6, 8, 9, 10, 11, 12)

test("a time has whole seconds, a micro time six digits", () => {
  expect(formatInstant(at)).toBe("2026-07-08T09:10:11Z")
  expect(formatMicroInstant(at)).toBe("2026-07-08T09:10:11.012000Z")
})
