import type { Instant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"

export type Queued = { pod: Obj; priority: number; order: number; attempts: number; notBefore: Instant; shape: string }

/** The pods without a node: those to try, and those that found none and wait for a change. */
export type SchedulingQueue = ReturnType<typeof schedulingQueue>

/** `wake` is called when there is a pod to try. */
export function schedulingQueue(wake: () => void) {
  const waiting = new Map<string, Queued>() // by uid
  const active: Queued[] = [] // sorted when read
  const parked = new Map<string, Map<string, Queued>>() // by shape and uid: those that found no node
  /** Shapes that found no node since the last change: of a thousand equal pods, only one is tried. */
  const hopeless = new Map<string, number>()
  const lastMessage = new Map<string, string>()
  let changes = 0
  let sequence = 0
  let isSorted = true

  function push(queued: Queued) {
    active.push(queued)
    isSorted = false
    wake()
  }

  function unpark({ shape, pod }: Queued): boolean {
    const alike = parked.get(shape)
    const was = alike?.delete(pod.metadata.uid) ?? false
    if (alike?.size === 0) parked.delete(shape)
    return was
  }

  /** Tries one pod of this shape again. */
  function retryShape(shape: string) {
    for (const queued of parked.get(shape)?.values() ?? []) {
      unpark(queued)
      return push(queued)
    }
  }

  return {
    /** Adds a pod that waits for a node, or a new version of it. */
    put(pod: Obj) {
      const { uid } = pod.metadata
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
    },
    drop(uid: string) {
      const queued = waiting.get(uid)
      if (!queued) return
      waiting.delete(uid)
      unpark(queued)
    },
    /** Called when a change may make pods fit. Tries one pod of each shape, and the next one if that fits. */
    retry() {
      changes++
      for (const shape of [...parked.keys()]) retryShape(shape)
    },
    retryShape,
    /** The next pod to try at this time, if it still waits. */
    take(now: Instant): Queued | undefined {
      if (!isSorted) active.sort((a, b) => a.priority - b.priority || b.order - a.order) // the next one is the last
      isSorted = true
      let at = active.length - 1
      while (at >= 0 && active[at]!.notBefore > now) at--
      return at >= 0 ? active.splice(at, 1)[0] : undefined
    },
    isWaiting: (queued: Queued) => waiting.get(queued.pod.metadata.uid) === queued,
    isEmpty: () => active.length === 0,
    soonest: () => Math.min(...active.map(({ notBefore }) => notBefore)),
    /** The pod has a node, or is being bound. */
    settle: ({ pod }: Queued) => void waiting.delete(pod.metadata.uid),
    /** The binding failed, so the pod waits again. */
    unsettle: (queued: Queued) => void waiting.set(queued.pod.metadata.uid, queued),
    isHopeless: ({ shape }: Queued) => hopeless.get(shape) === changes,
    /** No node fits: the pod waits for a change and at least its back-off. Returns the message of its shape, if any. */
    park(queued: Queued, now: Instant, message: string | undefined): string | undefined {
      const { shape, pod } = queued
      queued.attempts++
      queued.notBefore = now + Math.min(1000 * 2 ** (queued.attempts - 1), 10_000)
      const alike = parked.get(shape) ?? new Map<string, Queued>()
      parked.set(shape, alike.set(pod.metadata.uid, queued))
      const text = message ?? lastMessage.get(shape)
      if (!text) return undefined
      hopeless.set(shape, changes)
      lastMessage.set(shape, text)
      return text
    },
  }
}

/** All that the decision depends on: pods of one shape fit the same nodes. */
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
