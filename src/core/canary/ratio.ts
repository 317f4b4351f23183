import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { providerOf } from "./provider.ts"
import type { RouteProblem } from "./router.ts"
import { strategyOf, weightsOf } from "./steps.ts"
import { sharedSize, sharesPods } from "./targets/shared.ts"

/** How many pods of the target express a weight where no router divides the requests. */
export type Ratio = {
  readonly target: number
  /** The share of the target's pods among all, in percent. */
  readonly weight: number
}

/** Requests are divided by the number of pods: no mesh and no gateway, and weights that rise. */
export const isStandaloneRatio = (canary: Canary): boolean =>
  providerOf(canary) === "kubernetes" && strategyOf(canary.spec.analysis) === "Weighted"

/** With as many pods as the source, the target has half of the requests. More would need a source that shrinks. */
export const ratioMost = 50

const ratioOf = (target: number, source: number): Ratio => ({ target, weight: (100 * target) / (source + target) })

/**
 * The nearest ratio beside `source` pods, none of which goes before promotion: every request has a pod of the revision
 * that runs until the new one has proven good. At 100 the Service selects the target alone, which then has its full size.
 */
export function ratioFor(weight: number, source: number): Ratio {
  if (weight <= 0 || source <= 0) return { target: 0, weight: 0 }
  if (weight >= 100) return { target: source, weight: 100 }
  const exact = (source * weight) / (100 - weight)
  const near = [Math.floor(exact), Math.ceil(exact)].map(target => ratioOf(clamp(target, source), source))
  // The first of equals has the fewest pods.
  return near.toSorted((a, b) => Math.abs(a.weight - weight) - Math.abs(b.weight - weight))[0]!
}

const clamp = (target: number, source: number) => Math.min(source, Math.max(1, target))

/** By how many points the share of pods may differ from the weight that was asked for. */
const tolerance = 5

const isPossible = (weight: number, source: number) => Math.abs(ratioFor(weight, source).weight - weight) <= tolerance

const shown = (weight: number) => String(Math.round(10 * weight) / 10)

/**
 * The first weight that so many pods cannot express, with the nearest that they can; undefined where all are possible. A
 * workload without pods is not judged.
 */
export function ratioProblem(canary: Canary, source: number): RouteProblem | undefined {
  if (!isStandaloneRatio(canary) || source <= 0) return undefined
  if (sharesPods(canary)) return sharedProblem(canary, source)
  const { analysis } = canary.spec
  const field = analysis.stepWeights ? "analysis.stepWeights" : "analysis.stepWeight"
  const weight = weightsOf(analysis).find(each => !isPossible(each, source))
  if (weight === undefined) return undefined
  const nearest = ratioFor(weight, source)
  const why =
    weight > ratioMost
      ? `the running revision keeps its pods until promotion, so a weight above ${ratioMost} is not possible by a number of pods`
      : `beside ${podsOf(source)} of the running revision, no number of pods gives ${weight} % of the requests`
  const fewest = Math.ceil((100 - weight - tolerance) / (weight + tolerance))
  const more = weight > ratioMost ? "" : `, or ${podsOf(fewest)}`
  return {
    reason: "WeightNotPossible",
    field,
    message: `${why}; the nearest is ${shown(nearest.weight)} % with ${podsOf(nearest.target)}: write that in stepWeights${more}, or use a gateway (service.gatewayRefs)`,
  }
}

/** Pods that replace one another: so many of all of them. */
function sharedProblem(canary: Canary, full: number): RouteProblem | undefined {
  const { analysis, targetRef } = canary.spec
  const nearest = (weight: number) => sharedSize({ strategy: "Weighted", weight, full })
  const share = (weight: number) => (100 * nearest(weight)) / full
  const weight = weightsOf(analysis).find(each => each < 100 && Math.abs(share(each) - each) > tolerance)
  if (weight === undefined) return undefined
  return {
    reason: "WeightNotPossible",
    field: analysis.stepWeights ? "analysis.stepWeights" : "analysis.stepWeight",
    message: `no number of the ${podsOf(full)} of ${targetRef.kind} ${targetRef.name} gives ${weight} % of the requests; the nearest is ${shown(share(weight))} % with ${podsOf(nearest(weight))}: write that in stepWeights, or use a gateway (service.gatewayRefs)`,
  }
}

const podsOf = (count: number) => (count === 1 ? "1 pod" : `${count} pods`)
