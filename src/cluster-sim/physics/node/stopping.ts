import type { Clock } from "#runtime/clock.ts"
import type { Json } from "../../object.ts"
import type { Container } from "../container-runtime/index.ts"
import { type Process, run, type Timers } from "../timers.ts"
import { isSidecar, specs } from "./pod-spec.ts"
import type { Say, Worker } from "./worker.ts"

/** The part of a kubelet that stopping containers uses. */
export type StoppingKubelet = {
  clock: Clock
  timers: Timers
  pace: { stopSandbox: number }
  /** Timers that are suspended while the kubelet is dead. */
  mortal(): Timers
  say: Say
  /** Calls the runtime's stop. Resumes when the container has ended, or when the call was lost. */
  stop(container: Container, graceMs: number, resume: () => void): void
  /** Something changed in the runtime. */
  touch(worker: Worker): void
}

const shortestGraceSeconds = 2

/** Stops all containers at once, then the sidecars, the last one first. */
export function* killPod(kubelet: StoppingKubelet, worker: Worker, graceSeconds: number | undefined): Process {
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
        run(kubelet.mortal(), killContainer(kubelet, worker, spec, container, options), () => {
          onEnd()
          if (left === 0) resume()
        })
      }
    }
  }
  if (runtime.sandbox?.isReady) {
    yield kubelet.pace.stopSandbox
    runtime.sandbox.isReady = false
    kubelet.touch(worker)
  }
}

export function* killContainer(
  kubelet: StoppingKubelet,
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
  kubelet.say(worker, spec, { type: "Normal", reason: "Killing", message })
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
    const since = kubelet.clock.now()
    yield resume => {
      let isOver = false
      const go = () => {
        if (isOver || (!turn.mayStop() && kubelet.clock.now() < since + 1000 * grace)) return
        isOver = true
        resume()
      }
      turn.waiters.push(go)
      kubelet.timers.after(1000 * grace, go)
    }
    grace -= Math.floor((kubelet.clock.now() - since) / 1000)
  }
  grace = Math.max(grace, shortestGraceSeconds)
  if (container.state === "exited") return
  // A call is lost when the kubelet or the runtime dies. SIGTERM was sent then, and no kill follows, so it is repeated.
  while (container.state === "running") yield resume => kubelet.stop(container, 1000 * grace, resume)
  yield 5
}

const isRunning = ({ state }: Container) => state === "running"
