import { describe, expect, test } from "vitest"
import { isPublicKey, makeSealKey, seal } from "./seal.ts"

const purpose = ["node-uid", "job-uid", "registry.example.com"]
const key = makeSealKey()

test("the holder of the key opens the box", () => {
  const text = JSON.stringify([{ username: "robot", password: "sësam" }])
  expect(key.open(seal(text, key.publicKey, purpose), purpose)).toBe(text)
})

test("the same text sealed twice looks different, and neither box shows it", () => {
  const [one, two] = [seal("sesame", key.publicKey, purpose), seal("sesame", key.publicKey, purpose)]
  expect(one).not.toBe(two)
  expect(Buffer.from(one, "base64").includes("sesame")).toBe(false)
})

describe("a box does not open", () => {
  const box = seal("sesame", key.publicKey, purpose)
  const cases: Record<string, { box?: string; purpose?: string[]; with?: typeof key }> = {
    "on another node": { purpose: ["other-uid", "job-uid", "registry.example.com"] },
    "for another job": { purpose: ["node-uid", "other-uid", "registry.example.com"] },
    "for another registry": { purpose: ["node-uid", "job-uid", "evil.example.com"] },
    "for a purpose whose parts are cut elsewhere": { purpose: ["node-uid", "job", "-uidregistry.example.com"] },
    "for no purpose": { purpose: [] },
    "with another key": { with: makeSealKey() },
    "when it was cut": { box: box.slice(0, -4) },
    "when nothing is in it": { box: "" },
    "when it is no box": { box: "!!!" },
  }
  for (const [name, { box: other = box, purpose: otherPurpose = purpose, with: holder = key }] of Object.entries(cases))
    test(name, () => expect(holder.open(other, otherPurpose)).toBeUndefined())

  test("with any single byte changed", () => {
    const bytes = Buffer.from(box, "base64")
    for (let index = 0; index < bytes.length; index++) {
      const changed = Buffer.from(bytes)
      changed[index]! ^= 1
      expect(key.open(changed.toString("base64"), purpose), `byte ${index}`).toBeUndefined()
    }
  })
})

test("a text that is no key is refused before it is used", () => {
  expect(isPublicKey(key.publicKey)).toBe(true)
  for (const text of ["", "abc", `${key.publicKey}A`, `${key.publicKey.slice(0, -1)}=`]) {
    expect(isPublicKey(text)).toBe(false)
    expect(() => seal("sesame", text, purpose)).toThrow()
  }
})
