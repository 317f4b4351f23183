import type { Clock } from "#runtime/clock.ts"
import type { PullCredentials } from "#runtime/cri/container-runtime.ts"
import type { Json } from "../../object.ts"
import type { NamedImage, NodeRuntime, PullOutcome } from "../container-runtime/index.ts"
import type { Timers, Wait } from "../timers.ts"
import { BackOff } from "./back-off.ts"
import { goDuration } from "./go-duration.ts"
import { parseImage } from "./image-reference.ts"
import type { StartFailure } from "./pod-status.ts"
import type { Registries } from "./registries.ts"
import type { Say, Worker } from "./worker.ts"

export type ImagesOptions = {
  clock: Clock
  timers: Timers
  registries: Registries
  images: NodeRuntime["images"]
  /** How many images are pulled at the same time; the others wait. */
  parallelPulls: number
  say: Say
  /** Calls back now, or when the kubelet can work again. */
  unlessFrozen: (resume: () => void) => void
}

/** The kubelet's own defaults: registryPullQPS and registryBurst. */
const pullsPerSecond = 5
const pullBurst = 10
const heldBack: PullOutcome = { message: "pull QPS exceeded" }

/** How the kubelet brings images to its node. */
export class NodeImages {
  readonly #options: ImagesOptions
  readonly #backOff = new BackOff()
  readonly #waitingPulls: (() => void)[] = []
  #pulling = 0
  #pulls = { left: pullBurst, at: 0 }

  constructor(options: ImagesOptions) {
    this.#options = options
  }

  /** Images on the node, biggest first, as the node's status lists them. */
  list(): Json[] {
    const byDigest = new Map<string, { names: string[]; sizeBytes: number }>()
    for (const { name, imageId, sizeBytes } of this.#options.images.named()) {
      const entry = byDigest.get(imageId) ?? { names: [imageId], sizeBytes }
      if (!entry.names.includes(name)) entry.names.push(name)
      byDigest.set(imageId, entry)
    }
    return [...byDigest.values()]
      .sort((a, b) => b.sizeBytes - a.sizeBytes || (a.names[0]! < b.names[0]! ? -1 : 1))
      .slice(0, 50)
  }

  /** Puts an image on the node without a pull. */
  load(image: string): boolean {
    const reference = parseImage(image)
    if ("invalid" in reference) return false
    const found = this.#options.registries.find(reference)
    if (found) this.#options.images.keep(reference, found)
    return found !== undefined
  }

  /** Resets the back-off of a pod for an image. */
  forget(worker: Worker, image: string): void {
    this.#backOff.forget(`${worker.uid}_${image}`)
  }

  /** `credentials`: what the pod's pull secrets hold, read only where a registry asks for it. */
  *ensure(
    worker: Worker,
    spec: Json,
    credentials: () => readonly PullCredentials[],
  ): Generator<Wait, NamedImage | StartFailure, void> {
    const image: string = spec.image
    const reference = parseImage(image)
    if ("invalid" in reference) {
      const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": ${reference.invalid}`
      this.#options.say(worker, spec, { type: "Warning", reason: "InspectFailed", message })
      return { reason: "InvalidImageName", message }
    }
    const present = this.#options.images.find(reference.name)
    const policy = spec.imagePullPolicy ?? "IfNotPresent"
    if (present && policy !== "Always") {
      const message = `Container image "${image}" already present on machine and can be accessed by the pod`
      this.#options.say(worker, spec, { type: "Normal", reason: "Pulled", message })
      return present
    }
    if (policy === "Never") {
      const message = `Container image "${image}" is not present with pull policy of Never`
      this.#options.say(worker, spec, { type: "Warning", reason: "ErrImageNeverPull", message })
      return { reason: "ErrImageNeverPull", message }
    }

    const key = `${worker.uid}_${image}`
    if (this.#backOff.isWaiting(key, this.#options.clock.now())) {
      const message = `Back-off pulling image "${image}"`
      this.#options.say(worker, spec, { type: "Normal", reason: "BackOff", message })
      const cause = worker.pullErrors.get(image)
      return { reason: "ImagePullBackOff", message: cause ? `${message}: ${cause}` : message }
    }
    worker.pullErrors.delete(image)
    this.#options.say(worker, spec, { type: "Normal", reason: "Pulling", message: `Pulling image "${image}"` })
    const askedAt = this.#options.clock.now()
    yield resume => this.#takePull(resume)
    const startedAt = this.#options.clock.now()
    let outcome = heldBack
    if (this.#mayPull())
      yield resume =>
        this.#options.images.pull(reference, credentials, each => {
          outcome = each
          this.#options.unlessFrozen(resume)
        })
    else yield 0
    this.#releasePull()
    if (!("image" in outcome)) {
      const { message } = outcome
      this.#options.say(worker, spec, {
        type: "Warning",
        reason: "Failed",
        message: `Failed to pull image "${image}": ${message}`,
      })
      const now = this.#options.clock.now()
      this.#backOff.next(key, now, now)
      worker.pullErrors.set(image, `ErrImagePull: ${message}`)
      return { reason: "ErrImagePull", message }
    }
    const { image: pulled } = outcome
    const took = goDuration(this.#options.clock.now() - startedAt)
    const whole = goDuration(this.#options.clock.now() - askedAt)
    const message = `Successfully pulled image "${image}" in ${took} (${whole} including waiting). Image size: ${pulled.sizeBytes} bytes.`
    this.#options.say(worker, spec, { type: "Normal", reason: "Pulled", message })
    return pulled
  }

  /** Whether one more pull may start now. If so, it is counted. */
  #mayPull(): boolean {
    const now = this.#options.clock.now()
    const left = Math.min(pullBurst, this.#pulls.left + ((now - this.#pulls.at) * pullsPerSecond) / 1000)
    this.#pulls = { left: left < 1 ? left : left - 1, at: now }
    return left >= 1
  }

  #takePull(resume: () => void): void {
    if (this.#pulling >= this.#options.parallelPulls) this.#waitingPulls.push(resume)
    else {
      this.#pulling++
      resume()
    }
  }

  #releasePull(): void {
    const next = this.#waitingPulls.shift()
    if (next) this.#options.timers.after(0, next)
    else this.#pulling--
  }
}
