import { formatInstant, type Instant } from "#lib/instant.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { isChosen, untolerated } from "../fit.ts"
import { isEnd } from "../node/pod-status.ts"
import { type Amounts, add, nodeAllocatable, podRequests } from "../node/resources.ts"
import { createTimers } from "../node/timers.ts"
import { nanoseconds } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"

/** A node as the scheduler counts it: what it has and what its pods take. */
export type NodeCount = {
  node: Obj
  allocatable: Amounts
  taken: Amounts
  /** Pods by uid, so that each is counted once. */
  pods: Map<string, CountedPod>
  /** How many pods of one owner are on it. */
  owners: Map<string, number>
  ports: Map<string, number>
}

type CountedPod = { nodeName: string; requests: Amounts; owner: string | undefined; ports: string[] }

/** Why a node does not do, and whether it would if other pods were gone. */
export type Misfit = { reasons: string[]; couldPreempt: boolean }

const unschedulableTaint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }

/** Whether a pod can be on a node, with the words of the scheduler's plugins, the first of which speaks. */
function misfit(pod: Obj, requests: Amounts, count: NodeCount): Misfit | undefined {
  const { node, allocatable, taken } = count
  const never = (reason: string): Misfit => ({ reasons: [reason], couldPreempt: false })
  const tolerations = pod.spec.tolerations ?? []
  if (node.spec?.unschedulable && untolerated([unschedulableTaint], tolerations, ["NoSchedule"]))
    return never("node(s) were unschedulable")
  if (untolerated(node.spec?.taints, tolerations, ["NoSchedule", "NoExecute"]))
    return never("node(s) had untolerated taint(s)")
  if (!isChosen(pod.spec, node)) return never("node(s) didn't match Pod's node affinity/selector")
  if (hostPorts(pod).some(port => count.ports.has(port)))
    return { reasons: ["node(s) didn't have free ports for the requested pod ports"], couldPreempt: true }

  const reasons: string[] = []
  let couldPreempt = true
  if (count.pods.size + 1 > (allocatable.pods ?? Number.POSITIVE_INFINITY)) reasons.push("Too many pods")
  for (const [name, asked] of Object.entries(requests)) {
    if (asked === 0) continue
    const has = allocatable[name] ?? 0
    // Sums of fractions: a millionth of a core is nobody's.
    if (asked + (taken[name] ?? 0) <= has + 1e-6) continue
    reasons.push(`Insufficient ${name}`)
    if (asked > has + 1e-6) couldPreempt = false
  }
  return reasons.length > 0 ? { reasons, couldPreempt } : undefined
}

/** The scheduler's sentence when no node does. */
export function explain(total: number, misfits: readonly Misfit[], apart: number): string {
  if (total === 0) return "no nodes available to schedule pods"
  const counts = new Map<string, number>()
  const raise = (reason: string, by = 1) => counts.set(reason, (counts.get(reason) ?? 0) + by)
  for (const { reasons } of misfits) for (const reason of reasons) raise(reason)
  if (apart > 0) raise("node(s) didn't satisfy plugin(s) [NodeAffinity]", apart)
  const victims = misfits.filter(({ couldPreempt }) => couldPreempt).length
  const hopes = new Map<string, number>()
  if (victims > 0) hopes.set("No preemption victims found for incoming pod", victims)
  if (total > victims) hopes.set("Preemption is not helpful for scheduling", total - victims)
  const list = (reasons: Map<string, number>) =>
    [...reasons]
      .map(([reason, count]) => `${count} ${reason}`)
      .sort()
      .join(", ")
  const none = `0/${total} nodes are available: `
  return `${none}${list(counts)}. no new claims to deallocate, preemption: ${none}${list(hopes)}.`
}

const hostPorts = (pod: Obj): string[] =>
  pod.spec.containers.flatMap(({ ports = [] }: Json) =>
    ports
      .filter(({ hostPort }: Json) => hostPort)
      .map(({ hostPort, protocol = "TCP" }: Json) => `${protocol}/${hostPort}`),
  )

/** The nodes that a pod names by themselves (pods of a DaemonSet do), if it does. */
function namedNodes(pod: Obj): string[] | undefined {
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (!required) return undefined
  const names: string[] = []
  for (const { matchFields = [] } of required.nodeSelectorTerms ?? []) {
    const named = matchFields.find(({ key, operator }: Json) => key === "metadata.name" && operator === "In")
    if (!named) return undefined
    names.push(...named.values)
  }
  return names
}

