import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import type { Recorder } from "../recorder.ts"
import type { PhysicsWorld } from "../world.ts"
import { computeActions } from "./actions.ts"
import { BackOff } from "./back-off.ts"
import type { Behaviour } from "./behaviour.ts"
import { goDuration } from "./go-duration.ts"
import { parseImage } from "./image-reference.ts"
import { isSidecar, specs } from "./pod-spec.ts"
import {
  type Container,
  finalStatus,
  isEnd,
  podStatus,
  type Runtime,
  type StartFailure,
  withCondition,
  withReadiness,
} from "./pod-status.ts"
import { ask, failureMessage, isDue, nextTick, type Probe, probesOf } from "./probes.ts"
import type { Registries } from "./registries.ts"
import { type Process, run, type Timers, type Wait } from "./timers.ts"

/** How long the small things take on a node, in milliseconds; those of a calm machine. */
export type Pace = {
  /** From the binding of a pod to the kubelet's first look at it. */
  see: number
  sandbox: number
  create: number
  start: number
  /** A polite container, from SIGTERM to its end. */
  stop: number
  stopSandbox: number
  /** How often the kubelet asks the container runtime what has changed. */
  relist: number
}

export const calmPace: Pace = { see: 10, sandbox: 150, create: 15, start: 60, stop: 40, stopSandbox: 100, relist: 1000 }

export type KubeletOptions = {
  world: PhysicsWorld
  timers: Timers
  registries: Registries
  recorder: Recorder
  nodeName: string
  hostIP: string
  platform: string
  pace: Pace
  /** How many images are pulled at the same time; the others wait. */
  parallelPulls: number
  /** Gives an address, and takes it back. */
  addresses: { take(): string; free(ip: string): void; hold(ip: string): void }
  /** Told when an image has come to the node. */
  onImage?: () => void
}

type ImageOnNode = { name: string; digest: string; imageId: string; sizeBytes: number; behaviour: Behaviour }

/** What the kubelet does for one pod, one thing at a time. */
type Worker = {
  pod: Obj
  readonly uid: string
  readonly runtime: Runtime
  /** As it was told last, before what the API server must not hear yet was taken out. */
  status: Json | undefined
  readonly failures: Map<string, StartFailure>
  readonly pullErrors: Map<string, string>
  probes: Map<string, Probe[]> | undefined
  /** Goes on from one to the next, never back. */
  stage: "running" | "terminating" | "terminated" | "finished"
  eviction: { reason: string; message: string } | undefined
  /** The object is gone, so nothing is told any more. */
  isGone: boolean
  isWorking: boolean
  isPending: boolean
  lastSyncAt: Instant
  relistedAt: Instant
  /** Something changed in the runtime that the next relist will find. */
  isDirty: boolean
  cancelRelist: (() => void) | undefined
  cancelRequeue: (() => void) | undefined
  cancelDeadline: (() => void) | undefined
}

type SyncResult = { hasFailed: boolean; retryAt?: Instant; didSomething: boolean; isTerminal?: boolean }

/** The kubelet's own defaults: registryPullQPS and registryBurst. */
const pullsPerSecond = 5
const pullBurst = 10
const heldBack = { isFound: false, durationMs: 0, message: "pull QPS exceeded" } as const

const resyncMs = 60_000
const errorBackOffMs = 10_000
const shortestGraceSeconds = 2

/**
 * One node's kubelet with its container runtime. It works as the real one does: every pod has a worker that looks at
 * the pod and at what runs of it, tells that, and does the next thing; changes in the runtime are found by asking it
 * every second. What is told therefore lags behind what happened, in the real one's ways.
 */
export class Kubelet {
  readonly #options: KubeletOptions
  readonly #workers = new Map<string, Worker>()
  readonly #images = new Map<string, ImageOnNode>()
  readonly #pullBackOff = new BackOff()
  readonly #crashBackOff = new BackOff()
  readonly #waitingPulls: (() => void)[] = []
  #pulling = 0
  #pulls = { left: pullBurst, at: 0 }
  #isAlive = true
  /** What waits for a dead kubelet to come back. */
  #frozen: (() => void)[] = []

