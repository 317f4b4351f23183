import { manuallySpecifiedImageAnnotation, type Reason, upgradeTierLabel } from "#api/v1alpha1/serviceimage/index.ts"
import { describeTier, type JudgedTier } from "#controllers/serviceimage/judge.ts"
import { changedInSameWrite } from "#core/fleet/contests.ts"
import type { Fleet } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import { budgetOf, countOf } from "#core/fleet/tiers.ts"
import type { Crash } from "#core/pods/steady.ts"
import { crashOf, diagnose } from "#core/pods/trace.ts"
import { formatDuration } from "#lib/duration.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Surveyed } from "./survey.ts"
import { capital, labelWords, list, many, remedyOf, si, sinceOf, titleOf } from "./why-words.ts"

type Standing = NonNullable<ReturnType<Fleet["standing"]>>

/** Everything known about the object in question. */
export type Known = {
  title: string
  asked: { key: string; object: KubeObject }
  member: Member
  rollout: Surveyed
  fleet: Fleet
  standing: Standing
  tier: JudgedTier
  now: Instant
}

export type Said = { reason: Reason; sentences: string[]; since?: Instant | undefined }

/** Why an object of the fleet has its standing. */
export const whyStanding = (known: Known): Said => (isBack(known.rollout) ? takenBack(known) : forward(known))

const isBack = ({ snapshot }: Surveyed) => ["RollingBack", "RolledBack"].includes(snapshot.operation.phase)

function forward(known: Known): Said {
  const { standing, member } = known
  const checks = [
    unmanaged,
    upToDate,
    settling,
    waiting,
    unwritable,
    refused,
    contested,
    paused,
    halted,
    fresh,
    otherPriority,
    approval,
    laterStep,
    next,
    concurrency,
    pace,
  ]
  for (const check of checks) {
    const said = check(known)
    if (said) return said
  }
  return { reason: "RollingOut", sentences: [head(known), `It is ${standing.state} with ${member.image}.`] }
}

/** Its image, the image it is to get, from which ServiceImage, and its place in the order. */
function head({ title, member, rollout, standing, tier }: Known): string {
  const has = member.image === "" ? "has no image yet" : `has ${(member.images ?? [member.image]).join(" and ")}`
  return `${title} ${has} and is to get ${standing.wanted} from ${si(rollout)}: ${place(tier, standing, member)}.`
}

function place(tier: JudgedTier, standing: Standing, member: Member): string {
  const because =
    tier.name === ""
      ? member.labels[upgradeTierLabel]
        ? `${labelWords(member)} names no other tier`
        : `it has no label ${upgradeTierLabel}`
      : `by its label ${upgradeTierLabel}`
  const step = tier.steps.length > 1 ? `, ${stepWords(tier, standing)}` : ""
  return `it is in ${titleOf(tier.name)} (${because}), priority ${tier.priority}${step}`
}

function stepWords({ steps, step, isComplete }: JudgedTier, { cohort, state }: Standing): string {
  // Where the share of a step is less than one object, the first in the queue stands for it.
  const hasGoneAhead = !isComplete && cohort > step && (state === "Waiting" || state === "Done")
  if (hasGoneAhead) return `first in the queue, for the step to ${steps[step]!.percent}%`
  const { percent } = steps[cohort]!
  return cohort === 0
    ? `among the first ${percent}%`
    : `with the step to ${percent}%, after ${steps[cohort - 1]!.percent}%`
}

