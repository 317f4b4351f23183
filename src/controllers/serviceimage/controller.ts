import {
  maxInflight,
  retryAnnotation,
  rollbackAnnotation,
  type ServiceImage,
} from "#api/v1alpha1/serviceimage/index.ts"
import { type Pace, spend } from "#core/pace.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { RegistryClient } from "#registry/index.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Controller, Wiring } from "#runtime/controller.ts"
import { newest } from "#runtime/newest.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { applyTouches, beginStamps, type Outcomes, writesAtOnce } from "./apply.ts"
import { createServiceImageMetrics, type ServiceImageMetrics, tierNumbers } from "./metrics.ts"
import { observe } from "./observe.ts"
import { type Pinning, pin } from "./pins.ts"
import { type Plan, plan } from "./plan.ts"
import { storyOf, whenToReport } from "./report.ts"
import { permissions, serviceImages } from "./resources.ts"
import { type Claim, Targets } from "./targets.ts"
import { Writes } from "./writes.ts"

/**
 * Brings a fleet to the images its ServiceImage names, tier by tier. Reads ServiceImages, CustomResourceDefinitions,
 * Namespaces, the target's objects and the pods behind them; writes the image of those objects and the ServiceImage's
 * status.
 */
export const createServiceImageController = ({ registry }: Surroundings = {}): Controller => ({
  name: "serviceimage",
  permissions,
  concurrency: 4,
  setup(wiring) {
    const targets = new Targets(wiring)
    const metrics = createServiceImageMetrics(wiring.metrics)
    const cache = wiring.watch(serviceImages, { project: readServiceImage })
    cache.subscribe(({ key, initial }) => wiring.enqueue(key, { background: initial }))
    const memories = new Map<string, Memory>()

    return {
      async reconcile(name) {
        const cached = cache.get(name)?.object
        if (!cached || cached.metadata.deletionTimestamp) {
          targets.forget(name)
          metrics.forget(name)
          await memories.get(name)?.writes.untilAtMost(0)
          memories.delete(name)
          return
        }
        const memory = remembered(memories, cached)
        await memory.writes.untilAtMost(maxInflight) // tells if one has failed since the last look
        // While one batch is being written the next is declared.
        for (const until = wiring.clock.monotonic() + lookMsMost; ; ) {
          const { lookAgainAt, hasBegun } = await look(wiring, { targets, metrics, registry, cache }, name, memory)
          if (!hasBegun || wiring.signal.aborted || wiring.clock.monotonic() >= until) return lookAgainAt
          await memory.writes.untilAtMost(maxInflight / 2)
        }
      },
      // A write that hangs holds nobody up but the end: the Lease is handed on when nothing is under way any more.
      async drain() {
        for (const [key, { writes }] of memories)
          await writes.untilAtMost(0).catch(error => {
            const why = isFailure(error, "WritesRefused") ? "no longer allowed to write" : "a write did not come about"
            wiring.log.info(`${why}, ending`, { key, error })
          })
      },
    }
  },
})

type Tools = Surroundings & { targets: Targets; metrics: ServiceImageMetrics; cache: Cache<Read> }
type Read = { resourceVersion: string; object: ServiceImage }

/** Looks, decides, says and begins. */
async function look(
  wiring: Wiring,
  { targets, metrics, registry, cache }: Tools,
  name: string,
  memory: Memory,
): Promise<{ lookAgainAt?: Instant | undefined; hasBegun?: boolean }> {
  const cached = cache.get(name)?.object
  if (!cached || cached.metadata.uid !== memory.uid) return { lookAgainAt: wiring.clock.now() }
  const serviceImage = newest(cached, memory.written)
  // What was decided for other images ends before anything is concluded from these.
  const aim = aimOf(serviceImage)
  if (memory.aim !== aim) await memory.writes.untilAtMost(0)
  memory.aim = aim
  takeOver(serviceImage, memory, wiring.identity)
  const { clock, signal } = wiring
  memory.pinning = pin(serviceImage, memory.pinning, { registry, clock, signal, onAnswer: () => wiring.enqueue(name) })
  if (memory.pinning.isOpen) return {}
  const now = clock.now()

  const seen = observe(targets, serviceImage, memory, { now, electionID: wiring.identity })
  if (!seen) return { lookAgainAt: now + listingMs } // nothing can be said before the first list is in; its end wakes us too
  const next = plan(seen.snapshot)
  count(metrics, serviceImage, next)
  const reportAt = await report(wiring, serviceImage, next, memory, now)
  if (seen.claim) await catchUp(wiring, seen.claim, memory)
  const actedAt = seen.claim && (await act(wiring, metrics, seen.claim, serviceImage, next, memory))
  return { lookAgainAt: earliest(reportAt, actedAt, next.lookAgainAt), hasBegun: next.stamps.length > 0 }
}

/** Without a registry, specs that ask for digests are refused. */
export type Surroundings = { registry?: Pick<RegistryClient, "resolve"> | undefined }

export const serviceImageController = createServiceImageController()

/** How soon to look again at a list that is not in, or at objects that turned out to have changed. */
const listingMs = 5000
const conflictMs = 1000
/** How long one look may go on from batch to batch before others of its controller get their turn. */
const lookMsMost = 30_000

/**
 * What is known only here. Losing it costs a repeated write at most: everything that matters stands in the objects, and
 * what the fence needs stands in the status.
 */
