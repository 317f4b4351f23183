import type { Instant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { NodeRuntime, StoredImage } from "../container-runtime/index.ts"
import type { EventType } from "../recorder.ts"
import type { Timers } from "../timers.ts"

/** The kubelet's settings, with its own defaults. */
export type CollectionPolicy = {
  /** Images are removed from this use of the disk on, down to the lower one. */
  highPercent: number
  lowPercent: number
  /** An image is kept for this long after the kubelet has first seen it. */
  minAgeMs: number
  /** With less free space than this the node has DiskPressure. */
  pressureBelowPercent: number
}

export const ordinaryCollection: CollectionPolicy = {
  highPercent: 85,
  lowPercent: 80,
  minAgeMs: 120_000,
  pressureBelowPercent: 15,
}

export type CollectorOptions = {
  clock: Clock
  timers: Timers
  runtime: NodeRuntime
  policy: CollectionPolicy
  isAlive: () => boolean
  /** An event about the node. */
  say: (type: EventType, reason: string, message: string) => void
  /** Called when the node's pressure has changed. */
  onPressure: () => void
}

const collectEveryMs = 300_000
const pressureEveryMs = 10_000
const pressureStaysMs = 300_000

/**
 * The kubelet's image garbage collection and its watch over the disk. It looks at set times, but a time at which there
 * would be nothing to do costs nothing: a timer runs only while the disk is too full.
 */
export class ImageCollector {
  readonly #options: CollectorOptions
  readonly #startedAt: Instant
  /** When the kubelet first saw an image, and last saw it in use. */
  readonly #seen = new Map<string, { detectedAt: Instant; usedAt: Instant }>()
  #cancelCollection: (() => void) | undefined
  #cancelPressure: (() => void) | undefined
  #pressureAt: Instant | undefined

  constructor(options: CollectorOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    options.runtime.images.onChange(() => this.check())
    options.runtime.images.disk.onChange(() => this.check())
    options.runtime.onLife(isAnswering => isAnswering && this.check())
  }

  get hasPressure(): boolean {
    return this.#pressureAt !== undefined
  }

  /** Plans the next look, if there will be something to do. Called after every change, and when the kubelet is back. */
  check(): void {
    if (this.#usedPercent() >= this.#options.policy.highPercent)
      this.#cancelCollection ??= this.#at(collectEveryMs, () => {
        this.#cancelCollection = undefined
        if (this.#canWork()) this.#collect()
      })
    if (this.#isShort() || this.hasPressure) this.#watchPressure(pressureEveryMs)
  }

  stop(): void {
    this.#cancelCollection?.()
    this.#cancelPressure?.()
  }

  /** At the next multiple of a period since the kubelet's start. */
  #at(periodMs: number, callback: () => void): () => void {
    const { clock, timers } = this.#options
    const since = clock.now() - this.#startedAt
    return timers.after((Math.floor(since / periodMs) + 1) * periodMs - since, callback)
  }

  #canWork(): boolean {
    return this.#options.isAlive() && this.#options.runtime.isAnswering
  }

  #usedPercent(): number {
    const { freeBytes, capacityBytes } = this.#options.runtime.images.disk
    return 100 - Math.floor((100 * freeBytes) / capacityBytes)
  }

  #isShort(): boolean {
    const { freeBytes, capacityBytes } = this.#options.runtime.images.disk
    return 100 * freeBytes < this.#options.policy.pressureBelowPercent * capacityBytes
  }

  #collect(): void {
    const { runtime, policy, say } = this.#options
    const { freeBytes, capacityBytes } = runtime.images.disk
    if (this.#usedPercent() < policy.highPercent) return
    const wanted = Math.floor((capacityBytes * (100 - policy.lowPercent)) / 100) - freeBytes
    const freed = this.#free(wanted)
    if (freed < wanted) {
      const message = `Failed to garbage collect required amount of images. Attempted to free ${wanted} bytes, but only found ${freed} bytes eligible to free.`
      say("Warning", "FreeDiskSpaceFailed", message)
    }
    this.check()
  }

  #watchPressure(periodMs: number): void {
    this.#cancelPressure ??= this.#at(periodMs, () => {
      this.#cancelPressure = undefined
      if (this.#canWork()) this.#feelPressure()
    })
  }

  #feelPressure(): void {
    const { clock, onPressure, say } = this.#options
    const now = clock.now()
    const had = this.hasPressure
    if (this.#isShort()) {
      this.#pressureAt = now
      if (!had) onPressure()
      say("Warning", "EvictionThresholdMet", "Attempting to reclaim ephemeral-storage")
      this.#free(Number.POSITIVE_INFINITY)
    } else if (this.#pressureAt !== undefined && now - this.#pressureAt >= pressureStaysMs) {
      this.#pressureAt = undefined
      onPressure()
    }
    if (this.hasPressure) this.#watchPressure(pressureEveryMs)
  }

  /** Removes unused images, the least recently used first, until so many bytes are free. Returns how many were freed. */
  #free(wantedBytes: number): number {
    const { clock, runtime, policy } = this.#options
    const now = clock.now()
    const inUse = new Set([...runtime.containers.all()].map(({ imageId }) => imageId.slice(imageId.indexOf("@") + 1)))
    const known = [...runtime.images.all()].map(image => ({ image, ...this.#see(image, inUse.has(image.digest), now) }))
    known.sort((a, b) => a.usedAt - b.usedAt || a.detectedAt - b.detectedAt)
    let freed = 0
    for (const { image, usedAt, detectedAt } of known) {
      if (freed >= wantedBytes) break
      if (usedAt >= now || now - detectedAt < policy.minAgeMs) continue
      runtime.images.remove(image)
      this.#seen.delete(image.digest)
      freed += image.sizeBytes
    }
    return freed
  }

  /** The kubelet looks at all images every five minutes, and whenever it wants to remove some. */
  #see({ digest, arrivedAt, usedUntil }: StoredImage, isInUse: boolean, now: Instant) {
    const look = (at: Instant, round: (turns: number) => number) =>
      this.#startedAt + round((at - this.#startedAt) / collectEveryMs) * collectEveryMs
    const before = this.#seen.get(digest)
    const firstLook = look(arrivedAt, Math.ceil)
    const lastLook = usedUntil === undefined ? Number.NEGATIVE_INFINITY : look(usedUntil, Math.floor)
    const seen = {
      detectedAt: before?.detectedAt ?? Math.min(now, firstLook),
      usedAt: isInUse ? now : Math.max(before?.usedAt ?? Number.NEGATIVE_INFINITY, lastLook),
    }
    this.#seen.set(digest, seen)
    return seen
  }
}
