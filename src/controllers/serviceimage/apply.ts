import { rolledBack } from "#core/fleet/fleet.ts"
import { decisionAnnotation, formatDecision, type ImageRecord, imagesBefore } from "#core/image/record.ts"
import { touchPatch } from "#core/workloads/target-reader.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure, type KubeError } from "#runtime/client/errors.ts"
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
  /** A stamp is about to leave. Returns whether it may. */
  begins(key: string): boolean
  stamped(key: string): void
  touched(key: string): void
  /** It did, and it refused. */
  refused(key: string, error: KubeError): void
  /** Whether it was, or still will be, carried out is not known. */
  unknown(key: string, error: KubeError): void
  /** The server refuses to let the object be touched. */
  untouchable(key: string): void
  /** The stamp was not written, or not taken: it has disturbed no pod. */
  unused(stamp: Stamp): void
}

/**
 * Begins to write the stamps, each conditional on the very version it was decided from, with the decision beside the
 * image. What the server says about one object is remembered in the fleet and does not keep the others waiting; trouble
 * with the server itself is left to the caller that waits for the writes.
 */
export function beginStamps(
  client: Client,
  writes: Writes,
  { resource, fleet, reader }: Claim,
  stamps: readonly Stamp[],
  decided: Pick<ImageRecord, "operation" | "by" | "uid" | "at">,
  outcomes: Outcomes,
): void {
  const write = async (stamp: Stamp) => {
    const { key, member, to, reason } = stamp
    // Others of its namespace were refused, or are in doubt, since it was chosen.
    if (fleet.isHeld(key) || !outcomes.begins(key)) return outcomes.unused(stamp)
    const { namespace = "" } = nameOf(key)
    const images = reason === rolledBack && member.decision?.was ? imagesBefore(member.decision) : to
    const decision = formatDecision({ ...reader.recordOf(member), to, reason, ...decided })
    const patch = reader.patchFor(member, images, { [decisionAnnotation]: decision })
    try {
      const written = await client.patch(resource, nameOf(key), patch)
      outcomes.answered(key)
      outcomes.stamped(key)
      fleet.stamped(key, reader.read(written))
    } catch (error) {
      if (isFailure(error, "UnknownOutcome")) return outcomes.unknown(key, error)
      outcomes.unused(stamp)
      const isRefused = isFailure(error, ...refusals)
      if (!isRefused) fleet.retry(namespace)
      if (isFailure(error, "Conflict", "NotFound")) {
        outcomes.answered(key)
        return outcomes.outdated(key, member.resourceVersion) // the cache will say how it changed
      }
      if (!isRefused) throw error
      outcomes.answered(key)
      outcomes.refused(key, error)
    }
  }
  for (const stamp of stamps) writes.begin(stamp.key, nameOf(stamp.key).namespace ?? "", () => write(stamp))
}

const refusals = ["Forbidden", "Invalid", "Refused"] as const

/**
 * Begins to move the version of each object, so that no write decided from an earlier one can still be carried out. One
 * that is gone needs nothing. An answer shows that its namespace can be written to again.
 */
export function beginTouches(
  client: Client,
  writes: Writes,
  { resource, fleet, reader }: Claim,
  keys: readonly string[],
  value: string,
  outcomes: Pick<Outcomes, "answered" | "touched" | "refused" | "unknown" | "untouchable">,
): void {
  const touch = async (key: string) => {
    const name = nameOf(key)
    try {
      const written = await client.patch(resource, name, touchPatch(value))
      outcomes.answered(key)
      outcomes.touched(key)
      fleet.retry(name.namespace ?? "")
      fleet.wrote(key, reader.read(written))
    } catch (error) {
      if (isFailure(error, "NotFound")) return outcomes.answered(key)
      if (isFailure(error, "UnknownOutcome")) return outcomes.unknown(key, error)
      if (!isFailure(error, ...refusals)) throw error
      outcomes.untouchable(key)
      outcomes.refused(key, error)
    }
  }
  for (const key of keys) writes.begin(key, nameOf(key).namespace ?? "", () => touch(key))
}
