/** The fields of a Canary's analysis that say which way its traffic takes. */
export type Steps = {
  readonly stepWeight?: number | undefined
  readonly stepWeights?: readonly number[] | undefined
  readonly maxWeight?: number | undefined
  readonly stepWeightPromotion?: number | undefined
  readonly iterations?: number | undefined
  readonly match?: readonly unknown[] | undefined
  readonly mirror?: boolean | undefined
}

export type Strategy = "Weighted" | "HeaderOrCookie" | "BlueGreen"

/** Iterations decide: weights beside them have no effect, as in Flagger. */
export function strategyOf({ iterations = 0, match = [] }: Steps): Strategy {
  if (iterations <= 0) return "Weighted"
  return match.length > 0 ? "HeaderOrCookie" : "BlueGreen"
}

/** How far a run has come. A status carries it, so that the next process goes on from there. */
export type Position = {
  /** The share of requests that the new revision answers, in percent. Of matching requests, where requests are matched. */
  readonly weight: number
  /** How many iterations have passed. */
  readonly iterations: number
  /** Requests are also sent to the new revision, and its answers are dropped. */
  readonly isMirrored: boolean
}

export const beginning: Position = { weight: 0, iterations: 0, isMirrored: false }

/** Where the checks of this position lead when they have passed: to the next position, or to promotion. */
export function nextOf(steps: Steps, position: Position): Position | "promote" {
  return next[strategyOf(steps)](steps, position)
}

const next: Readonly<Record<Strategy, (steps: Steps, position: Position) => Position | "promote">> = {
  Weighted(steps, position) {
    if (steps.mirror && position.weight === 0 && !position.isMirrored) return { ...position, isMirrored: true }
    const weight = weightAfter(steps, position.weight)
    return weight === undefined ? "promote" : { ...position, weight, isMirrored: false }
  },
  /** Matching requests go to the new revision from the first iteration on. */
  HeaderOrCookie({ iterations = 0 }, position) {
    if (position.iterations >= iterations) return "promote"
    return { weight: 100, iterations: position.iterations + 1, isMirrored: false }
  },
  /** The new revision is tested beside the old one, then answers every request for one iteration, and is promoted. */
  BlueGreen({ iterations = 0, mirror = false }, position) {
    if (position.weight > 0) return "promote"
    const isLast = position.iterations >= iterations
    return { weight: isLast ? 100 : 0, iterations: position.iterations + 1, isMirrored: mirror && !isLast }
  },
}

/** The weights of a run in their order. The last step ends at the maximum, where Flagger goes beyond it. */
export function weightsOf({ stepWeights, stepWeight = 0, maxWeight = 100 }: Steps): readonly number[] {
  if (stepWeights && stepWeights.length > 0) return stepWeights
  if (stepWeight <= 0) return []
  const count = Math.ceil(maxWeight / stepWeight)
  return Array.from({ length: count }, (_, index) => Math.min(maxWeight, stepWeight * (index + 1)))
}

/** The smallest weight above the present one: a list that is edited during a run is never jumped over. */
const weightAfter = (steps: Steps, weight: number) => weightsOf(steps).find(each => each > weight)

/** The next weight of a promotion, which ends at 100. Without a step it is one jump. */
export const promotionAfter = ({ stepWeightPromotion = 0 }: Steps, weight: number): number =>
  stepWeightPromotion > 0 ? Math.min(100, weight + stepWeightPromotion) : 100

/** How many intervals a run takes at least, from the first check to promotion. */
export function leastIntervals(steps: Steps): number {
  const { iterations = 0, mirror = false } = steps
  const strategy = strategyOf(steps)
  if (strategy === "Weighted") return weightsOf(steps).length + (mirror ? 1 : 0)
  return strategy === "BlueGreen" ? iterations + 1 : iterations
}
