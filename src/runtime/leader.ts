import assert from "node:assert/strict"
import { formatMicroInstant } from "#lib/instant.ts"
import type { Client } from "./client/client.ts"
import { KubeError } from "./client/errors.ts"
import type { Clock } from "./clock.ts"
import {
  freeAt,
  holderOf,
  type Lease,
  type LeaseAccess,
  type LeaseSpec,
  leaseAccess,
  type SeenLease,
  wholeSeconds,
} from "./lease.ts"
import type { Logger } from "./log.ts"
import { jitter, type Random } from "./random.ts"

export { electionPermissions, type Lease } from "./lease.ts"

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
export const takePartInElection = (deps: ElectionDeps, options: ElectionOptions): Election =>
  new Participant(deps, options)

class Participant implements Election {
  readonly #deps: ElectionDeps
  readonly #options: ElectionOptions & Required<Omit<ElectionOptions, "trustAbsence">>
  readonly #access: LeaseAccess
  readonly #acquired = Promise.withResolvers<void>()
  readonly #lost = Promise.withResolvers<string>()
  #phase: "candidate" | "leader" | "lost" | "out" = "candidate"
  #seen: SeenLease | undefined
  /** When the last PUT, and the last successful one, was sent (monotonic). */
  #lastSentAt = 0
  #renewedAt = 0
  /** A PUT that makes us the holder was sent, and nothing since has shown that we are not. */
  #mayHold = false
  #trouble: Election["trouble"]
  #cancelWatchdog = () => {}
  #wake = () => {}
  readonly #running: Promise<void>
  #left: Promise<void> | undefined

  constructor(deps: ElectionDeps, options: ElectionOptions) {
    const times = { leaseMs: 15_000, renewDeadlineMs: usualRenewDeadlineMs, retryMs: 2_000, pollMs: 500 }
    this.#deps = deps
    this.#options = { ...times, ...options }
    const { leaseMs, renewDeadlineMs, retryMs, identity } = this.#options
    assert(renewDeadlineMs < leaseMs, "the holder gives up before others take over")
    assert(2 * retryMs < renewDeadlineMs, "there is time for a second try")
    assert(identity.length > 0, "a holder has an identity")
    // One request must not use up the whole time for a renewal: the next may find a better connection.
    this.#access = leaseAccess(deps, { ...options, requestMs: renewDeadlineMs / 2 })
    this.#running = this.#run()
  }

  get isLeader(): boolean {
    return this.#phase === "leader" && !this.#isOverdue()
  }

  get acquired(): Promise<void> {
    return this.#acquired.promise
  }

  get lost(): Promise<string> {
    return this.#lost.promise
  }

  get trouble(): Election["trouble"] {
    return this.#trouble
  }

  guard(): void {
    this.#loseIfOverdue()
    if (this.#phase !== "leader")
      throw new KubeError("WritesRefused", `${this.#options.identity} does not lead (${this.#phase})`)
  }

  release(): Promise<void> {
    const { log } = this.#deps
    this.#left ??= this.#handOn().catch(error =>
      log.warn("cannot hand the Lease on, it will run out", { lease: this.#options.name, error }),
    )
    return this.#left
  }

  abandon(): Promise<void> {
    this.#left ??= this.#leave()
    return this.#left
  }

  #isOverdue(): boolean {
    return this.#deps.clock.monotonic() - this.#renewedAt >= this.#options.renewDeadlineMs
  }

  #isOurs(lease: Lease): boolean {
    return holderOf(lease) === this.#options.identity
  }

