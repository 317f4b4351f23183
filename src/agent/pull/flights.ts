import { collectionRisk, type Disk, diskProblem } from "#core/pulls/disk.ts"
import { splitImage } from "#core/pulls/image-name.ts"
import type { SealKey } from "#lib/seal.ts"
import type { Clock } from "#runtime/clock.ts"
import { type ContainerRuntime, type Image, isRuntimeFailure, type PullCredentials } from "#runtime/cri/index.ts"
import { type Attempt, failureOf, type Present, type Wanted } from "./state.ts"
import { type Fetched, Transfers } from "./transfers.ts"

type Flight = {
  readonly version: number
  readonly namespace: string
  readonly controller: AbortController
}

export type FlightsOptions = {
  runtime: ContainerRuntime
  clock: Clock
  key: SealKey
  disk: () => Promise<Disk>
  thresholdPercent: number
  onEnd(wanted: Wanted, attempt: Attempt): void
}

const progressMs = 5000

/** The pulls of one node that are under way. Each ends with an attempt, unless it is cancelled. */
export class Flights {
  readonly #options: FlightsOptions
  readonly #flights = new Map<string, Flight>()
  readonly #transfers = new Transfers()
  #askedAt = 0

  constructor(options: FlightsOptions) {
    this.#options = options
  }

  get all(): ReadonlyMap<string, Pick<Flight, "version" | "namespace">> {
    return this.#flights
  }