  constructor(options: KubeletOptions) {
    this.#options = options
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** Images on the node, biggest first, as the node's status lists them. */
  images(): Json[] {
    const byDigest = new Map<string, { names: string[]; sizeBytes: number }>()
    for (const { name, imageId, sizeBytes } of this.#images.values()) {
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
    if (found) this.#keep(reference, found)
    return found !== undefined
  }

  /** Takes an image from the node, as the kubelet's garbage collection does. */
  remove(image: string): boolean {
    const reference = parseImage(image)
    return !("invalid" in reference) && this.#images.delete(reference.name)
  }

  /** A pod of this node as it is now. */
  observe(pod: Obj): void {
    const known = this.#workers.get(pod.metadata.uid)
    if (known) {
      const before = known.pod
      known.pod = pod
      // What came from this kubelet itself, or from others into the status, is no reason to look again,
      // but readiness gates are.
      const isNews =
        before.metadata.generation !== pod.metadata.generation ||
        before.metadata.deletionTimestamp !== pod.metadata.deletionTimestamp ||
        (pod.spec.readinessGates && before.status !== pod.status)
      if (isNews) this.#wake(known)
      return
    }
    const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata
    // Its life is over, and only its object is left, perhaps held by somebody's finalizer.
    if (isEnd(pod.status?.phase) && (!deletionTimestamp || deletionGracePeriodSeconds === 0)) return
    const worker = this.#makeWorker(pod)
    this.#workers.set(worker.uid, worker)
    this.#adopt(worker)
    this.#options.timers.after(this.#options.pace.see, () => this.#wake(worker))
  }

  /** The object is gone: what still runs of it is stopped. */
  forget(uid: string): void {
    const worker = this.#workers.get(uid)
    if (!worker) return
    worker.isGone = true
    if (worker.stage === "terminated" || worker.stage === "finished") this.#dismiss(worker)
    else this.#wake(worker)
  }

  /** The kubelet dies; containers go on without it. */
  die(): void {
    this.#isAlive = false
  }

  revive(): void {
    if (this.#isAlive) return
    this.#isAlive = true
    const waiting = this.#frozen
    this.#frozen = []
    for (const resume of waiting) resume()
    for (const worker of this.#workers.values()) {
      if (worker.status) this.#write(worker) // others have written into it meanwhile
      this.#wake(worker)
    }
  }

  /** The node is gone with all that ran on it. */
  destroy(): void {
    this.#isAlive = false
    for (const worker of this.#workers.values()) this.#dismiss(worker)
    this.#frozen = []
  }

  /** Ends a container from outside, as the kernel or a bug would. Whether there was one. */
  endContainer(uid: string, name: string, { exitCode, reason }: { exitCode: number; reason?: string }): boolean {
    const worker = this.#workers.get(uid)
    const container = worker?.runtime.containers.get(name)?.current
    if (!worker || container?.state !== "running") return false
    this.#exit(worker, container, exitCode, reason)
    return true
  }

  #now(): Instant {
    return this.#options.world.clock.now()
  }

  #makeWorker(pod: Obj): Worker {
    return {
      pod,
      uid: pod.metadata.uid,
      runtime: { sandbox: undefined, containers: new Map() },
      status: undefined,
      failures: new Map(),
      pullErrors: new Map(),
      probes: undefined,
      stage: "running",
      eviction: undefined,
      isGone: false,
      isWorking: false,
      isPending: false,
      lastSyncAt: Number.NEGATIVE_INFINITY,
      relistedAt: Number.NEGATIVE_INFINITY,
      isDirty: false,
      cancelRelist: undefined,
      cancelRequeue: undefined,
      cancelDeadline: undefined,
    }
  }

  /** Takes over a pod that ran here before the cluster was started again: what its status says still holds. */
  #adopt(worker: Worker): void {
    const { pod, runtime } = worker
    const { status } = pod
    if (!status?.startTime) return
    worker.status = status
    for (const told of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]) {
      const { running, terminated = told.lastState?.terminated } = told.state ?? {}
      const state = running ?? terminated
      if (!told.containerID || !state) continue
      const reference = parseImage(told.image)
      const found = "invalid" in reference ? undefined : this.#options.registries.find(reference)
      const spec = [...specs(pod).init, ...specs(pod).main].find(({ name }) => name === told.name)
      const container: Container = {
        name: told.name,
        id: told.containerID.replace(/^.*:\/\//, ""),
        image: spec?.image ?? told.image,
        imageName: told.image,
        imageId: told.imageID,
        restartCount: told.restartCount,
        behaviour: found?.behaviour ?? {},
        startedAt: parseInstant(state.startedAt) ?? this.#now(),
        state: running ? "running" : "exited",
        ...(terminated && {
          exitCode: terminated.exitCode,
          reason: terminated.reason,
          finishedAt: parseInstant(terminated.finishedAt) ?? this.#now(),
        }),
        ...(told.started && { startup: true }),
        ...(told.ready && { readiness: true }),
      }
      runtime.containers.set(told.name, { current: container })
      if (running) this.#live(worker, container)
      if (!("invalid" in reference) && found) this.#keep(reference, found)
    }
    const isReady = status.conditions?.some(
      ({ type, status: is }: Json) => type === "PodReadyToStartContainers" && is === "True",
    )
    if (isReady) {
      runtime.sandbox = { isReady: true, ip: status.podIP }
      if (status.podIP && !pod.spec.hostNetwork) this.#options.addresses.hold(status.podIP)
    }
  }

  #dismiss(worker: Worker): void {
    worker.stage = "finished"
    this.#workers.delete(worker.uid)
    worker.cancelRelist?.()
    worker.cancelRequeue?.()
    worker.cancelDeadline?.()
    this.#stopProbes(worker)
    for (const { image } of [...specs(worker.pod).init, ...specs(worker.pod).main])
      this.#pullBackOff.forget(`${worker.uid}_${image}`)
    const { sandbox } = worker.runtime
    if (sandbox?.ip && !worker.pod.spec.hostNetwork) this.#options.addresses.free(sandbox.ip)
  }

