import { createHash } from "node:crypto"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { hexadecimal } from "../node/hexadecimal.ts"
import type { Timers } from "../timers.ts"
import type { Container, ContainerConfig, Sandbox } from "./container.ts"

export type ContainersOptions = {
  clock: Clock
  timers: Timers
  random: Random
  /** How long a container takes to end after SIGTERM, where its image does not say. */
  stopMs: number
  /** Calls back now, or as soon as the runtime's process runs again. */
  whenRunning: (callback: () => void) => void
  onRemove: (container: Container) => void
}

/** The containers of one pod, the oldest first, dead ones among them. */
export type PodOnNode = {
  readonly identity: PodIdentity
  sandbox: Sandbox | undefined
  containers: Container[]
}

type PodIdentity = { readonly uid: string; readonly name: string; readonly namespace: string }

type Stop = { ended: () => void; cancelKill: (() => void) | undefined }

/**
 * The containers of one node. They belong to no process of the runtime: they run on, and end, while it is dead. The
 * kubelet creates and removes them; any client of the runtime may stop them.
 */
export class Containers {
  readonly #options: ContainersOptions
  readonly #all = new Map<string, Container>()
  readonly #pods = new Map<string, PodOnNode>()
  readonly #stops = new Map<string, Set<Stop>>()
  readonly #listeners = new Set<(container: Container) => void>()

  constructor(options: ContainersOptions) {
    this.#options = options
  }

  /** Called when a container has ended. The kubelet sees that with its next relist only. */
  onExit(listener: (container: Container) => void): void {
    this.#listeners.add(listener)
  }

  all(): Iterable<Container> {
    return this.#all.values()
  }

  pods(): Iterable<PodOnNode> {
    return this.#pods.values()
  }

  find(id: string): Container | undefined {
    return this.#all.get(id)
  }

  pod(uid: string): PodOnNode | undefined {
    return this.#pods.get(uid)
  }

  createSandbox(of: PodIdentity, at: { ip: string | undefined; isOnHostNetwork: boolean }): Sandbox {
    const pod = this.#podOf(of)
    pod.sandbox = { isReady: true, ...at, attempt: pod.sandbox ? pod.sandbox.attempt + 1 : 0 }
    return pod.sandbox
  }

  create(config: ContainerConfig): Container {
    const { random, clock } = this.#options
    const now = clock.now()
    return this.adopt({ ...config, id: hexadecimal(random, 64), createdAt: now, startedAt: now, state: "created" })
  }

  /** Takes over a container that was created before this runtime was simulated. */
  adopt(container: Container): Container {
    this.#all.set(container.id, container)
    this.#podOf(container.source.pod).containers.push(container)
    if (container.state === "running") this.#live(container)
    return container
  }

  start(container: Container): void {
    container.state = "running"
    container.startedAt = this.#options.clock.now()
    this.#live(container)
  }

  /**
   * Sends SIGTERM, and SIGKILL when the grace period is over. Calls back when the container has ended. The returned
   * function is the caller's death: no kill follows, but SIGTERM was sent.
   */
  stop(container: Container, graceMs: number, ended: () => void): () => void {
    if (container.state === "exited") {
      ended()
      return () => {}
    }
    const stop: Stop = { ended, cancelKill: undefined }
    const stops = this.#stops.get(container.id) ?? new Set()
    this.#stops.set(container.id, stops.add(stop))
    if (graceMs <= 0) this.exit(container, 137)
    else {
      this.#signal(container)
      const kill = () => this.exit(container, 137)
      stop.cancelKill = this.#options.timers.after(graceMs, () =>
        this.#options.whenRunning(() => stops.has(stop) && kill()),
      )
    }
    return () => {
      stop.cancelKill?.()
      stops.delete(stop)
    }
  }

  /** The runtime's process dies, and all its calls with it. */
  loseStops(): void {
    const lost = [...this.#stops.values()].flatMap(stops => [...stops])
    this.#stops.clear()
    for (const { cancelKill } of lost) cancelKill?.()
  }

  /** The container ends, by itself or by a signal. */
  exit(container: Container, exitCode: number, reason?: string): void {
    if (container.state === "exited") return
    container.state = "exited"
    container.finishedAt = this.#options.clock.now()
    container.exitCode = exitCode
    container.reason = reason ?? (exitCode === 0 ? "Completed" : "Error")
    for (const listener of this.#listeners) listener(container)
    const stops = this.#stops.get(container.id)
    if (!stops) return
    this.#stops.delete(container.id)
    for (const { cancelKill } of stops) cancelKill?.()
    // A runtime that hangs answers later.
    for (const stop of [...stops]) this.#options.whenRunning(() => stops.has(stop) && stop.ended())
  }

  /** Removes all dead containers of a pod except the newest of each name. */
  prune(uid: string): void {
    const pod = this.#pods.get(uid)
    if (!pod || pod.containers.length < 2) return
    const seen = new Set<string>()
    pod.containers = pod.containers.toReversed().filter(container => {
      const isKept = container.state !== "exited" || !seen.has(container.name)
      if (container.state === "exited") seen.add(container.name)
      if (!isKept) this.#drop(container)
      return isKept
    })
    pod.containers.reverse()
  }

  /** Removes a pod with its containers and its sandbox. */
  removePod(uid: string): void {
    for (const container of this.#pods.get(uid)?.containers ?? []) this.#drop(container)
    this.#pods.delete(uid)
  }

  #drop(container: Container): void {
    this.#all.delete(container.id)
    this.#options.onRemove(container)
  }

  #podOf({ uid, name, namespace }: PodIdentity): PodOnNode {
    const found = this.#pods.get(uid)
    if (found) return found
    const made: PodOnNode = { identity: { uid, name, namespace }, sandbox: undefined, containers: [] }
    this.#pods.set(uid, made)
    return made
  }

  #signal(container: Container): void {
    if (container.isSignalled) return
    container.isSignalled = true
    const { ignoresTerm, stopsAfterMs = this.#options.stopMs, stopExitCode = 0 } = container.behaviour
    if (!ignoresTerm) this.#options.timers.after(stopsAfterMs, () => this.exit(container, stopExitCode))
  }

  /** Starts what a container does by itself. */
  #live(container: Container): void {
    const { exits } = container.behaviour
    if (!exits) return
    const { timers, clock } = this.#options
    const inMs = container.startedAt + exits.afterMs - clock.now()
    timers.after(inMs, () => this.exit(container, exits.exitCode, exits.reason))
  }
}

/** The ID of a pod's sandbox. Made from the pod, so that no run depends on whether it was asked for. */
export const sandboxId = (uid: string, attempt: number): string =>
  createHash("sha256").update(`sandbox ${uid} ${attempt}`).digest("hex")
