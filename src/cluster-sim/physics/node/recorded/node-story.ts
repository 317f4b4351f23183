import type { Json } from "../../../object.ts"

/** What is done to the one node of the recording, so long after its begin. */
export type NodeStep = { atSeconds: number } & (
  | { do: "pod"; name: string; spec?: Json }
  | { do: "patchNode"; body: Json }
  | { do: "stopKubelet" | "startKubelet" | "stopRuntime" | "startRuntime" }
)

export type NodeSighting = { atMs: number; about: string; text: string }

const tolerate = (key: string, tolerationSeconds: number) => ({
  tolerations: [{ key, operator: "Exists", effect: "NoExecute", tolerationSeconds }],
})

export const nodeSteps: NodeStep[] = [
  { atSeconds: 2, do: "pod", name: "stays" },
  { atSeconds: 2, do: "pod", name: "leaves", spec: tolerate("node.kubernetes.io/unreachable", 10) },
  {
    atSeconds: 2,
    do: "pod",
    name: "taken",
    spec: { ...tolerate("example.com/out", 5), terminationGracePeriodSeconds: 2 },
  },
  { atSeconds: 10, do: "patchNode", body: { spec: { unschedulable: true } } },
  { atSeconds: 15, do: "patchNode", body: { spec: { unschedulable: null } } },
  { atSeconds: 20, do: "patchNode", body: { spec: { taints: [{ key: "example.com/out", effect: "NoExecute" }] } } },
  { atSeconds: 40, do: "patchNode", body: { spec: { taints: null } } },
  { atSeconds: 41, do: "pod", name: "stays-2" },
  { atSeconds: 41, do: "pod", name: "leaves-2", spec: tolerate("node.kubernetes.io/unreachable", 10) },
  { atSeconds: 50, do: "stopKubelet" },
  { atSeconds: 130, do: "startKubelet" },
]
export const nodeSeconds = 160

/** The container runtime dies and returns; the kubelet lives. */
export const runtimeSteps: NodeStep[] = [
  { atSeconds: 2, do: "pod", name: "stays" },
  { atSeconds: 10, do: "stopRuntime" },
  { atSeconds: 20, do: "pod", name: "later" },
  { atSeconds: 70, do: "startRuntime" },
]
export const runtimeSeconds = 100

/** One version of a node, a pod or an event, in a line that can be compared. */
export function nodeStoryLine(object: Json): string | undefined {
  const { kind, metadata, spec, status } = object
  const condition = ({ type, status: is, reason, message }: Json) =>
    `${type} ${is}${reason ? ` ${reason}` : ""}${message ? `: ${message}` : ""}`
  if (kind === "Node") {
    const taints = (spec.taints ?? []).map(
      ({ key, effect, timeAdded }: Json) => `${key}:${effect}${timeAdded ? "@" : ""}`,
    )
    const lines = [...(status.conditions ?? []).map(condition), ...taints.sort(), spec.unschedulable && "unschedulable"]
    return lines.filter(Boolean).join("\n")
  }
  if (kind === "Pod") {
    const kept = (status.conditions ?? []).filter(({ type }: Json) => /^(Ready|DisruptionTarget)$/.test(type))
    return [status.phase, metadata.deletionTimestamp && "deleted", ...kept.map(condition)].filter(Boolean).join("\n")
  }
  if (kind === "Event") {
    const { type, reason, message, involvedObject } = object
    if (!/NodeNotReady|TaintManager|NodeReady|Schedulable/i.test(reason)) return undefined
    const source = object.source?.component ?? object.reportingComponent
    return `${involvedObject.kind} ${involvedObject.name}: ${type} ${reason} ${message} (${source})`
  }
  return undefined
}
