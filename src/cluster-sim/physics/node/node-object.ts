import { formatInstant, type Instant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import type { PhysicsWorld } from "../world.ts"
import { hexadecimal } from "./hexadecimal.ts"

export type NodeSpec = {
  name: string
  cpu?: string
  memory?: string
  pods?: string
  labels?: Record<string, string>
  taints?: { key: string; value?: string; effect: "NoSchedule" | "PreferNoSchedule" | "NoExecute" }[]
  arch?: "amd64" | "arm64"
}

/** A Node to create: its kubelet adds the rest. */
export function nodeObject({ name, cpu = "8", memory = "32Gi", pods = "110", labels, taints, arch }: NodeSpec): Json {
  const capacity = { cpu, "ephemeral-storage": "100Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0", memory, pods }
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { ...(arch && { "kubernetes.io/arch": arch }), ...labels } },
    spec: { ...(taints && { taints }) },
    status: { capacity, allocatable: capacity },
  }
}

/** Adds the data of the machine: labels, and the range of its pods' addresses. */
export function withOwnData(node: Obj, index: number): Obj {
  const { name, labels = {}, annotations = {} } = node.metadata
  const arch = labels["kubernetes.io/arch"] ?? "amd64"
  const own = {
    "beta.kubernetes.io/arch": arch,
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": arch,
    "kubernetes.io/hostname": name,
    "kubernetes.io/os": "linux",
  }
  const notes = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" }
  const has = (some: object, all: object) => Object.keys(some).every(key => Object.hasOwn(all, key))
  if (has(own, labels) && has(notes, annotations) && node.spec?.podCIDR) return node
  const podCIDR = node.spec?.podCIDR ?? cidrOf(index)
  return {
    ...node,
    metadata: { ...node.metadata, labels: { ...own, ...labels }, annotations: { ...notes, ...annotations } },
    spec: { ...node.spec, podCIDR, podCIDRs: node.spec?.podCIDRs ?? [podCIDR] },
  }
}

const healthy = [
  { type: "MemoryPressure", status: "False", reason: "KubeletHasSufficientMemory", message: "kubelet has sufficient memory available" },
  { type: "DiskPressure", status: "False", reason: "KubeletHasNoDiskPressure", message: "kubelet has no disk pressure" },
  { type: "PIDPressure", status: "False", reason: "KubeletHasSufficientPID", message: "kubelet has sufficient PID available" },
  { type: "Ready", status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" },
] // biome-ignore format: a table

const pressed = { type: "DiskPressure", status: "True", reason: "KubeletHasDiskPressure", message: "kubelet has disk pressure" } // biome-ignore format: as above
const down = { type: "Ready", status: "False", reason: "KubeletNotReady", message: "container runtime is down" }

const conditionsOf = ({ hasDiskPressure, isRuntimeDown }: NodeState) =>
  healthy.map(each => {
    if (hasDiskPressure && each.type === pressed.type) return pressed
    return isRuntimeDown && each.type === down.type ? down : each
  })

export type NodeState = { hasDiskPressure: boolean; isRuntimeDown: boolean }

type StatusOf = { index: number; images: Json[]; now: Instant; random: PhysicsWorld["random"]; state: NodeState }

export function nodeStatus(node: Obj, { index, images, now, random, state }: StatusOf): Json {
  const old = node.status ?? {}
  const time = formatInstant(now)
  const capacity = old.capacity ?? nodeObject({ name: "" }).status.capacity
  const arch = node.metadata.labels?.["kubernetes.io/arch"] ?? "amd64"
  const conditions = conditionsOf(state).map(condition => {
    const before = old.conditions?.find(({ type }: Json) => type === condition.type)
    const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : time
    return { type: condition.type, status: condition.status, lastHeartbeatTime: time, lastTransitionTime, reason: condition.reason, message: condition.message } // biome-ignore format: as on the wire
  })
  const others = (old.conditions ?? []).filter(({ type }: Json) => !healthy.some(each => each.type === type))
  return {
    ...old,
    capacity,
    allocatable: old.allocatable ?? capacity,
    conditions: [...others, ...conditions],
    addresses: old.addresses ?? [
      { type: "InternalIP", address: hostAddress(index) },
      { type: "Hostname", address: node.metadata.name },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: old.nodeInfo?.kubeletVersion
      ? old.nodeInfo
      : {
          machineID: hexadecimal(random, 32),
          systemUUID: random.uuid(),
          bootID: random.uuid(),
          kernelVersion: "6.1.0-cluster-sim",
          osImage: "cluster-sim",
          containerRuntimeVersion: "containerd://1.6.20",
          kubeletVersion: "v1.36.3",
          kubeProxyVersion: "",
          operatingSystem: "linux",
          architecture: arch,
        },
    ...((images.length > 0 || old.images) && { images }),
  }
}

const cidrOf = (index: number) => `10.${128 + (index >> 6)}.${(index & 63) * 4}.0/22`

export const hostAddress = (index: number) => `172.18.${(index >> 7) & 255}.${2 + 2 * (index & 127)}`
