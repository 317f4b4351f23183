import {
  type FailureReason,
  maxInflight,
  retryAnnotation,
  rollbackAnnotation,
  type ServiceImage,
} from "#api/v1alpha1/serviceimage/index.ts"
import { Doubts } from "#core/fleet/doubts.ts"
import { type Pace, spend } from "#core/fleet/pace.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { RegistryClient } from "#registry/index.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import { isFailure, saysWebhookFailed } from "#runtime/client/errors.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Controller, Wiring } from "#runtime/controller.ts"
import { newest } from "#runtime/newest.ts"
import { type KubeObject, nameOf } from "#runtime/resource.ts"
import { beginStamps, beginTouches, type Outcomes, writesAtOnce } from "./apply.ts"
import { createServiceImageMetrics, type ServiceImageMetrics, tierNumbers } from "./metrics.ts"
import { observe } from "./observe.ts"
import { type Pinning, pin } from "./pins.ts"
import { type Plan, plan } from "./plan.ts"
import { storyOf, whenToReport } from "./report.ts"
import { permissions, serviceImages } from "./resources.ts"
import { type Claim, Targets } from "./targets.ts"
import { type Trust, trustOf } from "./trust.ts"
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
  const actedAt = seen.claim && act(wiring, metrics, seen.claim, serviceImage, next, memory)
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
  /** The version of the ServiceImage, written by somebody else, from which on we have read the objects. */
  takenOverAt?: string
  /** He wrote since: our copy of the objects may not show yet what he did. */
  behind: "No" | "Yes" | "CatchingUp"
}

export function newMemory(): Omit<Memory, "uid"> {
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
  for (const key of status.inflight ?? []) memory.doubts.inherit(key)
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

/** Begins to touch what has to be, and to write the stamps. Returns when to look again. */
function act(
  { client, clock, identity, enqueue }: Wiring,
  metrics: ServiceImageMetrics,
  claim: Claim,
  { metadata }: ServiceImage,
  { stamps, touches, status }: Plan,
  memory: Memory,
): Instant | undefined {
  const { doubts, trust, writes } = memory
  const outcomes: Outcomes = {
    ...outcomesOf(claim, memory, clock),
    stamped(key) {
      doubts.settled(key)
      trust.set(namespaceOf(key), "Proven")
      metrics.stamped(metadata.name, 1)
    },
    touched: key => trust.set(namespaceOf(key), "Proven"),
  }
  writes.onEnd = () => enqueue(metadata.name)
  const due = touches.filter(key => doubts.isDue(key, clock.now()) && !writes.keys.has(key))
  // The same value twice would not move the version, so each round has its own.
  if (due.length > 0) beginTouches(client, writes, claim, due, `${identity}.${++memory.touches}`, outcomes)
  if (stamps.length > 0) {
    const pods = stamps.reduce((sum, stamp) => sum + (stamp.reason === "StampedNew" ? 0 : stamp.pods), 0)
    if (memory.pace) memory.pace = spend(memory.pace, pods)
    const { name, uid = "" } = metadata
    const decided = { operation: status.operation!.id, by: `serviceimage/${name}`, uid, at: clock.now() }
    beginStamps(client, writes, claim, stamps, decided, outcomes)
  }
  const outdatedAt = memory.outdated.size > 0 ? clock.now() + conflictMs : undefined
  return earliest(doubts.nextAt(writes.keys), outdatedAt)
}

/** What the answers to writes mean for what is remembered, and for what is written next. */
function outcomesOf({ fleet }: Claim, memory: Memory, clock: Clock): Omit<Outcomes, "stamped" | "touched"> {
  const { doubts, trust } = memory
  return {
    answered(key) {
      memory.declared.delete(key)
      doubts.answered(key)
    },
    outdated: (key, version) => memory.outdated.set(key, { version, at: clock.now() }),
    unknown(key, { said }) {
      const namespace = namespaceOf(key)
      memory.declared.delete(key)
      trust.set(namespace, "Suspect")
      const waitMs = doubts.unanswered(key, clock.now())
      if (waitMs === 0) return // an answer may get lost: it is touched at once, and if that is answered all is well
      const why = { reason: "WriteFailed", message: said } as const
      fleet.refuse({ key }, why, waitMs)
      // Longer than the object, so that its touch comes first; the answer to that lets the others go on.
      if (namespace !== "") fleet.refuse({ namespace }, why, 2 * waitMs)
    },
    refused(key, { said }) {
      const namespace = namespaceOf(key)
      const reason = refusal(said)
      const why = { reason, message: said }
      if (reason !== "Forbidden") fleet.refuse({ key }, why)
      // A missing grant concerns all of a namespace, and most webhooks do.
      const isOfAll = reason === "Forbidden" || (reason === "WriteFailed" && namespace !== "")
      if (!isOfAll) return
      trust.set(namespace, "Suspect")
      fleet.refuse({ namespace }, why)
    },
    begins(key) {
      const namespace = namespaceOf(key)
      if (trustOf(trust, namespace) !== "Suspect") return true
      if (doubts.areIn(namespace)) return false
      fleet.awaits(namespace)
      return true
    },
    untouchable: key => doubts.refused(key, clock.now()),
    unused({ reason, pods }) {
      if (memory.pace && reason !== "StampedNew") memory.pace = spend(memory.pace, -pods)
    },
  }
}

const namespaceOf = (key: string) => nameOf(key).namespace ?? ""

/** The server answers 403 for a missing role, an exceeded quota and a webhook alike; only its words tell them apart. */
function refusal(said: string): FailureReason {
  if (said.includes("cannot patch resource")) return "Forbidden"
  if (saysWebhookFailed(said)) return "WriteFailed"
  return said.includes("exceeded quota") ? "QuotaExceeded" : "AdmissionDenied"
}

function count(metrics: ServiceImageMetrics, serviceImage: ServiceImage, { status, tiers }: Plan): void {
  metrics.publish({ serviceImage, status, tiers: tiers.map(tier => tierNumbers(tier.view, tier)) })
}

function readServiceImage(object: KubeObject): { resourceVersion: string; object: ServiceImage } {
  return { resourceVersion: object.metadata.resourceVersion ?? "", object: object as ServiceImage }
}
