import { expect, test } from "vitest"
import { canonicalQuantity, refusalOf } from "./quantity.ts"

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
  "1E3": "1E3",
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

test("an unknown suffix is told apart from what is no quantity at all", () => {
  expect(refusalOf("1K")).toBe("unable to parse quantity's suffix")
  expect(refusalOf("1 Gi")).toContain("quantities must match")
  expect(refusalOf(true)).toContain("quantities must match")
})
