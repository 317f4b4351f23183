import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { Doubts } from "#core/fleet/doubts.ts"
import { type Pace, refill } from "#core/fleet/pace.ts"
import { Batch } from "#lib/batch.ts"
import type { Instant } from "#lib/instant.ts"
import { writesAtOnce } from "./apply.ts"
import type { FoundEndpoints } from "./endpoints.ts"
import type { Pinning } from "./pins.ts"
import type { RefusedJob } from "./pre-cache.ts"
import type { Claim } from "./targets.ts"
import { type Trust, trustOf } from "./trust.ts"

/**
 * What only this process knows. Losing it costs a repeated write at most: the objects hold everything that matters, and
 * the status holds what the fence needs.
 */
export type Memory = {
  reportedAt?: Instant
  pace?: Pace
  pinning?: Pinning
  /** The intents that our status declares, each with the version of the object that was read before. */
  declared: Map<string, string>
  /** Objects that a write may still reach. */
  doubts: Doubts
  /** How the last write to each namespace went. */
  trust: Trust
  touches: number
  /** Objects that had changed when we wrote, with the version that we had of them, and when that was. */
  outdated: Map<string, { version: string; at: Instant }>
  writes: Batch
  /** Jobs for pre-caching that the server refused, by key. */
  refusedJobs: Map<string, RefusedJob>
  /** What was found behind the Services of a complete rollout, whether they are being looked at, and when that began. */
  endpoints: { found?: FoundEndpoints; isOpen: boolean; triedAt?: Instant }
  /** What the writes were decided for. */
  aim?: string
  /** The version of the ServiceImage, as another leader wrote it, since which we have read the objects. */
  takenOverAt?: string
  /** Another leader has written since; our cache of the objects may be behind. */
  behind: "No" | "Yes" | { catchingUp: Claim["cache"] }
}

export function newMemory(): Memory {
  const trust: Trust = new Map()
  // Where no write has succeeded yet, the first goes alone: if it fails, the others must not follow it.
  const atOnceIn = (namespace: string) => (trustOf(trust, namespace) === "Proven" ? writesAtOnce : 1)
  return {
    declared: new Map(),
    doubts: new Doubts(),
    trust,
    touches: 0,
    outdated: new Map(),
    writes: new Batch({ all: writesAtOnce, owner: atOnceIn, order: "Oldest" }),
    behind: "No",
    refusedJobs: new Map(),
    endpoints: { isOpen: false },
  }
}

/** Our cache catches up within moments. An object that never shows a change is tried again after this time. */
const outdatedMs = 5000

/** Applies the passing of time to a memory, before it is used. */
export function pass(memory: Memory, { spec: { pace } }: ServiceImage, now: Instant): void {
  memory.doubts.expire(now)
  memory.pace = refill(memory.pace, pace.podsPerSecond, now)
  for (const [key, { at }] of memory.outdated) if (now - at >= outdatedMs) memory.outdated.delete(key)
}

/**
 * Another leader wrote the status last, and its writes may still arrive. Our next status write is a compare-and-swap
 * and comes before anything else, so the other leader can declare nothing more. Then we touch what it had declared.
 * Objects that were read before may not show its last writes yet.
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
