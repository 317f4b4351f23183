import { isDeepStrictEqual } from "node:util"
import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import type { Container, NodeRuntime } from "../container-runtime/index.ts"
import { type Process, run, type Wait } from "../timers.ts"
import { computeActions } from "./actions.ts"
import { containersOf, hasSandbox, sourceOf } from "./adopt.ts"
import { BackOff } from "./back-off.ts"
import { goDuration } from "./go-duration.ts"
import { NodeImages } from "./images.ts"
import type { KubeletOptions } from "./options.ts"
import { isSidecar, specs } from "./pod-spec.ts"
import { finalStatus, isEnd, podStatus, withCondition } from "./pod-status.ts"
import { Prober } from "./prober.ts"
import { pullCredentials } from "./pull-credentials.ts"
import { environmentProblem, mountProblems, referredBy } from "./references.ts"
import { deletePod, isEqual, writeStatus } from "./status-writer.ts"
import { killContainer, killPod, type StoppingKubelet } from "./stopping.ts"
import { Suspension } from "./suspension.ts"
import { createWorker, type Say, type SyncResult, type Worker } from "./worker.ts"

const resyncMs = 60_000
const errorBackOffMs = 10_000
const shortestMountRetryMs = 500
const longestMountRetryMs = 122_000

/**
 * One node's kubelet. It works as the real one does: every pod has a worker that compares the pod with its containers,
 * writes the status, and takes the next action. Changes in the runtime are found by a relist every second, so the status
 * lags behind them as on a real node. Without an answering runtime it does nothing.
 */
export class Kubelet {
  readonly #options: KubeletOptions
  readonly #runtime: NodeRuntime
  readonly #workers = new Map<string, Worker>()
  readonly #crashBackOff = new BackOff()
  readonly #images: NodeImages
  readonly #prober: Prober
  readonly #stopping: StoppingKubelet
  readonly #suspension: Suspension

  constructor(options: KubeletOptions) {
    this.#options = options
    this.#runtime = options.runtime
    const { timers, pace, hostIP, runtime } = options
    const { clock } = options.world
    const say: Say = (worker, spec, about) => this.#say(worker, spec, about)
    const suspension = new Suspension({ timers, runtime, onEnd: () => this.#goOn() })
    this.#suspension = suspension
    const unlessFrozen = (resume: () => void) => suspension.unlessFrozen(resume)
    this.#images = new NodeImages({ ...options, clock, say, unlessFrozen, images: runtime.images })
    this.#prober = new Prober({
      clock,
      timers,
      hostIP,
      say,
      isAlive: () => suspension.isAlive,
      onRevival: resume => suspension.onRevival(resume),
      write: worker => writeStatus(this.#options.world, worker),
      wake: worker => this.#wake(worker),
    })
    this.#stopping = {
      clock,
      timers,
      pace,
      say,
      mortal: () => suspension.mortal(),
      stop: (container, graceMs, resume) => suspension.stop(container, graceMs, resume),
      touch: worker => this.#touch(worker),
    }
    runtime.containers.onExit(({ source }) => {
      const worker = this.#workers.get(source.pod.uid)
      if (worker) this.#touch(worker)
    })
  }

  /** The images on the node. */
  get images(): NodeImages {
    return this.#images
  }

  get isAlive(): boolean {
    return this.#suspension.isAlive
  }

  /** Called with each new version of a pod of this node. */
  observe(pod: Obj): void {
    const known = this.#workers.get(pod.metadata.uid)
    if (known) {
      const before = known.pod
      known.pod = pod
      // This kubelet's own writes, and status changes by others, need no new sync,
      // except changes of readiness gates.
      const isNews =
        before.metadata.generation !== pod.metadata.generation ||
        before.metadata.deletionTimestamp !== pod.metadata.deletionTimestamp ||
        !isDeepStrictEqual(before.metadata.labels, pod.metadata.labels) ||
        !isDeepStrictEqual(before.metadata.annotations, pod.metadata.annotations) ||
        (pod.spec.readinessGates && before.status !== pod.status)
      if (isNews) this.#wake(known)
      return
    }
    const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata
    // The pod has ended and only its object is left, perhaps held by a finalizer.
    if (isEnd(pod.status?.phase) && (!deletionTimestamp || deletionGracePeriodSeconds === 0)) return
    const worker = createWorker(pod)
    this.#workers.set(worker.uid, worker)
    this.#adopt(worker)
    this.#options.timers.after(this.#options.pace.see, () => this.#wake(worker))
  }

  /** The object is gone: its remaining containers are stopped. */
  forget(uid: string): void {
    const worker = this.#workers.get(uid)
    if (!worker) return void this.#runtime.containers.removePod(uid)
    worker.isGone = true
    if (worker.stage === "terminated" || worker.stage === "finished") this.#dismiss(worker)
    else this.#wake(worker)
  }

