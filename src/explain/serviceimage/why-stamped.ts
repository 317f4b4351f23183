import { manuallySpecifiedImageAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import type { Proof } from "#core/canary/proof.ts"
import { budgetOf } from "#core/fleet/tiers.ts"
import type { Crash } from "#core/pods/steady.ts"
import { crashOf, diagnose } from "#core/pods/trace.ts"
import { formatDuration } from "#lib/duration.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Surveyed } from "./survey.ts"
import { capital, type Known, place, type Said, si } from "./why-words.ts"

// The words about an object that needs no stamp: it keeps its own image, or has the image that it must have.

export function unmanaged({ standing, title, member, asked, rollout }: Known): Said {
  const isAnnotated = asked.object.metadata.annotations?.[manuallySpecifiedImageAnnotation] === "true"
  const by = isAnnotated ? `annotation ${manuallySpecifiedImageAnnotation}` : "field spec.manuallySpecifiedImage"
  return {
    reason: "Unmanaged",
    sentences: [
      `${title} keeps ${member.image || "no image"}: its ${by} is true, so ${si(rollout)} leaves its image alone.`,
      `Without that it would get ${standing.wanted}.`,
    ],
  }
}

export function upToDate({ standing, title, member, rollout, tier }: Known): Said {
  const { decision } = member
  const isOurs = decision?.by === `serviceimage/${rollout.serviceImage.metadata.name}`
  return {
    reason: "UpToDate",
    since: isOurs ? decision.at : undefined,
    sentences: [
      `${title} has ${standing.wanted}, as ${si(rollout)} wants it, and every pod runs it; ${place(tier, standing, member)}.`,
      ...(standing.lost
        ? [`${standing.lost} of its pods on nodes that no longer answer may still run another image.`]
        : []),
    ],
  }
}

/** It is up to date, and has yet to settle. */
export function settling({ standing, title, member, rollout, tier, fleet, asked, now }: Known): Said {
  const crash = crashOf(fleet.traceOf(asked.key), standing.wanted)
  const left = (standing.settlesAt ?? now) - now
  const when = Number.isFinite(left) ? `in ${formatDuration(Math.max(1000, left))}` : "a little later"
  return {
    reason: "Settling",
    since: standing.wellAt !== undefined && Number.isFinite(standing.wellAt) ? standing.wellAt || undefined : undefined,
    sentences: [
      `${title} has ${standing.wanted} from ${si(rollout)} and is up to date (${place(tier, standing, member)}).`,
      ...(crash ? [`${capital(crashWords(crash))}; the time has begun anew since.`] : []),
      `It counts as done ${when}, when it has been up to date for ${formatDuration(tier.settleSeconds * 1000)} without a break (settleSeconds).`,
    ],
  }
}

const crashWords = ({ message, said }: Crash) => (said === "" ? message : `${message}: ${said}`)

/** It has the image, and its pods are not ready yet, or never will be. */
export function waiting(known: Known): Said {
  const { standing, title, member, fleet, asked, tier, rollout, now } = known
  const { proof } = standing
  if (proof && (proof.state !== "AtRest" || standing.isFailed)) return proving(known, proof)
  const deadline = standing.deadline!
  const halt = rollout.plan.active.find(each => each.halt)?.halt
  const since = deadline - tier.view.rule.deadlineMs
  const trace = fleet.traceOf(asked.key)
  const found = diagnose(trace, standing.wanted)
  const blocked = member.inPlace?.blocked
  const cause = member.healthProblem
    ? ` Its health cannot be told: ${member.healthProblem}.`
    : blocked
      ? ` It is updated in place. ${blocked.reason}: ${blocked.message}.`
      : found
        ? ` ${found.reason}: ${found.reason === "CrashLoop" ? crashWords(crashOf(trace, standing.wanted)!) : found.message}.`
        : ""
  const [had, isNot] =
    standing.lapsedAt === since ? [", was up to date until", "is not now"] : [" since", "is not up to date"]
  const first = `${title} has ${standing.wanted} from ${si(rollout)}${had} ${formatInstant(since)} (${place(tier, standing, member)}), and ${isNot}.${cause}`
  if (!standing.isCounted)
    return {
      reason: found && !found.isTentative ? found.reason : "WaitingForHealth",
      since,
      sentences: [first, "It was created after the rollout started, and does not count before it was available once."],
    }
  if (tier.isComplete)
    return {
      reason: "Regressed",
      since,
      sentences: [
        first,
        tier.isRegressed && rollout.plan.active.includes(tier)
          ? "Its tier was complete before. Tiers of a lower priority wait until it is up to date again, or has failed."
          : "The rollout was complete before and does not wait for it; Ready is False until it is up to date again.",
      ],
    }
  if (standing.isEarly)
    return {
      reason: member.haltsOnFailure ? "FailureHaltsUpdate" : (blocked?.reason ?? "CrashLoop"),
      since,
      sentences: [
        first,
        blocked
          ? "An update in place that has failed does not wait for the deadline: no other pod is touched until another image is set."
          : `A crash loop does not wait for the deadline: it counts as failed until it has been up to date for ${formatDuration(tier.settleSeconds * 1000)}.`,
        ...(halt ? [`The rollout has halted: ${halt.message}.`] : []),
      ],
    }
  if (!standing.isFailed)
    return {
      reason: blocked?.reason ?? (found && !found.isTentative ? found.reason : "WaitingForHealth"),
      since,
      sentences: [
        first,
        ...(halt ? [`The rollout has halted: ${halt.message}.`] : []),
        `It has until ${formatInstant(deadline)} (${formatDuration(Math.max(0, deadline - now))} left); then it counts as failed${afterFailing(known)}.`,
      ],
    }
  const late = `Its time was up at ${formatInstant(deadline)}`
  return {
    reason: member.haltsOnFailure ? "FailureHaltsUpdate" : "IgnoredFailure",
    since: deadline,
    sentences: [
      first,
      member.haltsOnFailure
        ? `${late}, and it says failureHaltsUpdate: no object after it is touched until it is up to date or another image is set.`
        : `${late}; it counts as ${standing.trouble ?? "Timeout"}${halt ? `. The rollout has halted: ${halt.message}` : goesOn(known.rollout) ? " and the rollout goes on without it" : ""}. It is counted in as soon as it is up to date.`,
    ],
  }
}

/** A Canary proves the image, or has rejected it, or needs a person. */
function proving(known: Known, proof: Proof): Said {
  const { standing, title, member, tier, rollout, now } = known
  const halt = rollout.plan.active.find(each => each.halt)?.halt
  const stamped = member.decision?.at
  const first = `${title} has ${standing.wanted} from ${si(rollout)}${stamped ? ` since ${formatInstant(stamped)}` : ""} (${place(tier, standing, member)}), and a Canary proves its changes. ${proof.message}.`
  const left = standing.deadline === undefined ? 0 : Math.max(0, standing.deadline - now)
  const then = standing.isEarly
    ? "A rejected image does not wait for the deadline: it counts as failed until another image is set, or the Canary is resumed."
    : standing.isFailed
      ? "Its time is up, and it counts as failed. It is counted in as soon as it is up to date."
      : standing.deadline === undefined
        ? "It is up to date when the Canary has promoted the image. A run under way is progress: progressDeadlineSeconds counts from its end."
        : `It has until ${formatInstant(standing.deadline)} (${formatDuration(left)} left); then it counts as failed${afterFailing(known)}.`
  return {
    reason: standing.isFailed || proof.state === "Stalled" ? "CanaryFailed" : "WaitingForHealth",
    since: stamped,
    sentences: [first, then, ...(halt ? [`The rollout has halted: ${halt.message}.`] : [])],
  }
}

/** What its failure means for the others. */
function afterFailing({ member, standing, tier, rollout }: Known): string {
  if (!goesOn(rollout) || !standing.isCounted) return ""
  if (member.haltsOnFailure) return " and, because it says failureHaltsUpdate, halts the rollout"
  const { failureBudget, view } = tier
  const isSpent = failureBudget !== undefined && view.ignored + 1 > budgetOf(failureBudget, view.counted.total)
  if (isSpent) return ` and halts the rollout: failureBudget is ${failureBudget}`
  const { total, failed } = view.increment(tier.step)
  return failed + 1 >= total
    ? " and, because no other object of its step is left, halts the rollout"
    : ", and the others go on"
}

/** Only time delays the images of the others. */
const goesOn = ({ plan, serviceImage }: Surveyed) => !serviceImage.spec.paused && !plan.active.some(({ halt }) => halt)
