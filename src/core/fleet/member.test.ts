import { expect, test } from "vitest"
import { formatDecision } from "../image/record.ts"
import type { TargetObject } from "../workloads/object-facts.ts"
import { targetReader } from "../workloads/target-reader.ts"

/** An object that follows the ImageSpec contract. */
const contract = targetReader({ kind: "", image: { paths: ["spec.image"] }, health: "" })
const readMember = (object: TargetObject) => contract.read(object)

/** An object that is well, with the one difference that matters. */
const object = (fields: { metadata?: object; spec?: object; status?: object } = {}) => ({
  metadata: {
    name: "a",
    namespace: "n",
    uid: "u",
    resourceVersion: "7",
    generation: 2,
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...fields.metadata,
  },
  spec: { image: "shop/web:2", ...fields.spec },
  status: {
    observedGeneration: 2,
    conditions: [
      { type: "UpToDate", status: "True", observedGeneration: 2 },
      { type: "Deployed", status: "True", observedGeneration: 1 },
    ],
    ...fields.status,
  },
})
const upToDate = (fields: Parameters<typeof object>[0]) => readMember(object(fields)).isUpToDate

test("what is well reads as well", () => {
  expect(readMember(object())).toMatchObject({
    uid: "u",
    resourceVersion: "7",
    namespace: "n",
    image: "shop/web:2",
    isUpToDate: true,
    isDeployed: true,
    isUnmanaged: false,
    haltsOnFailure: false,
    isDeleting: false,
    decision: undefined,
    createdAt: Date.parse("2026-01-01T00:00:00Z"),
  })
})

test("UpToDate counts only when the status and the condition speak of the present generation", () => {
  const condition = (more: object) => ({ conditions: [{ type: "UpToDate", status: "True", ...more }] })
  expect(upToDate({ status: { observedGeneration: 1 } })).toBe(false)
  expect(upToDate({ status: { observedGeneration: undefined } })).toBe(false)
  expect(upToDate({ status: condition({ observedGeneration: 1 }) })).toBe(false)
  expect(upToDate({ status: condition({ status: "False", observedGeneration: 2 }) })).toBe(false)
  // A controller that does not date its conditions is judged by its status alone.
  expect(upToDate({ status: condition({}) })).toBe(true)
})

test("a missing or absurd status is not healthy, and nothing an owner writes makes it throw", () => {
  for (const status of [
    undefined,
    {},
    { conditions: "all well" },
    { conditions: [null, 7] },
    { observedGeneration: "2" },
  ])
    expect(readMember({ ...object(), status } as never)).toMatchObject({ isUpToDate: false })
  for (const spec of [undefined, {}, { image: 7, manuallySpecifiedImage: "yes", failureHaltsUpdate: 1 }])
    expect(readMember({ ...object(), spec } as never)).toMatchObject({
      image: "",
      isUnmanaged: false,
      haltsOnFailure: false,
    })
})

test("the decision beside the image is read if it is whole, and ignored otherwise", () => {
  const decision = {
    from: "a",
    to: "b",
    reason: "Stamped",
    operation: "g1",
    by: "serviceimage/web",
    at: 1_700_000_000_000,
  }
  const read = (text: unknown) =>
    readMember(object({ metadata: { annotations: { "autoimagemanager.io/last-decision": text } } })).decision
  expect(read(formatDecision(decision))).toEqual(decision)
  for (const odd of [
    "",
    "{",
    "null",
    "[]",
    '{"to":"b"}',
    JSON.stringify({ ...decision, at: "soon" }),
    7,
    "x".repeat(10_000),
  ])
    expect(read(odd)).toBeUndefined()
})