  /** The kubelet dies; its containers keep running. */
  die(): void {
    this.#suspension.die()
  }

  revive(): void {
    this.#suspension.revive()
  }

  #goOn(): void {
    for (const worker of this.#workers.values()) {
      if (worker.status) writeStatus(this.#options.world, worker) // it may have changed in the API meanwhile
      this.#wake(worker)
    }
  }

  /** The node is gone with all its containers. */
  destroy(): void {
    this.#suspension.destroy()
    for (const worker of this.#workers.values()) this.#dismiss(worker)
  }

  /** Ends a container from outside, as the kernel or a bug would. Returns whether there was one. */
  endContainer(uid: string, name: string, { exitCode, reason }: { exitCode: number; reason?: string }): boolean {
    const container = this.#workers.get(uid)?.runtime.containers.get(name)?.current
    if (container?.state !== "running") return false
    this.#runtime.containers.exit(container, exitCode, reason)
    return true
  }

  #now(): Instant {
    return this.#options.world.clock.now()
  }

  /** Takes over a pod that ran here before the cluster was restarted. Its status still holds. */
  #adopt(worker: Worker): void {
    const { pod, runtime } = worker
    if (!pod.status?.startTime) return
    worker.status = pod.status
    for (const { container, image } of containersOf(pod, this.#options.registries, this.#now())) {
      runtime.containers.set(container.name, { current: this.#runtime.containers.adopt(container) })
      if (image) this.#runtime.images.keep(...image)
    }
    worker.isMounted = hasSandbox(pod)
    if (worker.isMounted) this.#createSandbox(worker, pod.status.podIP)
    const ip = runtime.sandbox?.ip
    if (ip && !pod.spec.hostNetwork) this.#options.addresses.hold(ip)
  }

  #createSandbox(worker: Worker, ip: string | undefined): void {
    const isOnHostNetwork = worker.pod.spec.hostNetwork === true
    const { pod } = sourceOf(worker.pod, {})
    worker.runtime.sandbox = this.#runtime.containers.createSandbox(pod, { ip, isOnHostNetwork })
  }

  #dismiss(worker: Worker): void {
    worker.stage = "finished"
    // The dead containers of an ended pod stay as long as its object.
    if (worker.isGone) this.#runtime.containers.removePod(worker.uid)
    this.#workers.delete(worker.uid)
    worker.cancelRelist?.()
    worker.cancelRequeue?.()
    worker.cancelDeadline?.()
    this.#prober.stop(worker)
    for (const { image } of [...specs(worker.pod).init, ...specs(worker.pod).main]) this.#images.forget(worker, image)
    const { sandbox } = worker.runtime
    if (sandbox?.ip && !worker.pod.spec.hostNetwork) this.#options.addresses.free(sandbox.ip)
  }

  // ── the worker: when it syncs ──────────────────────────────────────────────────────────────────────────────────

