import { parseQuantity } from "#lib/quantity.ts"
import type { StrategyContext } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import { age, since } from "./cells.ts"
import type { Definition } from "./define.ts"
import { fill, fillZero, same, set } from "./edit.ts"
import { mountToken } from "./pod-admission.ts"
import { podDefaults } from "./pod-defaults.ts"
import { validatePod, validatePodUpdate } from "./pod-validation.ts"

export const pod: Definition = {
  apiVersion: "v1",
  kind: "Pod",
  hasGeneration: true,
  hasStatus: true,
  strategy: {
    default: podDefaults,
    validateCreate: validatePod,
    validateUpdate: validatePodUpdate,
    prepareCreate(object, context) {
      const admitted = admit(object, context)
      const status: Json = { phase: "Pending", qosClass: qosClass(admitted.spec) }
      if (admitted.spec.schedulingGates?.length)
        status.conditions = [{ ...schedulingGated, lastTransitionTime: context.now }]
      return set(admitted, "status", status)
    },
    prepareUpdate: object => set(object, "spec", set(object.spec, "tolerations", tolerations(object.spec))),
    prepareStatusUpdate(object, old) {
      const metadata = set(object.metadata, "ownerReferences", old.metadata.ownerReferences)
      let status = fillZero(object.status ?? {}, { qosClass: old.status?.qosClass })
      if (status.podIP && !status.podIPs) status = { ...status, podIPs: [{ ip: status.podIP }] }
      return { ...object, metadata, spec: old.spec, status }
    },
    graceSeconds(object, asked) {
      const { spec, status } = object
      // A pod without a node, or one that has ended, has no kubelet to wait for.
      if (!spec.nodeName || status?.phase === "Failed" || status?.phase === "Succeeded") return 0
      const seconds = asked ?? spec.terminationGracePeriodSeconds ?? 30
      return seconds < 0 ? 1 : seconds
    },
    movesGeneration: (object, old) => !same(object.spec, old.spec),
    selectableFields: ({ spec, status }) => ({
      "spec.nodeName": spec.nodeName ?? "",
      "spec.restartPolicy": spec.restartPolicy ?? "",
      "spec.schedulerName": spec.schedulerName ?? "",
      "spec.serviceAccountName": spec.serviceAccountName ?? "",
      "spec.hostNetwork": String(spec.hostNetwork ?? false),
      "status.phase": status?.phase ?? "",
      "status.podIP": status?.podIPs?.[0]?.ip ?? "",
      "status.nominatedNodeName": status?.nominatedNodeName ?? "",
    }),
  },
  row: podRow,
}

const schedulingGated = {
  type: "PodScheduled",
  status: "False",
  reason: "SchedulingGated",
  message: "Scheduling is blocked due to non-empty scheduling gates",
  lastProbeTime: null,
}

/**
 * What the default admission plugins add to a pod without reading other objects. Where other objects can be read,
 * `podAdmission` has run before and little is left to do.
 */
function admit(object: Json, { random }: StrategyContext): Json {
  let spec = fill(object.spec, { priority: 0, preemptionPolicy: "PreemptLowerPriority" })
  spec = set(spec, "tolerations", tolerations(spec))
  if (!spec.serviceAccountName) {
    spec = { ...spec, serviceAccountName: "default", serviceAccount: "default" }
    if (spec.automountServiceAccountToken !== false) spec = mountToken(spec, random)
  }
  return set(object, "spec", spec)
}

const unreachable = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]

/** By default, a pod stays on a failed node for five minutes. */
function tolerations(spec: Json): Json {
  const given: Json[] = spec.tolerations ?? []
  const missing = unreachable.filter(
    taint => !given.some(({ key, effect }) => (!key || key === taint) && (!effect || effect === "NoExecute")),
  )
  if (missing.length === 0) return spec.tolerations
  return [...given, ...missing.map(key => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }))]
}

