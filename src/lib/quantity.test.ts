import { expect, test } from "vitest"
import { canonicalQuantity, formatQuantity, inMilli, parseQuantity } from "./quantity.ts"

const forms: Record<string, string | undefined> = {
  "1": "1",
  "1000m": "1",
  "0.5": "500m",
  "1.5": "1500m",
  ".5": "500m",
  "100m": "100m",
  "1024Mi": "1Gi",
  "1Gi": "1Gi",
  "1536Mi": "1536Mi",
  "1.5Gi": "1536Mi",
  "0.5Ki": "512",
  "1023Ki": "1023Ki",
  "2000": "2k",
  "1500": "1500",
  "1e3": "1e3",
  "1000e3": "1e6",
  "1E3": "1e3",
  "1.0e3": "1e3",
  "12E": "12E",
  "0": "0",
  "0Mi": "0",
  "-5": "-5",
  "0.1n": "1n",
  "1u": "1u",
  abc: undefined,
  "1 Gi": undefined,
  "1K": undefined,
  "": undefined,
  ".": undefined,
}

for (const [text, form] of Object.entries(forms))
  test(`${text || "nothing"} is ${form ?? "no quantity"}`, () => expect(canonicalQuantity(text)).toBe(form))

test("a quantity is as long as it was", () => {
  expect(parseQuantity("1Gi")!.nano).toBe(parseQuantity("1073741824")!.nano)
  expect(formatQuantity({ nano: parseQuantity("2500m")!.nano * 2n, format: "DecimalSI" })).toBe("5")
})

test("an exponent out of this world is no quantity", () => expect(parseQuantity("1e999999999")).toBeUndefined())

test("what is finer than a thousandth is rounded up", () => {
  expect(formatQuantity(inMilli(parseQuantity("0.0001")!))).toBe("1m")
  expect(formatQuantity(inMilli(parseQuantity("1500m")!))).toBe("1500m")
})
