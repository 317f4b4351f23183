import type { FailureReason } from "#api/v1alpha1/serviceimage/index.ts"
import { type Decision, decisionAnnotation, formatDecision, imagesBefore } from "#core/decision.ts"
import { rolledBack } from "#core/fleet.ts"
import { touchPatch } from "#core/target-reader.ts"
import { forEachLimited } from "#lib/for-each-limited.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Stamp } from "./stamps.ts"
import type { Claim } from "./targets.ts"

/** Enough to keep a server busy across a slow network, few enough not to be what its fairness queues notice. */
const writesAtOnce = 16

/** What is remembered of writes beyond the objects themselves. */
export type Outcomes = {
  /** The server has answered, whatever it said: this write is no longer on its way. */
  answered(key: string): void
  /** Nobody knows whether it was, or still will be, carried out. */
  unknown(key: string): void
}

/**
 * Writes the stamps, each conditional on the very version it was decided from, with the decision beside the image. What
 * the server says about one object is remembered in the fleet and does not keep the others waiting; trouble with the
 * server itself is thrown. Returns how many were stamped, and whether anything is known now that was not before.
 */
export async function applyStamps(
  client: Client,
  { resource, fleet, reader }: Claim,
  stamps: readonly Stamp[],
  decided: Pick<Decision, "operation" | "by" | "at">,
  outcomes: Outcomes,
): Promise<{ stamped: number; hasMoved: boolean }> {
  let stamped = 0
  let hasMoved = false
  const refused = new Set<string>()
  await forEachLimited(stamps, writesAtOnce, async ({ key, member, to, reason }) => {
    const name = nameOf(key)
    const namespace = name.namespace ?? ""
    if (refused.has(namespace)) return
    const images = reason === rolledBack && member.decision?.was ? imagesBefore(member.decision) : to
    const decision = formatDecision({ ...reader.recordOf(member), to, reason, ...decided })
    const patch = reader.patchFor(member, images, { [decisionAnnotation]: decision })
    try {
      const written = await client.patch(resource, name, patch)
      stamped++
      outcomes.answered(key)
      fleet.release(key)
      fleet.wrote(key, reader.read(written))
    } catch (error) {
      if (isFailure(error, "UnknownOutcome")) return outcomes.unknown(key)
      if (isFailure(error, "Conflict", "NotFound")) return outcomes.answered(key) // the cache will say how it changed
      if (!isFailure(error, "Forbidden", "Invalid")) throw error
      hasMoved = true
      outcomes.answered(key)
      const why = refusal(error.message)
      if (why !== "Forbidden") return fleet.refuse({ key }, { reason: why, message: error.message })
      refused.add(namespace)
      fleet.refuse({ namespace }, { reason: why, message: error.message })
    }
  })
  return { stamped, hasMoved: hasMoved || stamped > 0 }
}

/**
 * Moves the version of each object, so that no write decided from an earlier one can still be carried out. One that is
 * gone needs nothing. Returns those the server refuses to let us write.
 */
export async function applyTouches(
  client: Client,
  { resource, fleet, reader }: Claim,
  keys: readonly string[],
  value: string,
  outcomes: Pick<Outcomes, "answered">,
): Promise<string[]> {
  const refused: string[] = []
  await forEachLimited(keys, writesAtOnce, async key => {
    try {
      const written = await client.patch(resource, nameOf(key), touchPatch(value))
      fleet.wrote(key, reader.read(written))
      outcomes.answered(key)
    } catch (error) {
      if (isFailure(error, "NotFound")) outcomes.answered(key)
      else if (isFailure(error, "Forbidden", "Invalid")) refused.push(key)
      else if (!isFailure(error, "UnknownOutcome")) throw error
    }
  })
  return refused
}

/** The server answers 403 for a missing role, an exceeded quota and a webhook alike; only its words tell them apart. */
function refusal(message: string): FailureReason {
  if (message.includes("cannot patch resource")) return "Forbidden"
  return message.includes("exceeded quota") ? "QuotaExceeded" : "AdmissionDenied"
}