/** How well the pod is protected when its node runs short. It follows from the CPU and memory of its containers. */
function qosClass(spec: Json): "Guaranteed" | "Burstable" | "BestEffort" {
  const all: Json[] = spec.resources ? [spec] : [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
  const amount = (list: Json, name: string) => parseQuantity(list?.[name] ?? 0)?.nano ?? 0n
  let asksForSomething = false
  let isGuaranteed = true
  const totals = { cpu: [0n, 0n], memory: [0n, 0n] } as Record<string, [bigint, bigint]>
  for (const { resources = {} } of all)
    for (const name of ["cpu", "memory"]) {
      const [request, limit] = [amount(resources.requests, name), amount(resources.limits, name)]
      if (request > 0n || limit > 0n) asksForSomething = true
      if (limit === 0n) isGuaranteed = false
      totals[name]![0] += request
      totals[name]![1] += limit
    }
  if (!asksForSomething) return "BestEffort"
  return isGuaranteed && Object.values(totals).every(([request, limit]) => request === limit)
    ? "Guaranteed"
    : "Burstable"
}

function podRow(object: Obj, nowMs: number): Json[] {
  const { spec, status = {} } = object
  const { ready, total, restarts, lastRestart, word } = summary(object)
  const gates: Json[] = spec.readinessGates ?? []
  const open = gates.filter(
    ({ conditionType }) => status.conditions?.find(({ type }: Json) => type === conditionType)?.status === "True",
  )
  return [
    object.metadata.name,
    `${ready}/${total}`,
    word,
    restarts !== 0 && lastRestart ? `${restarts} (${since(lastRestart, nowMs)} ago)` : String(restarts),
    age(object, nowMs),
    status.podIPs?.[0]?.ip || "<none>",
    spec.nodeName || "<none>",
    status.nominatedNodeName || "<none>",
    gates.length > 0 ? `${open.length}/${gates.length}` : "<none>",
  ]
}

type Summary = { ready: number; total: number; restarts: number; lastRestart: string; word: string }

/** The text of the column Status, and the values of the columns beside it. */
function summary({ metadata, spec, status = {} }: Obj): Summary {
  const initContainers: Json[] = spec.initContainers ?? []
  const sidecars = new Set(
    initContainers.filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name),
  )
  const conditions: Json[] = status.conditions ?? []
  const has = (wanted: string, value = "True") =>
    conditions.some(({ type, status: is }) => type === wanted && is === value)
  const init = initSummary(status.initContainerStatuses ?? [], initContainers.length, sidecars)
  const total = (spec.containers?.length ?? 0) + sidecars.size

  let word: string = status.reason || status.phase || ""
  if (conditions.some(({ type, reason }) => type === "PodScheduled" && reason === "SchedulingGated"))
    word = "SchedulingGated"
  if (init.word !== undefined) word = init.word

  let { ready, restarts, lastRestart } = init
  if (init.word === undefined || has("Initialized")) {
    restarts = init.sidecarRestarts
    lastRestart = init.lastSidecarRestart
    let isRunning = false
    let failure = ""
    for (const container of (status.containerStatuses ?? []).toReversed()) {
      restarts += container.restartCount ?? 0
      lastRestart = later(lastRestart, container.lastState?.terminated?.finishedAt)
      const { waiting, terminated, running } = container.state ?? {}
      if (waiting?.reason) word = waiting.reason
      else if (terminated) {
        word =
          terminated.reason ||
          (terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode ?? 0}`)
        if (terminated.exitCode) failure = word
      } else if (container.ready && running) {
        isRunning = true
        ready++
      }
    }
    // A container that succeeded does not make a pod Completed while another one runs or failed.
    if (word === "Completed") {
      if (isRunning && has("Ready")) word = "Running"
      else if (failure) word = failure
      else if (isRunning) word = "NotReady"
    }
  }
  if (metadata.deletionTimestamp) {
    if (status.reason === "NodeLost") word = "Unknown"
    else if (status.phase !== "Failed" && status.phase !== "Succeeded") word = "Terminating"
  }
  return { ready, total, restarts, lastRestart, word }
}

/** Init containers run one after the other: the first unfinished one determines the pod's status. */
function initSummary(statuses: Json[], count: number, sidecars: Set<string>) {
  const result = {
    word: undefined as string | undefined,
    ready: 0,
    restarts: 0,
    lastRestart: "",
    sidecarRestarts: 0,
    lastSidecarRestart: "",
  }
  for (const [index, container] of statuses.entries()) {
    const { name, restartCount = 0, state = {}, lastState } = container
    const finished = lastState?.terminated?.finishedAt
    const isSidecar = sidecars.has(name)
    result.restarts += restartCount
    result.lastRestart = later(result.lastRestart, finished)
    if (isSidecar) {
      result.sidecarRestarts += restartCount
      result.lastSidecarRestart = later(result.lastSidecarRestart, finished)
    }
    const { terminated, waiting } = state
    if (terminated && !terminated.exitCode) continue
    if (isSidecar && container.started) {
      if (container.ready) result.ready++
      continue
    }
    if (terminated)
      result.word = `Init:${terminated.reason || (terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`)}`
    else if (waiting?.reason && waiting.reason !== "PodInitializing") result.word = `Init:${waiting.reason}`
    else result.word = `Init:${index}/${count}`
    break
  }
  return result
}

const later = (a: string, b: string | undefined) => (b && (!a || Date.parse(a) < Date.parse(b)) ? b : a)
