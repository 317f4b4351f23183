import fc from "fast-check"
import { expect, test } from "vitest"
import { evaluateRule } from "#cluster-sim/ocm/status.ts"
import { runAnnotation } from "#core/cluster-fleet/deliverable.ts"
import { judgeDelivered } from "#core/cluster-fleet/delivered.ts"
import type { DeliveredObject } from "#core/cluster-fleet/transport.ts"
import { conditionRule, jsonPath, verdictOf } from "./rule.ts"

const manifest = { apiVersion: "autoimagemanager.io/v1alpha1", kind: "ServiceImage", metadata: { name: "web" } }
const judged: DeliveredObject = {
  ...{ manifest, lifetime: "Kept" },
  judge: { by: "Ready", expects: [{ path: ["spec", "tiers", 0, "image"], value: `a"b\\c` }] },
}
const present: DeliveredObject = { manifest, lifetime: "Removed", judge: { by: "Presence" } }

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 4 })
const generation = fc.integer({ min: 1, max: 2 })
const condition = fc.record(
  {
    type: fc.constantFrom("Ready", "Stalled", "Other"),
    status: fc.constantFrom("True", "False"),
    observedGeneration: generation,
    reason: fc.constantFrom("A", "B"),
    message: fc.constantFrom("", "fine", "two\nlines"),
  },
  { requiredKeys: ["type", "status"] },
)
const object = fc.record(
  {
    metadata: fc.record(
      {
        generation,
        deletionTimestamp: fc.constant("2026-01-01T00:00:00Z"),
        annotations: fc.dictionary(fc.constantFrom(runAnnotation, "other"), fc.constantFrom("run-1", "run-0")),
      },
      { requiredKeys: ["generation"] },
    ),
    spec: fc.record({
      tiers: fc.array(fc.record({ image: fc.constantFrom(`a"b\\c`, "other") }), { minLength: 1, maxLength: 2 }),
    }),
    status: fc.record(
      {
        observedGeneration: generation,
        conditions: fc.uniqueArray(condition, { maxLength: 3, selector: ({ type }) => type }),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ["metadata", "spec"] },
)

const plainJson = (value: unknown) => JSON.parse(JSON.stringify(value))

test("the rule that OCM's agent evaluates says what we would say of the same object", () => {
  fc.assert(
    fc.property(object, maybe(fc.constant(present)), (any, which) => {
      const wanted = which ?? judged
      const read = plainJson(any)
      const said = verdictOf(evaluateRule(conditionRule(wanted, "run-1"), read))
      expect(said).toEqual(judgeDelivered(read, wanted, "run-1").verdict)
    }),
    { numRuns: 400 },
  )
})

test("a field that is missing differs", () => {
  const read = { metadata: { generation: 1, annotations: { [runAnnotation]: "run-1" } }, spec: {} }
  expect(verdictOf(evaluateRule(conditionRule(judged, "run-1"), read))).toMatchObject({ is: "Differs" })
  expect(judgeDelivered(read, judged, "run-1").verdict).toMatchObject({ is: "Differs" })
})

test("a path is written as a JSONPath", () => {
  expect(jsonPath(["metadata", "annotations", runAnnotation])).toBe(".metadata.annotations.autoimagemanager\\.io/run")
  expect(jsonPath(["status", "conditions", 0, "message"])).toBe(".status.conditions[0].message")
})
