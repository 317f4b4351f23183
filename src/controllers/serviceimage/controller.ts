import {
  type FailureReason,
  maxInflight,
  retryAnnotation,
  rollbackAnnotation,
  type ServiceImage,
} from "#api/v1alpha1/serviceimage/index.ts"
import { spend } from "#core/fleet/pace.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { Cache } from "#runtime/cache/cache.ts"
import { isFailure, saysWebhookFailed } from "#runtime/client/errors.ts"
import { saysNotGranted } from "#runtime/client/outcome.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Controller, Wiring } from "#runtime/controller.ts"
import { type Held, hold } from "#runtime/kind-controller.ts"
import { memoriesOf } from "#runtime/memories.ts"
import { nameOf } from "#runtime/resource.ts"
import { type StatusWriter, statusWriter } from "#runtime/status.ts"
import type { Surroundings } from "../surroundings.ts"
import { wayOutWith } from "../way-out.ts"
import { beginStamps, beginTouches, type Outcomes } from "./apply.ts"
import { readEndpoints } from "./endpoints.ts"
import { type Memory, newMemory, pass, takeOver } from "./memory.ts"
import { createServiceImageMetrics, type ServiceImageMetrics, tierNumbers } from "./metrics.ts"
import { observe } from "./observe.ts"
import { pin } from "./pins.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { applyJobs } from "./pre-cache-jobs.ts"
import { checksFor, type Judges } from "./questions.ts"
import { storyOf, whenToReport } from "./report.ts"
import { permissions, serviceImages } from "./resources.ts"
import { type Claim, Targets } from "./targets.ts"
import { trustOf } from "./trust.ts"

/**
 * Brings a fleet to the images its ServiceImage names, tier by tier. Reads ServiceImages, CustomResourceDefinitions,
 * Namespaces, the target's objects and the pods behind them; writes the image of those objects, ImagePullJobs for
 * pre-caching and the ServiceImage's status. Where a tier has an analysis, it asks metric services and hooks as a Canary
 * does. Without a registry, specs that ask for digests are refused.
 */
export const createServiceImageController = (
  surroundings: Surroundings = {},
  judgesIn: (wiring: Wiring) => Judges = judgesWith(surroundings),
): Controller => ({
  name: "serviceimage",
  permissions,
  concurrency: 4,
  setup(wiring) {
    const targets = new Targets(wiring)
    const metrics = createServiceImageMetrics(wiring.metrics)
    const cache = wiring.watch(serviceImages, { project: hold<ServiceImage> })
    cache.subscribe(({ key, initial }) => wiring.enqueue(key, { background: initial }))
    const statuses = statusWriter<ServiceImage>(wiring, serviceImages)
    const memories = memoriesOf(newMemory)
    // What they watch is watched from the first step that is judged.
    let open: Judges | undefined
    const judges = () => (open ??= judgesIn(wiring))
    const { registry } = surroundings
    const tools = { targets, metrics, registry, cache, statuses, judges }

    return {
      warm(name) {
        const known = cache.get(name)?.object
        if (known && !known.metadata.deletionTimestamp) targets.warm(known)
        else targets.forget(name)
      },
      async reconcile(name) {
        const cached = cache.get(name)?.object
        if (!cached || cached.metadata.deletionTimestamp) {
          targets.forget(name)
          metrics.forget(name)
          statuses.forget(name)
          await memories.drop(name)?.writes.untilAtMost(0)
          return
        }
        const { uid = "" } = cached.metadata
        const memory = memories.of(name, uid)
        await memory.writes.untilAtMost(maxInflight) // tells if one has failed since the last look
        // While one batch is being written the next is declared.
        for (const until = wiring.clock.monotonic() + lookMsMost; ; ) {
          const { lookAgainAt, hasBegun } = await look(wiring, tools, { name, uid }, memory)
          if (!hasBegun || wiring.signal.aborted || wiring.clock.monotonic() >= until) return lookAgainAt
          await memory.writes.untilAtMost(maxInflight / 2)
        }
      },
      // A write that hangs delays nothing but the shutdown: the Lease is handed on when no write is under way any more.
      async drain() {
        for (const [key, { writes }] of memories.entries())
          await writes.untilAtMost(0).catch(error => {
            const why = isFailure(error, "WritesRefused") ? "no longer allowed to write" : "a write did not come about"
            wiring.log.info(`${why}, ending`, { key, error })
          })
      },
    }
  },
})

