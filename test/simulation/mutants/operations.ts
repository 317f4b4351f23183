import type { Mutant } from "./mutants.ts"

const controller = "src/controllers/serviceimage"

const edit = (file: string, find: string, replace: string, says: string): Mutant => ({
  file,
  edits: [{ find, replace }],
  tests: "test/simulation/operations/serviceimage",
  caughtBy: "random operations",
  says,
})

/** Mistakes in what a spec promises, each of which random operations have to find, by the rule that it breaks. */
export const operationMutants: Record<string, Mutant> = {
  "every priority at once": edit(
    `${controller}/plan.ts`,
    "return unfinished.filter(tier => tier.priority === unfinished[0]?.priority)",
    "return unfinished",
    "priority:",
  ),
  "one more at once than maxConcurrent": edit(
    `${controller}/stamps.ts`,
    "countOf(maxConcurrent, view.total) - view.underWay",
    "countOf(maxConcurrent, view.total) + 1 - view.underWay",
    "maxConcurrent:",
  ),
  "a share of maxConcurrent that is rounded up": edit(
    "src/core/fleet/tiers.ts",
    "Math.max(1, Math.floor(share(value, total)))",
    "Math.ceil(share(value, total))",
    "maxConcurrent:",
  ),
  "half a soak": edit(`${controller}/judge.ts`, "upToDateAt + soakMs", "upToDateAt + soakMs / 2", "soak:"),
  "a soak that goes on over a break": edit(
    `${controller}/judge.ts`,
    "upToDateAt: isSeenAnew ? since : undefined",
    "upToDateAt: since",
    "soak:",
  ),
  "an object that is done at once": edit(
    "src/core/fleet/judge-object.ts",
    "standing.isSteady = isWell && (isProven || due <= this.now)",
    "standing.isSteady = isWell",
    "has not settled",
  ),
  "half a settling": edit(
    `${controller}/observe.ts`,
    "isRollback ? 0 : settleSeconds * 1000",
    "isRollback ? 0 : settleSeconds * 500",
    "has not settled",
  ),
  "a pace that counts objects": edit(
    "src/core/fleet/pace.ts",
    "pods: pace.pods - pods",
    "pods: pace.pods - Math.min(1, pods)",
    "pace:",
  ),
  "a pace that begins anew with every look": edit(
    `${controller}/memory.ts`,
    "memory.pace = refill(memory.pace, pace.podsPerSecond, now)",
    "memory.pace = refill(undefined, pace.podsPerSecond, now)",
    "pace:",
  ),
  "an approval that counts for every operation": edit(
    `${controller}/judge.ts`,
    "approval?.operation === operation.id ? approval.tiers : []",
    "approval?.tiers ?? []",
    "approval:",
  ),
  "an approval that counts for every tier": edit(
    `${controller}/judge.ts`,
    "!approved.includes(tier.name)",
    "approved.length === 0",
    "approval:",
  ),
}
