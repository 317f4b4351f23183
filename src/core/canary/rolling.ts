import type { Canary, CanaryStatus, Phase, RollingState, Run } from "#api/v1alpha1/canary/index.ts"
import { endingOf } from "./decision.ts"
import { effective } from "./effective.ts"
import { isOfComponent } from "./provider.ts"
import { strategyOf, weightsOf } from "./steps.ts"

/** Where a rollout of OAM is, in the words of its RolloutPlan: a batch is a weight, and the last one is the promotion. */
export type Rolling = Pick<CanaryStatus, "rollingState" | "currentBatch">

const states: Readonly<Record<Phase, RollingState>> = {
  Initializing: "initializing",
  Initialized: "initializing",
  Waiting: "verifyingSpec",
  Progressing: "rollingInBatches",
  WaitingPromotion: "rollingInBatches",
  Promoting: "rollingInBatches",
  Finalising: "finalising",
  Succeeded: "rolloutSucceed",
  Failed: "rolloutFailed",
  Terminating: "rolloutDeleting",
}

/** Nothing for a Canary that is no trait of OAM. */
export function rollingOf(written: Canary, phase: Phase | undefined, run: Run | undefined): Rolling {
  const canary = effective(written)
  if (!isOfComponent(canary) || phase === undefined) return {}
  const result = run && phase !== "Terminating" ? endingOf(run) : undefined
  const onTheWay = result === "RolledBack" ? "rolloutFailing" : "rolloutAbandoning"
  return {
    rollingState: result ? onTheWay : states[phase],
    ...(run && { currentBatch: batchOf(canary, phase, run) }),
  }
}

/** From 0 on: the weight that the run is at or goes to; after all weights the promotion, which a plan counts to its last. */
function batchOf({ spec: { analysis, rolloutPlan } }: Canary, phase: Phase, run: Run): number {
  const weights = strategyOf(analysis) === "Weighted" ? weightsOf(analysis) : [100]
  if (phase === "Promoting" || phase === "Finalising") return weights.length - (rolloutPlan ? 1 : 0)
  const weight = run.next?.weight ?? run.weight
  return Math.max(
    0,
    weights.findLastIndex(each => each <= weight),
  )
}
