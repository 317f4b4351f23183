import { expect, test } from "vitest"
import { along, both, type Shape, shaped } from "./shape.ts"

const cases: Record<string, { shape: Shape; value: unknown; keeps: unknown }> = {
  "only what is named": { shape: { a: "value" }, value: { a: 1, b: 2 }, keeps: { a: 1 } },
  "of each element the same": {
    shape: { list: [{ name: "value" }] },
    value: { list: [{ name: "a", secret: 1 }, { secret: 2 }] },
    keeps: { list: [{ name: "a" }, {}] },
  },
  "no contents where a plain value is expected": {
    shape: { a: "value", b: "value" },
    value: { a: { secret: 1 }, b: [{ secret: 1 }] },
    keeps: { a: {}, b: [] },
  },
  "no contents where a list or an object is expected and the other is there": {
    shape: { a: ["value"], b: { c: "value" } },
    value: { a: { secret: 1 }, b: [{ secret: 1 }] },
    keeps: { a: {}, b: [] },
  },
  "what is plain though something else is expected": { shape: { a: { b: "value" } }, value: { a: 5 }, keeps: { a: 5 } },
  "nothing that the object did not have itself": {
    shape: Object.fromEntries([["constructor", "value" as const]]),
    value: {},
    keeps: {},
  },
  "every field that begins as a shape says, and what it names besides": {
    shape: both({ "tool.example.com/*": "value" }, { own: "value" }),
    value: { "tool.example.com/a": 1, "tool.example.com/b": { secret: 2 }, "tool.example.community": 3, own: 4 },
    keeps: { "tool.example.com/a": 1, "tool.example.com/b": {}, own: 4 },
  },
  "what either shape keeps": {
    shape: both(along(["spec", "a"], "value"), { spec: { b: "all" }, status: "all" }),
    value: { spec: { a: 1, b: { c: 2 }, d: 3 }, status: { e: 4 } },
    keeps: { spec: { a: 1, b: { c: 2 } }, status: { e: 4 } },
  },
}

for (const [name, { shape, value, keeps }] of Object.entries(cases))
  test(`keeps ${name}`, () => expect(shaped(value, shape)).toEqual(keeps))