type Queued = { pod: Obj; priority: number; order: number; attempts: number; notBefore: Instant; shape: string }

export type SchedulerOptions = {
  /** Between two decisions, and before the first. */
  paceMs?: number
  /** Scores at most so many nodes that fit, as the real one does in big clusters. */
  candidates?: number
}

/**
 * Binds pods to nodes. Reads Pods and Nodes; writes bindings, PodScheduled conditions and events. Where several nodes
 * do, it takes the one with the fewest pods of the same owner, then the emptiest, then one by the seed. It does not
 * preempt, and knows no affinity between pods and no topology spread constraints.
 */
export function scheduler(world: PhysicsWorld, { paceMs = 3, candidates = 100 }: SchedulerOptions = {}): Part {
  return {
    name: "scheduler",
    start() {
      const { storage, clock, random } = world
      const timers = createTimers(clock)
      const podKind = served(world, "Pod")
      const nodeKind = served(world, "Node")
      const counts = new Map<string, NodeCount>()
      let order: NodeCount[] = []
      let offset = 0
      const assigned = new Map<string, CountedPod>()
      const waiting = new Map<string, Queued>() // by uid: pods without a node
      const active: Queued[] = [] // those to be tried, kept in order when it is read
      const parked = new Map<string, Map<string, Queued>>() // by shape and uid: those that found no node
      /** Shapes that found no node since the last change: a thousand pods that ask the same are tried once. */
      const hopeless = new Map<string, number>()
      let changes = 0
      let sequence = 0
      let isRunning = false
      let isSorted = true

      // ── what it counts ──

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

      // ── what wakes it ──

      function hearPod(type: string, pod: Obj) {
        const { uid } = pod.metadata
        if (type === "DELETED" || isEnd(pod.status?.phase)) {
          drop(uid)
          if (release(uid)) retry()
          return
        }
        if (pod.spec.nodeName) {
          drop(uid)
          assign(pod)
          return
        }
        if ((pod.spec.schedulerName ?? "default-scheduler") !== "default-scheduler") return
        const isBlocked = pod.spec.schedulingGates?.length > 0 || pod.metadata.deletionTimestamp
        if (isBlocked) return drop(uid)
        const known = waiting.get(uid)
        if (known) {
          const isChanged = known.pod.metadata.generation !== pod.metadata.generation
          known.pod = pod
          if (isChanged && unpark(known)) push(known)
          return
        }
        const priority = pod.spec.priority ?? 0
        const queued = { pod, priority, order: sequence++, attempts: 0, notBefore: 0, shape: shapeOf(pod) }
        waiting.set(uid, queued)
        push(queued)
      }

      function hearNode(type: string, node: Obj, before: Obj | undefined) {
        const { name } = node.metadata
        if (type === "DELETED") {
          const count = counts.get(name)
          counts.delete(name)
          order = order.filter(each => each !== count)
          return
        }
        setNode(node)
        const isNews =
          !before ||
          before.metadata.labels !== node.metadata.labels ||
          before.spec !== node.spec ||
          before.status?.allocatable !== node.status?.allocatable
        if (isNews) retry()
      }

      function drop(uid: string) {
        const queued = waiting.get(uid)
        if (!queued) return
        waiting.delete(uid)
        unpark(queued)
      }

      function unpark({ shape, pod }: Queued): boolean {
        const alike = parked.get(shape)
        const was = alike?.delete(pod.metadata.uid) ?? false
        if (alike?.size === 0) parked.delete(shape)
        return was
      }

      /** Something may fit now that did not: of each shape one is tried, and the next when that one fits. */
      function retry() {
        changes++
        for (const shape of [...parked.keys()]) retryShape(shape)
      }

      function retryShape(shape: string) {
        for (const queued of parked.get(shape)?.values() ?? []) {
          unpark(queued)
          return push(queued)
        }
      }

      function push(queued: Queued) {
        active.push(queued)
        isSorted = false
        go()
      }

      function go(ms = paceMs) {
        if (isRunning) return
        isRunning = true
        timers.after(ms, () => {
          isRunning = false
          work()
        })
      }

      // ── what it does ──

      function work() {
        if (!isSorted) active.sort((a, b) => a.priority - b.priority || b.order - a.order) // the next one is the last
        isSorted = true
        const now = clock.now()
        let at = active.length - 1
        while (at >= 0 && (active[at] as Queued).notBefore > now) at--
        const next = at >= 0 ? active.splice(at, 1)[0] : undefined
        if (next) {
          if (waiting.get(next.pod.metadata.uid) === next) schedule(next)
          if (active.length > 0) go()
          return
        }
        const soonest = Math.min(...active.map(({ notBefore }) => notBefore))
        if (active.length > 0) go(Math.max(1, soonest - now))
      }

      function schedule(queued: Queued) {
        const { pod } = queued
        if (hopeless.get(queued.shape) === changes) return fail(queued, undefined)
        const requests = podRequests(pod)
        const named = namedNodes(pod)
        const pool = named ? named.flatMap(name => counts.get(name) ?? []) : order
        const misfits: Misfit[] = []
        const fitting: NodeCount[] = []
        for (let index = 0; index < pool.length && fitting.length < candidates; index++) {
          const count = pool[(index + offset) % pool.length] as NodeCount
          const problem = misfit(pod, requests, count)
          if (problem) misfits.push(problem)
          else fitting.push(count)
        }
        offset = pool.length > 0 ? (offset + fitting.length + misfits.length) % pool.length : 0
        if (fitting.length === 0) return fail(queued, explain(order.length, misfits, order.length - pool.length))
        bind(queued, choose(pod, fitting))
      }

      function choose(pod: Obj, fitting: NodeCount[]): NodeCount {
        const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)?.uid
        let best: NodeCount[] = []
        let bestScore = Number.POSITIVE_INFINITY
        for (const count of fitting) {
          const score = scoreOf(pod, count, owner)
          if (score < bestScore) {
            best = [count]
            bestScore = score
          } else if (score === bestScore) best.push(count)
        }
        return best[best.length > 1 ? Math.floor(random.next() * best.length) : 0] as NodeCount
      }

      function bind(queued: Queued, { node }: NodeCount) {
        const { pod } = queued
        const { uid, name, namespace } = pod.metadata
        waiting.delete(uid)
        retryShape(queued.shape)
        const current = storage.find(podKind, { name, namespace })
        if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp) return
        const conditions = (current.status?.conditions ?? []).filter(({ type }: Json) => type !== "PodScheduled")
        const scheduled = {
          type: "PodScheduled",
          status: "True",
          lastProbeTime: null,
          lastTransitionTime: formatInstant(clock.now()),
        }
        const bound = {
          ...current,
          spec: { ...current.spec, nodeName: node.metadata.name },
          status: { ...current.status, conditions: [...conditions, scheduled] },
        }
        try {
          const done = storage.update(podKind, bound, { subresource: "binding", fieldManager: "kube-scheduler" })
          const message = `Successfully assigned ${namespace}/${name} to ${node.metadata.name}`
          say(done, { type: "Normal", reason: "Scheduled", action: "Binding", message })
        } catch (error) {
          if (!(error instanceof StatusError)) throw error
          waiting.set(uid, queued)
          fail(queued, undefined)
        }
      }

      function fail(queued: Queued, message: string | undefined) {
        const { pod } = queued
        const { uid, name, namespace } = pod.metadata
        queued.attempts++
        queued.notBefore = clock.now() + Math.min(1000 * 2 ** (queued.attempts - 1), 10_000)
        const alike = parked.get(queued.shape) ?? new Map<string, Queued>()
        parked.set(queued.shape, alike.set(uid, queued))
        const text = message ?? lastMessage.get(queued.shape)
        if (!text) return
        hopeless.set(queued.shape, changes)
        lastMessage.set(queued.shape, text)
        const current = storage.find(podKind, { name, namespace })
        if (current?.metadata.uid !== uid) return
        say(current, { type: "Warning", reason: "FailedScheduling", action: "Scheduling", message: text })
        const old = (current.status?.conditions ?? []).find(({ type }: Json) => type === "PodScheduled")
        if (old?.status === "False" && old.message === text && old.reason === "Unschedulable") return
        const condition = {
          type: "PodScheduled",
          observedGeneration: current.metadata.generation ?? 1,
          status: "False",
          lastProbeTime: null,
          lastTransitionTime: old?.status === "False" ? old.lastTransitionTime : formatInstant(clock.now()),
          reason: "Unschedulable",
          message: text,
        }
        const others = (current.status?.conditions ?? []).filter(({ type }: Json) => type !== "PodScheduled")
        const status = { ...current.status, conditions: [...others, condition] }
        try {
          storage.update(podKind, { ...current, status }, { subresource: "status", fieldManager: "kube-scheduler" })
        } catch (error) {
          if (!(error instanceof StatusError)) throw error
        }
      }
      const lastMessage = new Map<string, string>()

      // ── what it tells ──

      const say = createSchedulerEvents(world)

      for (const node of storage.list(nodeKind).items) setNode(node)
      for (const pod of storage.list(podKind).items) hearPod("ADDED", pod)
      const stops = [
        storage.subscribe(nodeKind, ({ type, object, before }) => hearNode(type, object, before)),
        storage.subscribe(podKind, ({ type, object }) => hearPod(type, object)),
      ]
      return () => {
        for (const stop of stops) stop()
        timers.clear()
      }
    },
  }
}

