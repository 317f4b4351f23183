import { formatInstant, type Instant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import type { Container, Sandbox } from "../container-runtime/index.ts"
import { isSidecar, podLevelResources, specs } from "./pod-spec.ts"

/** What the kubelet knows of a pod in the runtime: its sandbox, and the current and previous run of each container. */
export type Runtime = {
  sandbox: Sandbox | undefined
  containers: Map<string, { current: Container; previous?: Container }>
}

/** Why the last start of a container failed. */
export type StartFailure = { reason: string; message: string }

export type StatusInput = {
  pod: Obj
  /** The status that was written last. */
  old: Json
  runtime: Runtime
  failures: ReadonlyMap<string, StartFailure>
  /** No container runs any more, or will run. */
  isTerminal: boolean
  hostIP: string
  now: Instant
  /** Why the pod must end: its deadline has passed, or the node is short of something. */
  eviction?: { reason: string; message: string } | undefined
}

/** Whether an ended container is restarted. */
export function isRestarted(spec: Json, pod: Obj, exitCode: number): boolean {
  const policy = spec.restartPolicy ?? pod.spec.restartPolicy ?? "Always"
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0)
}

/** Whether the next sync of the pod starts a container. */
export function isToStart(spec: Json, pod: Obj, container: Container | undefined): boolean {
  if (pod.metadata.deletionTimestamp) return false
  if (!container) return true
  return container.state === "exited" && isRestarted(spec, pod, container.exitCode ?? 0)
}

/** The status of a pod as the kubelet would write it now. */
export function podStatus(input: StatusInput): Json {
  const { pod, old, runtime, isTerminal, hostIP, now, eviction } = input
  const { init, main } = specs(pod)
  const containerStatuses = main.map(spec => containerStatus(spec, input, false)).sort(byName)
  const initContainerStatuses = init.map(spec => containerStatus(spec, input, true))
  const all = [...initContainerStatuses, ...containerStatuses]
  const hasStartedMain = main.some(({ name }) => runtime.containers.has(name))

  let phase = phaseOf(pod, all, isTerminal, hasStartedMain)
  if (!isEnd(phase)) {
    if (isEnd(old.phase)) phase = old.phase
    else if (isEnd(pod.status.phase)) phase = pod.status.phase
  }
  let reason = phase === old.phase ? (old.reason ?? pod.status.reason) : undefined
  let message = phase === old.phase ? (old.message ?? pod.status.message) : undefined
  if (eviction) {
    phase = "Failed"
    reason = eviction.reason
    message = eviction.message
  }
  if (isEnd(pod.status.phase)) phase = pod.status.phase

  const generation = pod.metadata.generation ?? 1
  const foreign = (pod.status.conditions ?? []).filter(({ type }: Json) => !ownTypes.has(type))
  const ready = containersReady(pod, all, phase)
  const own = [
    { type: "PodReadyToStartContainers", status: runtime.sandbox?.isReady ? "True" : "False" },
    initialized(pod, all, phase, old),
    { type: "Ready", ...(ready.status === "True" ? gatesReady(pod, foreign) : ready) },
    { type: "ContainersReady", ...ready },
    { type: "PodScheduled", status: "True" },
  ].map(condition => stamp(condition, generation, old.conditions, now))

  const requested = podLevelResources(pod)
  const ip = pod.spec.hostNetwork ? hostIP : (runtime.sandbox?.ip ?? old.podIP)
  return {
    observedGeneration: Math.max(generation, old.observedGeneration ?? 0),
    phase,
    conditions: [...foreign, ...own],
    ...(message && { message }),
    ...(reason && { reason }),
    ...(old.nominatedNodeName && { nominatedNodeName: old.nominatedNodeName }),
    hostIP,
    hostIPs: [{ ip: hostIP }],
    ...(ip && { podIP: ip, podIPs: [{ ip }] }),
    startTime: old.startTime ?? formatInstant(now),
    ...(initContainerStatuses.length > 0 && { initContainerStatuses }),
    containerStatuses,
    ...(pod.status.qosClass && { qosClass: pod.status.qosClass }),
    ...(requested.requests && { allocatedResources: requested.requests }),
    resources: requested,
  }
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)

export const isEnd = (phase: string | undefined) => phase === "Succeeded" || phase === "Failed"

/** The conditions that the kubelet writes; it does not change others. */
const ownTypes = new Set([
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  "PodScheduled",
  "AllContainersRestarting",
  "PodResizePending",
  "PodResizeInProgress",
])

type Bare = { type: string; status: string; reason?: string; message?: string }

/** Sets the times of a condition: an unchanged status keeps its transition time. */
function stamp(
  { type, status, reason, message }: Bare,
  generation: number,
  old: Json[] | undefined,
  now: Instant,
): Json {
  const before = old?.find(condition => condition.type === type)
  return {
    type,
    observedGeneration: generation,
    status,
    lastProbeTime: null,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : formatInstant(now),
    ...(reason && { reason }),
    ...(message && { message }),
  }
}

