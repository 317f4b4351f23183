import fc from "fast-check"
import { expect, test } from "vitest"
import { AlternateImageSource, maxSwitches, type TargetAvailable } from "#api/v1alpha1/alternateimagesource/index.ts"
import { validate } from "#api/validate.ts"
import { largestAlternateStatus } from "#test/support/manifests/largest-alternate-status.ts"
import { targetsTold } from "./targets-told.ts"

const time = "2026-01-31T12:00:00Z"
const step = (name: string, length = 20) => ({ oldImage: name.padEnd(length, "z"), newImage: "", time })
const target = (name: string, fields: Partial<TargetAvailable> = {}): TargetAvailable => ({
  container: "app",
  currentRepository: "quay.io/app",
  name,
  type: { group: "apps", kind: "deployment" },
  uid: "233ac88f-c125-4125-8788-e95f8531a181",
  ...fields,
})

test("what fits stays as it is", () => {
  const targets = [target("a"), target("b", { switches: [step("1")] }), target("c", { switches: [] })]
  expect(targetsTold(targets)).toEqual(targets)
  const { targetsAvailable } = largestAlternateStatus()
  expect(targetsTold(targetsAvailable)).toEqual(targetsAvailable)
})

test("of many switches the newest stay", () => {
  const switches = Array.from({ length: maxSwitches + 2 }, (_, index) => step(`${index}`))
  expect(targetsTold([target("a", { switches })])[0]?.switches).toEqual(switches.slice(2))
})

test("the targets given first keep theirs, and no target goes for a switch", () => {
  const switches = Array.from({ length: 10 }, (_, index) => step(`${index}`))
  const targets = Array.from({ length: 250 }, (_, index) => target(`t${index}`, { switches }))
  const told = targetsTold(targets)
  expect(told.map(({ name }) => name)).toEqual(targets.slice(0, 200).map(({ name }) => name))
  expect(told.map(each => each.switches?.length)).toEqual([...Array(20).fill(10), ...Array(180).fill(0)])
})

test("one that is too large does not keep the others out", () => {
  const large = (name: string) => target(name, { currentRepository: "z".repeat(70_000) })
  expect(targetsTold([large("a"), large("b"), target("c")]).map(({ name }) => name)).toEqual(["a", "c"])
})

test("the result is always a status that the server accepts", () => {
  const text = (maxLength: number) => fc.nat(maxLength).map(length => "z".repeat(length))
  const switches = fc.array(fc.record({ oldImage: text(520), newImage: text(520), time: fc.constant(time) }), {
    maxLength: 12,
  })
  const incident = fc.record({
    since: fc.constant(time),
    reason: fc.constant("Unreachable" as const),
    image: text(520),
    failing: text(255),
    working: fc.option(text(255), { nil: undefined }),
    bad: fc.array(text(255), { maxLength: 16 }),
    attempts: fc.constant(0),
    matchLabels: fc.option(fc.constant({ app: "z".repeat(63), ["z".repeat(63)]: "" }), { nil: undefined }),
  })
  const one = fc
    .record({
      name: text(253),
      currentRepository: text(255),
      switches,
      incident: fc.option(incident, { nil: undefined }),
    })
    .map(({ name, ...fields }) => target(name, fields))
  const many = fc
    .tuple(fc.array(one, { minLength: 1, maxLength: 6 }), fc.nat(220))
    .map(([few, length]) => Array.from({ length }, (_, index) => few[index % few.length]!))
  const manifest = {
    apiVersion: AlternateImageSource.apiVersion,
    kind: "AlternateImageSource",
    metadata: { name: "a" },
    spec: { imageSourceReplacements: [] },
  }
  fc.assert(
    fc.property(many, targets => {
      const status = { targetsAvailable: targetsTold(targets) }
      expect(validate(AlternateImageSource, { ...manifest, status }).errors).toEqual([])
      expect(JSON.stringify(status).length).toBeLessThan(250_000)
    }),
    { numRuns: 30 },
  )
})
