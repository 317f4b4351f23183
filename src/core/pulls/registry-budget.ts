import assert from "node:assert/strict"
import type { Instant } from "#lib/instant.ts"

/** A job that wants pulls at a registry. */
export type Asker = { readonly key: string; readonly namespace: string; readonly priority: number }

type Waiter = { priority: number; wants: number; since: number }
type Host = {
  /** Pulls that nodes were given and have not ended, by an ID of the caller. */
  used: Set<string>
  /** Given to a job, and not used by it yet. */
  granted: Map<string, number>
  /** By namespace, the one whose turn is next first; in it by job. */
  waiting: Map<string, Map<string, Waiter>>
  /** After a 429: the limit from then on, and since when. */
  lowered?: { to: number; at: Instant }
}

/** A lowered limit rises by one after each of these. */
const riseMs = 30_000
/** Refusals that come together count once. */
const lowerAgainMs = 10_000

/**
 * How many pulls may be under way at each registry host, over all jobs and nodes. Namespaces take turns, whatever the
 * number of their jobs; within a namespace the job of the highest priority is first, then the one that has waited
 * longest. A registry that refuses pulls (429) gets half as many, and gradually more again.
 *
 *     ask → granted → use (a node was given the pull) → release (it ended)
 */
export class RegistryBudget {
  readonly #perHost: number
  readonly #hosts = new Map<string, Host>()
  readonly #onGrant: (key: string) => void
  #asked = 0

  constructor(perHost: number, onGrant: (key: string) => void) {
    this.#perHost = perHost
    this.#onGrant = onGrant
  }

  /** The job wants to begin so many pulls at this host, 0 for none. Returns how many it may begin now. */
  ask(hostName: string, asker: Asker, wants: number, now: Instant): number {
    const host = this.#host(hostName)
    // What it was granted it keeps, as far as it is still wanted; the rest is given out again.
    const kept = Math.min(host.granted.get(asker.key) ?? 0, wants)
    host.granted.delete(asker.key)
    if (kept > 0) host.granted.set(asker.key, kept)
    const inNamespace = host.waiting.get(asker.namespace) ?? new Map<string, Waiter>()
    const before = inNamespace.get(asker.key)
    inNamespace.delete(asker.key)
    if (wants > kept) {
      inNamespace.set(asker.key, {
        priority: asker.priority,
        wants: wants - kept,
        since: before?.since ?? this.#asked++,
      })
      host.waiting.set(asker.namespace, inNamespace)
    } else if (inNamespace.size === 0) host.waiting.delete(asker.namespace)
    this.#giveOut(hostName, host, now, asker.key)
    const given = host.granted.get(asker.key) ?? 0
    this.#forgetIfIdle(hostName, host)
    return given
  }

  /** The job is gone, or wants nothing any more. */
  leave(hostName: string, asker: Asker, now: Instant): void {
    if (this.#hosts.has(hostName)) this.ask(hostName, asker, 0, now)
  }

  /** A node was given the pull. It uses up one that was granted to the job, if there is one. */
  use(hostName: string, id: string, by?: string): void {
    const host = this.#host(hostName)
    if (host.used.has(id)) return
    host.used.add(id)
    const granted = by === undefined ? 0 : (host.granted.get(by) ?? 0)
    if (granted > 1) host.granted.set(by!, granted - 1)
    else if (granted === 1) host.granted.delete(by!)
  }

  /** The pull has ended. */
  release(hostName: string, id: string, now: Instant): void {
    const host = this.#hosts.get(hostName)
    if (!host?.used.delete(id)) return
    this.#giveOut(hostName, host, now)
    this.#forgetIfIdle(hostName, host)
  }

  /** The registry refuses more pulls for now. */
  slowDown(hostName: string, now: Instant): void {
    const host = this.#host(hostName)
    if (host.lowered && now - host.lowered.at < lowerAgainMs) return
    host.lowered = { to: Math.max(1, Math.floor(this.limit(hostName, now) / 2)), at: now }
  }

  limit(hostName: string, now: Instant): number {
    const lowered = this.#hosts.get(hostName)?.lowered
    if (!lowered) return this.#perHost
    return Math.min(this.#perHost, lowered.to + Math.floor(Math.max(0, now - lowered.at) / riseMs))
  }

  /** When the passing of time alone allows one more pull. */
  risesAt(hostName: string, now: Instant): Instant | undefined {
    const lowered = this.#hosts.get(hostName)?.lowered
    if (!lowered || this.limit(hostName, now) === this.#perHost) return undefined
    return lowered.at + (Math.floor((now - lowered.at) / riseMs) + 1) * riseMs
  }

  inFlight(hostName: string): number {
    return this.#hosts.get(hostName)?.used.size ?? 0
  }

  /** How it stands with each registry in use, for metrics. */
  *hosts(): Generator<[host: string, inFlight: number]> {
    for (const [name, { used }] of this.#hosts) yield [name, used.size]
  }

  #giveOut(hostName: string, host: Host, now: Instant, asker?: string): void {
    const limit = this.limit(hostName, now)
    let granted = 0
    for (const count of host.granted.values()) granted += count
    for (let free = limit - host.used.size - granted; free > 0 && host.waiting.size > 0; free--) {
      const [namespace, jobs] = host.waiting.entries().next().value!
      const [key, waiter] = firstOf(jobs)
      host.granted.set(key, (host.granted.get(key) ?? 0) + 1)
      waiter.wants--
      if (waiter.wants === 0) jobs.delete(key)
      host.waiting.delete(namespace) // and is added again as the last
      if (jobs.size > 0) host.waiting.set(namespace, jobs)
      if (key !== asker) this.#onGrant(key)
    }
  }

  #host(name: string): Host {
    const host = this.#hosts.get(name) ?? { used: new Set(), granted: new Map(), waiting: new Map() }
    this.#hosts.set(name, host)
    return host
  }

  #forgetIfIdle(name: string, { used, granted, waiting, lowered }: Host): void {
    if (used.size === 0 && granted.size === 0 && waiting.size === 0 && !lowered) this.#hosts.delete(name)
  }
}

/** A namespace has few jobs at one registry at a time, so looking at each is cheap. */
function firstOf(jobs: ReadonlyMap<string, Waiter>): [string, Waiter] {
  let first: [string, Waiter] | undefined
  for (const each of jobs) if (!first || isBefore(each[1], first[1])) first = each
  assert(first, "a namespace that waits has a job")
  return first
}

const isBefore = (a: Waiter, b: Waiter) => a.priority > b.priority || (a.priority === b.priority && a.since < b.since)
