import type { Reason } from "#api/v1alpha1/serviceimage/index.ts"
import { judgingWords } from "#controllers/serviceimage/analysis.ts"
import { checkOn, type Facts, type StoppingName } from "#controllers/serviceimage/checks.ts"
import { describeTier } from "#controllers/serviceimage/judge.ts"
import { provenElsewhere, stoppedByOwner } from "#core/fleet/checks.ts"
import { changedInSameWrite } from "#core/fleet/contests.ts"
import { countOf } from "#core/fleet/tiers.ts"
import { formatDuration } from "#lib/duration.ts"
import { formatInstant } from "#lib/instant.ts"
import { counted } from "#lib/text.ts"
import type { Surveyed } from "./survey.ts"
import { settling, unmanaged, upToDate, waiting } from "./why-stamped.ts"
import { capital, head, type Known, list, many, remedyOf, type Said, si, sinceOf, titleOf } from "./why-words.ts"

/** Why an object of the fleet has its standing: the words for the first check that applies to it. */
export function whyStanding(known: Known): Said {
  const check = checkOn(factsOf(known))
  const words = isBack(known.rollout) ? backward : forward
  return words[check ?? "next"](known)
}

const isBack = ({ snapshot }: Surveyed) => ["RollingBack", "RolledBack"].includes(snapshot.operation.phase)

/** What the plan decided about the object from. */
export function factsOf({ asked: { key }, member, rollout, fleet, standing, tier }: Known): Facts {
  const { plan, snapshot } = rollout
  return {
    object: { key, member, pods: fleet.podsOf(key), cohort: standing.cohort },
    standing,
    rollout: { seen: snapshot, active: plan.active },
    tier,
    turn: plan.queue.turns.find(turn => turn.tier === tier),
    intent: plan.queue.intents.find(intent => intent.key === key),
  }
}

function unwritable(known: Known): Said {
  const { member, rollout } = known
  const problem = member.problem!
  const { container, paths = ["spec.image"] } = rollout.serviceImage.spec.target.image
  const where = container === undefined ? `paths ${paths.join(", ")}` : `container ${container}`
  return {
    reason: "InvalidTarget",
    sentences: [
      head(known),
      problem === member.healthProblem
        ? `Whether it is up to date cannot be told: ${problem}; it counts as failed after progressDeadlineSeconds.`
        : `It ${problem.startsWith("has") ? problem : `cannot take it: ${problem}`}, and spec.target.image of ${si(rollout)} names ${where}; it counts as failed after progressDeadlineSeconds.`,
    ],
  }
}

