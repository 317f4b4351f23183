import { rolledBack } from "#core/fleet/fleet.ts"
import { decisionAnnotation, formatDecision, type ImageRecord, imagesBefore } from "#core/image/record.ts"
import { touchPatch } from "#core/workloads/target-reader.ts"
import type { Batch } from "#lib/batch.ts"
import type { Client } from "#runtime/client/client.ts"
import type { KubeError } from "#runtime/client/errors.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Stamp } from "./stamps.ts"
import type { Claim } from "./targets.ts"

/** Enough to keep a server busy across a slow network, and few enough not to fill its fairness queues. */
export const writesAtOnce = 16

/** What is remembered of writes beyond the objects themselves. */
export type Outcomes = {
  /** The server has answered, with success or not: this write can no longer arrive. */
  answered(key: string): void
  /** The server did not accept the write, because the object has changed since. */
  outdated(key: string, resourceVersion: string): void
  /** A stamp is about to leave. Returns whether it may. */
  begins(key: string): boolean
  stamped(key: string): void
  touched(key: string): void
  /** The server refused the write. */
  refused(key: string, error: KubeError): void
  /** The write may have been carried out, or may still be. */
  unknown(key: string, error: KubeError): void
  /** The server refuses to let the object be touched. */
  untouchable(key: string): void
  /** The stamp was not sent, or not accepted: it has disturbed no pod. */
  unused(stamp: Stamp): void
}

/**
 * Begins to write the stamps. Each is conditional on the version it was decided from, and records the decision beside
 * the image; where pods are to keep running, it holds the workload as well. The fleet remembers the answer for each object, and the other objects do not wait for it. An error of the
 * server itself is left to the caller that waits for the writes.
 */
export function beginStamps(
  client: Client,
  writes: Batch,
  { resource, fleet, reader }: Claim,
  stamps: readonly Stamp[],
  decided: Pick<ImageRecord, "operation" | "by" | "uid" | "at">,
  outcomes: Outcomes,
): void {
  const write = async (stamp: Stamp) => {
    const { key, member, to, reason, tier, strategy } = stamp
    // Since the object was chosen, other writes to its namespace were refused or stayed unanswered.
    if (fleet.isHeld(key) || !outcomes.begins(key)) return outcomes.unused(stamp)
    const { namespace = "" } = nameOf(key)
    const images = reason === rolledBack && member.decision?.was ? imagesBefore(member.decision) : to
    const decision = formatDecision({
      ...reader.recordOf(member),
      to,
      reason,
      ...decided,
      ...(tier !== undefined && { tier }),
    })
    const hasCanary = fleet.proofOf(key) !== undefined
    const patch = reader.patchFor(member, images, { [decisionAnnotation]: decision }, { strategy, hasCanary })
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
 * Begins to touch the objects: a new version makes every write fail that was decided from an earlier one. A deleted
 * object needs no touch. An answer shows that writes to its namespace work again.
 */
export function beginTouches(
  client: Client,
  writes: Batch,
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
    // A touch has no condition: a conflict is an error of the server itself, and the object has not changed.
    if (outcome.is === "Outdated" && outcome.error.kind === "Conflict") throw outcome.error
    outcomes.answered(key)
    if (outcome.is === "Outdated") return
    outcomes.touched(key)
    fleet.retry(name.namespace ?? "")
    fleet.wrote(key, reader.read(outcome.object))
  }
  for (const key of keys) writes.begin(key, nameOf(key).namespace ?? "", () => touch(key))
}
