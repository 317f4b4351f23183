import type { Json, Obj } from "../../object.ts"
import { type Amounts, add, nodeAllocatable, podRequests } from "../node/resources.ts"

/** A node as the scheduler counts it: its capacity and the requests of its pods. */
export type NodeCount = {
  node: Obj
  allocatable: Amounts
  taken: Amounts
  /** Pods by uid, so that each is counted once. */
  pods: Map<string, CountedPod>
  /** The number of pods of each owner on it. */
  owners: Map<string, number>
  ports: Map<string, number>
}

export type CountedPod = { nodeName: string; requests: Amounts; owner: string | undefined; ports: string[] }

/** The capacity of every node and the requests of its pods, updated with each change. */
export type NodeCounts = ReturnType<typeof nodeCounts>

export function nodeCounts() {
  const counts = new Map<string, NodeCount>()
  const assigned = new Map<string, CountedPod>()
  let order: NodeCount[] = []

  function setNode(node: Obj) {
    const known = counts.get(node.metadata.name)
    if (known) {
      known.node = node
      known.allocatable = nodeAllocatable(node)
      return
    }
    const made: NodeCount = {
      node,
      allocatable: nodeAllocatable(node),
      taken: {},
      pods: new Map(),
      owners: new Map(),
      ports: new Map(),
    }
    counts.set(node.metadata.name, made)
    order.push(made)
    for (const [uid, counted] of assigned) if (counted.nodeName === node.metadata.name) put(made, uid, counted, 1)
  }

  function put(count: NodeCount, uid: string, counted: CountedPod, sign: 1 | -1) {
    const { requests, owner, ports } = counted
    if (sign > 0) count.pods.set(uid, counted)
    else count.pods.delete(uid)
    add(count.taken, requests, sign)
    for (const key of [...(owner ? [owner] : [])]) step(count.owners, key, sign)
    for (const port of ports) step(count.ports, port, sign)
  }

  function assign(pod: Obj) {
    const { uid } = pod.metadata
    if (assigned.has(uid)) return
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)?.uid
    const counted = { nodeName: pod.spec.nodeName, requests: podRequests(pod), owner, ports: hostPorts(pod) }
    assigned.set(uid, counted)
    const count = counts.get(counted.nodeName)
    if (count) put(count, uid, counted, 1)
  }

  function release(uid: string): boolean {
    const counted = assigned.get(uid)
    if (!counted) return false
    assigned.delete(uid)
    const count = counts.get(counted.nodeName)
    if (count) put(count, uid, counted, -1)
    return true
  }

  return {
    get: (name: string) => counts.get(name),
    /** In the order they were added. */
    all: (): readonly NodeCount[] => order,
    setNode,
    removeNode(name: string) {
      const count = counts.get(name)
      counts.delete(name)
      order = order.filter(each => each !== count)
    },
    assign,
    release,
  }
}

function step(counts: Map<string, number>, key: string, by: number) {
  const next = (counts.get(key) ?? 0) + by
  if (next > 0) counts.set(key, next)
  else counts.delete(key)
}

/** The host ports that a pod asks for. */
export const hostPorts = (pod: Obj): string[] =>
  pod.spec.containers.flatMap(({ ports = [] }: Json) =>
    ports
      .filter(({ hostPort }: Json) => hostPort)
      .map(({ hostPort, protocol = "TCP" }: Json) => `${protocol}/${hostPort}`),
  )
