import { expect, test } from "vitest"
import { largestStatus } from "#test/support/manifests/largest-status.ts"
import { silent, unbounded } from "#test/support/manifests/schema.ts"
import { cases } from "#test/support/manifests/serviceimage.ts"
import { validate } from "../../validate.ts"
import { conditions, phases, reasons, ServiceImage } from "./index.ts"

for (const [name, { manifest, old, refused, warned }] of Object.entries(cases))
  test(name, () => {
    const { errors, warnings, object } = validate(ServiceImage, manifest, { old })
    const said = (problems: typeof errors) => problems.map(({ path, message }) => `${path}: ${message}`)
    if (refused) {
      const { path, words } = refused
      expect(said(errors.filter(error => error.path === path && error.message.includes(words)))).toHaveLength(1)
      expect(said(errors)).toHaveLength(1)
    } else {
      expect(said(errors)).toEqual([])
      // The type we read objects as and the schema the server applies come from one declaration, by two ways.
      expect(ServiceImage.spec.parse(object?.spec)).toEqual(object?.spec)
    }
    expect(warnings.map(warning => warning.path)).toEqual(warned ? [warned.path] : [])
    if (warned) expect(warnings[0]?.message).toContain(warned.words)
  })

test("the largest status that is legal stays below 264 kB", () => {
  const status = largestStatus()
  expect(validate(ServiceImage, { ...smallest, status }).errors).toEqual([])
  expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThan(264_000)
})

test("every word of the vocabulary fits the status", () => {
  const common = { status: "True", observedGeneration: 1, lastTransitionTime: "2026-01-31T12:00:00Z", message: "" }
  for (const reason of Object.keys(reasons))
    for (const type of Object.keys(conditions)) {
      const tierStatus = [{ upgradeTier: "", conditions: [{ ...common, type, reason }], failures: [failureOf(reason)] }]
      const operation = { id: "g1", startedAt: common.lastTransitionTime, phase: Object.keys(phases).at(-1) }
      const status = { conditions: [{ ...common, type, reason }], tierStatus, operation }
      expect(validate(ServiceImage, { ...smallest, status }).errors).toEqual([])
    }
})

test("every text, list, map and number has bounds", () => {
  expect(unbounded(ServiceImage.schema.properties!.spec!, "spec")).toEqual([])
  expect(unbounded(ServiceImage.schema.properties!.status!, "status")).toEqual([])
})

test("every field says what it is", () => {
  expect(silent(ServiceImage.schema.properties!.spec!, "spec")).toEqual([])
  expect(silent(ServiceImage.schema.properties!.status!, "status")).toEqual([])
})

const smallest = cases["the smallest manifest"]!.manifest as object

const failureOf = (reason: string) => ({ reason, scope: "Partial", count: 1, examples: ["namespace/name"] })
