import { expect, test } from "vitest"
import { canonicalQuantity, formatQuantity, parseQuantity } from "./quantity.ts"

const written: Record<string, string> = {
  "1000m": "1", "0.5": "500m", "1024Mi": "1Gi", "1.5Gi": "1536Mi", "0": "0", "2e3": "2e3", "1000": "1k", "100": "100",
  "0.0001": "1m", "1500m": "1500m", "-1": "-1", "512": "512", "1023Ki": "1023Ki", "0.5Ki": "512", "1E": "1E",
} // biome-ignore format: a table
for (const [given, stored] of Object.entries(written))
  test(`${given} is stored as ${stored}`, () => expect(canonicalQuantity(given)).toBe(stored))

test("what is no quantity is left for the validation", () => {
  for (const text of ["", "a", "1x", "1 Gi", "."]) {
    expect(parseQuantity(text)).toBeUndefined()
    expect(canonicalQuantity(text)).toBe(text)
  }
})

test("a quantity is as long as it was", () => {
  expect(parseQuantity("1Gi")!.nano).toBe(parseQuantity("1073741824")!.nano)
  expect(formatQuantity({ nano: parseQuantity("2500m")!.nano * 2n, format: "DecimalSI" })).toBe("5")
})
