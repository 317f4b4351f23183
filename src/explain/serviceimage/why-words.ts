import { type Reason, type ServiceImageStatus, upgradeTierLabel } from "#api/v1alpha1/serviceimage/index.ts"
import type { JudgedTier } from "#controllers/serviceimage/judge.ts"
import type { Fleet } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Surveyed } from "./survey.ts"

// The words that explanations share.

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

export const si = ({ serviceImage }: Surveyed) => `si/${serviceImage.metadata.name}`

export const labelWords = ({ labels }: Member) =>
  labels[upgradeTierLabel]
    ? `its label ${upgradeTierLabel}=${labels[upgradeTierLabel]}`
    : `no label ${upgradeTierLabel}`

/** What a person can do about it. */
export function remedyOf(reason: Reason, name: string): string[] {
  const remedies: Partial<Record<Reason, string>> = {
    Paused: `To go on: aim resume si/${name}.`,
    AwaitingApproval: `To let it start: aim approve si/${name}.`,
    AllFailed: `To go on, set another image or mend what failed; to take it back: aim rollback si/${name}.`,
    FailureHaltsUpdate: `To go on, mend the object or set another image; to take it back: aim rollback si/${name}.`,
    PreCacheIncomplete:
      "It goes on by itself when the nodes have the image; to start without it, set preCacheMissing: Proceed.",
    FailureBudgetSpent: `To go on, mend the objects, raise failureBudget or set another image; to take it back: aim rollback si/${name}.`,
  }
  const remedy = remedies[reason]
  return remedy ? [remedy] : []
}

/** Since when this holds, if the status has a time for it. */
export function sinceOf({ conditions, priorityStartedAt }: ServiceImageStatus, reason: Reason): Instant | undefined {
  if (reason === "WaitingForPriority" || reason === "AwaitingApproval") return parseInstant(priorityStartedAt)
  const found = conditions.find(
    each =>
      each.status === "True" &&
      each.reason === reason &&
      (each.type === "Halted" || each.type === "Paused" || each.type === "Stalled" || each.type === "Complete"),
  )
  return parseInstant(found?.lastTransitionTime)
}

export const list = (names: readonly string[]) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`
export const titleOf = (tier: string) => (tier === "" ? "the default tier" : `tier ${tier}`)
/** As a sentence begins; the name of a field stays as it is written. */
export const capital = (text: string) => (/^(spec|status|metadata)\./.test(text) ? text : capitalised(text))
const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

export const many = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Its image, the image it is to get, from which ServiceImage, and its place in the order. */
export function head({ title, member, rollout, standing, tier }: Known): string {
  const has = member.image === "" ? "has no image yet" : `has ${(member.images ?? [member.image]).join(" and ")}`
  return `${title} ${has} and is to get ${standing.wanted} from ${si(rollout)}: ${place(tier, standing, member)}.`
}

export function place(tier: JudgedTier, standing: Standing, member: Member): string {
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
