import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { isStandaloneRatio, ratioFor } from "./ratio.ts"
import { sizeFor } from "./size.ts"
import { strategyOf } from "./steps.ts"
import { sharedSize, sharesPods } from "./targets/shared.ts"

/** How many pods the new revision needs for this share of the requests, beside `full` pods of the one that runs. */
export function targetSizeAt(canary: Canary, weight: number, full: number): number {
  const { analysis, canaryReplicas } = canary.spec
  if (sharesPods(canary)) return sharedSize({ strategy: strategyOf(analysis), weight, full, canaryReplicas })
  if (isStandaloneRatio(canary) && weight < 100) return ratioFor(weight, full).target
  return sizeFor({ strategy: strategyOf(analysis), weight, full, canaryReplicas })
}