function refused(known: Known): Said {
  const { standing, member, now } = known
  const hold = standing.hold!
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
function contested(known: Known): Said {
  const { member } = known
  const writer = member.contestedBy ?? "another writer"
  return {
    reason: "Contested",
    since: member.decision?.at,
    sentences: [
      head(known),
      `It was stamped at ${formatInstant(member.decision!.at)}, and ${writer} put ${member.image || "nothing"} back. It is stamped again, at once the first time and then less and less often: let ${writer} leave the image alone, or set manuallySpecifiedImage.`,
    ],
  }
}

/** Its update in place failed, and in-place-on-failure took it back. */
function tookBack(known: Known): Said {
  const { member } = known
  return {
    reason: "UpdateFailed",
    since: member.decision?.at,
    sentences: [
      head(known),
      `It was stamped at ${formatInstant(member.decision!.at)}. The update in place failed and was taken back: ${member.inPlace!.takenBack!.message}. The image is not tried again in this operation.`,
    ],
  }
}

/** Its Canary rejected the image and wrote the one before back. */
function rejected(known: Known): Said {
  const { member, standing } = known
  return {
    reason: "CanaryFailed",
    since: member.decision?.at,
    sentences: [
      head(known),
      `It was stamped at ${formatInstant(member.decision!.at)}, and the image was rejected and taken back: ${standing.proof!.message}. The image is not tried again in this operation.`,
    ],
  }
}

/** Its tier or its own annotation says InPlaceOnly, and its owner has stopped its controller, or a Canary has it. */
function kept(known: Known): Said {
  const { proof } = known.standing
  const sentence = proof
    ? `It is not stamped: ${provenElsewhere(proof)}. Write updateStrategy InPlaceIfPossible, or delete the Canary.`
    : `It is not stamped: ${stoppedByOwner}. Let its controller go on, or write updateStrategy InPlaceIfPossible.`
  return { reason: "NotInPlace", sentences: [head(known), sentence] }
}

function paused(known: Known): Said {
  const { rollout } = known
  return {
    reason: "Paused",
    since: sinceOf(rollout.plan.status, "Paused"),
    sentences: [head(known), `The rollout is paused: nothing is stamped until aim resume ${si(rollout)}.`],
  }
}

function halted(known: Known): Said {
  const { rollout } = known
  const halt = rollout.plan.active.find(tier => tier.halt)!.halt!
  const back =
    rollout.serviceImage.spec.onFailure === "Rollback" && halt.reason !== "PreCacheIncomplete"
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
function fresh(known: Known): Said {
  const { standing, rollout, asked } = known
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

function priority(known: Known): Said {
  const { rollout, tier } = known
  const { active, status } = rollout.plan
  const names = list(active.map(({ name }) => titleOf(name)))
  return {
    reason: "WaitingForPriority",
    since: sinceOf(status, "WaitingForPriority"),
    sentences: [
      head(known),
      `It waits for ${names} of priority ${active[0]!.priority}, which come${active.length === 1 ? "s" : ""} first: ${active.map(each => describeTier(each, rollout.plan).message).join("; ")}.`,
      ...(tier.isAwaitingApproval ? [`Then ${approvalWords(known)}.`] : []),
    ],
  }
}

function approval(known: Known): Said {
  return {
    reason: "AwaitingApproval",
    since: sinceOf(known.rollout.plan.status, "AwaitingApproval"),
    sentences: [head(known), `${capital(approvalWords(known))}.`],
  }
}

const approvalWords = ({ tier, rollout }: Known) =>
  `its tier waits for a person to approve operation ${rollout.snapshot.operation.id}: aim approve ${si(rollout)} ${tier.name || '""'}`

function preCaching(known: Known): Said {
  const { tier, rollout } = known
  const { reason, message } = describeTier(tier, rollout.plan)
  const { preCacheTimeoutSeconds, preCacheMissing } = rollout.serviceImage.spec
  const then = preCacheMissing === "Proceed" ? "starts without the rest" : "halts"
  return {
    reason,
    since: sinceOf(rollout.plan.status, reason),
    sentences: [
      head(known),
      `Its tier starts when its image is on the nodes of its pods (preCache: BeforeTier): ${message}. After ${formatDuration(preCacheTimeoutSeconds * 1000)} it ${then}.`,
    ],
  }
}

function soaking(known: Known): Said {
  const { tier, now } = known
  const { step, steps, soaksUntil = now, upToDateAt } = tier
  return {
    reason: "Soaking",
    since: upToDateAt,
    sentences: [
      head(known),
      `The step to ${steps[step]!.percent}% is up to date and soaks until ${formatInstant(soaksUntil)} (${formatDuration(Math.max(0, soaksUntil - now))} left); then comes ${steps[step + 1]?.percent ?? 100}%.`,
    ],
  }
}

function judging(known: Known): Said {
  const { tier } = known
  const { step, steps, upToDateAt } = tier
  const analysis = tier.analysis!
  const { threshold, interval } = analysis
  const { reason, words } = judgingWords({ ...tier, analysis }, tier.judging!)
  const next = steps[step + 1]
  const then = next ? `the step to ${next.percent}% begins` : "the tier is complete"
  return {
    reason,
    since: upToDateAt,
    sentences: [
      head(known),
      `The step to ${steps[step]!.percent}% is up to date and is judged every ${interval}: ${words}. When a round is good, ${then}; ${counted(threshold, "failed check")} ${threshold === 1 ? "halts" : "halt"} the rollout.`,
    ],
  }
}

/** The step under way comes first. */
function laterStep(known: Known): Said {
  const { tier, rollout } = known
  const { percent, soakMs } = tier.steps[tier.step]!
  const { reason, message } = describeTier(tier, rollout.plan)
  const soak = soakMs > 0 ? ` and has soaked ${formatDuration(soakMs)}` : ""
  return {
    reason,
    sentences: [
      head(known),
      `The step to ${percent}% is under way: ${message}. The next one begins when that is up to date${soak}.`,
    ],
  }
}

/** An earlier step lost its health, and its own step adds nothing before that is healthy again. */
function heldBack(known: Known): Said {
  const { reason, message } = describeTier(known.tier, known.rollout.plan)
  return { reason, sentences: [head(known), `${capital(message)}.`] }
}

function next(known: Known): Said {
  const { tier, standing } = known
  if (standing.state === "Blank") return fresh(known)
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

function concurrency(known: Known): Said {
  const { tier, rollout } = known
  const { maxConcurrent, view } = tier
  const most = countOf(maxConcurrent!, view.total)
  const left = rollout.plan.queue.turns.find(each => each.tier === tier)!.room
  const { objects } = ahead(known)
  return {
    reason: "WaitingForConcurrency",
    sentences: [
      head(known),
      `At most ${most} of its tier may be on their way at once (maxConcurrent ${maxConcurrent}), and ${most - left} are or are about to be; ${many(objects, "object")} of it ${objects === 1 ? "is" : "are"} before this one.`,
    ],
  }
}

/** Its turn has not come: others are before it, and so many pods a second may be disturbed. */
function turn(known: Known): Said {
  if (known.standing.state === "Blank") return fresh(known)
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

const forward: Record<StoppingName | "next", (known: Known) => Said> = {
  unmanaged,
  upToDate,
  settling,
  waiting,
  unwritable,
  refused,
  takenBack: tookBack,
  rejected,
  kept,
  contested,
  paused,
  halted,
  priority,
  heldBack,
  approval,
  preCaching,
  judging,
  soaking,
  step: laterStep,
  concurrency,
  pace: turn,
  fence: turn,
  namespace: turn,
  batch: turn,
  next,
}

/** During a rollback, and after it. */
const backward: typeof forward = {
  ...forward,
  upToDate: isBackOn,
  settling: isBackOn,
  waiting(known) {
    const said = waiting(known)
    return { ...said, sentences: [...said.sentences.slice(0, 1), takenBack(known).why] }
  },
  priority: known => goesBack(known, "Tiers of a lower priority go back first."),
  concurrency: inTurn,
  pace: inTurn,
  fence: inTurn,
  namespace: inTurn,
  batch: inTurn,
  next: goesNext,
}

function takenBack({ rollout }: Known): { said: Omit<Said, "sentences">; why: string } {
  const { id, phase, cause = "" } = rollout.snapshot.operation
  const reason: Reason = phase === "RolledBack" ? "RolledBack" : "RollingBack"
  const why = `Operation ${id} of ${si(rollout)} ${phase === "RolledBack" ? "was" : "is being"} taken back${cause ? `: ${cause}` : ""}.`
  return { said: { reason, since: sinceOf(rollout.plan.status, reason) }, why }
}

function isBackOn(known: Known): Said {
  const { standing, title, member, rollout } = known
  const { id, phase } = rollout.snapshot.operation
  const { said, why } = takenBack(known)
  const first = standing.isCounted
    ? `${title} is back on ${standing.wanted}, and every pod runs it.`
    : `${title} has ${member.image || "no image"}, and operation ${id} has not changed that.`
  const then =
    phase === "RolledBack" ? [`To try it again: aim resume ${si(rollout)}; to leave it so, set the image it has.`] : []
  return { ...said, sentences: [first, why, ...then] }
}

function goesBack(known: Known, when: string): Said {
  const { standing, title, member } = known
  const { said, why } = takenBack(known)
  return {
    ...said,
    sentences: [
      `${title} has ${member.image || "no image"} and goes back to ${standing.wanted || "none"}. ${why}`,
      when,
    ],
  }
}

function inTurn(known: Known): Said {
  return goesBack(known, "Its turn comes as pace and maxConcurrent allow.")
}

function goesNext(known: Known): Said {
  return goesBack(known, "It is among those that are changed next.")
}
