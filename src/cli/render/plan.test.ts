import { expect, test } from "vitest"
import type { Planned } from "#explain/serviceimage/planned.ts"
import { planText } from "./plan.ts"

const tier = (name: string, more: object) => ({ name, image: "a:2", objects: 3, pods: 6, underWay: 0, ...more })

const stage = (tiers: object[], more: object = {}) => ({
  ...{ priority: 0, tiers, paceMs: 0, soakMs: 0, settleMs: 0, approvals: [], isActive: true, waits: [] },
  ...more,
})

function textOf(stages: object[], msAtLeast = 0): string {
  const planned = {
    ...{ name: "web", reason: "RollingOut", message: "m", progress: "", next: [], more: 0, warnings: [] },
    operation: { id: "g1", phase: "InProgress", images: {}, isNew: false, isPinnedLater: false },
    outlook: { stages, msAtLeast },
  } as unknown as Planned
  const view = { isTerminal: false, columns: 80, hasColor: false } as never
  return planText(planned, { view, now: 0, program: "aim" })
}

test("whether pods are updated in place or re-created is said for each tier", () => {
  const tiers = [
    tier("kept", { how: "InPlace", inPlace: 3 }),
    tier("mixed", { how: "Partly", inPlace: 2 }),
    tier("new", { how: "Recreate", inPlace: 0 }),
    tier("custom", { how: "Own", inPlace: 0 }),
  ]
  expect(textOf([stage(tiers)])).toContain(
    "tier kept: 3 to stamp (6 pods) in place; tier mixed: 3 to stamp (6 pods), 2 of them in place; tier new: 3 to stamp (6 pods), pods are re-created; tier custom: 3 to stamp (6 pods)\n",
  )
})

test("what a tier is judged by, how often, and what halts it", () => {
  const judged = { by: ["error-rate", "smoke"], interval: "1m", threshold: 3 }
  const text = textOf([stage([tier("early", { how: "Own", inPlace: 0, judged })], { soakMs: 60_000 })], 60_000)
  expect(text).toContain(
    "tier early: 3 to stamp (6 pods), judged every 1m by error-rate and smoke, 3 failed checks halt it; soaks and is judged for 1m in all",
  )
  expect(text).toContain("of soaking and judging")
  const once = textOf([stage([tier("early", { how: "Own", inPlace: 0, judged: { ...judged, threshold: 1 } })])])
  expect(once).toContain("1 failed check halts it")
})
