import { formatInstant } from "#lib/instant.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { isEnd } from "../node/pod-status.ts"
import { podRequests } from "../node/resources.ts"
import { createTimers } from "../timers.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { createSchedulerEvents } from "./events.ts"
import { explain, type Misfit, misfit, namedNodes, scoreOf } from "./fitting.ts"
import { type NodeCount, type NodeCounts, nodeCounts } from "./node-counts.ts"
import { type Queued, schedulingQueue } from "./queue.ts"

export type SchedulerOptions = {
  /** The time between two decisions, and before the first. */
  paceMs?: number
  /** The most fitting nodes to score, as the real scheduler limits them in big clusters. */
  candidates?: number
}

/**
 * Binds pods to nodes. Reads Pods and Nodes; writes bindings, PodScheduled conditions and events. Of several fitting
 * nodes, it takes the one with the fewest pods of the same owner, then the emptiest, then one by the seed. It does not
 * preempt, and ignores pod affinity and topology spread constraints.
 */
export function scheduler(world: PhysicsWorld, options: SchedulerOptions = {}): Part {
  return { name: "scheduler", start: () => startScheduling(world, options) }
}

function startScheduling(world: PhysicsWorld, { paceMs = 3, candidates = 100 }: SchedulerOptions): () => void {
  const { storage, clock } = world
  const timers = createTimers(clock)
  const podKind = served(world, "Pod")
  const nodeKind = served(world, "Node")
  const counts = nodeCounts()
  const queue = schedulingQueue(() => go())
  const choose = chooser(world, counts, candidates)
  const write = verdictWriter(world, podKind)
  let isRunning = false

  function hearPod(type: string, pod: Obj) {
    const { uid } = pod.metadata
    if (type === "DELETED" || isEnd(pod.status?.phase)) {
      queue.drop(uid)
      if (counts.release(uid)) queue.retry()
      return
    }
    if (pod.spec.nodeName) {
      queue.drop(uid)
      counts.assign(pod)
      return
    }
    if ((pod.spec.schedulerName ?? "default-scheduler") !== "default-scheduler") return
    const isBlocked = pod.spec.schedulingGates?.length > 0 || pod.metadata.deletionTimestamp
    if (isBlocked) queue.drop(uid)
    else queue.put(pod)
  }

  function hearNode(type: string, node: Obj, before: Obj | undefined) {
    if (type === "DELETED") return counts.removeNode(node.metadata.name)
    counts.setNode(node)
    const isNews =
      !before ||
      before.metadata.labels !== node.metadata.labels ||
      before.spec !== node.spec ||
      before.status?.allocatable !== node.status?.allocatable
    if (isNews) queue.retry()
  }

  function go(ms = paceMs) {
    if (isRunning) return
    isRunning = true
    timers.after(ms, () => {
      isRunning = false
      work()
    })
  }

  function work() {
    const now = clock.now()
    const next = queue.take(now)
    if (next) {
      if (queue.isWaiting(next)) schedule(next)
      if (!queue.isEmpty()) go()
      return
    }
    if (!queue.isEmpty()) go(Math.max(1, queue.soonest() - now))
  }

  function schedule(queued: Queued) {
    if (queue.isHopeless(queued)) return fail(queued, undefined)
    const choice = choose(queued.pod)
    if (!choice.node) return fail(queued, choice.message)
    queue.settle(queued)
    queue.retryShape(queued.shape)
    if (write.bind(queued.pod, choice.node)) return
    queue.unsettle(queued)
    fail(queued, undefined)
  }

  function fail(queued: Queued, message: string | undefined) {
    const text = queue.park(queued, clock.now(), message)
    if (text) write.unschedulable(queued.pod, text)
  }

  for (const node of storage.list(nodeKind).items) counts.setNode(node)
  for (const pod of storage.list(podKind).items) hearPod("ADDED", pod)
  const stops = [
    storage.subscribe(nodeKind, ({ type, object, before }) => hearNode(type, object, before)),
    storage.subscribe(podKind, ({ type, object }) => hearPod(type, object)),
  ]
  return () => {
    for (const stop of stops) stop()
    timers.clear()
  }
}

type Choice = { node: Obj } | { node?: undefined; message: string }

