import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { Doubts } from "#core/fleet/doubts.ts"
import { type Pace, refill } from "#core/fleet/pace.ts"
import type { Instant } from "#lib/instant.ts"
import { writesAtOnce } from "./apply.ts"
import type { Pinning } from "./pins.ts"
import type { Claim } from "./targets.ts"
import { type Trust, trustOf } from "./trust.ts"
import { Writes } from "./writes.ts"

/**
 * What is known only here. Losing it costs a repeated write at most: everything that matters stands in the objects, and
 * what the fence needs stands in the status.
 */
export type Memory = {
  reportedAt?: Instant
  pace?: Pace
  pinning?: Pinning
  /** Our intents that stand in the status, and the version of each object read before. */
  declared: Map<string, string>
  /** Objects a write may still be on its way to. */
  doubts: Doubts
  /** How the last write to each namespace went. */
  trust: Trust
  touches: number
  /** Objects that had changed when we wrote, the version we had of them, and when that was. */
  outdated: Map<string, { version: string; at: Instant }>
  writes: Writes
  /** What they were decided for. */
  aim?: string
  /** The version of the ServiceImage, written by another leader, from which on we have read the objects. */
  takenOverAt?: string
  /** Another leader has written since; our cache of the objects may be behind. */
  behind: "No" | "Yes" | { catchingUp: Claim["cache"] }
}

export function newMemory(): Memory {
  const trust: Trust = new Map()
  // Where no write has gone well yet, the first goes alone: if it fails, the others must not follow it.
  const atOnceIn = (namespace: string) => (trustOf(trust, namespace) === "Proven" ? writesAtOnce : 1)
  return {
    declared: new Map(),
    doubts: new Doubts(),
    trust,
    touches: 0,
    outdated: new Map(),
    writes: new Writes(writesAtOnce, atOnceIn),
    behind: "No",
  }
}

/** Our copy catches up within moments; an object that never shows a change is tried again all the same. */
const outdatedMs = 5000

/** What the passing of time does to a memory, before it is looked at. */
export function pass(memory: Memory, { spec: { pace } }: ServiceImage, now: Instant): void {
  memory.doubts.expire(now)
  memory.pace = refill(memory.pace, pace.podsPerSecond, now)
  for (const [key, { at }] of memory.outdated) if (now - at >= outdatedMs) memory.outdated.delete(key)
}

/**
 * Another leader wrote the status last: whatever it had under way may still arrive. Our next status is a
 * compare-and-swap and comes before anything else, so that it can declare nothing any more; then we touch what it had
 * declared. Objects that were read before may not show yet what it did.
 */
export function takeOver(
  { metadata, status }: ServiceImage,
  memory: Memory,
  { identity, isOpen }: { identity: string; isOpen: boolean },
): void {
  if (!status || status.electionID === identity) {
    memory.takenOverAt ??= "" // the first status is ours: the objects are read since before there was another one
    return
  }
  if (memory.takenOverAt === undefined ? isOpen : memory.takenOverAt !== metadata.resourceVersion) memory.behind = "Yes"
  memory.takenOverAt = metadata.resourceVersion ?? ""
  memory.declared = new Map()
  for (const key of status.inflight ?? []) memory.doubts.inherit(key)
}
