import { expect, test } from "vitest"
import { formatDecision, type ImageRecord, parseDecision } from "./record.ts"

const decision: ImageRecord = {
  from: "a.example/app:1",
  to: "b.example/app:1",
  reason: "Unreachable",
  operation: "incident-1",
  by: "alternateimagesource/demo",
  at: Date.UTC(2026, 0, 1),
}

test("what was written is read again", () => {
  const whole = { ...decision, was: { app: "a.example/app:1" }, tier: "early" }
  expect(parseDecision(formatDecision(whole))).toEqual(whole)
})

test("names of containers are names, whatever else they mean to JavaScript", () => {
  const parsed = parseDecision(formatDecision({ ...decision, was: { app: "a.example/app:1" } }))
  for (const name of ["constructor", "toString", "__proto__"]) expect(parsed?.was?.[name]).toBeUndefined()
  const named = parseDecision(`{"was":{"__proto__":"x","constructor":"y"},${formatDecision(decision).slice(1)}`)
  expect(Object.entries(named?.was ?? {})).toEqual([
    ["__proto__", "x"],
    ["constructor", "y"],
  ])
  expect(parseDecision(formatDecision(named!))).toEqual(named)
})

test("a time far from ours makes it none", () => {
  expect(parseDecision(JSON.stringify({ ...decision, at: "+012345-01-01T00:00:00Z" }))).toBeUndefined()
})