function step(counts: Map<string, number>, key: string, by: number) {
  const next = (counts.get(key) ?? 0) + by
  if (next > 0) counts.set(key, next)
  else counts.delete(key)
}

/** Lower is better. Whole numbers in steps: spreading an owner's pods weighs most, then room. */
function scoreOf(pod: Obj, { node, allocatable, taken, pods, owners }: NodeCount, owner: string | undefined): number {
  const share = (name: string) => (allocatable[name] ? Math.round((100 * (taken[name] ?? 0)) / allocatable[name]) : 0)
  const avoided = (node.spec?.taints ?? []).filter(({ effect }: Json) => effect === "PreferNoSchedule").length
  const together = owner ? (owners.get(owner) ?? 0) : 0
  const tolerated = avoided > 0 && untolerated(node.spec.taints, pod.spec.tolerations ?? [], ["PreferNoSchedule"])
  return (tolerated ? 1e9 : 0) + together * 1e6 + (share("cpu") + share("memory")) * 1e3 + pods.size
}

/** What the answer depends on: pods that agree in it share a fate. */
function shapeOf({ spec }: Obj): string {
  const { nodeSelector, affinity, tolerations, containers, initContainers, overhead, resources, priority } = spec
  const asked = (list: Json[] = []) => list.map(each => [each.resources?.requests, each.ports, each.restartPolicy])
  const parts = [
    nodeSelector,
    affinity,
    tolerations,
    asked(containers),
    asked(initContainers),
    overhead,
    resources,
    priority,
  ]
  return JSON.stringify(parts)
}