  #takesPart(): boolean {
    return this.#phase === "candidate" || this.#phase === "leader"
  }

  #lose(why: string): void {
    if (this.#phase !== "leader") return
    this.#phase = "lost"
    this.#cancelWatchdog()
    this.#deps.log.warn("lost the lead, ending", { lease: this.#options.name, why })
    this.#lost.resolve(why)
    this.#wake()
  }

  #loseIfOverdue(): void {
    if (this.#phase === "leader" && this.#isOverdue())
      this.#lose(`the Lease was not renewed for ${this.#options.renewDeadlineMs / 1000} s`)
  }

  /** Ours until `sentAt` + deadline, since no other process takes over sooner after a write that was sent then. */
  #hold(lease: Lease, sentAt: number): void {
    const { clock } = this.#deps
    this.#see(lease)
    this.#renewedAt = sentAt
    this.#cancelWatchdog()
    const leftMs = sentAt + this.#options.renewDeadlineMs - clock.monotonic()
    this.#cancelWatchdog = clock.after(leftMs, () => this.#loseIfOverdue())
  }

  #see(lease: Lease): void {
    const before = this.#seen?.lease
    const { uid, resourceVersion } = lease.metadata
    if (before?.metadata.uid === uid && before?.metadata.resourceVersion === resourceVersion) return
    this.#seen = { lease, at: this.#deps.clock.monotonic() }
    const holder = holderOf(lease)
    const isNews = holder && !this.#isOurs(lease) && (!before || holderOf(before) !== holder)
    if (this.#phase === "candidate" && isNews)
      this.#deps.log.info("standing by, another leads", { lease: this.#options.name, holder })
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps
    while (this.#takesPart()) {
      try {
        if (this.#phase === "leader") await this.#renew()
        else await this.#campaign()
        this.#trouble = undefined
      } catch (error) {
        const isNews = !this.#trouble || kindOf(this.#trouble.error) !== kindOf(error)
        this.#trouble = { since: this.#trouble?.since ?? clock.monotonic(), error }
        const say = isNews ? log.warn : log.debug
        say("cannot reach the Lease", { lease: this.#options.name, error })
      }
      this.#loseIfOverdue()
      if (this.#takesPart()) await this.#pause(this.#untilNext())
    }
  }

  #untilNext(): number {
    const { clock, random } = this.#deps
    const { retryMs, pollMs } = this.#options
    const retry = jitter(random, retryMs)
    // Counted from the last PUT: a slow answer must not add a pause on top.
    if (this.#phase === "leader") return Math.max(0, this.#lastSentAt + retry - clock.monotonic())
    if (!this.#seen || this.#trouble) return retry
    const poll = jitter(random, pollMs)
    const untilFree = freeAt(this.#seen, this.#options) - clock.monotonic()
    return untilFree > 0 ? Math.min(poll, untilFree) : poll
  }

  async #campaign(): Promise<void> {
    const lease = await this.#access.read()
    if (!lease) return this.#found()
    this.#see(lease)
    await this.#take()
  }

  /** Creates the Lease without a holder, so that every process takes it by a conditional write. */
  async #found(): Promise<void> {
    const { name, leaseMs } = this.#options
    this.#seen = undefined
    const vacant = await this.#access.found(leaseMs)
    if (!vacant) return
    this.#see(vacant)
    if (await this.#isAbsenceTrusted()) await this.#take({ atOnce: true })
    else this.#deps.log.info("there was no Lease; waiting in case another process still acts", { lease: name, leaseMs })
  }

  /** What cannot be found out in time is not trusted. */
  async #isAbsenceTrusted(): Promise<boolean> {
    const { trustAbsence = false } = this.#options
    return typeof trustAbsence === "boolean" ? trustAbsence : this.#access.within(trustAbsence()).catch(() => false)
  }

  async #take({ atOnce = false } = {}): Promise<void> {
    const { clock, log } = this.#deps
    const { name, identity, leaseMs, renewDeadlineMs } = this.#options
    const seen = this.#seen
    if (this.#phase !== "candidate" || !seen || (!atOnce && clock.monotonic() < freeAt(seen, this.#options))) return
    const { spec } = seen.lease
    const now = formatMicroInstant(clock.now())
    const isFirst = spec?.acquireTime === undefined
    const sentAt = clock.monotonic()
    const lease = await this.#put(seen.lease, {
      holderIdentity: identity,
      leaseDurationSeconds: wholeSeconds(leaseMs),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: (spec?.leaseTransitions ?? 0) + (isFirst || this.#isOurs(seen.lease) ? 0 : 1),
    })
    if (!lease) return
    if (this.#phase !== "candidate" || clock.monotonic() - sentAt >= renewDeadlineMs) return this.#see(lease) // too late
    this.#hold(lease, sentAt)
    this.#phase = "leader"
    log.info("leading", { lease: name, identity })
    this.#acquired.resolve()
  }

  async #renew(): Promise<void> {
    if (await this.#renewOnce()) return
    // The Lease is not as we left it. If only our own lost answer or a foreign label changed it, we go on.
    const lease = await this.#access.read()
    if (this.#phase !== "leader") return
    if (!lease) return this.#lose("the Lease was deleted")
    if (lease.metadata.uid !== this.#seen?.lease.metadata.uid) return this.#lose("the Lease was replaced by another")
    if (!this.#isOurs(lease)) return this.#lose(`the Lease is held by ${holderOf(lease) ?? "no process"}`)
    this.#see(lease)
    await this.#renewOnce()
  }

  async #renewOnce(): Promise<boolean> {
    const { clock } = this.#deps
    assert(this.#seen, "a leader has seen the Lease")
    const { lease: before } = this.#seen
    const sentAt = clock.monotonic()
    const lease = await this.#put(before, { ...before.spec, renewTime: formatMicroInstant(clock.now()) })
    this.#loseIfOverdue() // a renewal that comes after the deadline is none, whatever the server says
    if (!lease) return this.#phase !== "leader"
    if (this.#phase === "leader") this.#hold(lease, sentAt)
    else this.#see(lease)
    return true
  }

  #put(lease: Lease, spec: LeaseSpec): Promise<Lease | undefined> {
    if (spec.holderIdentity === this.#options.identity) this.#mayHold = true
    this.#lastSentAt = this.#deps.clock.monotonic()
    return this.#access.put(lease, spec)
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#deps.clock.after(ms, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }

  async #leave(): Promise<void> {
    if (this.#phase !== "lost") this.#phase = "out"
    this.#cancelWatchdog()
    this.#wake()
    await this.#running
  }

  async #handOn(): Promise<void> {
    const { clock, log } = this.#deps
    const wasLost = this.#phase === "lost"
    await this.#leave()
    if (wasLost || !this.#mayHold) return
    for (let attempt = 0; attempt < 3; attempt++) {
      const seen = this.#seen?.lease
      const lease = attempt === 0 && seen && this.#isOurs(seen) ? seen : await this.#access.read()
      if (!lease || !this.#isOurs(lease)) return
      const now = formatMicroInstant(clock.now())
      const vacant = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: now, renewTime: now }
      if (await this.#put(lease, vacant)) return log.info("handed the Lease on", { lease: this.#options.name })
    }
  }
}

const kindOf = (error: unknown) => (error instanceof KubeError ? error.kind : undefined)
