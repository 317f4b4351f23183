import { approvedAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import { approve, formatApproval, parseApproval } from "#core/fleet/approval.ts"
import { ownValue } from "#lib/own.ts"
import { printable } from "#lib/text.ts"
import type { Decided } from "./change.ts"
import { Failure } from "./refusal.ts"
import { rolloutOf, type Seen, type TierProgress } from "./rollout.ts"
import { noSuchTier } from "./settings.ts"
import {
  capital,
  inWords,
  isUnobserved,
  needsApproval,
  objects,
  tierTitle,
  tierWord,
  unobservedSentence,
} from "./words.ts"

/**
 * Approves the named tiers, or those that wait now. Only existing tiers, of an operation that the controller has
 * started, can be approved.
 */
export function approval(object: Seen, named: readonly string[], program: string): Decided {
  const { metadata, status } = object
  const { name } = metadata
  if (isUnobserved(object)) throw new Failure(unobservedSentence(object, program))
  const operation = status?.operation
  if (!operation) throw new Failure(`si/${name} has no operation yet, so there is nothing to approve`)
  const { tiers } = rolloutOf(object)
  const names = tiers.map(({ tier }) => tier)
  for (const tier of named) if (!names.includes(tier)) throw new Failure(noSuchTier(tier, names))

  const before = parseApproval(metadata.annotations?.[approvedAnnotation])
  const earlier = before?.operation === operation.id ? before.tiers : []
  const wanted =
    named.length > 0 ? tiers.filter(({ tier }) => named.includes(tier)) : waitingOrApproved(object, earlier)
  if (wanted.length === 0) throw new Failure(nothingWaits(object, tiers, program))
  const fresh = wanted.filter(({ tier }) => needsApproval(tier, object.spec) && !earlier.includes(tier))
  const lines = wanted.map(tier => {
    const verb = fresh.includes(tier)
      ? "approved"
      : earlier.includes(tier.tier)
        ? "already approved"
        : "needs no approval"
    const image = printable(ownValue(operation.images, tier.tier) || tier.image)
    return `${verb}: ${tierTitle(tier.tier)} of si/${name}, operation ${operation.id} (${objects(tier.total)} to ${image})`
  })
  const done = lines.join("\n")
  const next = (after: Seen) => whatIsNext(fresh, after, program)
  if (fresh.length === 0) return { done, next }
  const approved = approve(before, { operation: operation.id, tiers: fresh.map(({ tier }) => tier) })
  const annotations = { [approvedAnnotation]: formatApproval(approved) }
  return { done, next, patch: { metadata: { annotations } } }
}

/** Without names: the tiers that wait now. If none does, those approved before, so that repeating it is no failure. */
function waitingOrApproved(object: Seen, earlier: readonly string[]): TierProgress[] {
  const { tiers } = rolloutOf(object)
  const waiting = tiers.filter(tier => tier.awaitsApproval)
  return waiting.length > 0 ? waiting : tiers.filter(({ tier }) => earlier.includes(tier))
}

function nothingWaits(object: Seen, tiers: readonly TierProgress[], program: string): string {
  const { name } = object.metadata
  const later = tiers.filter(({ tier, state }) => state !== "Complete" && needsApproval(tier, object.spec))
  const operation = `operation ${object.status!.operation!.id}`
  if (later.length === 0)
    return `nothing of si/${name} waits for approval: no unfinished tier of ${operation} has requireApproval`
  const words = later.map(({ tier }) => tierWord(tier)).join(" ")
  return `nothing of si/${name} waits for approval now\nTo approve later tiers of ${operation}: ${program} approve si/${name} ${words}`
}

function whatIsNext(approved: readonly TierProgress[], object: Seen, program: string): string {
  const { name } = object.metadata
  const rollout = rolloutOf(object)
  if (object.spec.paused) return `spec.paused is true: nothing starts until ${program} resume si/${name}`
  const titles = (tiers: readonly TierProgress[]) => capital(inWords(tiers.map(({ tier }) => tierTitle(tier))))
  const now = approved.filter(({ priority }) => priority === rollout.currentPriority)
  const later = approved.filter(tier => !now.includes(tier))
  const starts = (tiers: readonly TierProgress[]) => (tiers.length === 1 ? "starts" : "start")
  return [
    now.length > 0 ? `${titles(now)} ${starts(now)} now${firstStep(now, object)}.` : "",
    later.length > 0 ? `${titles(later)} ${starts(later)} when the tiers of higher priority are complete.` : "",
  ]
    .filter(Boolean)
    .join("\n")
}

function firstStep(tiers: readonly TierProgress[], { spec }: Seen): string {
  const percents = tiers.map(
    ({ tier }) => spec.tiers?.find(({ upgradeTier = "" }) => upgradeTier === tier)?.steps?.[0]?.percent ?? 100,
  )
  return tiers.length === 1 && percents[0]! < 100 ? `, with ${percents[0]}% of its objects` : ""
}
