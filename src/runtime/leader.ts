import assert from "node:assert/strict"
import { formatMicroInstant } from "#lib/instant.ts"
import type { Client } from "./client/client.ts"
import { isFailure, KubeError } from "./client/errors.ts"
import type { Clock } from "./clock.ts"
import type { Permission } from "./controller.ts"
import type { Logger } from "./log.ts"
import { jitter, type Random } from "./random.ts"
import type { KubeObject, Resource } from "./resource.ts"

const leases: Resource = {
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
}

/** The permissions for an election, in the namespace of the Lease. */
export const electionPermissions: readonly Permission[] = [
  { resource: leases, verbs: ["get", "create", "update"] },
] as const

export type Lease = KubeObject & {
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

export type ElectionDeps = {
  /** Must not be guarded by this election: the guard depends on it. */
  client: Pick<Client, "get" | "create" | "replace">
  clock: Clock
  random: Random
  log: Logger
}

export type ElectionOptions = {
  namespace: string
  name: string
  /** A fresh one for each process. An identity that has lost the lead never leads again. */
  identity: string
  /** How long others wait after the last renewal that they saw, before they take over. */
  leaseMs?: number
  /** How long the holder goes on without a successful renewal. */
  renewDeadlineMs?: number
  retryMs?: number
  /** How often a candidate reads the Lease: a released Lease is taken within this time. */
  pollMs?: number
  /**
   * Lead at once where there is no Lease. Otherwise the very first start waits for `leaseMs`: a missing Lease may have
   * been deleted under a holder that still acts. True for clusters that are ours alone (demo, tests). A function is
   * called after the Lease was created, and finds out whether another process can have acted before. See decision 18.
   */
  trustAbsence?: boolean | (() => Promise<boolean>)
}

export type Election = {
  /** Leads, and the last renewal is recent enough to act on. */
  readonly isLeader: boolean
  /** Throws `WritesRefused` unless this process leads at this very moment, however long it was stopped before. */
  guard(): void
  /** Resolves when this process has begun to lead. */
  readonly acquired: Promise<void>
  /** Resolves with the reason when leadership is lost for good: the process has to end. */
  readonly lost: Promise<string>
  /** Since when (monotonic) the Lease could not be read or written, and why: such a candidate could not take over. */
  readonly trouble: { since: number; error: unknown } | undefined
  /** Stops taking part, refuses writes from now on, and releases the Lease. Call when nothing is under way any more. */
  release(): Promise<void>
  /** Like `release`, but lets the Lease expire: for when a write may still be under way. */
  abandon(): Promise<void>
}

/** A leader gives up when it has not renewed its Lease for this long. */
export const usualRenewDeadlineMs = 10_000

/**
 * Leader election over a Lease, with client-go's times: 15 s, 10 s, 2 s. A candidate reads the Lease twice a second.
 *
 * Why no two guards ever pass at once. Let `s` be when the holder sent its last successful renewal, by its own clock.
 *
 *   holder      s: PUT ──► applied, version v ── guard passes until s + 10 s ──│ never again
 *   candidate            first sees v ──────────── waits 15 s ──────────────── PUT if still v
 *
 * A candidate sees v only after it was applied, so it acts at s + 15 s at the earliest. If the holder renewed since
 * then, the version moved and the PUT is refused. Both use their own monotonic clock for their own wait: the times in
 * the Lease are for people. Clocks may run at rates up to 15:10 apart. Every acquisition is a conditional PUT of a
 * version that was watched for the whole time; even a missing Lease is first created without a holder.
 *
 * It is no fence: a write that left in time may arrive late. What must not be undone carries its own precondition.
 */
export function takePartInElection(deps: ElectionDeps, options: ElectionOptions): Election {
  const { client, clock, random, log } = deps
  const {
    namespace,
    name,
    identity,
    leaseMs = 15_000,
    renewDeadlineMs = usualRenewDeadlineMs,
    retryMs = 2_000,
    pollMs = 500,
  } = options
  assert(renewDeadlineMs < leaseMs, "the holder gives up before others take over")
  assert(2 * retryMs < renewDeadlineMs, "there is time for a second try")
  assert(identity.length > 0, "a holder has an identity")

  /** One request must not use up the whole time for a renewal: the next may find a better connection. */
  const requestMs = renewDeadlineMs / 2

  let phase: "candidate" | "leader" | "lost" | "out" = "candidate"
  /** The Lease as last seen, and since when (monotonic) it is unchanged. */
  let seen: { lease: Lease; at: number } | undefined
  /** When the last PUT, and the last successful one, was sent (monotonic). */
  let lastSentAt = 0
  let renewedAt = 0
  /** A PUT that makes us the holder was sent, and nothing since has shown that we are not. */
  let mayHold = false
  let trouble: Election["trouble"]
  let cancelWatchdog = () => {}
  let wake = () => {}
  const acquired = Promise.withResolvers<void>()
  const lost = Promise.withResolvers<string>()

  const isOverdue = () => clock.monotonic() - renewedAt >= renewDeadlineMs
  const isLeader = () => phase === "leader" && !isOverdue()
  const holderOf = (lease: Lease) => lease.spec?.holderIdentity || undefined
  const isOurs = (lease: Lease) => holderOf(lease) === identity

  function lose(why: string) {
    if (phase !== "leader") return
    phase = "lost"
    cancelWatchdog()
    log.warn("lost the lead, ending", { lease: name, why })
    lost.resolve(why)
    wake()
  }

  function loseIfOverdue() {
    if (phase === "leader" && isOverdue()) lose(`the Lease was not renewed for ${renewDeadlineMs / 1000} s`)
  }

  /** Ours until `sentAt` + deadline, since no other process takes over sooner after a write that was sent then. */
  function hold(lease: Lease, sentAt: number) {
    see(lease)
    renewedAt = sentAt
    cancelWatchdog()
    cancelWatchdog = clock.after(renewedAt + renewDeadlineMs - clock.monotonic(), loseIfOverdue)
  }

  function see(lease: Lease) {
    const before = seen?.lease
    const { uid, resourceVersion } = lease.metadata
    if (before?.metadata.uid === uid && before?.metadata.resourceVersion === resourceVersion) return
    seen = { lease, at: clock.monotonic() }
    const holder = holderOf(lease)
    if (phase === "candidate" && holder && holder !== identity && (!before || holderOf(before) !== holder)) {
      log.info("standing by, another leads", { lease: name, holder })
    }
  }

  /** The time (monotonic) from which the Lease may be taken. */
  function freeAt({ lease, at }: { lease: Lease; at: number }): number {
    const { leaseDurationSeconds } = lease.spec ?? {}
    if (isOurs(lease)) return at // taken by a request of ours whose answer was lost or late
    if (!holderOf(lease) && leaseDurationSeconds === 1) return at // released by a holder that had stopped
    return at + (leaseDurationSeconds && leaseDurationSeconds > 1 ? leaseDurationSeconds * 1000 : leaseMs)
  }

  async function run() {
    while (phase === "candidate" || phase === "leader") {
      try {
        if (phase === "leader") await renew()
        else await campaign()
        trouble = undefined
      } catch (error) {
        const isNews = !trouble || kindOf(trouble.error) !== kindOf(error)
        trouble = { since: trouble?.since ?? clock.monotonic(), error }
        const say = isNews ? log.warn : log.debug
        say("cannot reach the Lease", { lease: name, error })
      }
      loseIfOverdue()
      if (phase === "candidate" || phase === "leader") await pause(untilNext())
    }
  }

  function untilNext(): number {
    const retry = jitter(random, retryMs)
    // Counted from the last PUT: a slow answer must not add a pause on top.
    if (phase === "leader") return Math.max(0, lastSentAt + retry - clock.monotonic())
    if (!seen || trouble) return retry
    const poll = jitter(random, pollMs)
    const untilFree = freeAt(seen) - clock.monotonic()
    return untilFree > 0 ? Math.min(poll, untilFree) : poll
  }

  async function campaign() {
    const lease = await read()
    if (!lease) return found()
    see(lease)
    await take()
  }

  /** Creates the Lease without a holder, so that every process takes it by a conditional write. */
  async function found() {
    seen = undefined
    const vacant: Lease = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace },
      spec: { leaseDurationSeconds: wholeSeconds(leaseMs), leaseTransitions: 0 },
    }
    try {
      see(await within(client.create(leases, vacant, { deadlineMs: requestMs })))
    } catch (error) {
      if (isFailure(error, "Exists")) return
      throw error
    }
    if (await isTrusted()) await take({ atOnce: true })
    else log.info("there was no Lease; waiting in case another process still acts", { lease: name, leaseMs })
  }

  /** What cannot be found out in time is not trusted. */
  async function isTrusted(): Promise<boolean> {
    const { trustAbsence = false } = options
    return typeof trustAbsence === "boolean" ? trustAbsence : within(trustAbsence()).catch(() => false)
  }

  async function take({ atOnce = false } = {}) {
    if (phase !== "candidate" || !seen || (!atOnce && clock.monotonic() < freeAt(seen))) return
    const { spec } = seen.lease
    const now = formatMicroInstant(clock.now())
    const isFirst = spec?.acquireTime === undefined
    const sentAt = clock.monotonic()
    const lease = await put(seen.lease, {
      holderIdentity: identity,
      leaseDurationSeconds: wholeSeconds(leaseMs),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: (spec?.leaseTransitions ?? 0) + (isFirst || isOurs(seen.lease) ? 0 : 1),
    })
    if (!lease) return
    if (phase !== "candidate" || clock.monotonic() - sentAt >= renewDeadlineMs) return see(lease) // too late to act on
    hold(lease, sentAt)
    phase = "leader"
    log.info("leading", { lease: name, identity })
    acquired.resolve()
  }

  async function renew() {
    if (await renewOnce()) return
    // The Lease is not as we left it. If only our own lost answer or a foreign label changed it, we go on.
    const lease = await read()
    if (phase !== "leader") return
    if (!lease) return lose("the Lease was deleted")
    if (lease.metadata.uid !== seen?.lease.metadata.uid) return lose("the Lease was replaced by another")
    if (!isOurs(lease)) return lose(`the Lease is held by ${holderOf(lease) ?? "no process"}`)
    see(lease)
    await renewOnce()
  }

  async function renewOnce(): Promise<boolean> {
    assert(seen, "a leader has seen the Lease")
    const sentAt = clock.monotonic()
    const lease = await put(seen.lease, { ...seen.lease.spec, renewTime: formatMicroInstant(clock.now()) })
    loseIfOverdue() // a renewal that comes after the deadline is none, whatever the server says
    if (!lease) return phase !== "leader"
    if (phase === "leader") hold(lease, sentAt)
    else see(lease)
    return true
  }

  async function read(): Promise<Lease | undefined> {
    try {
      return await within(client.get<Lease>(leases, { namespace, name }))
    } catch (error) {
      if (isFailure(error, "NotFound")) return undefined
      throw error
    }
  }

  /**
   * Replaces exactly this version of the Lease; undefined if it is gone. The metadata include the uid: without it, the
   * server would create a Lease by this PUT if it was deleted meanwhile.
   */
  async function put(lease: Lease, spec: NonNullable<Lease["spec"]>): Promise<Lease | undefined> {
    const { uid, resourceVersion } = lease.metadata
    assert(uid && resourceVersion, "what the server sends has a uid and a version")
    if (spec.holderIdentity === identity) mayHold = true
    lastSentAt = clock.monotonic()
    try {
      return await within(client.replace<Lease>(leases, { ...lease, spec }, { deadlineMs: requestMs }))
    } catch (error) {
      if (isFailure(error, "Conflict", "NotFound")) return undefined
      throw error
    }
  }

  /** A request that never ends must not delay the next. A write that was given up may still arrive: see `freeAt`. */
  function within<T>(request: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = clock.after(requestMs, () =>
        reject(new KubeError("UnknownOutcome", `no answer about the Lease within ${requestMs / 1000} s`)),
      )
      request.then(resolve, reject).finally(cancel)
    })
  }

  function pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = clock.after(ms, resolve)
      wake = () => {
        cancel()
        resolve()
      }
    })
  }

  async function leave() {
    if (phase !== "lost") phase = "out"
    cancelWatchdog()
    wake()
    await running
  }

  async function handOn() {
    const wasLost = phase === "lost"
    await leave()
    if (wasLost || !mayHold) return
    for (let attempt = 0; attempt < 3; attempt++) {
      const lease = attempt === 0 && seen && isOurs(seen.lease) ? seen.lease : await read()
      if (!lease || !isOurs(lease)) return
      const now = formatMicroInstant(clock.now())
      const vacant = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: now, renewTime: now }
      if (await put(lease, vacant)) return log.info("handed the Lease on", { lease: name })
    }
  }

  const running = run()
  let left: Promise<void> | undefined
  return {
    get isLeader() {
      return isLeader()
    },
    guard() {
      loseIfOverdue()
      if (phase !== "leader") throw new KubeError("WritesRefused", `${identity} does not lead (${phase})`)
    },
    acquired: acquired.promise,
    lost: lost.promise,
    get trouble() {
      return trouble
    },
    release() {
      left ??= handOn().catch(error => log.warn("cannot hand the Lease on, it will run out", { lease: name, error }))
      return left
    },
    abandon() {
      left ??= leave()
      return left
    },
  }
}

const wholeSeconds = (ms: number) => Math.max(2, Math.ceil(ms / 1000)) // 1 s means released

const kindOf = (error: unknown) => (error instanceof KubeError ? error.kind : undefined)
