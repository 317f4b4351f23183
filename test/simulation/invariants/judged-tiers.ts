import type { Json } from "#cluster-sim/index.ts"
import { isRollingBack, isTrue, keyOf, type Reading, tierOf } from "./reading.ts"

// S33 for ServiceImages, read from the statuses that were written and from the objects that were stamped.

/**
 * A step of a tier with an analysis is passed by a good round of its own, and never after as many failed checks as
 * threshold says. No object gets its image before the status says so.
 */
export function unjudgedSteps({ statuses, stamps }: Reading): string[] {
  const passed = statuses.flatMap(({ commit, serviceImage }) =>
    judgedTiers(serviceImage).flatMap(({ upgradeTier = "", analysis }) => {
      const [was, is] = [commit.before, serviceImage].map(each => statusOf(each, upgradeTier))
      // A tier that is only reopened was judged before, one without objects has nothing to judge unless it has failed, and
      // a rollback is not judged.
      if (!was?.step || !is || isReopened(was) || isRollingBack(serviceImage)) return []
      const hasFailed = was.analysis?.failedChecks >= analysis.threshold
      if (is.total === 0 && !hasFailed) return []
      if (!isSameImage(commit.before!, serviceImage, upgradeTier)) return []
      const isPassed = is.step?.percent > was.step.percent || (isComplete(is) && !isComplete(was))
      if (!isPassed) return []
      const { verdict, percent, failedChecks } = is.analysis ?? {}
      const isGood = verdict === "Good" && percent >= was.step.percent && failedChecks < analysis.threshold
      return isGood ? [] : [`tier ${upgradeTier} passed ${was.step.percent} % at ${commit.revision} with ${verdict}`]
    }),
  )
  const early = stamps.flatMap(({ source, commit, before, decision }) => {
    const tier = source && tierOf(source.serviceImage, before)
    const judged = tier && judgedTiers(source.serviceImage).find(each => (each.upgradeTier ?? "") === tier.upgradeTier)
    const { analysis } = (tier && statusOf(source.serviceImage, tier.upgradeTier)) ?? {}
    const isStopped = judged && decision.reason === "Stamped" && analysis?.failedChecks >= judged.analysis.threshold
    return isStopped ? [`${keyOf(commit.object)} at ${commit.revision}: its tier had failed`] : []
  })
  return [...passed, ...early]
}

/** A new operation for the sake of other tiers changes nothing for this one. */
const isSameImage = (before: Json, after: Json, tier: string): boolean => {
  const [was, is] = [before, after].map(({ status }) => status?.operation)
  const isTakenBack = ["RollingBack", "RolledBack"].includes(was?.phase)
  return was?.id === is?.id || (!isTakenBack && was?.images?.[tier] === is?.images?.[tier])
}

const judgedTiers = ({ spec }: Json): Json[] => (spec.tiers ?? []).filter(({ analysis }: Json) => analysis)
const statusOf = (serviceImage: Json | undefined, name: string): Json | undefined =>
  serviceImage?.status?.tierStatus?.find(({ upgradeTier = "" }: Json) => upgradeTier === name)
const isComplete = (tier: Json) => isTrue(tier, "Complete")
const isReopened = ({ conditions }: Json) => conditions.some(({ reason }: Json) => reason === "TierReopened")