export type Memory = {
  uid: string
  written?: ServiceImage
  reportedAt?: Instant
  pace?: Pace
  pinning?: Pinning
  /** Our intents that stand in the status, and the version of each object read before. */
  declared: Map<string, string>
  /** Objects a write may still be on its way to; with the time since when the server refuses to let us touch it. */
  unsure: Map<string, Instant | undefined>
  touches: number
  /** Objects that had changed when we wrote, the version we had of them, and when that was. */
  outdated: Map<string, { version: string; at: Instant }>
  writes: Writes
  /** What they were decided for. */
  aim?: string
  /** The version of the ServiceImage, written by somebody else, from which on we have read the objects. */
  takenOverAt?: string
  /** He wrote since: our copy of the objects may not show yet what he did. */
  behind: "No" | "Yes" | "CatchingUp"
}

export const newMemory = (): Omit<Memory, "uid"> => ({
  declared: new Map(),
  unsure: new Map(),
  touches: 0,
  outdated: new Map(),
  writes: new Writes(writesAtOnce),
  behind: "No",
})

/** Everything that says which object gets which image; pausing or pacing does not. */
function aimOf({ spec: { paused: _, pace: __, ...spec }, metadata: { annotations = {} } }: ServiceImage): string {
  return JSON.stringify([spec, annotations[rollbackAnnotation], annotations[retryAnnotation]])
}

/** Another object of the same name is another rollout. */
function remembered(memories: Map<string, Memory>, { metadata: { name, uid = "" } }: ServiceImage): Memory {
  const known = memories.get(name)
  if (known?.uid === uid) return known
  const memory = { uid, ...newMemory() }
  memories.set(name, memory)
  return memory
}

/**
 * Somebody else wrote the status last: whatever he had under way may still arrive. With our next status, which is a
 * compare-and-swap and comes before anything else, he can declare nothing any more; then we touch what he had declared.
 */
function takeOver({ metadata, status }: ServiceImage, memory: Memory, identity: string): void {
  if (!status || status.electionID === identity) {
    memory.takenOverAt ??= "" // the first status is ours: the objects are read since before there was another one
    return
  }
  if (memory.takenOverAt !== undefined && memory.takenOverAt !== metadata.resourceVersion) memory.behind = "Yes"
  memory.takenOverAt = metadata.resourceVersion ?? ""
  memory.declared = new Map()
  for (const key of status.inflight ?? []) if (!memory.unsure.has(key)) memory.unsure.set(key, undefined)
}

/** Says before doing: a crash in between leaves an explanation behind. The write fails if anything has changed since. */
async function report(
  { client, events, clock }: Wiring,
  serviceImage: ServiceImage,
  { status, declares, intents }: Plan,
  memory: Memory,
  now: Instant,
): Promise<Instant | undefined> {
  const at = declares ? 0 : whenToReport(serviceImage.status, status, memory.reportedAt)
  if (at === "Never") return undefined
  if (at > now) return at
  // If its outcome stays unknown, it may have withdrawn what was declared.
  memory.declared = new Map()
  memory.written = await client.replace(serviceImages, { ...serviceImage, status }, { subresource: "status" })
  memory.reportedAt = clock.now()
  memory.declared = new Map(intents)
  for (const episode of storyOf(serviceImage, status)) events.record(serviceImage, episode)
  return undefined
}

/**
 * Waits, without holding anybody up, until our copy of the objects shows everything that was there when we had taken
 * over. Nothing is complete before.
 */
async function catchUp({ client, enqueue, signal }: Wiring, { resource, cache, name }: Claim, memory: Memory) {
  if (memory.behind !== "Yes") return
  const { metadata } = await client.list(resource, { limit: 1 })
  memory.behind = "CatchingUp"
  cache.reached({ name: "" }, metadata.resourceVersion, signal).then(
    () => {
      if (memory.behind === "CatchingUp") memory.behind = "No"
      enqueue(name)
    },
    () => {}, // the process ends
  )
}

/** Touches what has to be, and begins to write the stamps. Returns when to look again. */
async function act(
  { client, clock, identity, enqueue }: Wiring,
  metrics: ServiceImageMetrics,
  claim: Claim,
  { metadata }: ServiceImage,
  { stamps, touches, status }: Plan,
  memory: Memory,
): Promise<Instant | undefined> {
  const outcomes: Outcomes = {
    answered(key) {
      memory.declared.delete(key)
      memory.unsure.delete(key)
    },
    outdated: (key, version) => memory.outdated.set(key, { version, at: clock.now() }),
    stamped: () => metrics.stamped(metadata.name, 1),
    unknown(key) {
      memory.declared.delete(key)
      memory.unsure.set(key, undefined)
    },
  }
  const due = touches.filter(key => memory.unsure.get(key) === undefined)
  if (due.length > 0) {
    // The same value twice would not move the version, so each round has its own.
    const refused = await applyTouches(client, claim, due, `${identity}.${++memory.touches}`, outcomes)
    for (const key of refused) memory.unsure.set(key, clock.now())
  }
  if (stamps.length > 0) {
    const pods = stamps.reduce((sum, stamp) => sum + (stamp.reason === "StampedNew" ? 0 : stamp.pods), 0)
    if (memory.pace) memory.pace = spend(memory.pace, pods)
    const decided = { operation: status.operation!.id, by: `serviceimage/${metadata.name}`, at: clock.now() }
    beginStamps(client, memory.writes, claim, stamps, decided, outcomes)
    memory.writes.onEnd = () => enqueue(metadata.name)
  }
  const isLate = memory.unsure.size > 0 || memory.outdated.size > 0
  return isLate ? clock.now() + conflictMs : due.length > 0 ? clock.now() : undefined
}

function count(metrics: ServiceImageMetrics, serviceImage: ServiceImage, { status, tiers }: Plan): void {
  metrics.publish({ serviceImage, status, tiers: tiers.map(tier => tierNumbers(tier.view, tier)) })
}

function readServiceImage(object: KubeObject): { resourceVersion: string; object: ServiceImage } {
  return { resourceVersion: object.metadata.resourceVersion ?? "", object: object as ServiceImage }
}