function unmanaged({ standing, title, member, asked, rollout }: Known): Said | undefined {
  if (standing.state !== "Unmanaged") return undefined
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

function upToDate({ standing, title, member, rollout, tier }: Known): Said | undefined {
  if (standing.state !== "Done") return undefined
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
function settling({ standing, title, member, rollout, tier, fleet, asked, now }: Known): Said | undefined {
  if (standing.state !== "Settling") return undefined
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
function waiting(known: Known): Said | undefined {
  const { standing, title, member, fleet, asked, tier, rollout, now } = known
  if (standing.state !== "Waiting") return undefined
  const deadline = standing.deadline!
  const halt = rollout.plan.active.find(each => each.halt)?.halt
  const since = deadline - tier.view.rule.deadlineMs
  const trace = fleet.traceOf(asked.key)
  const found = diagnose(trace, standing.wanted)
  const cause = member.healthProblem
    ? ` Its health cannot be told: ${member.healthProblem}.`
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
      reason: member.haltsOnFailure ? "FailureHaltsUpdate" : "CrashLoop",
      since,
      sentences: [
        first,
        `A crash loop does not wait for the deadline: it counts as failed until it has been up to date for ${formatDuration(tier.settleSeconds * 1000)}.`,
        ...(halt ? [`The rollout has halted: ${halt.message}.`] : []),
      ],
    }
  if (!standing.isFailed)
    return {
      reason: found && !found.isTentative ? found.reason : "WaitingForHealth",
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

function unwritable(known: Known): Said | undefined {
  const { member, rollout } = known
  if (!member.problem) return undefined
  const { container, paths = ["spec.image"] } = rollout.serviceImage.spec.target.image
  const where = container === undefined ? `paths ${paths.join(", ")}` : `container ${container}`
  return {
    reason: "InvalidTarget",
    sentences: [
      head(known),
      member.problem === member.healthProblem
        ? `Whether it is up to date cannot be told: ${member.problem}; it counts as failed after progressDeadlineSeconds.`
        : `It ${member.problem.startsWith("has") ? member.problem : `cannot take it: ${member.problem}`}, and spec.target.image of ${si(rollout)} names ${where}; it counts as failed after progressDeadlineSeconds.`,
    ],
  }
}

function refused(known: Known): Said | undefined {
  const { fleet, asked, member, now } = known
  const hold = fleet.refusalOf(asked.key)
  if (!hold) return undefined
  const { reason } = hold
  const message = hold.message ? `: ${hold.message}` : ""
  const sentence =
    reason === "Forbidden"
      ? `aim has no grant to change objects of namespace ${member.namespace}: run aim grant ${member.namespace}.`
      : reason === "Contested"
        ? hold.message === changedInSameWrite
          ? `It comes back with ${member.image || "no image"} whenever it is stamped: ${changedInSameWrite}. It is tried less and less often; let the webhook or policy leave this image alone, or set manuallySpecifiedImage.`
          : `${member.contestedBy ?? "Another writer"} puts ${member.image} back whenever it is stamped, so it is tried less and less often; let ${member.contestedBy ?? "that"} leave the image alone, or set manuallySpecifiedImage.`
        : reason === "WriteFailed"
          ? `It cannot be written${message}. It is tried again, less and less often, and so are others of its namespace.`
          : `The API server refused the stamp (${reason}${message}); it is tried again, less and less often.`
  return { reason, since: hold.since < now ? hold.since : undefined, sentences: [head(known), sentence] }
}

/** We gave it its image in this operation, and another writer put a different one back. */
function contested(known: Known): Said | undefined {
  const { standing, member } = known
  if (!standing.isContested) return undefined
  const who = member.contestedBy ?? "another writer"
  return {
    reason: "Contested",
    since: member.decision?.at,
    sentences: [
      head(known),
      `It was stamped at ${formatInstant(member.decision!.at)}, and ${who} put ${member.image || "nothing"} back. It is stamped again, at once the first time and then less and less often: let ${who} leave the image alone, or set manuallySpecifiedImage.`,
    ],
  }
}

function paused(known: Known): Said | undefined {
  const { rollout } = known
  if (!rollout.serviceImage.spec.paused) return undefined
  return {
    reason: "Paused",
    since: sinceOf(rollout.plan.status, "Paused"),
    sentences: [head(known), `The rollout is paused: nothing is stamped until aim resume ${si(rollout)}.`],
  }
}

function halted(known: Known): Said | undefined {
  const { rollout, standing } = known
  const halt = rollout.plan.active.find(tier => tier.halt)?.halt
  if (!halt || standing.state === "Blank") return undefined
  const back =
    rollout.serviceImage.spec.onFailure === "Rollback"
      ? " It is going to be taken back, because onFailure is Rollback."
      : ""
  return {
    reason: halt.reason,
    since: sinceOf(rollout.plan.status, halt.reason),
    sentences: [
      head(known),
      `The rollout has halted: ${halt.message}.${back}`,
      ...(back ? [] : remedyOf(halt.reason, rollout.serviceImage.metadata.name)),
    ],
  }
}

/** New objects are not kept waiting. */
function fresh(known: Known): Said | undefined {
  const { standing, rollout, asked } = known
  if (standing.state !== "Blank") return undefined
  const to = rollout.plan.stamps.find(({ key }) => key === asked.key)?.to
  const later = to && to !== standing.wanted ? ` It follows to ${standing.wanted} with its tier.` : ""
  return {
    reason: "StampedNew",
    since: known.member.createdAt,
    sentences: [
      head(known),
      `New objects do not wait: it gets ${to ?? "its tier's newDeploymentImage"} at once.${later}`,
    ],
  }
}

function otherPriority(known: Known): Said | undefined {
  const { rollout, tier } = known
  const { active, status } = rollout.plan
  if (tier.isComplete || active.includes(tier) || active.length === 0) return undefined
  const names = list(active.map(({ name }) => titleOf(name)))
  return {
    reason: "WaitingForPriority",
    since: sinceOf(status, "WaitingForPriority"),
    sentences: [
      head(known),
      `It waits for ${names} of priority ${active[0]!.priority}, which come${active.length === 1 ? "s" : ""} first: ${active.map(each => describeTier(each).message).join("; ")}.`,
      ...(tier.isAwaitingApproval ? [`Then ${approvalWords(known)}.`] : []),
    ],
  }
}

function approval(known: Known): Said | undefined {
  if (!known.tier.isAwaitingApproval) return undefined
  return {
    reason: "AwaitingApproval",
    since: sinceOf(known.rollout.plan.status, "AwaitingApproval"),
    sentences: [head(known), `${capital(approvalWords(known))}.`],
  }
}

const approvalWords = ({ tier, rollout }: Known) =>
  `its tier waits for a person to approve operation ${rollout.snapshot.operation.id}: aim approve ${si(rollout)} ${tier.name || '""'}`

function laterStep(known: Known): Said | undefined {
  const { tier, standing, asked, now } = known
  const { step, steps, view, soaksUntil, upToDateAt } = tier
  const isIn = standing.cohort <= step || view.stale(1, step)[0]?.key === asked.key
  const { percent } = steps[step]!
  if (soaksUntil !== undefined)
    return {
      reason: "Soaking",
      since: upToDateAt,
      sentences: [
        head(known),
        `The step to ${percent}% is up to date and soaks until ${formatInstant(soaksUntil)} (${formatDuration(Math.max(0, soaksUntil - now))} left); then comes ${steps[step + 1]?.percent ?? 100}%.`,
      ],
    }
  if (isIn) return undefined
  const soak = steps[step]!.soakMs > 0 ? ` and has soaked ${formatDuration(steps[step]!.soakMs)}` : ""
  return {
    reason: describeTier(tier).reason,
    sentences: [
      head(known),
      `The step to ${percent}% is under way: ${describeTier(tier).message}. The next one begins when that is up to date${soak}.`,
    ],
  }
}

function next(known: Known): Said | undefined {
  const { rollout, asked, tier } = known
  if (!rollout.plan.stamps.some(({ key }) => key === asked.key)) return undefined
  return {
    reason: tier.isReopened ? "TierReopened" : "RollingOut",
    sentences: [
      head(known),
      tier.isReopened
        ? "Its tier was complete and is open again, because of objects like this one: it is stamped next."
        : "It is among those that are stamped next; nothing holds it back.",
    ],
  }
}

function concurrency(known: Known): Said | undefined {
  const { tier, rollout } = known
  const { maxConcurrent, view } = tier
  if (maxConcurrent === undefined) return undefined
  const most = countOf(maxConcurrent, view.total)
  const chosen = rollout.plan.stamps.filter(({ key }) => rollout.fleet!.standing(key)?.tier === tier.name).length
  if (view.underWay + chosen < most) return undefined
  const { objects } = ahead(known)
  return {
    reason: "WaitingForConcurrency",
    sentences: [
      head(known),
      `At most ${most} of its tier may be on their way at once (maxConcurrent ${maxConcurrent}), and ${view.underWay + chosen} are or are about to be; ${many(objects, "object")} of it ${objects === 1 ? "is" : "are"} before this one.`,
    ],
  }
}

function pace(known: Known): Said {
  const { rollout } = known
  const { podsPerSecond } = rollout.serviceImage.spec.pace
  const { objects, pods } = ahead(known)
  if (podsPerSecond === 0)
    return {
      reason: "RollingOut",
      sentences: [
        head(known),
        `${many(objects, "object")} ${objects === 1 ? "is" : "are"} before it; it comes with one of the next batches.`,
      ],
    }
  const inMs = (pods / podsPerSecond) * 1000
  return {
    reason: "WaitingForPace",
    sentences: [
      head(known),
      `At most ${many(podsPerSecond, "pod")} a second may be disturbed, and ${many(objects, "object")} with ${many(pods, "pod")} ${objects === 1 ? "is" : "are"} before it: its turn comes in about ${formatDuration(Math.max(1000, inMs))}, if those become healthy.`,
    ],
  }
}

/** The objects of its tier that go before it. */
function ahead({ fleet, standing, asked }: Known): { objects: number; pods: number } {
  let [objects, pods] = [0, 0]
  for (const key of fleet.keys()) {
    const other = fleet.standing(key)
    if (key === asked.key || other?.tier !== standing.tier || other.state !== "Stale" || other.isHeld) continue
    if (other.place > standing.place) continue
    objects++
    pods += fleet.podsOf(key)
  }
  return { objects, pods }
}

/** During a rollback, and after it. */
function takenBack(known: Known): Said {
  const { standing, title, member, rollout, tier } = known
  const { operation } = rollout.snapshot
  const { id, phase, cause = "" } = operation
  const reason: Reason = phase === "RolledBack" ? "RolledBack" : "RollingBack"
  const why = `Operation ${id} of ${si(rollout)} ${phase === "RolledBack" ? "was" : "is being"} taken back${cause ? `: ${cause}` : ""}.`
  const since = sinceOf(rollout.plan.status, reason)
  const then =
    phase === "RolledBack" ? [`To try it again: aim resume ${si(rollout)}; to leave it so, set the image it has.`] : []
  const unmanagedSaid = unmanaged(known)
  if (unmanagedSaid) return unmanagedSaid
  if (!standing.isCounted && standing.wanted === member.image)
    return {
      reason,
      since,
      sentences: [
        `${title} has ${member.image || "no image"}, and operation ${id} has not changed that.`,
        why,
        ...then,
      ],
    }
  if (standing.state === "Done")
    return {
      reason,
      since,
      sentences: [`${title} is back on ${standing.wanted}, and every pod runs it.`, why, ...then],
    }
  if (standing.state === "Waiting") {
    const said = waiting(known)!
    return { ...said, sentences: [...said.sentences.slice(0, 1), why] }
  }
  const held = paused(known) ?? refused(known)
  if (held) return held
  const isNext = rollout.plan.stamps.some(({ key }) => key === known.asked.key)
  const isTurn = rollout.plan.active.includes(tier)
  return {
    reason,
    since,
    sentences: [
      `${title} has ${member.image || "no image"} and goes back to ${standing.wanted || "none"}. ${why}`,
      isNext
        ? "It is among those that are changed next."
        : isTurn
          ? "Its turn comes as pace and maxConcurrent allow."
          : "Tiers of a lower priority go back first.",
    ],
  }
}
