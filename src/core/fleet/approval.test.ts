import { expect, test } from "vitest"
import { maxTiers } from "#api/v1alpha1/serviceimage/index.ts"
import { approve, formatApproval, parseApproval } from "./approval.ts"

test("what is written is read, also with as many tiers as there can be", () => {
  const tiers = Array.from({ length: maxTiers }, (_, i) => `${i}`.padStart(63, "t"))
  for (const approval of [
    { operation: "g5", tiers: ["early", ""] },
    { operation: "g".repeat(32), tiers },
  ])
    expect(parseApproval(formatApproval(approval))).toEqual(approval)
})

for (const text of [undefined, "", "g5", "null", "[]", '{"operation":"g5"}', '{"operation":5,"tiers":[]}'])
  test(`${text} approves nothing`, () => expect(parseApproval(text)).toBeUndefined())
for (const tiers of ["early", [1], [null], { 0: "early" }])
  test(`tiers ${JSON.stringify(tiers)} approve nothing`, () =>
    expect(parseApproval(JSON.stringify({ operation: "g5", tiers }))).toBeUndefined())
test("what is too long is not even read", () =>
  expect(parseApproval(`{"operation":"g5","tiers":[]${" ".repeat(10_000)}}`)).toBeUndefined())

test("approvals add up within an operation, once each, and end with it", () => {
  const first = approve(undefined, { operation: "g5", tiers: ["early"] })
  expect(approve(first, { operation: "g5", tiers: ["", "early"] })).toEqual({ operation: "g5", tiers: ["early", ""] })
  expect(approve(first, { operation: "g6", tiers: [""] })).toEqual({ operation: "g6", tiers: [""] })
})