  begin(wanted: Wanted, nodeUid: string): void {
    const { clock, onEnd } = this.#options
    const { version, ownerReferences, pullPolicy } = wanted.tag
    const controller = new AbortController()
    const namespace = ownerReferences[0]?.namespace ?? ""
    const flight: Flight = { version, namespace, controller }
    this.#flights.set(wanted.id, flight)
    const seconds = pullPolicy.timeoutSeconds
    const late = new Ended({ is: "Failed", reason: "Timeout", message: `not done after ${seconds} s` })
    const stopTimer = clock.after(seconds * 1000, () => controller.abort(late))
    const end = (attempt: Attempt) => {
      stopTimer()
      if (this.#flights.get(wanted.id) !== flight) return // cancelled
      this.#flights.delete(wanted.id)
      onEnd(wanted, attempt)
    }
    this.#attempt(wanted, nodeUid, controller.signal).then(end, error => end(attemptOf(error)))
  }

  cancel(id: string): void {
    const flight = this.#flights.get(id)
    this.#flights.delete(id)
    flight?.controller.abort(new Error("not wanted any more"))
  }

  cancelAll(): void {
    for (const id of [...this.#flights.keys()]) this.cancel(id)
  }

  /** What was fetched for a pull so far; undefined where the runtime has reported nothing of it. */
  fetched(id: string): Fetched | undefined {
    return this.#transfers.of(id)
  }

  /** Asks how far the pulls are, at most every few seconds, and ends those for which the disk has no room. */
  async follow(): Promise<void> {
    const { runtime, clock, disk, thresholdPercent } = this.#options
    if (this.#flights.size === 0 || clock.now() - this.#askedAt < progressMs) return
    this.#askedAt = clock.now()
    const transfers = await runtime.pullProgress().catch(() => undefined)
    if (!transfers) return
    this.#transfers.note(transfers, new Set(this.#flights.keys()))
    const missing = transfers.reduce((sum, { totalBytes, doneBytes }) => sum + Math.max(0, totalBytes - doneBytes), 0)
    const problem = diskProblem(await disk(), missing, thresholdPercent)
    const full = problem && new Ended({ is: "Failed", reason: "DiskFull", message: problem })
    if (full) for (const { controller } of this.#flights.values()) controller.abort(full)
  }

  async #attempt(wanted: Wanted, nodeUid: string, signal: AbortSignal): Promise<Attempt> {
    const { runtime, disk, thresholdPercent } = this.#options
    const { reference, tag } = wanted
    const there = await runtime.imageStatus(reference, { signal })
    if (there && tag.imagePullPolicy === "IfNotPresent") return this.#present(there, signal)
    const problem = there ? undefined : diskProblem(await disk(), 0, thresholdPercent)
    if (problem) return { is: "Failed", reason: "DiskFull", message: problem }
    const imageID = await this.#pull(wanted, nodeUid, signal)
    if (typeof imageID !== "string") return imageID
    // What the runtime says of the image afterwards is the proof, not that the pull said it was done.
    const proof = await runtime.imageStatus(reference, { signal })
    if (proof?.id === imageID) return { ...(await this.#present(proof, signal)), pulledBytes: proof.sizeBytes }
    const message = "the pull ended well, and the runtime does not show the image: was it removed at once?"
    return { is: "Failed", reason: "UnknownFailure", message }
  }

  /** The kubelet may remove it again where the disk is nearly full, no container uses it, and it is not pinned. */
  async #present(image: Image, signal: AbortSignal): Promise<Present> {
    const { runtime, disk, thresholdPercent } = this.#options
    const present = presentOf(image)
    if (image.isPinned) return present
    // The image is proven, whatever becomes of these two calls.
    const room = await disk().catch(() => undefined)
    const risk = room && collectionRisk(room, thresholdPercent)
    if (!risk) return present
    const containers = await runtime.listContainers({}, { signal }).catch(() => undefined)
    const isUnused = containers?.every(container => container.imageId !== image.id)
    return { ...present, ...(isUnused && { risk }) }
  }

  /** Tries every account, then none. Returns the image's ID, or why the last one failed. */
  async #pull(wanted: Wanted, nodeUid: string, signal: AbortSignal): Promise<string | Attempt> {
    const { runtime } = this.#options
    const { reference, sandboxConfig } = wanted
    const accounts: (PullCredentials | undefined)[] = [...this.#accountsOf(wanted, nodeUid), undefined]
    let denied: Attempt | undefined
    for (const credentials of accounts) {
      try {
        return (await runtime.pullImage({ reference, credentials, sandboxConfig }, { signal })).imageId
      } catch (error) {
        const attempt = attemptOf(error)
        if (attempt.is !== "Failed" || attempt.reason !== "Denied") throw error
        denied ??= attempt // of the first account: it is the most specific one
      }
    }
    return denied!
  }

  #accountsOf({ name, tag }: Wanted, nodeUid: string): PullCredentials[] {
    const host = splitImage(name)?.host ?? ""
    return (tag.sealedCredentials ?? []).flatMap(({ job, box }) => {
      const text = this.#options.key.open(box, [nodeUid, job, host])
      return text === undefined ? [] : accountsIn(text).map(account => ({ host, ...account }))
    })
  }
}

/** Why a pull was ended from here. */
class Ended extends Error {
  readonly attempt: Attempt

  constructor(attempt: Attempt) {
    super("ended")
    this.attempt = attempt
  }
}

function attemptOf(error: unknown): Attempt {
  if (error instanceof Ended) return error.attempt
  const message = error instanceof Error ? error.message : String(error)
  if (isRuntimeFailure(error, "Unavailable", "SocketDead")) return { is: "Unknown", message }
  const said = isRuntimeFailure(error, "NotFound", "Failed", "DeadlineExceeded") ? error.said : message
  const reason = failureOf(said)
  // An image that is not there for this platform is not found either, and its message says more.
  const isAbsent = reason === "UnknownFailure" && isRuntimeFailure(error, "NotFound")
  return { is: "Failed", reason: isAbsent ? "NotFound" : reason, message: said }
}

/** Repositories may have the same image under several digests. Only one that is the same in all of them is reported. */
function presentOf({ id, repoDigests }: Pick<Image, "id" | "repoDigests">): Present {
  const digests = new Set(repoDigests.map(name => name.slice(name.indexOf("@") + 1)))
  const [digest = ""] = digests.size === 1 ? digests : []
  return { is: "Present", imageID: id, ...(/^sha256:[a-f0-9]{64}$/.test(digest) && { digest }) }
}

/** Sealed by the manager, so its shape is trusted; it is checked all the same, because it costs nothing. */
function accountsIn(text: string): { username: string; password: string }[] {
  const list: unknown = JSON.parse(text)
  return Array.isArray(list)
    ? list.filter(each => typeof each?.username === "string" && typeof each?.password === "string")
    : []
}
