import { formatInstant } from "#lib/instant.ts"
import { type VirtualClock, virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { createStorage } from "../../apiserver/create-storage.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import { builtInKinds } from "../../kinds/index.ts"
import type { Json, Obj } from "../../object.ts"
import { createStore, type HistoryEntry } from "../../store/index.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { servedKind } from "./loop.ts"

/** A storage with the built-in kinds, a virtual clock and some parts, for the tests of this folder. */
export function testWorld({ seed = 1, at = Date.parse("2026-01-01T00:00:00Z") } = {}) {
  const clock: VirtualClock = virtualClock(at)
  const random = seededRandom(seed)
  const history: HistoryEntry[] = []
  const store = createStore({ history: entry => void history.push(entry) })
  const storage = createStorage({ store, clock, random, kinds: builtInKinds() })
  const world: PhysicsWorld = { storage, clock, random }
  const stops = new Map<string, () => void>()
  const kindOf = (name: string): ServedKind => {
    const found = storage.kinds().find(({ kind, group }) => kind === name && group !== "events.k8s.io")
    if (!found) throw new Error(`${name} is not served`)
    return found
  }
  const told = {
    ...world,
    clock,
    history,
    kindOf,
    start(...parts: Part[]) {
      for (const part of parts) stops.set(part.name, part.start())
    },
    stop(name: string) {
      stops.get(name)?.()
    },
    namespace(name: string) {
      storage.create(kindOf("Namespace"), { apiVersion: "v1", kind: "Namespace", metadata: { name } })
    },
    create: (object: Json): Obj => storage.create(kindOf(object.kind), withNamespace(kindOf(object.kind), object)),
    get: (kind: string, name: string, namespace = "default") =>
      storage.find(kindOf(kind), { name, ...(kindOf(kind).namespaced && { namespace }) }),
    list: (kind: string, labelSelector?: string) => [...storage.list(kindOf(kind), { labelSelector }).items],
    patch(kind: string, name: string, body: Json, namespace = "default") {
      const current = storage.get(kindOf(kind), { name, ...(kindOf(kind).namespaced && { namespace }) })
      return storage.update(kindOf(kind), merged(current, body), { fieldManager: "test" })
    },
    setStatus(object: Obj, status: Json) {
      const current = storage.get(kindOf(object.kind), object.metadata)
      return storage.update(kindOf(object.kind), { ...current, status: { ...current.status, ...status } }, asStatus)
    },
    remove: (kind: string, name: string, policy?: "Orphan" | "Background" | "Foreground") =>
      storage.delete(
        kindOf(kind),
        { name, ...(kindOf(kind).namespaced && { namespace: "default" }) },
        policy && { propagationPolicy: policy },
      ),
    /** Reasons and messages, in the order they were first recorded. */
    events: (about?: string) =>
      [...storage.list(kindOf("Event")).items]
        .filter(({ involvedObject }) => !about || involvedObject.name === about)
        .sort((a, b) => (a.metadata.name.slice(-16) < b.metadata.name.slice(-16) ? -1 : 1))
        .map(({ reason, message, count }) => `${reason}: ${message}${count > 1 ? ` (x${count})` : ""}`),
  }
  told.namespace("default")
  return told
}

export type TestWorld = ReturnType<typeof testWorld>

/** As a merge patch: maps are merged, null removes, the rest is replaced. */
function merged(current: Json, change: Json): Json {
  if (typeof change !== "object" || change === null || Array.isArray(change)) return change
  const next = { ...current }
  for (const [key, value] of Object.entries(change)) {
    if (value === null) delete next[key]
    else next[key] = merged(next[key], value)
  }
  return next
}

const asStatus = { fieldManager: "test", subresource: "status" as const }
const withNamespace = (kind: ServedKind, object: Json) =>
  kind.namespaced ? { ...object, metadata: { namespace: "default", ...object.metadata } } : object

export type PlainNodes = {
  nodes?: string[]
  readyMs?: (pod: Obj) => number | undefined
  endMs?: (pod: Obj) => number
  /** How long a pod runs before it succeeds; undefined: it does not. */
  finishMs?: (pod: Obj) => number | undefined
}

/**
 * A minimal scheduler and kubelet: a pod is bound to a node at once, is ready after `readyMs` (never, if undefined) and
 * is gone `endMs` after its deletion began.
 */
export function plainNodes(
  { storage, clock, random }: PhysicsWorld,
  {
    nodes = ["node-0", "node-1"],
    readyMs = () => 50 as number | undefined,
    endMs = () => 30,
    finishMs = () => undefined,
  }: PlainNodes = {},
): Part {
  return {
    name: "plain-nodes",
    start() {
      const pods = servedKind(storage, "v1", "Pod")
      const lives = (pod: Obj) => {
        const found = storage.find(pods, pod.metadata)
        return found?.metadata.uid === pod.metadata.uid ? found : undefined
      }
      const hear = (pod: Obj) => {
        if (pod.metadata.deletionTimestamp) {
          clock.after(endMs(pod), () => {
            if (lives(pod)) storage.delete(pods, pod.metadata, { gracePeriodSeconds: 0 })
          })
          return
        }
        if (pod.status?.phase !== "Pending" || pod.status?.conditions) return
        clock.after(1, () => {
          const found = lives(pod)
          if (!found || found.metadata.deletionTimestamp) return
          const affinity = found.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
          const named = affinity?.nodeSelectorTerms?.[0]?.matchFields?.[0]?.values?.[0]
          const nodeName = named ?? nodes[Math.floor(random.next() * nodes.length)]
          setPod(found, { spec: { ...found.spec, nodeName } })
          const ms = readyMs(found)
          setStatus(found, { phase: "Pending", conditions: [condition("PodScheduled", "True")] })
          if (ms !== undefined)
            clock.after(ms, () => {
              const running = lives(pod)
              if (!running || running.metadata.deletionTimestamp) return
              setStatus(running, {
                phase: "Running",
                conditions: [condition("PodScheduled", "True"), condition("Ready", "True")],
              })
              const finish = finishMs(running)
              if (finish === undefined) return
              clock.after(finish, () => {
                const done = lives(pod)
                if (done && !done.metadata.deletionTimestamp)
                  setStatus(done, { phase: "Succeeded", conditions: [condition("Ready", "False")] })
              })
            })
        })
      }
      const condition = (type: string, status: string) => ({
        type,
        status,
        lastTransitionTime: formatInstant(clock.now()),
        lastProbeTime: null,
      })
      /** Bypasses the rules for users: the real scheduler binds through an endpoint of its own. */
      const setPod = (pod: Obj, change: Json) => {
        const store = (storage as unknown as { store: ReturnType<typeof createStore> }).store
        const current = storage.get(pods, pod.metadata)
        store.commit({ place: pods.storage, before: current, after: { ...current, ...change }, manager: "scheduler" })
      }
      const setStatus = (pod: Obj, status: Json) => {
        const current = storage.get(pods, pod.metadata)
        storage.update(pods, { ...current, status: { ...current.status, ...status } }, asStatus)
      }
      for (const pod of storage.list(pods).items) hear(pod)
      return storage.subscribe(pods, ({ type, object }) => {
        if (type !== "DELETED") hear(object)
      })
    },
  }
}