  // ── the worker: when it looks ──────────────────────────────────────────────────────────────────────────────────

  /** The first relist at or after a time. They come every second. */
  #relistAfter(at: Instant): Instant {
    const { relist } = this.#options.pace
    return Math.floor(at / relist + 1) * relist
  }

  /** Has the worker look at its pod as soon as it can: not before the runtime was asked since the last time. */
  #wake(worker: Worker): void {
    if (worker.stage === "finished") return
    if (worker.isWorking || !this.#isAlive) {
      worker.isPending = true
      return
    }
    worker.isWorking = true
    const now = this.#now()
    const { relist } = this.#options.pace
    const lastRelist = Math.max(Math.floor(now / relist) * relist, worker.relistedAt)
    const at = lastRelist > worker.lastSyncAt ? now : this.#relistAfter(now)
    this.#options.timers.after(at - now, () => this.#begin(worker))
  }

  #begin(worker: Worker): void {
    if (worker.stage === "finished") return
    if (!this.#isAlive) {
      worker.isWorking = false
      worker.isPending = true
      return
    }
    worker.isPending = false
    const isAsked = worker.isGone || worker.pod.metadata.deletionTimestamp || worker.eviction
    if (worker.stage === "running" && isAsked) worker.stage = "terminating"
    const result: SyncResult = { hasFailed: false, didSomething: false }
    const process =
      worker.stage === "running"
        ? this.#sync(worker, result)
        : worker.stage === "terminating"
          ? this.#terminate(worker)
          : this.#finish(worker)
    run(this.#mortal(), process, () => this.#complete(worker, result))
  }

  /** Timers that stand still while the kubelet is dead. */
  #mortal(): Timers {
    const { timers } = this.#options
    const guard = (callback: () => void) => () => {
      if (this.#isAlive) callback()
      else this.#frozen.push(callback)
    }
    return { after: (ms, callback) => timers.after(ms, guard(callback)), clear: () => {} }
  }

  #complete(worker: Worker, result: SyncResult): void {
    const now = this.#now()
    worker.isWorking = false
    worker.lastSyncAt = now
    if (worker.stage === "finished") return
    if (result.isTerminal && worker.stage === "running") worker.stage = "terminating"
    const isMoving = worker.stage === "terminating" || worker.stage === "terminated"
    if (worker.stage === "terminated" && worker.isGone) {
      this.#dismiss(worker)
      return
    }
    worker.cancelRequeue?.()
    worker.cancelRequeue = undefined
    if (isMoving) worker.isPending = true
    else if (result.hasFailed) {
      const { random } = this.#options.world
      const waitMs =
        result.retryAt === undefined ? errorBackOffMs : Math.min(Math.max(0, result.retryAt - now), resyncMs)
      const at = this.#relistAfter(now + waitMs * (1 + 0.5 * random.next()))
      worker.cancelRequeue = this.#options.timers.after(at - now, () => this.#wake(worker))
    } else if (result.didSomething && worker.isDirty) this.#relist(worker)
    if (worker.isPending) this.#wake(worker)
  }

  /** Something happened to the pod in the runtime; the next relist finds it. */
  #touch(worker: Worker): void {
    worker.isDirty = true
    if (worker.cancelRelist || worker.stage === "finished") return
    const now = this.#now()
    worker.cancelRelist = this.#options.timers.after(this.#relistAfter(now) - now, () => this.#relist(worker))
  }

  #relist(worker: Worker): void {
    worker.cancelRelist?.()
    worker.cancelRelist = undefined
    worker.relistedAt = this.#now() + 0.5 // later than a sync that has ended just now
    if (!worker.isDirty) return
    worker.isDirty = false
    this.#wake(worker)
  }

  // ── what it does ───────────────────────────────────────────────────────────────────────────────────────────────

  *#sync(worker: Worker, result: SyncResult): Process {
    const { pace } = this.#options
    const { runtime } = worker
    const status = this.#generate(worker, false)
    this.#tell(worker, status)
    if (isEnd(status.phase)) {
      result.isTerminal = true
      return
    }
    this.#watchDeadline(worker)
    this.#startProbes(worker)

    const { pod } = worker
    const actions = computeActions(pod, runtime)
    // Back-offs are counted from what was there before anything is killed.
    const ended = new Map([...runtime.containers].map(([name, each]) => [name, lastEnd(each)]))
    if (actions.killPod && runtime.sandbox) {
      result.didSomething = true
      yield* this.#killPod(worker, undefined)
    } else
      for (const { spec, container, message } of actions.kill) {
        result.didSomething = true
        yield* this.#killContainer(worker, spec, container, { message })
      }

    if (actions.createSandbox) {
      result.didSomething = true
      yield pace.sandbox
      const ip = pod.spec.hostNetwork ? this.#options.hostIP : this.#options.addresses.take()
      runtime.sandbox = { isReady: true, ip }
      runtime.containers.clear()
      this.#touch(worker)
      const generation = pod.metadata.generation ?? 1
      const condition = { type: "PodReadyToStartContainers", status: "True" }
      this.#tell(worker, withCondition(worker.status, condition, generation, this.#now()))
    }

    for (const spec of actions.startInit) {
      result.didSomething = true
      const hasStarted = yield* this.#start(worker, spec, ended.get(spec.name), result)
      if (!hasStarted && !isSidecar(spec)) return
    }
    for (const spec of actions.start) {
      result.didSomething = true
      yield* this.#start(worker, spec, ended.get(spec.name), result)
    }
  }

  *#start(
    worker: Worker,
    spec: Json,
    endedAt: Instant | undefined,
    result: SyncResult,
  ): Generator<Wait, boolean, void> {
    const { pod } = worker
    const fail = (reason: string, message: string) => {
      worker.failures.set(spec.name, { reason, message })
      result.hasFailed = true
      return false
    }
    if (endedAt !== undefined) {
      const key = `${worker.uid}/${spec.name}/${spec.image}`
      const now = this.#now()
      if (this.#crashBackOff.isWaitingSince(key, endedAt, now)) {
        const name = `${pod.metadata.name}_${pod.metadata.namespace}(${worker.uid})`
        const message = `Back-off restarting failed container ${spec.name} in pod ${name}`
        this.#say(worker, spec, { type: "Warning", reason: "BackOff", message })
        const waitMs = this.#crashBackOff.get(key)
        result.retryAt = Math.min(result.retryAt ?? Number.POSITIVE_INFINITY, endedAt + waitMs)
        const words = `back-off ${goDuration(waitMs)} restarting failed container=${spec.name} pod=${name}`
        return fail("CrashLoopBackOff", words)
      }
      this.#crashBackOff.next(key, endedAt, now)
    }

    const image = yield* this.#ensureImage(worker, spec)
    if ("reason" in image) {
      this.#say(worker, spec, { type: "Warning", reason: "Failed", message: `Error: ${image.reason}` })
      return fail(image.reason, image.message)
    }

    const { pace, world } = this.#options
    const before = worker.runtime.containers.get(spec.name)?.current
    yield pace.create
    this.#say(worker, spec, { type: "Normal", reason: "Created", message: "Container created" })
    yield pace.start
    const container: Container = {
      name: spec.name,
      id: hexadecimal(world.random, 64),
      image: spec.image,
      imageName: image.name,
      imageId: image.imageId,
      restartCount: before ? before.restartCount + 1 : 0,
      behaviour: image.behaviour,
      startedAt: this.#now(),
      state: "running",
    }
    worker.runtime.containers.set(spec.name, { current: container, ...(before && { previous: before }) })
    this.#say(worker, spec, { type: "Normal", reason: "Started", message: "Container started" })
    worker.failures.delete(spec.name)
    this.#live(worker, container)
    this.#touch(worker)
    const hook = spec.lifecycle?.postStart
    if (hook?.sleep) yield 1000 * hook.sleep.seconds
    return true
  }

  /** The container's own life. */
  #live(worker: Worker, container: Container): void {
    const { exits } = container.behaviour
    if (!exits) return
    const inMs = container.startedAt + exits.afterMs - this.#now()
    this.#options.timers.after(inMs, () => this.#exit(worker, container, exits.exitCode, exits.reason))
  }

  #exit(worker: Worker, container: Container, exitCode: number, reason?: string): void {
    if (container.state === "exited") return
    container.state = "exited"
    container.finishedAt = this.#now()
    container.exitCode = exitCode
    container.reason = reason ?? (exitCode === 0 ? "Completed" : "Error")
    this.#touch(worker)
  }

  // ── images ─────────────────────────────────────────────────────────────────────────────────────────────────────

  *#ensureImage(worker: Worker, spec: Json): Generator<Wait, ImageOnNode | StartFailure, void> {
    const { registries, platform } = this.#options
    const image: string = spec.image
    const reference = parseImage(image)
    if ("invalid" in reference) {
      const message = `Failed to apply default image tag "${image}": couldn't parse image name "${image}": ${reference.invalid}`
      this.#say(worker, spec, { type: "Warning", reason: "InspectFailed", message })
      return { reason: "InvalidImageName", message }
    }
    const present = this.#images.get(reference.name)
    const policy = spec.imagePullPolicy ?? "IfNotPresent"
    if (present && policy !== "Always") {
      const message = `Container image "${image}" already present on machine and can be accessed by the pod`
      this.#say(worker, spec, { type: "Normal", reason: "Pulled", message })
      return present
    }
    if (policy === "Never") {
      const message = `Container image "${image}" is not present with pull policy of Never`
      this.#say(worker, spec, { type: "Warning", reason: "ErrImageNeverPull", message })
      return { reason: "ErrImageNeverPull", message }
    }

    const key = `${worker.uid}_${image}`
    if (this.#pullBackOff.isWaiting(key, this.#now())) {
      const message = `Back-off pulling image "${image}"`
      this.#say(worker, spec, { type: "Normal", reason: "BackOff", message })
      const cause = worker.pullErrors.get(image)
      return { reason: "ImagePullBackOff", message: cause ? `${message}: ${cause}` : message }
    }
    worker.pullErrors.delete(image)
    this.#say(worker, spec, { type: "Normal", reason: "Pulling", message: `Pulling image "${image}"` })
    const askedAt = this.#now()
    yield resume => this.#takePull(resume)
    const startedAt = this.#now()
    const pull = this.#mayPull() ? registries.pull(reference, { now: startedAt, platform }) : heldBack
    // Layers that are on the node are not fetched again: what is left is asking for the manifest.
    const hasIt = pull.isFound && [...this.#images.values()].some(({ digest }) => digest === pull.digest)
    yield hasIt && pull.isFound ? pull.latencyMs : pull.durationMs
    this.#releasePull()
    if (!pull.isFound) {
      const { message } = pull
      this.#say(worker, spec, {
        type: "Warning",
        reason: "Failed",
        message: `Failed to pull image "${image}": ${message}`,
      })
      const now = this.#now()
      this.#pullBackOff.next(key, now, now)
      worker.pullErrors.set(image, `ErrImagePull: ${message}`)
      return { reason: "ErrImagePull", message }
    }
    const kept = this.#keep(reference, pull)
    const took = goDuration(this.#now() - startedAt)
    const whole = goDuration(this.#now() - askedAt)
    const message = `Successfully pulled image "${image}" in ${took} (${whole} including waiting). Image size: ${pull.sizeBytes} bytes.`
    this.#say(worker, spec, { type: "Normal", reason: "Pulled", message })
    return kept
  }

  #keep(
    { name, host, repository }: { name: string; host: string; repository: string },
    { digest, sizeBytes, behaviour }: { digest: string; sizeBytes: number; behaviour: Behaviour },
  ): ImageOnNode {
    const image = { name, digest, imageId: `${host}/${repository}@${digest}`, sizeBytes, behaviour }
    this.#images.set(name, image)
    this.#images.set(image.imageId, image) // so that a pod that pins the digest finds it
    this.#options.onImage?.()
    return image
  }

  /** Whether one more pull may be started now, which then counts. */
  #mayPull(): boolean {
    const now = this.#now()
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

  // ── endings ────────────────────────────────────────────────────────────────────────────────────────────────────

  *#terminate(worker: Worker): Process {
    const { pod } = worker
    if (!worker.isGone) this.#tell(worker, this.#generate(worker, false))
    for (const probes of worker.probes?.values() ?? [])
      for (const probe of probes) if (probe.type !== "readiness") this.#stopProbe(probe)
    const asked = worker.isGone ? 1 : pod.metadata.deletionGracePeriodSeconds
    yield* this.#killPod(worker, asked)
    this.#stopProbes(worker)
    worker.stage = "terminated"
    if (!worker.isGone) this.#tell(worker, this.#generate(worker, true))
  }

  *#finish(worker: Worker): Process {
    yield 0
    if (!worker.isGone && worker.status) {
      this.#tell(worker, finalStatus(this.#generate(worker, true), worker.pod), true)
      if (worker.pod.metadata.deletionTimestamp) this.#deleteObject(worker)
    }
    // The object of a pod that has ended stays, for people to read.
    this.#dismiss(worker)
  }

  #deleteObject(worker: Worker): void {
    const { storage } = this.#options.world
    const kind = storage.kind("v1", "Pod")
    const { name, namespace } = worker.pod.metadata
    if (!kind) return
    try {
      storage.delete(kind, { name, namespace }, { gracePeriodSeconds: 0, preconditions: { uid: worker.uid } })
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  /** All containers at once; sidecars after the others, the last one first. */
  *#killPod(worker: Worker, graceSeconds: number | undefined): Process {
    const { runtime, pod } = worker
    const { init } = specs(pod)
    const running = [...runtime.containers.values()].map(({ current }) => current).filter(isRunning)
    if (running.length > 0) {
      let left = running.length
      const waiters: (() => void)[] = []
      const onEnd = () => {
        left--
        for (const retry of [...waiters]) retry()
      }
      const sidecars = init.filter(isSidecar).map(({ name }) => name)
      const order = init.filter(isSidecar).length > 0
      const mayStop = (container: Container) => {
        const place = sidecars.indexOf(container.name)
        return running.every(other => {
          const otherPlace = sidecars.indexOf(other.name)
          const goesFirst = otherPlace < 0 ? place >= 0 : place >= 0 && otherPlace > place
          return !goesFirst || other.state === "exited"
        })
      }
      yield resume => {
        for (const container of running) {
          const spec = [...init, ...specs(pod).main].find(({ name }) => name === container.name)
          const turn = order ? { mayStop: () => mayStop(container), waiters } : undefined
          const options = { ...(graceSeconds !== undefined && { graceSeconds }), ...(turn && { turn }) }
          run(this.#mortal(), this.#killContainer(worker, spec, container, options), () => {
            onEnd()
            if (left === 0) resume()
          })
        }
      }
    }
    if (runtime.sandbox?.isReady) {
      yield this.#options.pace.stopSandbox
      runtime.sandbox.isReady = false
      this.#touch(worker)
    }
  }

  *#killContainer(
    worker: Worker,
    spec: Json,
    container: Container,
    options: {
      message?: string
      graceSeconds?: number
      turn?: { mayStop: () => boolean; waiters: (() => void)[] }
    },
  ): Process {
    const { pod } = worker
    const message = options.message ?? `Stopping container ${spec.name}`
    this.#say(worker, spec, { type: "Normal", reason: "Killing", message })
    const probe =
      container.liveness === false ? "livenessProbe" : container.startup === false ? "startupProbe" : undefined
    const ownGrace = probe && spec[probe]?.terminationGracePeriodSeconds
    let grace: number =
      options.graceSeconds ??
      ownGrace ??
      pod.metadata.deletionGracePeriodSeconds ??
      pod.spec.terminationGracePeriodSeconds ??
      30
    const hook = spec.lifecycle?.preStop
    if (hook && grace > 0 && hook.sleep) {
      const seconds = Math.min(hook.sleep.seconds, grace)
      yield 1000 * seconds
      grace -= seconds
    }
    const { turn } = options
    if (turn && grace > 0 && !turn.mayStop()) {
      const since = this.#now()
      yield resume => {
        let isOver = false
        const go = () => {
          if (isOver || (!turn.mayStop() && this.#now() < since + 1000 * grace)) return
          isOver = true
          resume()
        }
        turn.waiters.push(go)
        this.#options.timers.after(1000 * grace, go)
      }
      grace -= Math.floor((this.#now() - since) / 1000)
    }
    grace = Math.max(grace, shortestGraceSeconds)
    if (container.state === "exited") return
    const { behaviour } = container
    const politeMs = behaviour.stopsAfterMs ?? this.#options.pace.stop
    const isPolite = !behaviour.ignoresTerm && politeMs <= 1000 * grace
    yield isPolite ? politeMs : 1000 * grace
    this.#exit(worker, container, isPolite ? (behaviour.stopExitCode ?? 0) : 137)
    yield 5
  }

  #watchDeadline(worker: Worker): void {
    const seconds = worker.pod.spec.activeDeadlineSeconds
    if (seconds === undefined || worker.cancelDeadline) return
    const end = (parseInstant(worker.status?.startTime) ?? this.#now()) + 1000 * seconds
    const at = this.#relistAfter(end - 1)
    worker.cancelDeadline = this.#options.timers.after(at - this.#now(), () => {
      worker.eviction = {
        reason: "DeadlineExceeded",
        message: "Pod was active on the node longer than the specified deadline",
      }
      const { reason, message } = worker.eviction
      this.#options.recorder(worker.pod, "Normal", reason, message)
      this.#wake(worker)
    })
  }

  // ── what it tells ──────────────────────────────────────────────────────────────────────────────────────────────

  #generate(worker: Worker, isTerminal: boolean): Json {
    const { pod, runtime, failures, eviction } = worker
    const { hostIP } = this.#options
    const old = worker.status ?? pod.status ?? {}
    return podStatus({ pod, old, runtime, failures, isTerminal, hostIP, now: this.#now(), eviction })
  }

  /** Writes the status if it says something new. */
  #tell(worker: Worker, status: Json, force = false): void {
    const isSame = worker.status !== undefined && isEqual(worker.status, status)
    worker.status = status
    if (isSame && !force) return
    this.#write(worker)
    this.#armProbes(worker)
  }

  #write(worker: Worker): void {
    const { storage } = this.#options.world
    const kind = storage.kind("v1", "Pod")
    if (!kind || worker.isGone) return
    const { name, namespace } = worker.pod.metadata
    const stored = storage.find(kind, { name, namespace })
    if (stored?.metadata.uid !== worker.uid) return
    // A pod that may still have containers is not told to have ended: others would take what it holds.
    const couldRun = worker.stage === "running" || worker.stage === "terminating"
    const isTooEarly = couldRun && !isEnd(stored.status?.phase) && isEnd(worker.status.phase)
    const { reason: _, message: __, ...rest } = worker.status
    const { phase, reason, message } = stored.status ?? {}
    const told = isTooEarly ? { ...rest, phase, ...(reason && { reason }), ...(message && { message }) } : worker.status
    const foreign = (stored.status?.conditions ?? []).filter(
      (each: Json) => !told.conditions.some((own: Json) => own.type === each.type),
    )
    const conditions = foreign.length > 0 ? [...foreign, ...told.conditions] : told.conditions
    const next = { ...stored, status: { ...told, conditions } }
    if (isEqual(stored.status, next.status)) return
    try {
      const written = storage.update(kind, next, { subresource: "status", fieldManager: "kubelet" })
      // Whoever was told of it may have written again before it comes back here.
      const isNewer = Number(written.metadata.resourceVersion) > Number(worker.pod.metadata.resourceVersion)
      if (isNewer) worker.pod = written
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  #say(worker: Worker, spec: Json, about: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    const isInit = specs(worker.pod).init.some(({ name }) => name === spec.name)
    const fieldPath = `spec.${isInit ? "initContainers" : "containers"}{${spec.name}}`
    this.#options.recorder(worker.pod, about.type, about.reason, about.message, fieldPath)
  }

  // ── probes ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #startProbes(worker: Worker): void {
    if (worker.probes) return
    const { init, main } = specs(worker.pod)
    const now = this.#now()
    worker.probes = new Map()
    for (const spec of [...init.filter(isSidecar), ...main]) {
      const probes = probesOf(spec, now)
      if (probes.length > 0) worker.probes.set(spec.name, probes)
    }
  }

  #stopProbe(probe: Probe): void {
    probe.cancel?.()
    probe.cancel = undefined
    probe.isOnHold = true
  }

  #stopProbes(worker: Worker): void {
    for (const probes of worker.probes?.values() ?? []) for (const probe of probes) this.#stopProbe(probe)
    worker.probes = undefined
  }

  /** Called when a status was told: probes see containers only there. One that is not ready is asked at once. */
  #armProbes(worker: Worker): void {
    if (!worker.probes || worker.probes.size === 0) return
    for (const [name, probes] of worker.probes) {
      const container = worker.runtime.containers.get(name)?.current
      if (container?.state !== "running") continue
      for (const probe of probes) {
        const isNew = probe.containerId !== container.id
        if (isNew) {
          probe.containerId = container.id
          probe.isOnHold = false
          probe.lastResult = undefined
          probe.run = 0
        }
        if (probe.isOnHold) continue
        const isAskedNow = probe.type === "readiness" && container.readiness !== true && this.#hasStarted(worker, name)
        if (isNew || isAskedNow || (!probe.cancel && probe.lastResult === undefined))
          this.#plan(worker, probe, isAskedNow)
      }
    }
  }

  #hasStarted(worker: Worker, name: string): boolean {
    const { containerStatuses = [], initContainerStatuses = [] } = worker.status ?? {}
    return [...initContainerStatuses, ...containerStatuses].find((each: Json) => each.name === name)?.started === true
  }

  #plan(worker: Worker, probe: Probe, isNow: boolean): void {
    probe.cancel?.()
    const now = this.#now()
    const at = isNow ? now + 1 : nextTick(probe, now)
    probe.cancel = this.#options.timers.after(at - now, () => {
      probe.cancel = undefined
      if (this.#isAlive) this.#probe(worker, probe)
      else this.#frozen.push(() => this.#probe(worker, probe))
    })
  }

  #probe(worker: Worker, probe: Probe): void {
    const { name } = probe.container
    const container = worker.runtime.containers.get(name)?.current
    if (worker.stage === "finished" || probe.isOnHold || container?.id !== probe.containerId) return
    if (container?.state !== "running") return
    const now = this.#now()
    if (!isDue(probe, container, this.#hasStarted(worker, name), now)) {
      // A probe that waits for the start is planned again when the start is told.
      if (probe.type === "startup" || this.#hasStarted(worker, name)) this.#plan(worker, probe, false)
      return
    }
    const { isFine, verdict } = ask(probe, container, now)
    if (!isFine) {
      const ip = worker.runtime.sandbox?.ip ?? this.#options.hostIP
      this.#say(worker, probe.container, { type: "Warning", reason: "Unhealthy", message: failureMessage(probe, ip) })
    }
    const isFinal = verdict !== undefined && (probe.type === "startup" || (probe.type === "liveness" && !verdict))
    if (isFinal) probe.isOnHold = true
    // Once a container is well it stays so until it ends, and its probe need not be asked.
    else if (verdict !== true) this.#plan(worker, probe, false)
    if (verdict === undefined || container[probe.type] === verdict) return
    container[probe.type] = verdict
    if (probe.type === "readiness") this.#tellReadiness(worker, container, verdict)
    if (probe.type === "startup" && verdict) this.#tellStarted(worker, container)
    this.#wake(worker)
  }

  #tellReadiness(worker: Worker, container: Container, isReady: boolean): void {
    if (!worker.status || worker.stage === "terminated") return
    const id = `containerd://${container.id}`
    const told = [...(worker.status.initContainerStatuses ?? []), ...worker.status.containerStatuses]
    if (!told.some(each => each.containerID === id && each.ready !== isReady)) return
    worker.status = withReadiness(worker.status, worker.pod, id, isReady, this.#now())
    this.#write(worker)
  }

  #tellStarted(worker: Worker, container: Container): void {
    if (!worker.status) return
    const id = `containerd://${container.id}`
    const change = (each: Json) => (each.containerID === id ? { ...each, started: true } : each)
    const { initContainerStatuses, containerStatuses } = worker.status
    worker.status = {
      ...worker.status,
      ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(change) }),
      containerStatuses: containerStatuses.map(change),
    }
    this.#write(worker)
    this.#armProbes(worker)
  }
}

const isRunning = ({ state }: Container) => state === "running"

/** When the last run of a container ended; one that runs now counts with the run before. */
function lastEnd({ current, previous }: { current: Container; previous?: Container }): Instant | undefined {
  return current.state === "exited" ? current.finishedAt : previous?.finishedAt
}

export function hexadecimal({ next }: { next(): number }, digits: number): string {
  let text = ""
  while (text.length < digits)
    text += Math.floor(next() * 2 ** 32)
      .toString(16)
      .padStart(8, "0")
  return text.slice(0, digits)
}

/** Whether two values say the same. Statuses share most of their parts, which makes this short. */
export function isEqual(a: Json, b: Json): boolean {
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => isEqual(each, b[i]))
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => Object.hasOwn(b, key) && isEqual(a[key], b[key]))
}
