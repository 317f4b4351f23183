import type { Clock } from "#runtime/clock.ts"
import type { Json } from "../../object.ts"
import type { Container } from "../container-runtime/index.ts"
import type { Timers } from "../timers.ts"
import { isSidecar, specs } from "./pod-spec.ts"
import { withReadiness } from "./pod-status.ts"
import { ask, failureMessage, isDue, nextTick, type Probe, probesOf } from "./probes.ts"
import type { Say, Worker } from "./worker.ts"

/** The part of a kubelet that probing uses. */
export type ProbedKubelet = {
  clock: Clock
  timers: Timers
  hostIP: string
  isAlive(): boolean
  /** Calls `resume` when a dead kubelet is back. */
  onRevival(resume: () => void): void
  say: Say
  write(worker: Worker): void
  wake(worker: Worker): void
}

/** Runs the probes of containers at their times, and reports the results. */
export class Prober {
  readonly #kubelet: ProbedKubelet

  constructor(kubelet: ProbedKubelet) {
    this.#kubelet = kubelet
  }

  start(worker: Worker): void {
    if (worker.probes) return
    const { init, main } = specs(worker.pod)
    const now = this.#kubelet.clock.now()
    worker.probes = new Map()
    for (const spec of [...init.filter(isSidecar), ...main]) {
      const probes = probesOf(spec, now)
      if (probes.length > 0) worker.probes.set(spec.name, probes)
    }
  }

  #stopOne(probe: Probe): void {
    probe.cancel?.()
    probe.cancel = undefined
    probe.isOnHold = true
  }

  stop(worker: Worker): void {
    for (const probes of worker.probes?.values() ?? []) for (const probe of probes) this.#stopOne(probe)
    worker.probes = undefined
  }

  /** A pod that is ending keeps only its readiness probes. */
  stopAllButReadiness(worker: Worker): void {
    for (const probes of worker.probes?.values() ?? [])
      for (const probe of probes) if (probe.type !== "readiness") this.#stopOne(probe)
  }

  /** Called when a status was written: probes see containers only there. An unready container is probed at once. */
  arm(worker: Worker): void {
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
    const now = this.#kubelet.clock.now()
    const at = isNow ? now + 1 : nextTick(probe, now)
    probe.cancel = this.#kubelet.timers.after(at - now, () => {
      probe.cancel = undefined
      if (this.#kubelet.isAlive()) this.#probe(worker, probe)
      else this.#kubelet.onRevival(() => this.#probe(worker, probe))
    })
  }

  #probe(worker: Worker, probe: Probe): void {
    const { name } = probe.container
    const container = worker.runtime.containers.get(name)?.current
    if (worker.stage === "finished" || probe.isOnHold || container?.id !== probe.containerId) return
    if (container?.state !== "running") return
    const now = this.#kubelet.clock.now()
    if (!isDue(probe, container, this.#hasStarted(worker, name), now)) {
      // A probe that waits for the startup probe is planned again when that has succeeded.
      if (probe.type === "startup" || this.#hasStarted(worker, name)) this.#plan(worker, probe, false)
      return
    }
    const { isFine, verdict } = ask(probe, container, now)
    if (!isFine) {
      const ip = worker.runtime.sandbox?.ip ?? this.#kubelet.hostIP
      this.#kubelet.say(worker, probe.container, {
        type: "Warning",
        reason: "Unhealthy",
        message: failureMessage(probe, ip),
      })
    }
    const isFinal = verdict !== undefined && (probe.type === "startup" || (probe.type === "liveness" && !verdict))
    if (isFinal) probe.isOnHold = true
    // Once a container is healthy it stays healthy until it ends, so it is not probed again.
    else if (verdict !== true) this.#plan(worker, probe, false)
    if (verdict === undefined || container[probe.type] === verdict) return
    container[probe.type] = verdict
    if (probe.type === "readiness") this.#reportReadiness(worker, container, verdict)
    if (probe.type === "startup" && verdict) this.#reportStarted(worker, container)
    this.#kubelet.wake(worker)
  }

  #reportReadiness(worker: Worker, container: Container, isReady: boolean): void {
    if (!worker.status || worker.stage === "terminated") return
    const id = `containerd://${container.id}`
    const told = [...(worker.status.initContainerStatuses ?? []), ...worker.status.containerStatuses]
    if (!told.some(each => each.containerID === id && each.ready !== isReady)) return
    worker.status = withReadiness(worker.status, worker.pod, id, isReady, this.#kubelet.clock.now())
    this.#kubelet.write(worker)
  }

  #reportStarted(worker: Worker, container: Container): void {
    if (!worker.status) return
    const id = `containerd://${container.id}`
    const change = (each: Json) => (each.containerID === id ? { ...each, started: true } : each)
    const { initContainerStatuses, containerStatuses } = worker.status
    worker.status = {
      ...worker.status,
      ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(change) }),
      containerStatuses: containerStatuses.map(change),
    }
    this.#kubelet.write(worker)
    this.arm(worker)
  }
}
