import { rolledBack } from "#core/fleet/fleet.ts"
import { decisionAnnotation, formatDecision, type ImageRecord, imagesBefore } from "#core/image/record.ts"
import { touchPatch } from "#core/workloads/target-reader.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeError } from "#runtime/client/errors.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
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
    const outcome = await outcomeOf(client.patch(resource, nameOf(key), patch)).catch(error => {
      outcomes.unused(stamp)
      fleet.retry(namespace)
      throw error
    })
    if (outcome.is === "Unknown") return outcomes.unknown(key, outcome.error)
    outcomes.answered(key)
    if (outcome.is === "Written") {
      outcomes.stamped(key)
      return fleet.stamped(key, reader.read(outcome.object))
    }
    outcomes.unused(stamp)
    if (outcome.is === "Refused") return outcomes.refused(key, outcome.error)
    fleet.retry(namespace)
    outcomes.outdated(key, member.resourceVersion) // the cache will show how it changed
  }
  for (const stamp of stamps) writes.begin(stamp.key, nameOf(stamp.key).namespace ?? "", () => write(stamp))
}

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
    const outcome = await outcomeOf(client.patch(resource, name, touchPatch(value)))
    if (outcome.is === "Unknown") return outcomes.unknown(key, outcome.error)
    if (outcome.is === "Refused") {
      outcomes.untouchable(key)
      return outcomes.refused(key, outcome.error)
    }
    // A touch has no condition: a conflict is the server's own trouble, and the object is as it was.
    if (outcome.is === "Outdated" && outcome.error.kind === "Conflict") throw outcome.error
    outcomes.answered(key)
    if (outcome.is === "Outdated") return
    outcomes.touched(key)
    fleet.retry(name.namespace ?? "")
    fleet.wrote(key, reader.read(outcome.object))
  }
  for (const key of keys) writes.begin(key, nameOf(key).namespace ?? "", () => touch(key))
}
