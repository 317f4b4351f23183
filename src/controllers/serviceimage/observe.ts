import type { Operation, ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { endOf } from "#core/fleet/cohort.ts"
import type { FleetRules } from "#core/fleet/fleet.ts"
import { currentOperation, lastGoodImage } from "#core/fleet/operation.ts"
import { readyAt, refill } from "#core/fleet/pace.ts"
import { effectiveTiers } from "#core/fleet/tiers.ts"
import { IndexedHeap } from "#lib/indexed-heap.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { ownValue } from "#lib/own.ts"
import { knownEndpoints } from "./endpoints.ts"
import type { Memory } from "./memory.ts"
import type { Snapshot } from "./plan.ts"
import type { PreCacheSight } from "./pre-cache.ts"
import type { Claim } from "./targets.ts"
import { findProblem } from "./validate.ts"

/** The part of a claim from which a plan is made. */
export type Counted = Pick<Claim, "resource" | "fleet" | "conflicts" | "places" | "areProofsKnown"> & {
  readonly cache: Pick<Claim["cache"], "hasSynced" | "failure">
}

export type Seen<T extends Counted> = { snapshot: Snapshot; claim: T | undefined }

/** How long after a status write spec and leadership count as unchanged. */
const freshMs = 5000
const listingMs = 5000

/** Everything the plan decides from; undefined until the first list of the target's objects is complete. */
export function observe<T extends Counted>(
  targets: {
    claim(serviceImage: ServiceImage, rules: FleetRules, now: Instant): T | undefined
    jobsOf(serviceImage: ServiceImage): Pick<PreCacheSight, "unknown" | "jobs"> | undefined
  },
  serviceImage: ServiceImage,
  memory: Memory,
  { now, electionID }: { now: Instant; electionID: string },
): Seen<T> | undefined {
  const operation = currentOperation(serviceImage, now, memory.pinning?.pins)
  const { podsPerSecond } = serviceImage.spec.pace
  const pace = memory.pace ?? refill(undefined, podsPerSecond, now)
  const base = {
    serviceImage,
    operation,
    problem: findProblem(serviceImage.spec) ?? memory.pinning?.problem,
    tiers: [],
    unmatched: new IndexedHeap(),
    conflicts: undefined,
    preCache: undefined,
    endpoints: knownEndpoints(serviceImage, operation, memory.endpoints.found),
    pace: { pods: pace.pods, readyAt: readyAt(pace, podsPerSecond) },
    fence: {
      electionID,
      declared: memory.declared,
      isFresh: now - (memory.reportedAt ?? Number.NEGATIVE_INFINITY) < freshMs,
      unsure: new Set(memory.doubts.keys()),
      busy: memory.writes.keys,
      trust: memory.trust,
      outdated: new Map([...memory.outdated].map(([key, { version }]) => [key, version])),
      isBehind: memory.behind !== "No",
    },
    fleetChangesAt: undefined,
    now,
  }
  // A spec that cannot be carried out claims no objects and releases none: the last good rollout is untouched.
  if (base.problem) return { snapshot: { ...base, target: { state: "Missing" } }, claim: undefined }
  const claim = targets.claim(serviceImage, rulesOf(serviceImage, operation, now), now)
  if (!claim) return { snapshot: { ...base, target: { state: "Missing" } }, claim }
  const { cache, fleet, conflicts, resource } = claim
  if (!cache.hasSynced) {
    if (!cache.failure) return undefined
    const { kind, message: why } = cache.failure
    const remedy = `apply the output of: aim manifests rbac --for ${resource.plural}.${resource.group}`
    // Not the server's own message: it alternates between list and watch.
    const message = `cannot list ${resource.plural}: ${kind === "Forbidden" ? `forbidden; ${remedy}` : why}`
    const target = { state: "Unreadable", message } as const
    return { snapshot: { ...base, target, fleetChangesAt: now + listingMs }, claim }
  }

  // A stamp holds a workload in one way, and a Canary in another.
  if (!claim.areProofsKnown) return undefined
  fleet.advance(now)
  const jobs = targets.jobsOf(serviceImage)
  const [conflict] = conflicts.values()
  return {
    claim,
    snapshot: {
      ...base,
      target: { state: "Synced" },
      tiers: fleet.tiers(),
      unmatched: fleet.unmatched,
      conflicts: conflict === undefined ? undefined : { count: conflicts.size, with: conflict },
      preCache: jobs && preCacheOf(jobs, claim, memory),
      fleetChangesAt: fleet.nextChangeAt(),
    },
  }
}

function preCacheOf(
  { unknown, jobs }: Pick<PreCacheSight, "unknown" | "jobs">,
  { places }: Pick<Counted, "places">,
  { refusedJobs: refused }: Memory,
): PreCacheSight {
  const isBlind = places !== undefined && !places.isKnown
  return {
    unknown: unknown ?? (isBlind ? { words: "the pods are being read", isLasting: false } : undefined),
    nodesOf: tier => places?.of(tier) ?? new Map(),
    jobs,
    refused,
  }
}

/** How the fleet of a ServiceImage is counted in an operation. */
export function rulesOf({ metadata, spec, status }: ServiceImage, operation: Operation, now: Instant): FleetRules {
  const isRollback = operation.phase === "RollingBack" || operation.phase === "RolledBack"
  const history = status?.history ?? []
  return {
    by: `serviceimage/${metadata.name}`,
    uid: metadata.uid ?? "",
    operation: operation.id,
    startedAt: parseInstant(operation.startedAt) ?? now,
    isRollback,
    tiers: effectiveTiers(spec).map(
      ({ name, image, progressDeadlineSeconds, settleSeconds, steps, updateStrategy }) => ({
        name,
        image: ownValue(operation.images, name) ?? image,
        deadlineMs: progressDeadlineSeconds * 1000,
        // An image that a rollback restores has proved itself before.
        settleMs: isRollback ? 0 : settleSeconds * 1000,
        cohortEnds: steps.map(({ percent }) => endOf(percent)),
        ...(isRollback && { fallback: lastGoodImage(history, name) }),
        ...(updateStrategy && { strategy: updateStrategy }),
      }),
    ),
  }
}