/** The same status with one condition changed. */
export function withCondition(status: Json, condition: Bare, generation: number, now: Instant): Json {
  const stamped = stamp(condition, generation, status.conditions, now)
  const others = (status.conditions ?? []).filter(({ type }: Json) => type !== condition.type)
  const at = (status.conditions ?? []).findIndex(({ type }: Json) => type === condition.type)
  const conditions = at < 0 ? [...others, stamped] : others.toSpliced(at, 0, stamped)
  return { ...status, conditions }
}

/** Sets the readiness of one container and of the pod, as a readiness probe does between two syncs. */
export function withReadiness(status: Json, pod: Obj, containerId: string, isReady: boolean, now: Instant): Json {
  const change = (statuses: Json[] | undefined) =>
    statuses?.map(each => (each.containerID === containerId ? { ...each, ready: isReady } : each))
  const next = {
    ...status,
    ...(status.initContainerStatuses && { initContainerStatuses: change(status.initContainerStatuses) }),
    containerStatuses: change(status.containerStatuses),
  }
  const all = [...(next.initContainerStatuses ?? []), ...next.containerStatuses]
  const ready = containersReady(pod, all, status.phase)
  const generation = pod.metadata.generation ?? 1
  const foreign = status.conditions.filter(({ type }: Json) => !ownTypes.has(type))
  const whole = { type: "Ready", ...(ready.status === "True" ? gatesReady(pod, foreign) : ready) }
  return withCondition(
    withCondition(next, whole, generation, now),
    { type: "ContainersReady", ...ready },
    generation,
    now,
  )
}

/** The state of containers whose end is unknown when the pod is finished. */
const lost = {
  terminated: {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message: "The container could not be located when the pod was terminated",
    startedAt: null,
    finishedAt: null,
  },
}

/** The final status: every container has ended, and so has the pod. */
export function finalStatus(status: Json, pod: Obj): Json {
  const end = (each: Json) => (each.state?.terminated ? each : { ...each, state: lost })
  const init: Json[] | undefined = status.initContainerStatuses
  // Init containers that were never reached keep their state.
  let reached = init ? init.findLastIndex(({ state, lastState }) => !state.waiting || lastState?.terminated) : -1
  if (init && reached < 0) reached = 0
  return {
    ...status,
    ...(init && { initContainerStatuses: init.map((each, index) => (index <= reached ? end(each) : each)) }),
    containerStatuses: hasInitialized(pod, status) ? status.containerStatuses.map(end) : status.containerStatuses,
    phase: isEnd(status.phase) ? status.phase : "Failed",
  }
}

function hasInitialized(pod: Obj, status: Json): boolean {
  const { init } = specs(pod)
  if (init.length === 0) return true
  if (status.containerStatuses.some(({ state, lastState }: Json) => lastState?.terminated || !state.waiting))
    return true
  const last = status.initContainerStatuses?.at(-1)
  if (!last) return false
  if (isSidecar(init.at(-1))) return last.state.running !== undefined && last.started === true
  return last.state.terminated?.exitCode === 0 || last.lastState?.terminated?.exitCode === 0
}

function stateOf(container: Container): Json {
  const startedAt = formatInstant(container.startedAt)
  if (container.state === "running") return { running: { startedAt } }
  return {
    terminated: {
      exitCode: container.exitCode ?? 0,
      reason: container.reason ?? (container.exitCode === 0 ? "Completed" : "Error"),
      startedAt,
      finishedAt: formatInstant(container.finishedAt ?? container.startedAt),
      containerID: `containerd://${container.id}`,
    },
  }
}

function containerStatus(spec: Json, input: StatusInput, isInit: boolean): Json {
  const { pod, old, runtime, failures } = input
  const { init } = specs(pod)
  const told = (isInit ? old.initContainerStatuses : old.containerStatuses)?.find(
    ({ name }: Json) => name === spec.name,
  )
  const found = runtime.containers.get(spec.name)
  const status: Json = found
    ? {
        name: spec.name,
        state: stateOf(found.current),
        lastState: found.previous ? stateOf(found.previous) : {},
        ready: false,
        restartCount: found.current.restartCount,
        image: found.current.imageName,
        imageID: found.current.imageId,
        containerID: `containerd://${found.current.id}`,
        started: false,
        ...containerResources(spec),
        ...volumeMounts(spec),
      }
    : told?.state?.terminated
      ? { ...told }
      : {
          name: spec.name,
          state: { waiting: { reason: init.length > 0 ? "PodInitializing" : "ContainerCreating" } },
          lastState: told?.lastState ?? {},
          ready: false,
          restartCount: told?.restartCount ?? 0,
          image: spec.image,
          imageID: "",
          started: false,
          ...volumeMounts(spec),
        }
  const hasDoneItsWork = isInit && found?.current.state === "exited" && found.current.exitCode === 0
  const failure = failures.get(spec.name)
  if (failure && !hasDoneItsWork && isToStart(spec, pod, found?.current)) {
    if (status.state.terminated) status.lastState = status.state
    status.state = { waiting: { reason: failure.reason, ...(failure.message && { message: failure.message }) } }
  }
  // By the state that is shown: a container that waits for its restart is neither started nor ready.
  const isRunning = status.state.running !== undefined && found !== undefined
  const hasStarted = isRunning && (spec.startupProbe ? found.current.startup === true : true)
  status.started = hasStarted
  if (isInit && !isSidecar(spec)) status.ready = status.state.terminated?.exitCode === 0
  else status.ready = hasStarted && (spec.readinessProbe ? found?.current.readiness === true : true)
  return status
}

