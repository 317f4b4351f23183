import type { Json, Obj } from "../../object.ts"
import type { Container } from "../container-runtime/index.ts"
import { isSidecar, specs } from "./pod-spec.ts"
import { isRestarted, isToStart, type Runtime } from "./pod-status.ts"

/** What a kubelet does next for a pod: kill first, then start, in these orders. */
export type Actions = {
  /** Kill all containers and the sandbox. */
  killPod: boolean
  createSandbox: boolean
  kill: { spec: Json; container: Container; message: string }[]
  startInit: Json[]
  start: Json[]
}

/** Decides from the pod's spec and its containers. The same pod and runtime always give the same actions. */
export function computeActions(pod: Obj, runtime: Runtime): Actions {
  const { init, main } = specs(pod)
  const actions: Actions = { killPod: false, createSandbox: false, kill: [], startInit: [], start: [] }
  const current = (name: string) => runtime.containers.get(name)?.current

  if (!runtime.sandbox?.isReady) {
    actions.killPod = true
    const hasRun = runtime.containers.size > 0
    if (pod.spec.restartPolicy === "Never" && runtime.sandbox && hasRun) return actions
    const toStart = main.filter(
      ({ name }) => !(pod.spec.restartPolicy === "OnFailure" && current(name)?.exitCode === 0),
    )
    if (toStart.length === 0 && main.some(({ name }) => current(name))) return actions
    actions.createSandbox = true
    if (init.length > 0) actions.startInit = [init[0]]
    else actions.start = toStart
    return actions
  }

  if (!computeInit(pod, runtime, actions)) return actions

  let kept = 0
  for (const spec of main) {
    const container = current(spec.name)
    if (container?.state !== "running") {
      if (isToStart(spec, pod, container)) actions.start.push(spec)
      continue
    }
    const isChanged = container.image !== spec.image
    const reason = isChanged
      ? "definition changed"
      : container.liveness === false
        ? "failed liveness probe"
        : container.startup === false
          ? "failed startup probe"
          : undefined
    if (!reason) {
      kept++
      continue
    }
    const restarts = isChanged || isRestarted(spec, pod, 1)
    const message = `Container ${spec.name} ${reason}${restarts ? ", will be restarted" : ""}`
    if (restarts) actions.start.push(spec)
    actions.kill.push({ spec, container, message })
  }
  if (kept === 0 && actions.start.length === 0) {
    actions.killPod = true
    actions.startInit = []
  }
  return actions
}

/** Init containers run one after the other; sidecars among them keep running. Returns whether all are done. */
function computeInit(pod: Obj, runtime: Runtime, actions: Actions): boolean {
  const { init, main } = specs(pod)
  if (init.length === 0) return true
  let hasInitialized = main.some(({ name }) => runtime.containers.get(name)?.current.state === "running")
  let wasInitialized = hasInitialized
  const toStart: number[] = []
  for (let index = init.length - 1; index >= 0; index--) {
    const spec = init[index]
    const container = runtime.containers.get(spec.name)?.current
    if (!container) {
      if (wasInitialized && isSidecar(spec)) toStart.push(index)
      continue
    }
    if (wasInitialized && !isSidecar(spec)) continue
    const isLast = index === init.length - 1
    const next = () => {
      if (isLast) hasInitialized = true
      else if (!wasInitialized) toStart.push(index + 1)
    }
    if (container.state === "running") {
      if (isSidecar(spec)) {
        const kill = (words: string) => {
          actions.kill.push({ spec, container, message: `Init container ${spec.name} ${words}` })
          toStart.push(index)
        }
        if (spec.startupProbe && container.startup === false) kill("failed startup probe")
        else if (!spec.startupProbe || container.startup === true) {
          next()
          if (container.image !== spec.image) kill("definition changed")
          else if (container.liveness === false) kill("failed liveness probe")
        }
      }
    } else if (isSidecar(spec)) toStart.push(index)
    else if (container.exitCode !== 0) {
      if (!isRestarted(spec, pod, container.exitCode ?? 1)) {
        actions.killPod = true
        return false
      }
      toStart.push(index)
    } else next()
    wasInitialized = true
  }
  if (!wasInitialized) toStart.push(0)
  actions.startInit = toStart.reverse().map(index => init[index])
  return hasInitialized
}
