import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { gateReason } from "#core/in-place/names.ts"
import { mirrorMark } from "#core/pods/left-alone.ts"
import { parseDuration } from "#lib/duration.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"

/** What a request needs to know of its pod. */
export type PodFacts = {
  readonly resourceVersion: string
  readonly uid: string
  /** "" until it is scheduled. */
  readonly node: string
  readonly isTerminating: boolean
  readonly hasEnded: boolean
  readonly isStatic: boolean
  readonly isForWindows: boolean
  readonly initContainers: readonly string[]
  readonly containers: readonly ContainerFacts[]
  /** The readiness gate; undefined where the pod does not list it. */
  readonly gate: GateFacts | undefined
}

export type GateFacts = {
  /** Unknown: the pod lists the gate, and no condition was ever written. */
  readonly is: "True" | "False" | "Unknown"
  /** When it became so, by the clock of the process that wrote it. */
  readonly since: Instant | undefined
  /** An update in place has drained the pod, and ends that itself. */
  readonly isOfUpdate: boolean
}

export type ContainerFacts = {
  readonly name: string
  readonly restartPolicy: string
  /** "" until it was started. */
  readonly id: string
  readonly restartCount: number
  readonly isReady: boolean
  readonly state: ContainerState
}

export type ContainerState =
  | { readonly is: "Running" }
  | { readonly is: "Ended"; readonly exitCode: number }
  /** The kubelet waits before it starts the container again: until then, by the clock of the node. */
  | { readonly is: "BackOff"; readonly until: Instant | undefined }
  | { readonly is: "Waiting" }

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = Record<string, any>

/** Reads a pod as the server sends it. What is not there or not readable counts as absent. */
export function readPod({ metadata, spec, status }: Json): PodFacts {
  const statuses = listOf(status?.containerStatuses)
  const policy = String(spec?.restartPolicy ?? "Always")
  return {
    resourceVersion: String(metadata.resourceVersion ?? ""),
    uid: String(metadata.uid ?? ""),
    node: String(spec?.nodeName ?? ""),
    isTerminating: metadata.deletionTimestamp !== undefined,
    hasEnded: ["Succeeded", "Failed"].includes(status?.phase),
    isStatic: metadata.annotations?.[mirrorMark] !== undefined,
    isForWindows: spec?.os?.name === "windows" || spec?.nodeSelector?.["kubernetes.io/os"] === "windows",
    initContainers: listOf(spec?.initContainers).map(({ name }) => String(name)),
    containers: listOf(spec?.containers).map(container => {
      const found = statuses.find(({ name }) => name === container.name)
      return containerFacts(container, String(container.restartPolicy ?? policy), found)
    }),
    gate: listsGate({ spec }) ? gateFacts(status) : undefined,
  }
}

/** Asked of every pod of a cluster, before anything else of it is read. */
export const listsGate = ({ spec }: Json): boolean =>
  listOf(spec?.readinessGates).some(({ conditionType }) => conditionType === readinessGate)

const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value : [])

function containerFacts({ name }: Json, restartPolicy: string, status: Json | undefined): ContainerFacts {
  return {
    name: String(name),
    restartPolicy,
    id: String(status?.containerID ?? ""),
    restartCount: Number(status?.restartCount ?? 0),
    isReady: status?.ready === true,
    state: stateOf(status),
  }
}

function stateOf(status: Json | undefined): ContainerState {
  const { running, terminated, waiting } = status?.state ?? {}
  if (running) return { is: "Running" }
  if (terminated) return { is: "Ended", exitCode: Number(terminated.exitCode ?? 0) }
  if (waiting?.reason !== "CrashLoopBackOff") return { is: "Waiting" }
  // Both times are of the node's clock: the end of the last container, and the pause that the kubelet names.
  const endedAt = parseInstant(status?.lastState?.terminated?.finishedAt)
  const pauseMs = parseDuration(/back-off ([0-9hms]+) /.exec(String(waiting.message ?? ""))?.[1] ?? "")
  return { is: "BackOff", until: endedAt === undefined || pauseMs === undefined ? undefined : endedAt + pauseMs }
}

function gateFacts(status: Json | undefined): GateFacts {
  const condition = listOf(status?.conditions).find(({ type }) => type === readinessGate)
  const is = condition?.status === "True" || condition?.status === "False" ? condition.status : "Unknown"
  const isOfUpdate = is === "False" && condition?.reason === gateReason
  return { is, since: parseInstant(condition?.lastTransitionTime), isOfUpdate }
}