  /** The first relist at or after a time. There is one every second. */
  #relistAfter(at: Instant): Instant {
    const { relist } = this.#options.pace
    return Math.floor(at / relist + 1) * relist
  }

  /** Makes the worker sync its pod as soon as possible, but not before a relist since its last sync. */
  #wake(worker: Worker): void {
    if (worker.stage === "finished") return
    if (worker.isWorking || !this.#canSync(worker)) {
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

  /** Without a runtime the kubelet still reports that it has seen a new pod. */
  #canSync({ status }: Worker): boolean {
    return this.#suspension.canWork || (this.#suspension.isAlive && status === undefined)
  }

  #begin(worker: Worker): void {
    if (worker.stage === "finished") return
    if (!this.#canSync(worker)) {
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
    run(this.#suspension.mortal(), process, () => this.#complete(worker, result))
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

  /** Something changed in the runtime; the next relist finds it. */
  #touch(worker: Worker): void {
    worker.isDirty = true
    if (worker.cancelRelist || worker.stage === "finished") return
    const now = this.#now()
    worker.cancelRelist = this.#options.timers.after(this.#relistAfter(now) - now, () => this.#relist(worker))
  }

  #relist(worker: Worker): void {
    worker.cancelRelist?.()
    worker.cancelRelist = undefined
    worker.relistedAt = this.#now() + 0.5 // later than a sync that ended just now
    if (!worker.isDirty) return
    worker.isDirty = false
    this.#runtime.containers.prune(worker.uid)
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
    if (!this.#mount(worker, result)) return
    this.#prober.start(worker)
    if (!this.#suspension.canWork) yield resume => this.#suspension.unlessFrozen(resume)

    const { pod } = worker
    const actions = computeActions(pod, runtime)
    // Back-offs are counted from the ends before this sync kills anything.
    const ended = new Map([...runtime.containers].map(([name, each]) => [name, lastEnd(each)]))
    if (actions.killPod && runtime.sandbox) {
      result.didSomething = true
      yield* killPod(this.#stopping, worker, undefined)
    } else
      for (const { spec, container, message } of actions.kill) {
        result.didSomething = true
        yield* killContainer(this.#stopping, worker, spec, container, { message })
      }

    if (actions.createSandbox) {
      result.didSomething = true
      yield pace.sandbox
      const ip = pod.spec.hostNetwork ? this.#options.hostIP : this.#options.addresses.take()
      this.#createSandbox(worker, ip)
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

  /** Whether all volumes of the pod can be mounted. If not, each further try waits longer. */
  #mount(worker: Worker, result: SyncResult): boolean {
    if (worker.isMounted) return true
    const problems = mountProblems(worker.pod, referredBy(this.#options.world.storage, worker.pod))
    worker.isMounted = problems.length === 0
    if (worker.isMounted) return true
    for (const message of problems) this.#options.recorder(worker.pod, "Warning", "FailedMount", message)
    result.hasFailed = true
    result.retryAt = this.#now() + Math.min(shortestMountRetryMs * 2 ** worker.mountTries++, longestMountRetryMs)
    return false
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

    const find = referredBy(this.#options.world.storage, pod)
    const image = yield* this.#images.ensure(worker, spec, () => pullCredentials(pod, find))
    if ("reason" in image) {
      this.#say(worker, spec, { type: "Warning", reason: "Failed", message: `Error: ${image.reason}` })
      return fail(image.reason, image.message)
    }

    const problem = environmentProblem(spec, pod.metadata.namespace!, find)
    if (problem) {
      this.#say(worker, spec, { type: "Warning", reason: "Failed", message: `Error: ${problem}` })
      return fail("CreateContainerConfigError", problem)
    }

    const { pace } = this.#options
    const before = worker.runtime.containers.get(spec.name)?.current
    yield pace.create
    const container = this.#runtime.containers.create({
      name: spec.name,
      image: spec.image,
      imageName: image.name,
      imageId: image.imageId,
      restartCount: before ? before.restartCount + 1 : 0,
      behaviour: image.behaviour,
      source: sourceOf(pod, spec),
    })
    this.#say(worker, spec, { type: "Normal", reason: "Created", message: "Container created" })
    yield pace.start
    this.#runtime.containers.start(container)
    worker.runtime.containers.set(spec.name, { current: container, ...(before && { previous: before }) })
    this.#say(worker, spec, { type: "Normal", reason: "Started", message: "Container started" })
    worker.failures.delete(spec.name)
    this.#touch(worker)
    const hook = spec.lifecycle?.postStart
    if (hook?.sleep) yield 1000 * hook.sleep.seconds
    return true
  }

  // ── endings ────────────────────────────────────────────────────────────────────────────────────────────────────

  *#terminate(worker: Worker): Process {
    const { pod } = worker
    if (!worker.isGone) this.#tell(worker, this.#generate(worker, false))
    this.#prober.stopAllButReadiness(worker)
    const asked = worker.isGone ? 1 : pod.metadata.deletionGracePeriodSeconds
    yield* killPod(this.#stopping, worker, asked)
    this.#prober.stop(worker)
    worker.stage = "terminated"
    if (!worker.isGone) this.#tell(worker, this.#generate(worker, true))
  }

  *#finish(worker: Worker): Process {
    yield 0
    if (!worker.isGone && worker.status) {
      this.#tell(worker, finalStatus(this.#generate(worker, true), worker.pod), true)
      if (worker.pod.metadata.deletionTimestamp) deletePod(this.#options.world, worker)
    }
    // The object of an ended pod stays, so that users can read it.
    this.#dismiss(worker)
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

  // ── what it writes ─────────────────────────────────────────────────────────────────────────────────────────────

  #generate(worker: Worker, isTerminal: boolean): Json {
    const { pod, runtime, failures, eviction } = worker
    const { hostIP } = this.#options
    const old = worker.status ?? pod.status ?? {}
    return podStatus({ pod, old, runtime, failures, isTerminal, hostIP, now: this.#now(), eviction })
  }

  /** Writes the status if it has changed. */
  #tell(worker: Worker, status: Json, force = false): void {
    const isSame = worker.status !== undefined && isEqual(worker.status, status)
    worker.status = status
    if (isSame && !force) return
    writeStatus(this.#options.world, worker)
    this.#prober.arm(worker)
  }

  #say(worker: Worker, spec: Json, about: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    const isInit = specs(worker.pod).init.some(({ name }) => name === spec.name)
    const fieldPath = `spec.${isInit ? "initContainers" : "containers"}{${spec.name}}`
    this.#options.recorder(worker.pod, about.type, about.reason, about.message, fieldPath)
  }
}

/** When the last run of a container ended. For a running container, that is the previous run. */
function lastEnd({ current, previous }: { current: Container; previous?: Container }): Instant | undefined {
  return current.state === "exited" ? current.finishedAt : previous?.finishedAt
}
