import fc from "fast-check"
import { expect, test } from "vitest"
import { compareVersions, isVersion, noVersion } from "./resource-version.ts"

const versions = fc.bigInt({ min: 1n, max: 2n ** 80n })

test("versions are compared as the integers they are, beyond what a double can hold", () => {
  expect(compareVersions("9007199254740993", "9007199254740992")).toBeGreaterThan(0)
  expect(compareVersions("9", "10")).toBeLessThan(0)
  fc.assert(
    fc.property(versions, versions, (a, b) => {
      expect(Math.sign(compareVersions(String(a), String(b)))).toBe(a < b ? -1 : a > b ? 1 : 0)
      expect(compareVersions(noVersion, String(a))).toBeLessThan(0)
    }),
  )
})

test("what is not such an integer is no version", () => {
  for (const odd of ["", "0", "01", "-1", "1.5", "1e3", " 1", "abc", "1".repeat(40), undefined, null, 7])
    expect(isVersion(odd)).toBe(false)
  for (const good of ["1", "10", "18446744073709551615"]) expect(isVersion(good)).toBe(true)
})
