import type { ServiceImageSpec, Tier } from "#api/v1alpha1/serviceimage/index.ts"

/** A tier with its image resolved. */
export type EffectiveTier = Pick<Tier, "maxConcurrent" | "progressDeadlineSeconds"> & {
  name: string
  image: string
  priority: number
}

const lowestPriority = -(2 ** 31)

/**
 * The tiers as they are worked, the highest priority first. Without a tier "" the default image takes its place, last:
 * an object whose label names no tier must not be left out in silence.
 */
export function effectiveTiers({
  tiers,
  defaultImage,
}: Pick<ServiceImageSpec, "tiers" | "defaultImage">): EffectiveTier[] {
  const list: EffectiveTier[] = tiers.map(({ upgradeTier, image, ...tier }) => ({
    ...tier,
    name: upgradeTier,
    image: image || defaultImage,
  }))
  if (defaultImage && !list.some(tier => tier.name === "")) {
    const last = list.length > 0 ? Math.min(...list.map(tier => tier.priority)) - 1 : 0
    const priority = Math.max(last, lowestPriority)
    list.push({ name: "", image: defaultImage, priority, progressDeadlineSeconds: 600 })
  }
  return list.sort((a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1))
}

/** A number, or a share of `total` rounded down, at least 1: a share must not stop everything by rounding to nothing. */
export function countOf(value: number | string, total: number): number {
  if (typeof value === "number") return value
  return Math.max(1, Math.floor((Number.parseInt(value, 10) * total) / 100))
}
