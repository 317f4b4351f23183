import { formatInstant, type Instant } from "#lib/instant.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { tolerates } from "../fit.ts"
import type { Nodes } from "../node/nodes.ts"
import { isEnd } from "../node/pod-status.ts"
import { createRecorder } from "../recorder.ts"
import { createTimers, type Timers } from "../timers.ts"
import type { Part, PhysicsWorld } from "../world.ts"

/** kube-controller-manager's default times, in milliseconds. */
const times = { leaseRenewal: 10_000, grace: 50_000, monitor: 5_000, orphanCheck: 20_000, orphanQuarantine: 40_000 }

const unreachable = "node.kubernetes.io/unreachable"
const notReady = "node.kubernetes.io/not-ready"
const cordoned = "node.kubernetes.io/unschedulable"

/**
 * The node controllers of kube-controller-manager. A node whose kubelet is silent becomes Unknown and is tainted, and
 * its pods become not ready. Pods that do not tolerate a NoExecute taint are deleted, at once or after their
 * tolerationSeconds. Pods of a deleted node are removed. A cordon becomes a taint. Reads Nodes and Pods; writes both.
 *
 * The simulated kubelets report their silence directly, so that no Leases need to be written.
 */
export function nodeLifecycle(world: PhysicsWorld, machines: Nodes): Part {
  return { name: "node-lifecycle", start: () => watchNodes(world, machines) }
}

function watchNodes(world: PhysicsWorld, machines: Nodes): () => void {
  const { storage, clock } = world
  const timers = createTimers(clock)
  const nodeKind = storage.kind("v1", "Node") as ServedKind
  const podKind = storage.kind("v1", "Pod") as ServedKind
  const nodeEvents = createRecorder(world, "node-controller")
  const startedAt = clock.now()
  const podsByNode = new Map<string, Map<string, Obj>>()
  const { update, remove } = writer(world, podKind)
  const evictions = evictor(world, { timers, podKind, remove })
  const silent = new Map<string, () => void>() // nodes whose grace period runs
  const known = new Set<string>() // nodes
  const unready = new Set<string>() // of those

  // ── nodes that fall silent and come back ──

  function hearLife(name: string, isAlive: boolean) {
    silent.get(name)?.()
    silent.delete(name)
    if (isAlive) {
      const node = storage.find(nodeKind, { name })
      if (node) hearNode("MODIFIED", node)
      return
    }
    const now = clock.now()
    const due = lossAt(now, startedAt)
    silent.set(
      name,
      timers.after(due - now, () => lose(name)),
    )
  }

  function lose(name: string) {
    const node = storage.find(nodeKind, { name })
    if (!node || machines.isAlive(name)) return
    const time = formatInstant(clock.now())
    const conditions = (node.status?.conditions ?? []).map((condition: Json) => ({
      ...condition,
      status: "Unknown",
      lastTransitionTime: condition.status === "Unknown" ? condition.lastTransitionTime : time,
      reason: "NodeStatusUnknown",
      message: "Kubelet stopped posting node status.",
    }))
    update(nodeKind, { ...node, status: { ...node.status, conditions } }, "status")
    const message = `Node ${name} status is now: NodeNotReady`
    nodeEvents(node, "Normal", "NodeNotReady", message)
    for (const pod of [...(podsByNode.get(name)?.values() ?? [])]) setUnready(pod)
  }

  function setUnready(pod: Obj) {
    const ready = pod.status?.conditions?.find(({ type }: Json) => type === "Ready")
    if (ready?.status !== "True") return
    const lastTransitionTime = formatInstant(clock.now())
    const conditions = pod.status.conditions.map((condition: Json) =>
      condition === ready ? { ...condition, status: "False", lastTransitionTime } : condition,
    )
    update(podKind, { ...pod, status: { ...pod.status, conditions } }, "status")
    nodeEvents(pod, "Warning", "NodeNotReady", "Node is not ready")
  }

  // ── taints ──

  function hearNode(type: string, node: Obj) {
    const { name } = node.metadata
    if (type === "DELETED") {
      silent.get(name)?.()
      silent.delete(name)
      known.delete(name)
      if (unready.delete(name)) reconsider()
      timers.after(times.orphanQuarantine, () => collectOrphans(name))
      return
    }
    known.add(name)
    const isReady = node.status?.conditions?.some((each: Json) => each.type === "Ready" && each.status === "True")
    const couldEvict = mayEvict()
    if (isReady) unready.delete(name)
    else if (node.status?.conditions) unready.add(name)
    if (couldEvict !== mayEvict()) reconsider()
    const wanted = wantedTaints(node, mayEvict())
    const owned = (taint: Json) => ownKeys.has(taint.key)
    const has = (taints: readonly Json[], { key, effect }: Json) =>
      taints.some(each => each.key === key && each.effect === effect)
    const taints: Json[] = node.spec?.taints ?? []
    const kept = taints.filter(taint => !owned(taint) || has(wanted, taint))
    const added = wanted.filter(taint => !has(taints, taint))
    if (kept.length < taints.length || added.length > 0) {
      const timeAdded = formatInstant(clock.now())
      const next = [...kept, ...added.map(taint => ({ ...taint, timeAdded }))]
      const { taints: _, ...spec } = node.spec ?? {}
      update(nodeKind, { ...node, spec: { ...spec, ...(next.length > 0 && { taints: next }) } })
      return // and continues when the watch delivers the change
    }
    for (const pod of [...(podsByNode.get(name)?.values() ?? [])]) evictions.judge(pod, taints)
  }

  const mayEvict = () => isEvictionAllowed(unready.size, known.size)

  function reconsider() {
    for (const name of [...unready]) {
      const node = storage.find(nodeKind, { name })
      if (node) hearNode("MODIFIED", node)
    }
  }

  // ── pods of nodes that are gone ──

  function collectOrphans(name: string) {
    if (storage.find(nodeKind, { name })) return
    const why = { reason: "DeletionByPodGC", message: "PodGC: node no longer exists" }
    for (const pod of [...(podsByNode.get(name)?.values() ?? [])]) remove(pod, why, 0)
  }

  // ── pods ──

  function hearPod(type: string, pod: Obj) {
    const { uid } = pod.metadata
    const nodeName: string | undefined = pod.spec?.nodeName
    if (!nodeName) return
    const pods = podsByNode.get(nodeName) ?? new Map<string, Obj>()
    if (type === "DELETED") {
      pods.delete(uid)
      if (pods.size === 0) podsByNode.delete(nodeName)
      evictions.forget(uid)
      return
    }
    const isNew = !pods.has(uid)
    podsByNode.set(nodeName, pods.set(uid, pod))
    if (!isNew && !pod.metadata.deletionTimestamp) return
    const node = storage.find(nodeKind, { name: nodeName })
    if (node?.spec?.taints) evictions.judge(pod, node.spec.taints)
  }

  for (const pod of storage.list(podKind).items) hearPod("ADDED", pod)
  for (const node of storage.list(nodeKind).items) hearNode("ADDED", node)
  for (const name of podsByNode.keys())
    if (!storage.find(nodeKind, { name })) timers.after(times.orphanCheck, () => collectOrphans(name))
  const stops = [
    storage.subscribe(podKind, ({ type, object }) => hearPod(type, object)),
    storage.subscribe(nodeKind, ({ type, object }) => hearNode(type, object)),
    machines.onLife(hearLife),
  ]
  return () => {
    for (const stop of stops) stop()
    timers.clear()
  }
}

