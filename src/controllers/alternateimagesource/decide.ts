import type {
  Incident,
  Policy,
  PullFailure,
  Reason,
  TargetAvailable,
} from "#api/v1alpha1/alternateimagesource/index.ts"
import { imageAt, repositoryTextOf, sameSource } from "#core/image/equivalent.ts"
import { mustKeepTemplate } from "#core/in-place/own-hold.ts"
import { isOfUpdate } from "#core/pods/one-at-a-time.ts"
import { earliest, formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { counted } from "#lib/text.ts"
import { isAlike, judge, whyNone } from "./candidates.ts"
import {
  type Circumstances,
  commonImage,
  type Decision,
  digestIn,
  distinct,
  dominant,
  type FailingPod,
  type Group,
  isAt,
  type Probe,
  type Repair,
  type Retarget,
  type WaitingPod,
} from "./group.ts"
import { homeOf, incidentOf, lastMoved, lastSwitch, sentTo } from "./incident.ts"

/** How long an answer of a registry is valid. */
const probeMs = 60_000
/**
 * After this time the failing repository is asked whether it still fails. Together with the time until a kubelet
 * reports a failed pull, this is longer than an outage of two seconds: see decision 17.
 */
const hiccupMs = 1900
/** How long a StatefulSet's controller may take to see that its template was changed. */
const revisionMs = 5000
/** How soon pods are looked at again that are left to an update in place. */
const updateMs = 5000
const downMsFirst = 60_000
const downMsMost = 900_000
/** As many as the status counts. */
const attemptsMost = 999
/**
 * How often the first repository is asked while its images come from elsewhere, and how long it must serve without a
 * break.
 */
const recheckMs = 300_000
const stableMs = 600_000

/**
 * Decides what to do about one container that cannot be pulled, or could not. The same facts always give the same
 * decision.
 */
export function decide(group: Group, circumstances: Circumstances): Decision {
  const { policy, before, now } = circumstances
  const known = incidentOf(group, before)
  const home = known && homeOf(known)
  // Nothing is known about held pods before the others have shown where the image can be pulled.
  const held = group.held.filter(pod => home !== undefined && !isAt(pod, home) && !isLeft(group, pod))
  if (group.failing.length + held.length === 0) return known ? calm(group, known, circumstances) : nothing(group)
  const incident: Incident = known ?? {
    since: formatInstant(Math.min(...group.failing.map(pod => pod.since))),
    reason: dominant(group.failing),
    image: group.image,
    failing: repositoryTextOf(group.image),
    bad: [],
    attempts: 0,
    ...(group.workload.matchLabels && { matchLabels: group.workload.matchLabels }),
  }
  const free = group.failing.filter(pod => !isLeft(group, pod))
  const movable = free.filter(({ failure }) => !neverSwitches(failure, policy))
  const { refusal } = group
  if (free.length + held.length === 0)
    return wait(group, incident, "UpdatedInPlace", cannotPull(group), { lookAgainAt: now + updateMs })
  if (movable.length + held.length === 0) return wait(group, incident, dominant(free), cannotPull(group))
  if (refusal && refusal.retryAt > now)
    return wait(group, incident, refusal.reason, cannotPull(group), { lookAgainAt: refusal.retryAt })
  const stuck = movable.filter(pod => home === undefined || isAt(pod, home))
  if (stuck.length > 0 || home === undefined) return seek(group, incident, stuck, movable, circumstances)
  return follow(group, incident, [...movable, ...held], home, circumstances)
}

/** An update in place has changed the pod, and has yet to prove it. */
const isLeft = ({ workload, container }: Group, { updated, image }: WaitingPod): boolean =>
  workload.isUpdated === true && isOfUpdate(updated, { name: container, image })

const nothing = (group: Group): Decision => ({
  group,
  incident: undefined,
  reason: "Watching",
  message: "",
  repairs: [],
  asks: [],
})

/** No pod fails now. Pods that run from elsewhere stay there, unless the policy wants them back. */
function calm(group: Group, incident: Incident, { policy, probe, now, before }: Circumstances): Decision {
  const base = { group, repairs: [], asks: [] }
  if (incident.working === undefined) {
    // Pods of a changed workload start anew: for a while none fails, and a bad repository is still bad.
    const moved = homeOf(incident) === undefined ? undefined : lastMoved(group, before)
    const overAt = moved === undefined ? now : moved + stableMs
    if (overAt <= now) return nothing(group)
    const message = `${titleOf(group)}: the workload was changed, and is pulled from ${incident.failing}`
    return {
      ...base,
      incident: { ...incident, reason: "Switched" },
      reason: "Switched",
      message,
      lookAgainAt: overAt,
    }
  }
  const message = `${titleOf(group)} is pulled from ${incident.working} instead of ${incident.failing}`
  const lookAgainAt = group.repaired ? undefined : leftAt(group, incident, before, now)
  if (lookAgainAt !== undefined && lookAgainAt <= now) return nothing(group)
  if (policy.switchBack === "Never")
    return { ...base, incident: { ...incident, reason: "Switched" }, reason: "Switched", message, lookAgainAt }
  const answer = probe(incident.image)
  const isStale = !answer || now - answer.at >= recheckMs
  const isWell = answer?.said.ok === true
  const since = isWell ? (parseInstant(incident.healthySince) ?? now) : undefined
  if (isWell && since !== undefined && now - since >= stableMs) {
    const back = { oldImage: sentTo(incident, incident.working), newImage: incident.image }
    const step = { ...back, reason: "SwitchedBack" as const, repository: incident.failing }
    const last = before?.switches?.at(-1)
    const isTold = last?.newImage === back.newImage
    return {
      ...nothing(group),
      reason: "SwitchedBack",
      ...(!isTold && { step }),
      message: `${titleOf(group)}: ${incident.failing} serves again`,
    }
  }
  const { tryAgainAt: _, healthySince: __, ...rest } = incident
  const next: Incident = {
    ...rest,
    reason: "Switched",
    ...(since !== undefined && { healthySince: formatInstant(since) }),
  }
  return {
    ...base,
    incident: next,
    reason: "Switched",
    message,
    asks: isStale ? [incident.image] : [],
    lookAgainAt: earliest(
      lookAgainAt,
      isStale ? undefined : answer.at + recheckMs,
      since === undefined ? undefined : since + stableMs,
    ),
  }
}

/**
 * When an incident without repaired pods ends. The workload's pods were replaced and pull from the original again.
 * Where it has no pods, the incident stays, because the next pods need it.
 */
function leftAt(group: Group, { since }: Incident, before: TargetAvailable | undefined, now: Instant): Instant {
  const movedAt = lastMoved(group, before) ?? parseInstant(since) ?? now
  const leastAt = movedAt + stableMs
  return leastAt <= now && group.pods() === 0 ? now + stableMs : leastAt
}

const wait = (
  group: Group,
  incident: Incident,
  reason: Reason,
  message: string,
  more: Partial<Decision> = {},
): Decision => ({
  group,
  incident: { ...incident, reason },
  reason,
  message: `${titleOf(group)}: ${message}`,
  repairs: [],
  asks: [],
  ...more,
})

const titleOf = ({ workload: { type, name }, container }: Group) => `${type.kind}/${name} ${container}`

function cannotPull({ failing, held }: Pick<Group, "failing" | "held">): string {
  const pods = failing.length > 0 ? failing : held
  const why = failing.length > 0 ? dominant(failing) : "held back by its node"
  return `${counted(pods.length, "pod")} cannot pull ${commonImage(pods)} (${why})`
}

/** A working repository is known: pods that wait elsewhere are sent there without another probe. */
function follow(
  group: Group,
  incident: Incident,
  waiting: readonly (FailingPod | WaitingPod)[],
  home: string,
  { policy, before, now }: Circumstances,
): Decision {
  const moved = lastMoved(group, before)
  const replacedBy = moved === undefined ? now : moved + policy.cooldownSeconds * 1000
  // The workload was changed, and first has time to replace the pods itself. Those that it does not replace are
  // repaired.
  if (incident.working === undefined && group.workload.replacesPods && replacedBy > now)
    return wait(group, incident, "Repairing", `its pods go to ${home}`, { lookAgainAt: replacedBy })
  const { workload, retargeted } = group
  const isSeen = workload.revision !== undefined && workload.revision !== retargeted?.revision
  const seenBy = (moved ?? 0) + revisionMs
  if (workload.hasRevisions && retargeted && !isSeen && seenBy > now)
    return wait(group, incident, "Repairing", `its pods go to ${home}`, { lookAgainAt: seenBy })
  const failure = (lastSwitch(group, before) ?? group.repaired)?.reason
  const reason = failure === undefined || failure === "SwitchedBack" ? "UnknownFailure" : failure
  return {
    group,
    incident: { ...incident, reason: "Switched" },
    reason: "Repairing",
    message: `${titleOf(group)}: moving ${counted(waiting.length, "pod")} to ${home}`,
    repairs: repairsOf(group, waiting, sentTo(incident, home), reason).map(repair => {
      // The new template differs from the pod's own only by this image. Without the name of the new revision, the
      // workload's controller would replace the pod as soon as it runs.
      const isOfThis = isSeen && retargeted?.revision !== undefined && repair.pod.revision === retargeted.revision
      return isOfThis ? { ...repair, revision: workload.revision } : repair
    }),
    asks: [],
  }
}

/** Looks for the next repository, after the waiting times of the policy. */
function seek(
  group: Group,
  incident: Incident,
  stuck: readonly FailingPod[],
  movable: readonly FailingPod[],
  { policy, before, probe, now }: Circumstances,
): Decision {
  const failure = dominant(stuck)
  const here = cannotPull({ failing: stuck, held: [] })
  const later = (reason: Reason, lookAgainAt: Instant) => wait(group, incident, reason, here, { lookAgainAt })

  const since = Math.min(...stuck.map(pod => pod.since))
  const confirmedAt = since + policy.confirmSeconds * 1000
  const isConfirmed = failure === "RateLimited" || confirmedAt <= now
  const seenAt = since + hiccupMs
  const last = lastMoved(group, before)
  const cooledAt = last === undefined ? now : last + policy.cooldownSeconds * 1000
  const restsUntil = parseInstant(incident.tryAgainAt)
  const nowhere = `${here}, and no other repository can be used`
  if (isConfirmed && cooledAt > now) return later("CoolingDown", cooledAt)
  if (restsUntil !== undefined && restsUntil > now)
    return wait(group, incident, downReason(incident), nowhere, { lookAgainAt: restsUntil })

  const failingNow = new Set(stuck.map(pod => repositoryTextOf(pod.image)))
  // In a template no repository is tried twice, because each try is a rollout. Pods may try all again after a back-off.
  const remembered = restsUntil !== undefined && policy.apply === "Pod" ? [] : incident.bad
  const bad = distinct([...remembered, ...failingNow])
  const candidates = group.repositories.filter(
    repository => ![...bad, ...policy.disabledRepositories].some(other => sameSource(other, repository)),
  )
  // After a back-off, or after the whole wait, an earlier bad answer no longer counts.
  const believedSince = restsUntil ?? (confirmedAt <= now ? confirmedAt : Number.NEGATIVE_INFINITY)
  const isOld = (answer: Probe | undefined) =>
    isStale(answer, now) || answer!.at < (answer!.said.ok ? (restsUntil ?? 0) : believedSince)
  const asks = candidates.map(repository => imageAt(group.image, repository)).filter(image => isOld(probe(image)))
  // The other repositories are asked during the wait, so that their answers are known when they matter.
  if (!isConfirmed && seenAt > now)
    return wait(group, incident, "Confirming", here, {
      asks: cooledAt > now ? [] : asks,
      lookAgainAt: Math.min(seenAt, confirmedAt),
    })
  if (cooledAt > now) return later("CoolingDown", cooledAt)
  const failingImage = commonImage(stuck)
  const own = probe(failingImage)
  if (!isConfirmed && (!own || own.at < seenAt)) asks.unshift(failingImage)
  if (asks.length > 0)
    return wait(group, { ...incident, bad }, "Probing", here, {
      asks,
      ...(!isConfirmed && { lookAgainAt: confirmedAt }),
    })

  const judged = candidates.map(repository => {
    const { said } = probe(imageAt(group.image, repository))!
    return { repository, said, verdict: judge(said, failure, group, policy) }
  })
  const good = judged.find(({ verdict }) => verdict === "Good")
  // A failure that our own probe confirms needs no wait. If the probe contradicts the kubelet, or was not possible,
  // time decides.
  if (!isConfirmed && !(good && isAlike(failure, own!.said))) return later("Confirming", confirmedAt)
  const chosen = good ?? judged.find(({ verdict }) => verdict === "Unknown")
  if (!chosen) {
    const { reason, message } = whyNone(judged, failure, group)
    const attempts = Math.min(incident.attempts + 1, attemptsMost)
    const tryAgainAt = now + Math.min(downMsFirst * 2 ** (attempts - 1), downMsMost)
    const next: Incident = { ...incident, bad, attempts, tryAgainAt: formatInstant(tryAgainAt) }
    return wait(group, next, reason, message ? `${here}; ${message}` : nowhere, { lookAgainAt: tryAgainAt })
  }
  return switchTo(group, { ...incident, bad }, { stuck, movable }, chosen.repository, failure, policy)
}

function switchTo(
  group: Group,
  incident: Incident,
  { stuck, movable }: { stuck: readonly FailingPod[]; movable: readonly FailingPod[] },
  repository: string,
  failure: PullFailure,
  policy: Policy,
): Decision {
  const { workload, container, isInit, digest, held } = group
  const { tryAgainAt: _, healthySince: __, pin: ___, ...rest } = incident
  const mustPin = policy.requireSameDigest === "Always" && digest !== undefined && !digestIn(group.image)
  const next: Incident = { ...rest, working: repository, reason: "Switched", ...(mustPin && { pin: digest }) }
  const to = sentTo({ ...next, image: group.image }, repository)
  const refusal = policy.apply === "Template" ? templateRefusal(group, policy) : undefined
  const isNamed = sameSource(repository, group.image)
  const retarget: Retarget | undefined =
    policy.apply === "Template" && !refusal && !isNamed
      ? { do: "retarget", workload, container, isInit, from: group.image, to, reason: failure }
      : undefined
  const waiting = [...movable, ...held.filter(pod => !isAt(pod, repository))]
  const oldImage = commonImage(stuck)
  return {
    group,
    incident: next,
    reason: refusal ?? "Repairing",
    message: `${titleOf(group)}: ${oldImage} cannot be pulled (${failure}); going to ${repository}`,
    repairs: retarget && (workload.replacesPods || workload.hasRevisions) ? [] : repairsOf(group, waiting, to, failure),
    ...(retarget && { retarget }),
    step: { oldImage, newImage: to, reason: failure, repository },
    asks: [],
  }
}

/** Why a workload's template is left alone though the policy would change it. Its pods are repaired all the same. */
function templateRefusal({ workload, failing, pods, image }: Group, policy: Policy): Reason | undefined {
  const rejected = failing.find(({ failure }) => neverSwitches(failure, policy))
  if (rejected) return rejected.failure
  if (!workload.hasTemplate || workload.isOwned) return "OwnedByAnother"
  // Another image in the template would be another update.
  if (workload.isUpdated) return "UpdatedInPlace"
  if (workload.inPlace && mustKeepTemplate(workload.inPlace, undefined)) return "UpdatedInPlace"
  if (workload.isGitOps && !policy.overrideGitOps) return "ManagedByGitOps"
  // Pods of an older template say nothing about this one.
  const concerned = failing.filter(pod => isAt(pod, image))
  return concerned.length * 100 < pods() * Number.parseInt(policy.templateShare, 10) ? "PartOfPodsFails" : undefined
}

const repairsOf = (
  { container, isInit }: Group,
  pods: readonly (FailingPod | WaitingPod)[],
  to: string,
  reason: PullFailure,
): Repair[] =>
  pods.map(pod => ({ do: "repair", pod, container, isInit, to, reason: "failure" in pod ? pod.failure : reason }))

/** Another repository would not help, or would bypass a check. */
const neverSwitches = (failure: PullFailure, { onAuthError }: Policy) =>
  failure === "SignatureRejected" || failure === "DiskFull" || (failure === "Denied" && onAuthError === "Ignore")

const restful = new Set<Reason>(["NotFoundAnywhere", "DigestDiffers", "DigestUnknown", "SecretMissing"])
const downReason = ({ reason }: Incident): Reason => (restful.has(reason) ? reason : "AllSourcesDown")

const isStale = (probe: Probe | undefined, now: Instant) => !probe || now - probe.at >= probeMs
