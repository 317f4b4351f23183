import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { newMemory, pass } from "#controllers/serviceimage/memory.ts"
import { type Counted, observe } from "#controllers/serviceimage/observe.ts"
import { plan } from "#controllers/serviceimage/plan.ts"
import { Fleet, type FleetRules } from "#core/fleet/fleet.ts"
import { historyOf } from "#core/fleet/operation.ts"
import type { Instant } from "#lib/instant.ts"
import type { Surveyed } from "./survey.ts"

/**
 * The same objects as their controller would decide them after a change of the ServiceImage that leaves its target as
 * it is. They are counted in a fleet of their own, because the one that was looked at goes on under its own rules.
 * Nothing is read.
 */
export function wouldBe(seen: Surveyed, serviceImage: ServiceImage, now: Instant): Surveyed {
  const { resource, conflicts, fleet: known } = seen
  const memory = newMemory()
  pass(memory, serviceImage, now)
  const claim = (_: ServiceImage, rules: FleetRules): Counted | undefined => {
    if (!resource || !known) return undefined
    const fleet = new Fleet(rules, now, { ...historyOf(serviceImage, rules), isStill: true })
    for (const key of known.keys()) fleet.set(key, known.get(key)!, known.traceOf(key), known.proofOf(key))
    const cache = { hasSynced: true, failure: undefined }
    return { resource, fleet, conflicts, places: undefined, cache, areProofsKnown: true }
  }
  const electionID = serviceImage.status?.electionID ?? ""
  const observed = observe({ claim, jobsOf: () => undefined }, serviceImage, memory, { now, electionID })!
  return {
    ...seen,
    serviceImage,
    snapshot: observed.snapshot,
    plan: plan(observed.snapshot),
    fleet: observed.claim?.fleet,
  }
}