const volumeMounts = (spec: Json): Json =>
  spec.volumeMounts?.length > 0 && {
    volumeMounts: spec.volumeMounts.map(({ name, mountPath, readOnly }: Json) => ({
      name,
      mountPath,
      ...(readOnly && { readOnly, recursiveReadOnly: "Disabled" }),
    })),
  }

const containerResources = ({ resources = {} }: Json): Json => ({
  ...(resources.requests && { allocatedResources: resources.requests }),
  resources,
})

function phaseOf(pod: Obj, statuses: Json[], isTerminal: boolean, hasStartedMain: boolean): string {
  const { init, main } = specs(pod)
  const find = (name: string) => statuses.find(status => status.name === name)
  let pendingInit = 0
  let pendingSidecars = 0
  let hasFailedForGood = false
  for (const spec of init.filter(each => !isSidecar(each))) {
    const { state, lastState } = find(spec.name)
    const ended = state.terminated ?? (state.waiting && lastState?.terminated)
    if (!ended) pendingInit++
    else if (ended.exitCode !== 0 && !isRestarted(spec, pod, ended.exitCode)) hasFailedForGood = true
  }
  let running = 0
  let waiting = 0
  let stopped = 0
  let stoppedForGood = 0
  let succeeded = 0
  for (const spec of init.filter(isSidecar)) {
    const { state, lastState, started } = find(spec.name)
    if (state.running) {
      running++
      if (!started) pendingSidecars++
    } else if (state.waiting && !lastState?.terminated) {
      pendingSidecars++
      waiting++
    }
  }
  for (const spec of main) {
    const { state, lastState } = find(spec.name)
    const ended = state.terminated ?? (state.waiting && lastState?.terminated)
    if (state.running) running++
    else if (!ended) waiting++
    else {
      stopped++
      if (!isRestarted(spec, pod, ended.exitCode)) stoppedForGood++
      if (state.terminated?.exitCode === 0) succeeded++
    }
  }
  if (hasFailedForGood) return "Failed"
  if (pendingInit > 0 || (pendingSidecars > 0 && !hasStartedMain) || waiting > 0) return "Pending"
  if (running > 0) return "Running"
  if (stopped === 0) return "Pending"
  if (!isTerminal && stopped !== stoppedForGood) return "Running"
  return stopped === succeeded ? "Succeeded" : "Failed"
}

type Verdict = { status: string; reason?: string; message?: string }

function containersReady(pod: Obj, statuses: Json[], phase: string): Verdict {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" }
  if (phase === "Failed") return { status: "False", reason: "PodFailed" }
  const { init, main } = specs(pod)
  const unready = [...init.filter(isSidecar), ...main]
    .map(({ name }) => name)
    .filter(name => !statuses.find(status => status.name === name)?.ready)
  if (unready.length === 0) return { status: "True" }
  return {
    status: "False",
    reason: "ContainersNotReady",
    message: `containers with unready status: [${unready.join(" ")}]`,
  }
}

function gatesReady(pod: Obj, conditions: Json[]): Verdict {
  const wrong = (pod.spec.readinessGates ?? []).flatMap(({ conditionType }: Json) => {
    const condition = conditions.find(({ type }) => type === conditionType)
    if (!condition) return [`corresponding condition of pod readiness gate "${conditionType}" does not exist.`]
    if (condition.status === "True") return []
    return [`the status of pod readiness gate "${conditionType}" is not "True", but ${condition.status}`]
  })
  if (wrong.length === 0) return { status: "True" }
  return { status: "False", reason: "ReadinessGatesNotReady", message: wrong.join(", ") }
}

function initialized(pod: Obj, statuses: Json[], phase: string, old: Json): Bare {
  const { init, main } = specs(pod)
  const type = "Initialized"
  if (phase === "Succeeded") return { type, status: "True", reason: "PodCompleted" }
  const hasStarted = main.some(({ name }) => {
    const state = statuses.find(status => status.name === name)?.state
    return state?.running || state?.terminated
  })
  const incomplete = init
    .filter(spec => {
      const status = statuses.find(({ name }) => name === spec.name)
      return isSidecar(spec) ? !status?.started : !status?.ready
    })
    .map(({ name }) => name)
  const wasBefore = old.conditions?.some((each: Json) => each.type === type && each.status === "True")
  if (hasStarted || incomplete.length === 0 || wasBefore) return { type, status: "True" }
  return {
    type,
    status: "False",
    reason: "ContainersNotInitialized",
    message: `containers with incomplete status: [${incomplete.join(" ")}]`,
  }
}
