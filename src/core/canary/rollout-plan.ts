import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { planHooks } from "#api/v1alpha1/canary/rollout-plan.ts"
import type { Problem } from "./sight.ts"
import { weightsOf } from "./steps.ts"

/**
 * OAM's plan of a rollout, as steps of a Canary. A batch is a weight, and the last one has all requests. It is judged as
 * the others are, and the promotion then takes the pods of the workload before.
 */

type Plan = NonNullable<Canary["spec"]["rolloutPlan"]>
type Batch = NonNullable<Plan["rolloutBatches"]>[number]

const percentOf = ({ replicas }: Batch): number | undefined =>
  typeof replicas === "string" ? Number(replicas.slice(0, -1)) : undefined

const podsOf = ({ replicas }: Batch): number => (typeof replicas === "number" ? replicas : 0)

/** All pods that the batches are about, where they say so. */
function totalOf({ targetSize, rolloutBatches = [] }: Plan): number | undefined {
  const isCounted = rolloutBatches.every(batch => percentOf(batch) === undefined)
  return targetSize ?? (isCounted ? rolloutBatches.reduce((sum, batch) => sum + podsOf(batch), 0) : undefined)
}

/** How much of all pods is new after each batch but the last, in percent. */
function sharesOf(plan: Plan): readonly number[] {
  const { numBatches = 1, rolloutBatches } = plan
  if (!rolloutBatches) return Array.from({ length: numBatches - 1 }, (_, index) => (100 * (index + 1)) / numBatches)
  const total = totalOf(plan) || 1
  let sum = 0
  return rolloutBatches.slice(0, -1).map(batch => {
    sum += percentOf(batch) ?? (100 * podsOf(batch)) / total
    return sum
  })
}

/** Rounded down: two of three pods are 66 %, and 66 % of three are two pods. A batch that adds nothing is none. */
function batchWeights(plan: Plan): number[] {
  const weights = sharesOf(plan).map(share => Math.min(99, Math.max(1, Math.floor(Number(share.toFixed(6))))))
  return [...new Set([...weights, 100])]
}

/** The spec as its plan says: nothing else has to ask. */
export function planned(canary: Canary): Canary {
  const { rolloutPlan: plan, analysis } = canary.spec
  if (!plan) return canary
  const metrics = plan.canaryMetric.map(({ metricsRange: thresholdRange, ...metric }) => ({
    ...metric,
    thresholdRange,
  }))
  const webhooks = plan.rolloutWebhooks.map(({ type, name, url, metadata }) => ({
    ...{ type: planHooks[type], name, url, metadata },
    ...({ timeout: "10s", retries: 0, disableTLS: false, muteAlert: false, onDeadline: "Fail" } as const),
  }))
  return {
    ...canary,
    spec: {
      ...canary.spec,
      suspend: canary.spec.suspend || plan.paused,
      analysis: {
        ...analysis,
        stepWeights: batchWeights(plan),
        metrics: [...analysis.metrics, ...metrics],
        webhooks: [...analysis.webhooks, ...webhooks],
      },
    },
  }
}

/** Why the next weight waits, where the plan lets no further batch begin. */
export function partitionHold({ spec: { rolloutPlan, analysis } }: Canary, weight: number): string | undefined {
  const last = rolloutPlan?.batchPartition
  const batch = weightsOf(analysis).indexOf(weight)
  if (last === undefined || batch <= last) return undefined
  return `batch ${last} is done, and rolloutPlan.batchPartition lets no other begin: write ${batch} for the next one`
}

export type PlanProblem = Problem & { readonly field: string }

/** What is wrong with the batches of a plan. */
export function planProblem({ spec: { rolloutPlan: plan } }: Canary): PlanProblem | undefined {
  const batches = plan?.rolloutBatches
  if (!plan || !batches) return undefined
  const field = "rolloutPlan.rolloutBatches"
  const invalid = (message: string): PlanProblem => ({
    ...{ reason: "InvalidSpec", field },
    message: `${field}: ${message}`,
  })
  const total = totalOf(plan)
  if (total === undefined && batches.slice(0, -1).some(batch => percentOf(batch) === undefined))
    return invalid("numbers of pods beside percentages need rolloutPlan.targetSize: write it, or percentages only")
  if ((sharesOf(plan).at(-1) ?? 0) >= 100)
    return invalid("nothing is left for the last batch: write smaller ones before it")
  const isCounted = batches.every(batch => percentOf(batch) === undefined)
  const sum = batches.reduce((all, batch) => all + podsOf(batch), 0)
  if (isCounted && sum !== total)
    return invalid(`they have ${sum} pods, and rolloutPlan.targetSize is ${total}: write batches that come to it`)
  return undefined
}

/** A rollout never makes a component smaller. */
export const tooSmall = (targetSize: number, source: string, size: number): Problem => ({
  reason: "InvalidSpec",
  message: `rolloutPlan.targetSize: ${targetSize} is less than the ${size} pods of ${source}: write at least ${size}, or scale ${source} first`,
})
