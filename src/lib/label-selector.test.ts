import { expect, test } from "vitest"
import { formatSelector, isEmptySelector, selects } from "./label-selector.ts"

const labels = { app: "web", tier: "early" }
const rule = (key: string, operator: string, ...values: string[]) => ({ matchExpressions: [{ key, operator, values }] })

test("no selector chooses nothing, an empty one everything", () => {
  expect([selects(undefined, labels), selects({}, labels), selects({}, undefined)]).toEqual([false, true, true])
  expect([
    isEmptySelector(undefined),
    isEmptySelector({ matchLabels: {} }),
    isEmptySelector({ matchLabels: { a: "b" } }),
  ]).toEqual([true, true, false])
})

test("labels must match exactly, all of them", () => {
  expect(selects({ matchLabels: { app: "web" } }, labels)).toBe(true)
  expect(selects({ matchLabels: { app: "web", tier: "late" } }, labels)).toBe(false)
  expect(selects({ matchLabels: { constructor: "x" } }, labels)).toBe(false)
})

test("each operator, for a label that is there and one that is not", () => {
  const answers = (...args: Parameters<typeof rule>) => selects(rule(...args), labels)
  expect(answers("tier", "In", "early", "late")).toBe(true)
  expect(answers("tier", "In", "late")).toBe(false)
  expect(answers("zone", "In", "a")).toBe(false)
  expect(answers("tier", "NotIn", "early")).toBe(false)
  expect(answers("zone", "NotIn", "a")).toBe(true)
  expect([answers("app", "Exists"), answers("zone", "Exists")]).toEqual([true, false])
  expect([answers("app", "DoesNotExist"), answers("zone", "DoesNotExist")]).toEqual([false, true])
})

test("a selector reads as kubectl takes it", () => {
  const matchExpressions = [
    { key: "tier", operator: "In", values: ["a", "b"] },
    { key: "zone", operator: "NotIn", values: ["c"] },
    { key: "app", operator: "Exists" },
    { key: "old", operator: "DoesNotExist" },
  ]
  expect(formatSelector({ matchLabels: { service: "dicom" }, matchExpressions })).toBe(
    "service=dicom,tier in (a,b),zone notin (c),app,!old",
  )
})