type Remove = (pod: Obj, why: { reason: string; message: string }, gracePeriodSeconds?: number) => void

/** Writes that may conflict with others: a refusal is ignored. */
function writer({ storage, clock }: PhysicsWorld, podKind: ServedKind) {
  const update = (kind: ServedKind, object: Obj, subresource?: "status") => {
    try {
      storage.update(kind, object, {
        fieldManager: "kube-controller-manager",
        ...(subresource && { subresource }),
      })
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  function remove(pod: Obj, why: { reason: string; message: string }, gracePeriodSeconds?: number) {
    const condition = {
      type: "DisruptionTarget",
      observedGeneration: pod.metadata.generation ?? 1,
      status: "True",
      lastProbeTime: null,
      lastTransitionTime: formatInstant(clock.now()),
      ...why,
    }
    const conditions = [
      ...(pod.status?.conditions ?? []).filter(({ type }: Json) => type !== condition.type),
      condition,
    ]
    const isLost = gracePeriodSeconds === 0 && !isEnd(pod.status?.phase)
    const status = { ...pod.status, conditions, ...(isLost && { phase: "Failed" }) }
    update(podKind, { ...pod, status }, "status")
    try {
      storage.delete(podKind, pod.metadata, {
        preconditions: { uid: pod.metadata.uid },
        ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
      })
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  return { update, remove }
}

/** Deletes pods that do not tolerate the taints of their node, at once or after their tolerationSeconds. */
function evictor(
  world: PhysicsWorld,
  { timers, podKind, remove }: { timers: Timers; podKind: ServedKind; remove: Remove },
) {
  const { storage } = world
  const evictionEvents = createRecorder(world, "taint-eviction-controller")
  const planned = new Map<string, { cancel: () => void }>() // by the pod's uid

  /** Plans or cancels the eviction of a pod by the taints of its node. */
  function judge(pod: Obj, taints: readonly Json[]) {
    const { uid } = pod.metadata
    const eviction = planned.get(uid)
    const seconds = pod.metadata.deletionTimestamp ? undefined : secondsToStay(pod, taints)
    if (seconds === undefined) {
      if (!eviction) return
      eviction.cancel()
      planned.delete(uid)
      if (!pod.metadata.deletionTimestamp) sayEviction(pod, "Cancelling deletion of")
      return
    }
    if (eviction) return // its time counts from the first taint
    planned.set(uid, { cancel: timers.after(1000 * seconds, () => evict(uid, pod)) })
  }

  function evict(uid: string, { metadata: { name, namespace } }: Obj) {
    planned.delete(uid)
    const pod = storage.find(podKind, { name, namespace })
    if (pod?.metadata.uid !== uid || pod.metadata.deletionTimestamp) return
    sayEviction(pod, "Marking for deletion")
    const message = "Taint manager: deleting due to NoExecute taint"
    remove(pod, { reason: "DeletionByTaintManager", message })
  }

  const sayEviction = (pod: Obj, what: string) => {
    const message = `${what} Pod ${pod.metadata.namespace}/${pod.metadata.name}`
    evictionEvents(pod, "Normal", "TaintManagerEviction", message)
  }

  return {
    judge,
    /** The pod is gone. */
    forget(uid: string) {
      planned.get(uid)?.cancel()
      planned.delete(uid)
    },
  }
}

/** When a silent node counts as lost. The grace period starts at its last renewal and is checked every five seconds. */
function lossAt(now: Instant, startedAt: Instant): Instant {
  const lastRenewal = now - ((now - startedAt) % times.leaseRenewal)
  return startedAt + Math.ceil((lastRenewal + times.grace - startedAt) / times.monitor) * times.monitor
}

/**
 * If all nodes are silent, the cause is more likely the network of the controller, so no pod is evicted. Nor if most of
 * a small cluster is silent, since the rest would not have room for the pods.
 */
function isEvictionAllowed(unready: number, known: number): boolean {
  if (unready > 0 && unready === known) return false
  return !(unready > 2 && unready / known >= 0.55 && known <= 50)
}

/** The taints that follow from a node's conditions and its cordon. */
function wantedTaints(node: Obj, mayEvict: boolean): Json[] {
  const ready = node.status?.conditions?.find(({ type }: Json) => type === "Ready")?.status
  const both = (key: string) => [{ key, effect: "NoSchedule" }, ...(mayEvict ? [{ key, effect: "NoExecute" }] : [])]
  const pressures = (node.status?.conditions ?? []).filter(({ status }: Json) => status === "True")
  return [
    ...(node.spec?.unschedulable ? [{ key: cordoned, effect: "NoSchedule" }] : []),
    ...(ready === "Unknown" ? both(unreachable) : ready === "False" ? both(notReady) : []),
    ...pressures.flatMap(({ type }: Json) => pressureTaints[type] ?? []),
  ]
}

const pressureTaints: Record<string, Json> = {
  MemoryPressure: { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" },
  DiskPressure: { key: "node.kubernetes.io/disk-pressure", effect: "NoSchedule" },
  PIDPressure: { key: "node.kubernetes.io/pid-pressure", effect: "NoSchedule" },
}

/** Taints that this controller owns: it removes those that other clients add. */
const ownKeys = new Set([unreachable, notReady, cordoned, ...Object.values(pressureTaints).map(({ key }) => key)])

/** How long a pod may stay with these taints: undefined for ever, 0 not at all. */
function secondsToStay(pod: Obj, taints: readonly Json[]): number | undefined {
  let least: number | undefined
  for (const taint of taints.filter(({ effect }) => effect === "NoExecute")) {
    const tolerations = (pod.spec.tolerations ?? []).filter((each: Json) => tolerates(each, taint))
    if (tolerations.length === 0) return 0
    for (const { tolerationSeconds } of tolerations)
      if (tolerationSeconds !== undefined)
        least = Math.min(least ?? Number.POSITIVE_INFINITY, Math.max(0, tolerationSeconds))
  }
  return least
}