/** The best node for a pod among those that fit, or the scheduler's message on why none fits. */
function chooser({ random }: PhysicsWorld, counts: NodeCounts, candidates: number): (pod: Obj) => Choice {
  let offset = 0

  function best(pod: Obj, fitting: NodeCount[]): NodeCount {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)?.uid
    let found: NodeCount[] = []
    let bestScore = Number.POSITIVE_INFINITY
    for (const count of fitting) {
      const score = scoreOf(pod, count, owner)
      if (score < bestScore) {
        found = [count]
        bestScore = score
      } else if (score === bestScore) found.push(count)
    }
    return found[found.length > 1 ? Math.floor(random.next() * found.length) : 0] as NodeCount
  }

  return pod => {
    const requests = podRequests(pod)
    const all = counts.all()
    const named = namedNodes(pod)
    const pool = named ? named.flatMap(name => counts.get(name) ?? []) : all
    const misfits: Misfit[] = []
    const fitting: NodeCount[] = []
    for (let index = 0; index < pool.length && fitting.length < candidates; index++) {
      const count = pool[(index + offset) % pool.length] as NodeCount
      const problem = misfit(pod, requests, count)
      if (problem) misfits.push(problem)
      else fitting.push(count)
    }
    offset = pool.length > 0 ? (offset + fitting.length + misfits.length) % pool.length : 0
    if (fitting.length === 0) return { message: explain(all.length, misfits, all.length - pool.length) }
    return { node: best(pod, fitting).node }
  }
}

/** Writes the decision: the binding, or the condition that explains why there is none, with their events. */
function verdictWriter(world: PhysicsWorld, podKind: ServedKind) {
  const { storage, clock } = world
  const say = createSchedulerEvents(world)
  const current = ({ metadata: { uid, name, namespace } }: Obj) => {
    const found = storage.find(podKind, { name, namespace })
    return found?.metadata.uid === uid ? found : undefined
  }
  const othersThan = (pod: Obj) => (pod.status?.conditions ?? []).filter(({ type }: Json) => type !== "PodScheduled")

  return {
    /** Returns whether the server accepted the binding. A deleted pod needs none. */
    bind(pod: Obj, node: Obj): boolean {
      const stored = current(pod)
      if (!stored || stored.metadata.deletionTimestamp) return true
      const { name, namespace } = stored.metadata
      const scheduled = {
        type: "PodScheduled",
        status: "True",
        lastProbeTime: null,
        lastTransitionTime: formatInstant(clock.now()),
      }
      const bound = {
        ...stored,
        spec: { ...stored.spec, nodeName: node.metadata.name },
        status: { ...stored.status, conditions: [...othersThan(stored), scheduled] },
      }
      try {
        const done = storage.update(podKind, bound, { subresource: "binding", fieldManager: "kube-scheduler" })
        const message = `Successfully assigned ${namespace}/${name} to ${node.metadata.name}`
        say(done, { type: "Normal", reason: "Scheduled", action: "Binding", message })
        return true
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        return false
      }
    },
    unschedulable(pod: Obj, message: string): void {
      const stored = current(pod)
      if (!stored) return
      say(stored, { type: "Warning", reason: "FailedScheduling", action: "Scheduling", message })
      const old = (stored.status?.conditions ?? []).find(({ type }: Json) => type === "PodScheduled")
      if (old?.status === "False" && old.message === message && old.reason === "Unschedulable") return
      const condition = {
        type: "PodScheduled",
        observedGeneration: stored.metadata.generation ?? 1,
        status: "False",
        lastProbeTime: null,
        lastTransitionTime: old?.status === "False" ? old.lastTransitionTime : formatInstant(clock.now()),
        reason: "Unschedulable",
        message,
      }
      const status = { ...stored.status, conditions: [...othersThan(stored), condition] }
      try {
        storage.update(podKind, { ...stored, status }, { subresource: "status", fieldManager: "kube-scheduler" })
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
      }
    },
  }
}

function served({ storage }: PhysicsWorld, kind: string): ServedKind {
  const found = storage.kind("v1", kind)
  if (!found) throw new Error(`v1 ${kind} is not served`)
  return found
}
