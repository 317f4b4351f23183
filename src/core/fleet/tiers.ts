import type { ServiceImageSpec, Tier } from "#api/v1alpha1/serviceimage/index.ts"

/** A tier with its image and its steps resolved. */
export type EffectiveTier = Pick<
  Tier,
  | "maxConcurrent"
  | "progressDeadlineSeconds"
  | "settleSeconds"
  | "failureBudget"
  | "requireApproval"
  | "updateStrategy"
  | "analysis"
> & {
  name: string
  image: string
  priority: number
  /** At least one, the last one for all. */
  steps: readonly EffectiveStep[]
}

export type EffectiveStep = { percent: number; soakMs: number }

const lowestPriority = -(2 ** 31)
const allAtOnce: readonly EffectiveStep[] = [{ percent: 100, soakMs: 0 }]

/**
 * The tiers in the order of the rollout, the highest priority first. Without a tier "" the default image takes its
 * place, last: an object whose label names no tier must not be left out silently.
 */
export function effectiveTiers({
  tiers,
  defaultImage,
}: Pick<ServiceImageSpec, "tiers" | "defaultImage">): EffectiveTier[] {
  const list: EffectiveTier[] = tiers.map(({ upgradeTier, image, steps, ...tier }) => ({
    ...tier,
    name: upgradeTier,
    image: image || defaultImage,
    steps: effectiveSteps(steps),
  }))
  if (defaultImage && !list.some(tier => tier.name === "")) {
    const last = list.length > 0 ? Math.min(...list.map(tier => tier.priority)) - 1 : 0
    const priority = Math.max(last, lowestPriority)
    const rest = { progressDeadlineSeconds: 600, settleSeconds: 10, requireApproval: false, steps: allAtOnce }
    list.push({ name: "", image: defaultImage, priority, ...rest })
  }
  return list.sort((a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1))
}

function effectiveSteps(steps: Tier["steps"]): readonly EffectiveStep[] {
  const list = (steps ?? []).map(({ percent, soakSeconds }) => ({ percent, soakMs: soakSeconds * 1000 }))
  return list.at(-1)?.percent === 100 ? list : [...list, ...allAtOnce]
}

/** A number, or a share of `total` rounded down, at least 1: rounding to 0 would stop everything. */
export const countOf = (value: number | string, total: number): number =>
  typeof value === "number" ? value : Math.max(1, Math.floor(share(value, total)))

/** A number, or a share of `total` rounded up: a budget that allows some failures allows at least one. */
export const budgetOf = (value: number | string, total: number): number =>
  typeof value === "number" ? value : Math.ceil(share(value, total))

const share = (percent: string, total: number) => (Number.parseInt(percent, 10) * total) / 100
