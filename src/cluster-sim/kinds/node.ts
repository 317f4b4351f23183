import type { Json } from "../object.ts"
import { age } from "./cells.ts"
import { validateNode } from "./core-validation.ts"
import type { Definition } from "./define.ts"
import { set } from "./edit.ts"

export const node: Definition = {
  apiVersion: "v1",
  kind: "Node",
  strategy: {
    default: object =>
      object.status?.capacity && !object.status.allocatable
        ? set(object, "status", { ...object.status, allocatable: object.status.capacity })
        : object,
    validateCreate: validateNode,
    validateUpdate: validateNode,
    // A Node is created with its status; an update of the Node itself keeps the old status.
    prepareUpdate: (object, old) => set(object, "status", old.status),
    prepareStatusUpdate: (object, old) => set(object, "spec", old.spec),
    selectableFields: ({ spec }) => ({ "spec.unschedulable": String(spec?.unschedulable ?? false) }),
  },
  row(object, nowMs) {
    const { metadata, spec = {}, status = {} } = object
    const { nodeInfo = {}, addresses = [], conditions = [] } = status
    const ready = conditions.findLast(({ type }: Json) => type === "Ready")
    const words = [ready ? (ready.status === "True" ? "Ready" : "NotReady") : "Unknown"]
    if (spec.unschedulable) words.push("SchedulingDisabled")
    const address = (wanted: string) => addresses.find(({ type }: Json) => type === wanted)?.address ?? "<none>"
    const kernel = nodeInfo.kernelVersion || "<unknown>"
    return [
      metadata.name,
      words.join(","),
      roles(metadata.labels ?? {}).join(",") || "<none>",
      age(object, nowMs),
      nodeInfo.kubeletVersion ?? "",
      address("InternalIP"),
      address("ExternalIP"),
      nodeInfo.osImage || "<unknown>",
      nodeInfo.architecture ? `${kernel} (${nodeInfo.architecture})` : kernel,
      nodeInfo.containerRuntimeVersion || "<unknown>",
    ]
  },
}

const rolePrefix = "node-role.kubernetes.io/"

function roles(labels: Readonly<Record<string, string>>): string[] {
  const found = Object.entries(labels).map(([key, value]) =>
    key.startsWith(rolePrefix) ? key.slice(rolePrefix.length) : key === "kubernetes.io/role" ? value : "",
  )
  return [...new Set(found.filter(Boolean))].sort()
}
