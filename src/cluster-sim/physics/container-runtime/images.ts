import { createHash } from "node:crypto"
import type { Instant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { PullCredentials } from "#runtime/cri/container-runtime.ts"
import type { Behaviour } from "../node/behaviour.ts"
import { type ImageReference, parseImage } from "../node/image-reference.ts"
import type { Registries } from "../node/registries.ts"
import type { Timers } from "../timers.ts"
import { Disk } from "./disk.ts"

/** An image by one of its names. */
export type NamedImage = { name: string; digest: string; imageId: string; sizeBytes: number; behaviour: Behaviour }

/** An image with all its names. */
export type StoredImage = {
  /** Digest of its config, made from the other one. */
  readonly id: string
  /** Of the manifest, as registries name it. */
  readonly digest: string
  readonly sizeBytes: number
  readonly tags: Set<string>
  /** `repo@sha256:…` */
  readonly repoDigests: Set<string>
  readonly arrivedAt: Instant
  /** When the last container that used it was removed. */
  usedUntil?: Instant
}

/** `id`: of the image, also where it was collected at once. */
export type PullOutcome = { image: NamedImage; id: string } | { message: string }

export type ImagesOptions = {
  clock: Clock
  timers: Timers
  registries: Registries
  platform: string
  disk: { capacityBytes?: number; otherBytes?: number }
  /** Calls back now, or as soon as the runtime's process runs again. */
  whenRunning: (callback: () => void) => void
}

/** Content under way. Pulls of one digest share it, whichever client asked. */
type Download = {
  readonly digest: string
  readonly sizeBytes: number
  readonly startedAt: Instant
  readonly durationMs: number
  readonly waiting: Set<(problem: string | undefined) => void>
  cancel: () => void
}

/** How often the runtime adds up what its images take. */
const countedEveryMs = 10_000

const lost = "rpc error: code = Unavailable desc = error reading from server: EOF"

/** The images of one node, and the pulls that bring them. */
export class Images {
  readonly disk: Disk
  readonly #options: ImagesOptions
  readonly #byName = new Map<string, NamedImage>()
  readonly #byDigest = new Map<string, StoredImage>()
  readonly #downloads = new Map<string, Download>()
  readonly #pulls = new Set<(outcome: PullOutcome) => void>()
  readonly #doomed = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #bytes = 0
  /** What the images took before the first change since the last count. */
  #counted = { bytes: 0, changedAt: Number.NEGATIVE_INFINITY }

  constructor(options: ImagesOptions) {
    this.#options = options
    const fetched = () => [...this.#downloads.values()].reduce((sum, each) => sum + this.#doneBytes(each), 0)
    this.disk = new Disk(options.disk, () => this.#bytes + (this.#downloads.size > 0 ? fetched() : 0))
  }

  /** Called when an image was added or removed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  all(): Iterable<StoredImage> {
    return this.#byDigest.values()
  }

  named(): Iterable<NamedImage> {
    return this.#byName.values()
  }

  /** By a name as the runtime writes it. */
  find(name: string): NamedImage | undefined {
    return this.#byName.get(name)
  }

  /** By whatever a client may name it: a tag, a digest, both, or the image's ID. */
  lookUp(reference: string): StoredImage | undefined {
    if (/^sha256:[0-9a-f]{64}$/.test(reference)) return [...this.#byDigest.values()].find(({ id }) => id === reference)
    const parsed = parseImage(reference)
    const named = "invalid" in parsed ? undefined : this.#byName.get(parsed.name)
    return named && this.#byDigest.get(named.digest)
  }

  ofDigest(digest: string): StoredImage | undefined {
    return this.#byDigest.get(digest)
  }

  /** Puts an image on the node. */
  keep(
    { name, host, repository }: Pick<ImageReference, "name" | "host" | "repository">,
    { digest, sizeBytes, behaviour }: { digest: string; sizeBytes: number; behaviour: Behaviour },
  ): NamedImage {
    const imageId = `${host}/${repository}@${digest}`
    const image = { name, digest, imageId, sizeBytes, behaviour }
    const before = this.#byName.get(name)
    if (before && before.digest !== digest) this.#byDigest.get(before.digest)?.tags.delete(name)
    const stored = this.#byDigest.get(digest) ?? this.#store(digest, sizeBytes)
    if (name !== imageId) stored.tags.add(name)
    stored.repoDigests.add(imageId)
    this.#byName.set(name, image)
    this.#byName.set(imageId, image) // so that a pod that pins the digest finds it
    for (const listener of this.#listeners) listener()
    return image
  }

  /** Removes an image with all its names, as the kubelet's garbage collection does. */
  remove({ digest, sizeBytes, tags, repoDigests }: StoredImage): void {
    if (!this.#byDigest.delete(digest)) return
    for (const name of [...tags, ...repoDigests]) this.#byName.delete(name)
    this.#count(-sizeBytes)
    for (const listener of this.#listeners) listener()
  }

  /** A fault: the image is collected now or, where it is being pulled, at the moment its pull is over. */
  collect(reference: string): void {
    const found = this.lookUp(reference)
    if (found) return void this.remove(found)
    const parsed = parseImage(reference)
    if (!("invalid" in parsed)) this.#doomed.add(parsed.name)
  }

  /**
   * Pulls an image. Each pull asks the registry what the reference means; content that is there or under way is not
   * fetched again. The returned function is the caller's death: content for which no other pull waits is dropped.
   */
  pull(
    reference: ImageReference,
    credentials: () => readonly PullCredentials[],
    ended: (outcome: PullOutcome) => void,
  ): () => void {
    const { registries, platform, timers, clock } = this.#options
    const answer = registries.pull(reference, { now: clock.now(), platform, credentials })
    let leave = () => {}
    const end = (outcome: PullOutcome) => {
      if (!this.#pulls.delete(end)) return
      leave()
      ended(outcome)
    }
    this.#pulls.add(end)
    const arrive = (problem: string | undefined) => {
      if (problem || !answer.isFound) return end({ message: explain(reference.name, problem ?? "") })
      const image = this.keep(reference, answer)
      const stored = this.#byDigest.get(answer.digest)
      if (this.#doomed.delete(reference.name) && stored) this.remove(stored)
      end({ image, id: configDigest(answer.digest) })
    }
    const resolved = () => {
      if (!this.#pulls.has(end)) return
      if (!answer.isFound) end({ message: answer.message })
      else if (this.#byDigest.has(answer.digest)) arrive(undefined)
      else leave = this.#join(answer, arrive)
    }
    const askMs = answer.isFound ? answer.latencyMs : answer.durationMs
    leave = timers.after(askMs, () => this.#options.whenRunning(resolved))
    return () => {
      if (this.#pulls.delete(end)) leave()
    }
  }

  /** The runtime's process dies, and all its calls with it. */
  losePulls(): void {
    for (const end of [...this.#pulls]) end({ message: lost })
  }

  /** Pulls under way, of all clients. Several of them may share what is fetched. */
  get pullsUnderWay(): number {
    return this.#pulls.size
  }

  /** What is being fetched now. */
  progress(): { digest: string; doneBytes: number; totalBytes: number }[] {
    return [...this.#downloads.values()].map(each => ({
      digest: each.digest,
      doneBytes: this.#doneBytes(each),
      totalBytes: each.sizeBytes,
    }))
  }

  /** What the images took at the last count. */
  countedBytes(): number {
    const window = (at: Instant) => Math.floor(at / countedEveryMs)
    const isCounted = window(this.#options.clock.now()) > window(this.#counted.changedAt)
    return isCounted ? this.#bytes : this.#counted.bytes
  }

  #store(digest: string, sizeBytes: number): StoredImage {
    const arrivedAt = this.#options.clock.now()
    const stored = { id: configDigest(digest), digest, sizeBytes, tags: new Set<string>(), repoDigests: new Set<string>(), arrivedAt } // biome-ignore format: one line
    this.#byDigest.set(digest, stored)
    this.#count(sizeBytes)
    return stored
  }

  #count(addedBytes: number): void {
    this.#counted = { bytes: this.countedBytes(), changedAt: this.#options.clock.now() }
    this.#bytes += addedBytes
  }

  #join(
    {
      digest,
      sizeBytes,
      durationMs,
      latencyMs,
    }: { digest: string; sizeBytes: number; durationMs: number; latencyMs: number },
    arrived: (problem: string | undefined) => void,
  ): () => void {
    const download = this.#downloads.get(digest) ?? this.#fetch(digest, sizeBytes, durationMs - latencyMs)
    download.waiting.add(arrived)
    return () => {
      if (!download.waiting.delete(arrived) || download.waiting.size > 0) return
      download.cancel()
      if (this.#downloads.get(digest) === download) this.#downloads.delete(digest)
    }
  }

  #fetch(digest: string, sizeBytes: number, durationMs: number): Download {
    const { timers, clock, whenRunning } = this.#options
    const share = Math.min(1, this.disk.freeBytes / Math.max(1, sizeBytes))
    const download: Download = {
      digest,
      sizeBytes,
      startedAt: clock.now(),
      durationMs,
      waiting: new Set(),
      cancel: timers.after(durationMs * share, () =>
        whenRunning(() => {
          if (this.#downloads.get(digest) !== download) return
          this.#downloads.delete(digest)
          const problem = sizeBytes > this.disk.freeBytes ? noSpace(digest) : undefined
          for (const arrived of [...download.waiting]) arrived(problem)
        }),
      ),
    }
    this.#downloads.set(digest, download)
    return download
  }

  #doneBytes({ sizeBytes, startedAt, durationMs }: Download): number {
    const share = durationMs === 0 ? 1 : (this.#options.clock.now() - startedAt) / durationMs
    return Math.floor(sizeBytes * Math.min(1, share))
  }
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

const configDigest = (digest: string) => `sha256:${sha256(`config ${digest}`)}`

const explain = (name: string, problem: string) => `failed to pull and unpack image "${name}": ${problem}`

const noSpace = (digest: string) =>
  `failed to copy: write /var/lib/containerd/io.containerd.content.v1.content/ingest/${sha256(digest)}/data: no space left on device`
