import type { ContainerRuntime, RuntimeVersion, SandboxConfig } from "#runtime/cri/container-runtime.ts"
import type { Timers } from "../timers.ts"
import type { PhysicsWorld } from "../world.ts"
import { Containers } from "./containers.ts"
import { connectTo } from "./cri.ts"
import { Images, type ImagesOptions } from "./images.ts"

/** One call of a client, as it arrived. */
export type Call = {
  method: keyof ContainerRuntime
  id?: string
  reference?: string
  /** Of `pullImage`. It changes nothing here. */
  sandboxConfig?: SandboxConfig
  graceSeconds?: number
  /** Of `execSync`. */
  command?: readonly string[]
  timeoutSeconds?: number
}

export type NodeRuntimeOptions = Omit<ImagesOptions, "clock" | "whenRunning"> & {
  world: PhysicsWorld
  stopMs: number
}

/**
 * The container runtime of one node. Its kubelet drives it through `containers` and `images`; other clients `connect`,
 * as over the runtime's socket. Its process can hang or die; the containers do not belong to it and run on.
 */
export class NodeRuntime {
  readonly containers: Containers
  readonly images: Images
  readonly version: RuntimeVersion = { name: "containerd", version: "1.6.20~ds1" }
  readonly #timers: Timers
  readonly #callListeners = new Set<(call: Call) => void>()
  readonly #lifeListeners = new Set<(isAnswering: boolean) => void>()
  #state: "running" | "hanging" | "dead" = "running"
  /** Counts the deaths. A socket that was mounted before one leads nowhere. */
  #life = 0
  /** What falls due while the process hangs. */
  #waiting: (() => void)[] = []

  constructor(options: NodeRuntimeOptions) {
    this.#timers = options.timers
    const { timers, registries, platform, disk, stopMs } = options
    const { clock, random } = options.world
    const whenRunning = (callback: () => void) => this.whenRunning(callback)
    this.images = new Images({ clock, timers, registries, platform, disk, whenRunning })
    const onRemove = ({ imageId }: { imageId: string }) => {
      const image = this.images.ofDigest(imageId.slice(imageId.indexOf("@") + 1))
      if (image) image.usedUntil = clock.now()
    }
    this.containers = new Containers({ clock, timers, random, stopMs, whenRunning, onRemove })
  }

  get isAnswering(): boolean {
    return this.#state === "running"
  }

  get isDead(): boolean {
    return this.#state === "dead"
  }

  get life(): number {
    return this.#life
  }

  /** A client through the path of the socket, as a process of the node has it. It works again after a restart. */
  connect(): ContainerRuntime {
    return connectTo(this, { timers: this.#timers, heard: call => this.#hear(call), isMounted: false })
  }

  /** A client through a mount of the socket as it is now. After the runtime's death such a mount is dead for good. */
  connectMounted(): ContainerRuntime {
    return connectTo(this, { timers: this.#timers, heard: call => this.#hear(call), isMounted: true })
  }

  /** Every call of every client, when it arrives. */
  onCall(listener: (call: Call) => void): () => void {
    this.#callListeners.add(listener)
    return () => this.#callListeners.delete(listener)
  }

  /** Called when the process stops or starts to answer. */
  onLife(listener: (isAnswering: boolean) => void): () => void {
    this.#lifeListeners.add(listener)
    return () => this.#lifeListeners.delete(listener)
  }

  /** The process dies. Its calls are lost: pulls end, and a stop that has sent SIGTERM kills no more. */
  die(): void {
    if (this.#state === "dead") return
    this.#state = "dead"
    this.#life++
    this.#waiting = []
    this.containers.loseStops()
    this.images.losePulls()
    this.#announce()
  }

  /** The process stands still. Calls are accepted and not answered. */
  hang(): void {
    if (this.#state !== "running") return
    this.#state = "hanging"
    this.#announce()
  }

  /** The process is started again, or goes on. */
  revive(): void {
    if (this.#state === "running") return
    this.#state = "running"
    const due = this.#waiting
    this.#waiting = []
    for (const callback of due) callback()
    this.#announce()
  }

  /** Calls back now, or when a process that hangs goes on. What a dead one had to do is lost. */
  whenRunning(callback: () => void): void {
    if (this.#state === "running") callback()
    else if (this.#state === "hanging") this.#waiting.push(callback)
  }

  #hear(call: Call): void {
    for (const listener of this.#callListeners) listener(call)
  }

  #announce(): void {
    for (const listener of this.#lifeListeners) listener(this.isAnswering)
  }
}
