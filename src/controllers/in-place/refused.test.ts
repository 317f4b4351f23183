import { expect, test } from "vitest"
import type { Memory } from "./observe.ts"
import type { Action } from "./plan.ts"
import { allowedBeside } from "./refused.ts"

const held = { message: "pods are forbidden" }
const of = (what: string): Memory["refusal"] => ({ operation: "1-x", reason: "Forbidden", ...held, what })
const actions = {
  note: { do: "note" },
  release: { do: "release" },
  undrain: { do: "pod", write: { do: "undrain" } },
  patch: { do: "pod", write: { do: "patch" } },
} as unknown as Record<string, Action>

const cases: [string, Memory["refusal"], boolean, string[] | undefined][] = [
  ["a refusal about another target counts no more", of("patch"), false, undefined],
  ["a write to the workload was refused: nothing is written", undefined, true, []],
  ["pods cannot be changed: it is noted, and drained ones serve", of("patch"), true, ["note", "undrain"]],
  ["pods cannot be drained: it is noted", of("drain"), true, ["note"]],
  ["another write was refused since", { ...of("patch")!, message: "another" }, true, []],
]

test.each(cases)("%s", (_, refusal, isSameTarget, expected) => {
  const allows = allowedBeside(held, refusal, isSameTarget)
  expect(allows && Object.keys(actions).filter(name => allows(actions[name]!))).toEqual(expected)
})
