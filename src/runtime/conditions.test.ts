import { describe, expect, test } from "vitest"
import { type Condition, conditionOf, setCondition, setConditions } from "./conditions.ts"

const noon = Date.UTC(2026, 0, 1, 12)
const ready: Condition = {
  type: "Ready",
  status: "True",
  reason: "UpToDate",
  message: "3 pods",
  observedGeneration: 4,
  lastTransitionTime: "2025-12-31T00:00:00Z",
}
const { lastTransitionTime: _, ...readyAgain } = ready

describe("setting a condition", () => {
  const cases: Record<string, { given: Condition[]; set: Omit<Condition, "lastTransitionTime">; since: string }> = {
    "a new one begins now": { given: [], set: readyAgain, since: "2026-01-01T12:00:00Z" },
    "the same again keeps its time": { given: [ready], set: readyAgain, since: "2025-12-31T00:00:00Z" },
    "new words keep the time": {
      given: [ready],
      set: { ...readyAgain, reason: "Other", message: "4 pods", observedGeneration: 5 },
      since: "2025-12-31T00:00:00Z",
    },
    "another status moves it": {
      given: [ready],
      set: { ...readyAgain, status: "False" },
      since: "2026-01-01T12:00:00Z",
    },
    "so does Unknown": { given: [ready], set: { ...readyAgain, status: "Unknown" }, since: "2026-01-01T12:00:00Z" },
  }
  for (const [name, { given, set, since }] of Object.entries(cases)) {
    test(name, () => {
      const before = structuredClone(given)
      expect(setCondition(given, set, noon)).toEqual([{ ...set, lastTransitionTime: since }])
      expect(given).toEqual(before)
    })
  }

  test("the list is sorted by type and holds each once", () => {
    const list = setConditions(
      [ready],
      ["Stalled", "Complete", "Ready"].map(type => ({ ...readyAgain, type })),
      noon,
    )
    expect(list.map(({ type }) => type)).toEqual(["Complete", "Ready", "Stalled"])
    expect(setConditions(undefined, [readyAgain], noon)).toHaveLength(1)
  })

  test("a message fits the API server", () => {
    const [condition] = setCondition([], { ...readyAgain, message: "x".repeat(40_000) }, noon)
    expect(condition!.message).toHaveLength(32_768)
  })
})

test("a condition is found by its type", () => {
  expect(conditionOf([ready], "Ready")).toBe(ready)
  expect(conditionOf([ready], "Stalled")).toBeUndefined()
  expect(conditionOf(undefined, "Ready")).toBeUndefined()
})
