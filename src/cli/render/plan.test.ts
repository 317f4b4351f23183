import { expect, test } from "vitest"
import type { Planned } from "../commands/plan.ts"
import { planText } from "./plan.ts"

const tier = (name: string, more: object) => ({ name, image: "a:2", objects: 3, pods: 6, underWay: 0, ...more })

test("whether pods are updated in place or re-created is said for each tier", () => {
  const tiers = [
    tier("kept", { how: "InPlace", inPlace: 3 }),
    tier("mixed", { how: "Partly", inPlace: 2 }),
    tier("new", { how: "Recreate", inPlace: 0 }),
    tier("custom", { how: "Own", inPlace: 0 }),
  ]
  const stage = { priority: 0, tiers, paceMs: 0, soakMs: 0, settleMs: 0, approvals: [], isActive: true, waits: [] }
  const planned = {
    ...{ name: "web", reason: "RollingOut", message: "m", progress: "", next: [], more: 0, warnings: [] },
    operation: { id: "g1", phase: "InProgress", images: {}, isNew: false, isPinnedLater: false },
    outlook: { stages: [stage], msAtLeast: 0 },
  } as unknown as Planned
  const view = { isTerminal: false, columns: 80, hasColor: false } as never
  expect(planText(planned, { view, now: 0, program: "aim" })).toContain(
    "tier kept: 3 to stamp (6 pods) in place; tier mixed: 3 to stamp (6 pods), 2 of them in place; tier new: 3 to stamp (6 pods), pods are re-created; tier custom: 3 to stamp (6 pods)\n",
  )
})