function served({ storage }: PhysicsWorld, kind: string): ServedKind {
  const found = storage.kind("v1", kind)
  if (!found) throw new Error(`v1 ${kind} is not served`)
  return found
}

type SchedulerEvent = { type: "Normal" | "Warning"; reason: string; action: string; message: string }

/** Events of the new kind, which have a series where the old ones have a count. */
function createSchedulerEvents({ storage, clock, random }: PhysicsWorld): (pod: Obj, event: SchedulerEvent) => void {
  const kind = storage.kind("v1", "Event")
  const written = new Map<string, { name: string; count: number }>()
  const controller = "default-scheduler"
  return (pod, { type, reason, action, message }) => {
    if (!kind) return
    const now = clock.now()
    const { name, namespace, uid, resourceVersion } = pod.metadata
    const key = `${uid} ${resourceVersion} ${reason} ${message}`
    const known = reason === "Scheduled" ? undefined : written.get(key)
    try {
      if (known && storage.find(kind, { name: known.name, namespace })) {
        known.count++
        const series = { count: known.count, lastObservedTime: microTime(now) }
        storage.patch(kind, { name: known.name, namespace }, { type: "merge", body: { series } }, asScheduler)
        return
      }
      const event = {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: `${name}.${nanoseconds(now, Math.floor(random.next() * 1e6))}`, namespace },
        involvedObject: { apiVersion: "v1", kind: "Pod", name, namespace, resourceVersion, uid },
        reason,
        message,
        source: {},
        firstTimestamp: null,
        lastTimestamp: null,
        type,
        eventTime: microTime(now),
        action,
        reportingComponent: controller,
        reportingInstance: `${controller}-cluster-sim`,
      }
      const created = storage.create(kind, event, asScheduler)
      if (reason === "Scheduled") return
      written.set(key, { name: created.metadata.name, count: 1 })
      if (written.size > 4096) written.delete(written.keys().next().value as string)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }
}

const asScheduler = { fieldManager: "kube-scheduler" }

/** As `metav1.MicroTime`: six digits after the second. */
export const microTime = (at: Instant) => new Date(at).toISOString().replace("Z", "000Z")
