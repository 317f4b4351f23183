import { formatInstant, type Instant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { type Condition, findCondition, withCondition, withoutCondition } from "./conditions.ts"
import { positive } from "./counts.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { adoptersAmong, claim, manager, ownedIndex, ownersToWake } from "./owned.ts"
import {
  byDeletionOrder,
  controllerOf,
  isActive,
  isAvailable,
  isReady,
  isTerminating,
  nextAvailableInMs,
  podFromTemplate,
} from "./pods.ts"
import { isNamespaceTerminating } from "./refusals.ts"
import { same } from "./same.ts"

export type Snapshot = {
  replicaSet: Obj
  pods: readonly Obj[] // its own, including those that have ended or are ending
  related: readonly Obj[] // of all ReplicaSets of its Deployment: pods that count as neighbours on a node
  now: Instant
}

export type Plan = { create: number; remove: Obj[] }

const burst = 500

/** How many pods to create, or which to delete. */
export function plan({ replicaSet, pods, related, now }: Snapshot): Plan {
  if (replicaSet.metadata.deletionTimestamp) return { create: 0, remove: [] }
  const active = pods.filter(isActive)
  const surplus = active.length - replicaSet.spec.replicas
  if (surplus < 0) return { create: Math.min(burst, -surplus), remove: [] }
  if (surplus === 0) return { create: 0, remove: [] }
  if (surplus >= active.length) return { create: 0, remove: active.slice(0, burst) }
  return { create: 0, remove: active.sort(byDeletionOrder(related, now)).slice(0, Math.min(burst, surplus)) }
}

/** The status, from the observed pods and from an error of creating or deleting pods. */
export function status({ replicaSet, pods, now }: Snapshot, trouble: string | undefined): Json {
  const active = pods.filter(isActive)
  const { minReadySeconds = 0, replicas, template } = replicaSet.spec
  const old = replicaSet.status ?? {}
  let conditions: Condition[] = old.conditions ?? []
  const failure = findCondition(conditions, "ReplicaFailure")
  if (trouble !== undefined && !failure)
    conditions = withCondition(conditions, {
      type: "ReplicaFailure",
      status: "True",
      lastTransitionTime: formatInstant(now),
      reason: active.length < replicas ? "FailedCreate" : "FailedDelete",
      message: trouble,
    })
  if (trouble === undefined && failure) conditions = withoutCondition(conditions, "ReplicaFailure")

  const count = (counts: (pod: Obj) => boolean) => active.filter(counts).length
  return {
    replicas: active.length,
    ...positive(
      "fullyLabeledReplicas",
      count(pod => hasLabels(pod, template.metadata?.labels)),
    ),
    ...positive("readyReplicas", count(isReady)),
    ...positive(
      "availableReplicas",
      count(pod => isAvailable(pod, minReadySeconds, now)),
    ),
    terminatingReplicas: pods.filter(isTerminating).length,
    observedGeneration: replicaSet.metadata.generation,
    ...(conditions.length > 0 && { conditions }),
  }
}

/** Keeps spec.replicas pods. Reads ReplicaSets and Pods; writes Pods and the status of ReplicaSets. */
export function replicaSetController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const replicaSets = servedKind(storage, "apps/v1", "ReplicaSet")
  const podKind = servedKind(storage, "v1", "Pod")
  const owned = ownedIndex(storage, "v1", "Pod", "ReplicaSet")
  const siblings = ownedIndex(storage, "apps/v1", "ReplicaSet", "Deployment")
  const record = createRecorder(world, "replicaset-controller")

  const adopters = adoptersAmong(storage, replicaSets)

  function relatedTo(replicaSet: Obj): Obj[] {
    const deployment = controllerOf(replicaSet)
    if (!deployment) return owned.of(replicaSet)
    return siblings.of({ metadata: { uid: deployment.uid } } as Obj).flatMap(sibling => owned.of(sibling))
  }

  function act(replicaSet: Obj, { create, remove }: Plan) {
    for (let made = 0; made < create; made++) {
      try {
        const pod = storage.create(podKind, podFromTemplate(replicaSet.spec.template, replicaSet), manager)
        record(replicaSet, "Normal", "SuccessfulCreate", `Created pod: ${pod.metadata.name}`)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        if (isNamespaceTerminating(error)) return
        record(replicaSet, "Warning", "FailedCreate", `Error creating: ${error.message}`)
        throw error // the rest of the batch would fail too: the real one starts with one pod and doubles
      }
    }
    for (const pod of remove) {
      try {
        storage.delete(podKind, pod.metadata)
        record(replicaSet, "Normal", "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`)
      } catch (error) {
        if (!(error instanceof StatusError) || error.code === 404) continue
        record(replicaSet, "Warning", "FailedDelete", `Error deleting: ${error.message}`)
        throw new StatusError(error.code, error.reason, `unable to delete pods: ${error.message}`, error.details)
      }
    }
  }

  return loop(world, {
    name: "replicaset-controller",
    begin() {
      const stops = [owned.begin(), siblings.begin()]
      return () => stops.forEach(stop => void stop())
    },
    watches: [
      { apiVersion: "apps/v1", kind: "ReplicaSet", keys: ({ object }) => [keyOf(object)] },
      { apiVersion: "v1", kind: "Pod", keys: change => ownersToWake(change, "ReplicaSet", adopters) },
    ],
    reconcile(key) {
      const replicaSet = storage.find(replicaSets, nameOf(key))
      if (!replicaSet) return undefined
      const { selector, minReadySeconds = 0 } = replicaSet.spec
      const pods = claim({ storage, kind: podKind, owner: replicaSet, owned }, pod =>
        selects(selector, pod.metadata.labels),
      )
      const hasSurplus = pods.filter(isActive).length > replicaSet.spec.replicas
      const related = hasSurplus ? relatedTo(replicaSet) : []
      const snapshot = { replicaSet, pods, related, now: clock.now() }

      let trouble: StatusError | undefined
      try {
        act(replicaSet, plan(snapshot))
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        trouble = error
      }
      const next = status(snapshot, trouble?.message)
      if (!same(next, replicaSet.status))
        storage.update(replicaSets, { ...replicaSet, status: next }, { ...manager, subresource: "status" })
      if (trouble) throw trouble
      return nextAvailableInMs(pods.filter(isActive), minReadySeconds, snapshot.now)
    },
  })
}

const hasLabels = (pod: Obj, labels: Record<string, string> = {}) =>
  Object.entries(labels).every(([key, value]) => pod.metadata.labels?.[key] === value)
