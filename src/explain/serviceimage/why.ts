import type { Reason, TierStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { partsOf } from "#controllers/served-kind.ts"
import { canaryOf } from "#core/canary/run-object.ts"
import { leftOutBy } from "#core/fleet/ownership.ts"
import type { ImageRecord } from "#core/image/record.ts"
import { targetReader } from "#core/workloads/target-reader.ts"
import { formatDuration } from "#lib/duration.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { formatSelector } from "#lib/label-selector.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Survey, Surveyed } from "./survey.ts"
import { whyStanding } from "./why-standing.ts"
import { capital, type Known, labelWords, list, remedyOf, type Said, si, sinceOf, titleOf } from "./why-words.ts"

/** An explanation, with the reason from the vocabulary and sentences for a person. */
export type Why = {
  reason: Reason
  sentences: string[]
  since?: Instant | undefined
  serviceImage?: string
  /** Its place in the rollout. */
  tier?: { name: string; priority: number; step?: number }
  lastDecision?: ImageRecord | undefined
}

export type Asked = { key: string; object: KubeObject }

/** Why an object has, or has not yet, its image. */
export function whyObject(survey: Survey, asked: Asked): Why {
  const { key, object } = asked
  const title = `${object.kind} ${key}`
  const rollout = survey.rollouts.find(each => isOf(each, object) && each.fleet?.get(key) !== undefined)
  if (!rollout) return unclaimed(survey, asked, title)
  const fleet = rollout.fleet!
  const member = fleet.get(key)!
  const serviceImage = rollout.serviceImage.metadata.name
  const common = { serviceImage, ...(member.decision && { lastDecision: member.decision }) }
  if (member.isDeleting)
    return {
      ...common,
      reason: "BeingDeleted",
      sentences: [
        `${title} is being deleted, so ${si(rollout)} neither stamps it nor waits for it.`,
        ...rivalSentences(survey, asked, rollout),
      ],
      since: parseInstant(object.metadata.deletionTimestamp),
    }
  if (fleet.unmatched.has(key))
    return {
      ...common,
      reason: "Unmatched",
      sentences: [
        `${si(rollout)} selects ${title}, but ${labelWords(member)} names none of its tiers, and it has neither a tier "" nor a defaultImage.`,
        `Its image, ${member.image || "none"}, is left alone until it gets the label of a tier or the ServiceImage a defaultImage.`,
      ],
    }
  const standing = fleet.standing(key)!
  const tier = rollout.plan.tiers.find(each => each.name === standing.tier)!
  const known: Known = { title, asked, member, rollout, fleet, standing, tier, now: survey.now }
  const said = whyStanding(known)
  return {
    ...common,
    ...said,
    sentences: [...said.sentences, ...grantSentences(survey, known, said), ...rivalSentences(survey, asked, rollout)],
    tier: {
      name: tier.name,
      priority: tier.priority,
      ...(tier.steps.length > 1 && { step: tier.steps[standing.cohort]!.percent }),
    },
  }
}

/** Why a rollout is where it is. */
export function whyRollout({ serviceImage, plan }: Surveyed, now: Instant): Why {
  const { status, tiers, active } = plan
  const { metadata, spec } = serviceImage
  const complete = status.conditions.find(({ type }) => type === "Complete")!
  const later = tiers.filter(tier => !tier.isComplete && !active.includes(tier))
  const images = [...new Set(tiers.map(tier => tier.image))].join(", ")
  const { operation } = status
  const wait =
    later.length > 0
      ? `${capital(list(later.map(({ name }) => titleOf(name))))} come${later.length === 1 ? "s" : ""} after that.`
      : ""
  return {
    serviceImage: metadata.name,
    reason: complete.reason,
    since: sinceOf(status, complete.reason) ?? parseInstant(complete.lastTransitionTime),
    sentences: [
      tiers.length === 0 || !operation
        ? `si/${metadata.name} is over ${spec.target.kind} in ${spec.target.apiVersion}.`
        : `si/${metadata.name} is at operation ${operation.id} (${operation.phase}), with ${images}; ${status.progress} up to date.`,
      `${capital(complete.message)}.`,
      ...(wait && !active.some(tier => tier.halt) ? [wait] : []),
      ...status.tierStatus.flatMap(failureSentences),
      ...remedyOf(complete.reason, metadata.name),
      ...(plan.lookAgainAt !== undefined && plan.lookAgainAt > now && complete.status !== "True"
        ? [`If nothing else happens, this changes in ${formatDuration(plan.lookAgainAt - now)}.`]
        : []),
    ],
  }
}

/** With the message of the server, or of whatever else prevents it. */
const failureSentences = ({ failures }: TierStatus): string[] =>
  failures.flatMap(({ reason, count, message, examples }) =>
    message ? [`${count} ${reason}${examples[0] ? `, such as ${examples[0]}` : ""}: ${message}.`] : [],
  )

const isOf = ({ serviceImage }: Surveyed, { apiVersion = "", kind = "" }: KubeObject) => {
  const [a, b] = [partsOf(serviceImage.spec.target), partsOf({ apiVersion, kind })]
  return a.id === b.id
}

/** No ServiceImage has it: which ones come near, and what excludes it. */
function unclaimed({ rollouts, labelsOf }: Survey, { object }: Asked, title: string): Why {
  const sameKind = rollouts.filter(each => isOf(each, object))
  if (sameKind.length === 0)
    return {
      reason: "NotSelected",
      sentences: [`No ServiceImage is about ${object.kind} objects, so the image of ${title} is left alone.`],
    }
  const { decision } = targetReader(sameKind[0]!.serviceImage.spec.target).read(object)
  const misses = sameKind.map((rollout): { reason: Reason; sentence: string } => {
    const { serviceImage, plan, resource } = rollout
    const { target } = serviceImage.spec
    const member = targetReader(target).read(object)
    const by = leftOutBy(target, member, labelsOf)
    if (by === "run")
      return {
        reason: "NotSelected",
        sentence: `${si(rollout)} is about this kind and leaves it out: it belongs to a run of Canary ${canaryOf(object)}.`,
      }
    if (by === "selector")
      return {
        reason: "NotSelected",
        sentence: `${si(rollout)} is about this kind and leaves it out: its labels do not match spec.target.selector (${formatSelector(target.selector!)}).`,
      }
    if (by === "namespaceSelector")
      return {
        reason: "NotSelected",
        sentence: `${si(rollout)} is about this kind and leaves it out: the labels of namespace ${member.namespace} do not match spec.target.namespaceSelector (${formatSelector(target.namespaceSelector!)}).`,
      }
    const { reason, message } = plan.status.conditions.find(({ type }) => type === "Complete")!
    const how = resource ? "selects it and cannot be carried out" : "would select it"
    return { reason, sentence: `${si(rollout)} ${how}: ${message}.` }
  })
  const pressing = misses.find(({ reason }) => reason !== "NotSelected")
  return {
    reason: pressing?.reason ?? "NotSelected",
    sentences: [
      pressing
        ? `Nothing is done to ${title} for now.`
        : `No ServiceImage selects ${title}, so its image is left alone.`,
      ...misses.slice(0, 3).map(({ sentence }) => sentence),
      ...(misses.length > 3 ? [`${misses.length - 3} more are about this kind and leave it out.`] : []),
    ],
    ...(decision && { lastDecision: decision }),
  }
}

/** What is going to prevent its stamp. */
function grantSentences(survey: Survey, { standing, member }: Known, { reason }: Said): string[] {
  const isToBeStamped = standing.state === "Stale" || standing.state === "Blank"
  if (!isToBeStamped || reason === "Forbidden" || !survey.lacksGrant(member.namespace)) return []
  return [`Its namespace has no grant, so that stamp is going to be refused: aim grant ${member.namespace}.`]
}

/** Other ServiceImages that select it too. */
function rivalSentences({ rollouts }: Survey, { key, object }: Asked, owner: Surveyed): string[] {
  const others = rollouts.filter(each => isOf(each, object) && each.conflicts.has(key))
  if (others.length === 0) return []
  const by = owner.fleet!.get(key)!.decision?.by
  const why = by === `serviceimage/${owner.serviceImage.metadata.name}` ? "has stamped it" : "is older"
  return [
    `${list(others.map(si))} select${others.length === 1 ? "s" : ""} it too; ${si(owner)} has it, because it ${why}.`,
  ]
}
