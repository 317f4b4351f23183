import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { FleetRules } from "#core/fleet.ts"
import { currentOperation } from "#core/operation.ts"
import { type Pace, refill, spend } from "#core/pace.ts"
import { effectiveTiers } from "#core/tiers.ts"
import { earliest, type Instant, parseInstant } from "#lib/instant.ts"
import { compareVersions } from "#lib/resource-version.ts"
import type { Controller, Wiring } from "#runtime/controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { applyStamps } from "./apply.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { storyOf, whenToReport } from "./report.ts"
import { permissions, serviceImages } from "./resources.ts"
import { type Claim, Targets } from "./targets.ts"

/**
 * Brings a fleet to the images its ServiceImage names, tier by tier. Reads ServiceImages, CustomResourceDefinitions,
 * Namespaces and the target's objects; writes the image of those objects and the ServiceImage's status.
 */
export const serviceImageController: Controller = {
  name: "serviceimage",
  permissions,
  concurrency: 4,
  setup(wiring) {
    const targets = new Targets(wiring)
    const cache = wiring.watch(serviceImages, { project: readServiceImage })
    cache.subscribe(({ key, initial }) => wiring.enqueue(key, { background: initial }))
    const memories = new Map<string, Memory>()

    return {
      async reconcile(name) {
        const cached = cache.get(name)?.object
        if (!cached || cached.metadata.deletionTimestamp) {
          targets.forget(name)
          memories.delete(name)
          return
        }
        const memory = memories.get(name) ?? {}
        memories.set(name, memory)
        const serviceImage = newest(cached, memory.written)
        const now = wiring.clock.now()

        const seen = observe(targets, serviceImage, memory, now)
        if (!seen) return now + listingMs // nothing can be said before the first list is in; its end wakes us too
        const next = plan(seen.snapshot)
        const reportAt = await report(wiring, serviceImage, next, memory, now)
        const actedAt = seen.claim && (await act(wiring, seen.claim, serviceImage, next, memory))
        return earliest(reportAt, actedAt, next.lookAgainAt)
      },
    }
  },
}

/** How soon to look again at a list that is not in, or at objects that turned out to have changed. */
const listingMs = 5000
const conflictMs = 1000

/** What is known only here. Losing it costs a repeated write at most: everything that matters stands in the objects. */
type Memory = { written?: ServiceImage; reportedAt?: Instant; pace?: Pace }

type Seen = { snapshot: Snapshot; claim: Claim | undefined }

function observe(targets: Targets, serviceImage: ServiceImage, memory: Memory, now: Instant): Seen | undefined {
  const operation = currentOperation(serviceImage, now)
  const rules: FleetRules = {
    startedAt: parseInstant(operation.startedAt) ?? now,
    tiers: effectiveTiers(serviceImage.spec).map(({ name, image, progressDeadlineSeconds }) => ({
      name,
      image,
      deadlineMs: progressDeadlineSeconds * 1000,
    })),
  }
  const claim = targets.claim(serviceImage, rules, now)
  const nothing = {
    tiers: [],
    unmatched: new Set<string>(),
    conflicts: undefined,
    paceLeft: 0,
    fleetChangesAt: undefined,
  }
  const base = { serviceImage, operation, now }
  if (!claim) return { snapshot: { ...base, ...nothing, target: { state: "Missing" } }, claim }
  const { cache, fleet, conflicts, resource } = claim
  if (!cache.hasSynced) {
    if (!cache.failure) return undefined
    const remedy = `aim manifests rbac --for ${resource.plural}.${resource.group}`
    const hint = cache.failure.kind === "Forbidden" ? `; apply the output of: ${remedy}` : ""
    const message = `cannot list ${resource.plural}: ${cache.failure.message}${hint}`
    const target = { state: "Unreadable", message } as const
    return { snapshot: { ...base, ...nothing, target, fleetChangesAt: now + listingMs }, claim }
  }

  fleet.advance(now)
  memory.pace = refill(memory.pace, serviceImage.spec.pace.podsPerSecond, now)
  const [conflict] = conflicts.values()
  return {
    claim,
    snapshot: {
      ...base,
      target: { state: "Synced" },
      tiers: fleet.tiers(),
      unmatched: fleet.unmatched,
      conflicts: conflict === undefined ? undefined : { count: conflicts.size, with: conflict },
      paceLeft: Math.max(0, Math.floor(memory.pace.tokens)),
      fleetChangesAt: fleet.nextChangeAt(),
    },
  }
}

/** Says before doing: a crash in between leaves an explanation behind. The write fails if the spec has changed since. */
async function report(
  { client, events, clock }: Wiring,
  serviceImage: ServiceImage,
  { status }: Plan,
  memory: Memory,
  now: Instant,
): Promise<Instant | undefined> {
  const at = whenToReport(serviceImage.status, status, memory.reportedAt)
  if (at === "Never") return undefined
  if (at > now) return at
  memory.written = await client.replace(serviceImages, { ...serviceImage, status }, { subresource: "status" })
  memory.reportedAt = clock.now()
  for (const episode of storyOf(serviceImage.status, status)) events.record(serviceImage, episode)
  return undefined
}

/** Returns when to look again: at once, because what was written moves the counts and makes room for more. */
async function act(
  { client, clock }: Wiring,
  claim: Claim,
  { metadata }: ServiceImage,
  { stamps, status }: Plan,
  memory: Memory,
): Promise<Instant | undefined> {
  if (stamps.length === 0) return undefined
  const paced = stamps.filter(stamp => stamp.reason === "Stamped").length
  if (memory.pace) memory.pace = spend(memory.pace, paced)
  const decided = { operation: status.operation!.id, by: `serviceimage/${metadata.name}`, at: clock.now() }
  const hasMoved = await applyStamps(client, claim, stamps, decided)
  // Where everything was in conflict, our copy is behind. Asking again before it has caught up would be a hot loop.
  return clock.now() + (hasMoved ? 0 : conflictMs)
}

/** Our own write reaches the cache a moment later; deciding from the copy before it would repeat or undo it. */
function newest(cached: ServiceImage, written: ServiceImage | undefined): ServiceImage {
  if (!written || written.metadata.uid !== cached.metadata.uid) return cached
  const [a = "", b = ""] = [cached.metadata.resourceVersion, written.metadata.resourceVersion]
  return compareVersions(a, b) >= 0 ? cached : written
}

function readServiceImage(object: KubeObject): { resourceVersion: string; object: ServiceImage } {
  return { resourceVersion: object.metadata.resourceVersion ?? "", object: object as ServiceImage }
}
