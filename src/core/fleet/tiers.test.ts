import { describe, expect, test } from "vitest"
import { ServiceImage, type ServiceImageSpecInput } from "#api/v1alpha1/serviceimage/index.ts"
import { budgetOf, countOf, effectiveTiers } from "./tiers.ts"

const tiersOf = (spec: Partial<ServiceImageSpecInput>) =>
  effectiveTiers(
    ServiceImage.spec.parse({ target: { apiVersion: "a.b/v1", kind: "C" }, defaultImage: "web:1", ...spec }),
  )
const stepsOf = (steps: { percent: number; soakSeconds?: number }[] | undefined) =>
  tiersOf({ tiers: [{ upgradeTier: "", steps }] })[0]!.steps

describe("steps", () => {
  const all = { percent: 100, soakMs: 0 }
  const cases: Record<string, { given: Parameters<typeof stepsOf>[0]; steps: object[] }> = {
    "none is all at once": { given: undefined, steps: [all] },
    "an empty list too": { given: [], steps: [all] },
    "a last one below 100 is followed by all": { given: [{ percent: 5 }], steps: [{ percent: 5, soakMs: 0 }, all] },
    "100 stands for itself, with its soak": {
      given: [{ percent: 5, soakSeconds: 1 }, { percent: 100, soakSeconds: 2 }],
      steps: [{ percent: 5, soakMs: 1000 }, { percent: 100, soakMs: 2000 }],
    },
  } // biome-ignore format: rows
  for (const [name, { given, steps }] of Object.entries(cases)) test(name, () => expect(stepsOf(given)).toEqual(steps))
})

test("tiers go by priority, then by name; the default image comes last, and not below the least number", () => {
  const order = (spec: Partial<ServiceImageSpecInput>) =>
    tiersOf(spec).map(({ name, priority }) => `${name} ${priority}`)
  expect(order({ tiers: [{ upgradeTier: "b" }, { upgradeTier: "c", priority: 9 }, { upgradeTier: "a" }] })).toEqual(["c 9", "a 0", "b 0", " -1"]) // biome-ignore format: a row
  expect(order({ tiers: [] })).toEqual([" 0"])
  const least = -(2 ** 31)
  expect(order({ tiers: [{ upgradeTier: "a", priority: least }] })).toEqual([` ${least}`, `a ${least}`])
})

test("shares round down to at least one; budgets round up, and may be none", () => {
  expect([countOf("10%", 25), countOf("10%", 5), countOf("100%", 7), countOf(3, 1), countOf("10%", 0)]).toEqual([2, 1, 7, 3, 1]) // biome-ignore format: a row
  expect([budgetOf("10%", 25), budgetOf("10%", 5), budgetOf("0%", 7), budgetOf(0, 9), budgetOf("1%", 0)]).toEqual([3, 1, 0, 0, 0]) // biome-ignore format: a row
})
