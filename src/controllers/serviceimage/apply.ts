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
import type { Writes } from "./writes.ts"

/** Enough to keep a server busy across a slow network, few enough not to be what its fairness queues notice. */
export const writesAtOnce = 16

/** What is remembered of writes beyond the objects themselves. */
export type Outcomes = {
  /** The server has answered, whatever it said: this write is no longer on its way. */
  answered(key: string): void
  /** It did, and it was not taken because the object has changed since. */
  outdated(key: string, resourceVersion: string): void
  stamped(key: string): void
  /** Nobody knows whether it was, or still will be, carried out. */
  unknown(key: string): void
}

/**
 * Begins to write the stamps, each conditional on the very version it was decided from, with the decision beside the
 * image. What the server says about one object is remembered in the fleet and does not keep the others waiting; trouble
 * with the server itself is left to who waits for the writes.
 */
export function beginStamps(
  client: Client,
  writes: Writes,
  { resource, fleet, reader }: Claim,
  stamps: readonly Stamp[],
  decided: Pick<Decision, "operation" | "by" | "at">,
  outcomes: Outcomes,
): void {
  const refused = new Set<string>()
  const write = async ({ key, member, to, reason }: Stamp) => {
    const name = nameOf(key)
    const namespace = name.namespace ?? ""
    if (refused.has(namespace)) return
    const images = reason === rolledBack && member.decision?.was ? imagesBefore(member.decision) : to
    const decision = formatDecision({ ...reader.recordOf(member), to, reason, ...decided })
    const patch = reader.patchFor(member, images, { [decisionAnnotation]: decision })
    try {
      const written = await client.patch(resource, name, patch)
      outcomes.answered(key)
      outcomes.stamped(key)
      fleet.release(key)
      fleet.wrote(key, reader.read(written))
    } catch (error) {
      if (isFailure(error, "UnknownOutcome")) return outcomes.unknown(key)
      if (isFailure(error, "Conflict", "NotFound")) {
        outcomes.answered(key)
        return outcomes.outdated(key, member.resourceVersion) // the cache will say how it changed
      }
      if (!isFailure(error, "Forbidden", "Invalid")) throw error
      outcomes.answered(key)
      const why = refusal(error.message)
      if (why !== "Forbidden") return fleet.refuse({ key }, { reason: why, message: error.message })
      refused.add(namespace)
      fleet.refuse({ namespace }, { reason: why, message: error.message })
    }
  }
  for (const stamp of stamps) writes.begin(stamp.key, () => write(stamp))
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