function judgesWith(surroundings: Surroundings): (wiring: Wiring) => Judges {
  const { measuring, hooks } = wayOutWith(surroundings)
  return wiring => ({ measuring: measuring(wiring), hooks: hooks(wiring) })
}

type Tools = Pick<Surroundings, "registry"> & {
  judges(): Judges
  targets: Targets
  metrics: ServiceImageMetrics
  cache: Cache<Held<ServiceImage>>
  statuses: StatusWriter<ServiceImage>
}

/** Observes, decides, reports, and begins to write. */
async function look(
  wiring: Wiring,
  { targets, metrics, registry, cache, statuses, judges }: Tools,
  { name, uid }: { name: string; uid: string },
  memory: Memory,
): Promise<{ lookAgainAt?: Instant | undefined; hasBegun?: boolean }> {
  const cached = cache.get(name)?.object
  if (cached?.metadata.uid !== uid) return { lookAgainAt: wiring.clock.now() }
  const serviceImage = statuses.newest(cached)
  // Writes that were decided for other images must end before anything is concluded from these.
  const aim = aimOf(serviceImage)
  if (memory.aim !== aim) await memory.writes.untilAtMost(0)
  memory.aim = aim
  takeOver(serviceImage, memory, { identity: wiring.identity, isOpen: targets.isOpen(serviceImage) })
  const { clock, signal } = wiring
  memory.pinning = pin(serviceImage, memory.pinning, { registry, clock, signal, onAnswer: () => wiring.enqueue(name) })
  if (memory.pinning.isOpen) return {}
  const now = clock.now()
  pass(memory, serviceImage, now)

  const seen = observe(targets, serviceImage, memory, { now, electionID: wiring.identity })
  if (!seen) return { lookAgainAt: now + listingMs } // nothing can be said before the first list is in; its end wakes us too
  const next = planned(seen.snapshot, judges)
  count(metrics, serviceImage, next)
  const reportAt = await report(statuses, clock, serviceImage, next, memory)
  if (seen.claim) catchUp(wiring, seen.claim, memory)
  const actedAt = seen.claim && act(wiring, metrics, seen.claim, serviceImage, next, memory)
  const endpointsAt = seen.claim && lookAtEndpoints(wiring, targets, seen.claim, next, memory)
  const { refusedJobs: refused } = memory
  const jobsAt = await applyJobs(wiring.client, serviceImage, next.jobs, { refused, now })
  return {
    lookAgainAt: earliest(reportAt, actedAt, jobsAt, endpointsAt, next.lookAgainAt),
    hasBegun: next.stamps.length > 0,
  }
}

/** The same look decides with the answers that are there, and asks for those that are not. */
function planned(snapshot: Snapshot, judges: () => Judges): Plan {
  const next = plan(snapshot)
  if (next.asks.length === 0) return next
  const checks = checksFor(next.asks, { ...next, serviceImage: snapshot.serviceImage }, judges())
  return checks.size === 0 ? next : plan({ ...snapshot, checks })
}

/** How soon to look again when a list is not complete, or when objects turned out to have changed. */
const listingMs = 5000
const conflictMs = 1000
/** How long after one look at the endpoints the next may begin, also where the first failed. */
const endpointsMs = 30_000
/** How long one look may continue from batch to batch before the other ServiceImages get their turn. */
const lookMsMost = 30_000

/** Everything that decides which object gets which image; `paused` and `pace` do not. */
function aimOf({ spec: { paused: _, pace: __, ...spec }, metadata: { annotations = {} } }: ServiceImage): string {
  return JSON.stringify([spec, annotations[rollbackAnnotation], annotations[retryAnnotation]])
}

/**
 * Reports before acting: a crash in between leaves an explanation behind. The write fails if the object has changed
 * since.
 */
async function report(
  statuses: StatusWriter<ServiceImage>,
  clock: Clock,
  serviceImage: ServiceImage,
  { status, declares, intents }: Plan,
  memory: Memory,
): Promise<Instant | undefined> {
  const at = declares ? 0 : whenToReport(serviceImage.status, status, memory.reportedAt)
  if (at === "Never") return undefined
  if (at > clock.now()) return at
  // If the outcome of the write stays unknown, it may have withdrawn the declared intents.
  memory.declared = new Map()
  await statuses.prove(serviceImage, status, storyOf(serviceImage, status))
  memory.reportedAt = clock.now()
  memory.declared = new Map(intents)
  return undefined
}

/**
 * Waits in the background until our cache shows every object as it was when we had taken over. Until then nothing is
 * complete.
 */
function catchUp({ enqueue, signal }: Wiring, { cache, name }: Claim, memory: Memory): void {
  const { behind } = memory
  if (behind === "No" || (behind !== "Yes" && behind.catchingUp === cache)) return
  const attempt = { catchingUp: cache }
  memory.behind = attempt
  cache.catchUp(signal).then(
    () => {
      if (memory.behind === attempt) memory.behind = "No"
      enqueue(name)
    },
    () => {}, // the process ends
  )
}

/**
 * Begins to look at the endpoints of a complete rollout, beside the loop. Where they cannot be read, nothing is known of
 * them, and nothing is said. Returns when to look again.
 */
function lookAtEndpoints(
  wiring: Wiring,
  targets: Pick<Targets, "imagesAt">,
  { name, fleet }: Claim,
  { endpointsAt: dueAt, status }: Plan,
  { endpoints }: Memory,
): Instant | undefined {
  if (dueAt === undefined || endpoints.isOpen) return undefined
  const now = wiring.clock.now()
  const at = Math.max(dueAt, (endpoints.triedAt ?? Number.NEGATIVE_INFINITY) + endpointsMs)
  if (at > now) return at
  endpoints.isOpen = true
  endpoints.triedAt = now
  const { completedAt = "", operation } = status
  const around = { namespaces: [...fleet.namespaces()], images: Object.values(operation?.images ?? {}) }
  readEndpoints(wiring, { ...around, imagesAt: pod => targets.imagesAt(pod) })
    .then(
      found => {
        endpoints.found = { ...found, completedAt }
      },
      error => wiring.log.info("endpoints are not known", { key: name, error }),
    )
    .finally(() => {
      endpoints.isOpen = false
      wiring.enqueue(name)
    })
  return undefined
}

/** Begins the touches and the stamps. Returns when to look again. */
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
  // The same value again would not change the version, so each round has its own.
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

/** How the answers to writes change what is remembered, and what is written next. */
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
      // The namespace waits longer than the object, so that the object is touched first. The answer to the touch
      // releases the others.
      if (namespace !== "") fleet.refuse({ namespace }, why, 2 * waitMs)
    },
    refused(key, { said }) {
      const namespace = namespaceOf(key)
      const reason = refusal(said)
      const why = { reason, message: said }
      if (reason !== "Forbidden") fleet.refuse({ key }, why)
      // A missing grant concerns the whole namespace, and so do most webhooks.
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

function refusal(said: string): FailureReason {
  if (saysNotGranted(said)) return "Forbidden"
  if (saysWebhookFailed(said)) return "WriteFailed"
  return said.includes("exceeded quota") ? "QuotaExceeded" : "AdmissionDenied"
}

function count(metrics: ServiceImageMetrics, serviceImage: ServiceImage, { status, tiers }: Plan): void {
  metrics.publish({ serviceImage, status, tiers: tiers.map(tier => tierNumbers(tier.view, tier)) })
}
