import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { findCondition } from "./conditions.ts"
import { intOrPercent } from "./int-or-percent.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { manager } from "./owned.ts"
import { controllerOf, isReady } from "./pods.ts"
import { same } from "./same.ts"

const deletionTimeoutMs = 120_000

/** How many pods the controllers of the selected pods want, or why that is unknown. */
export type Scale = { count: number } | { trouble: string }

export type Snapshot = { budget: Obj; pods: readonly Obj[]; scale: Scale; now: Instant }

/** The status, with the number of pods that may be evicted now. */
function status({ budget, pods, scale, now }: Snapshot): Json {
  const { minAvailable, maxUnavailable } = budget.spec
  const old = budget.status ?? {}
  if (needsScale(budget) && "trouble" in scale)
    return {
      ...old,
      disruptionsAllowed: 0,
      conditions: withAllowed(old.conditions, now, {
        status: "False",
        reason: "SyncFailed",
        message: scale.trouble,
        observedGeneration: old.observedGeneration ?? 0,
      }),
    }
  const expectedPods = needsScale(budget) && "count" in scale ? scale.count : pods.length
  const desiredHealthy =
    maxUnavailable !== undefined
      ? Math.max(0, expectedPods - intOrPercent(maxUnavailable, expectedPods, "up"))
      : intOrPercent(minAvailable, expectedPods, "up")
  const disrupted = Object.entries((old.disruptedPods ?? {}) as Record<string, string>).filter(([name, at]) => {
    const pod = pods.find(({ metadata }) => metadata.name === name)
    return pod && !pod.metadata.deletionTimestamp && (parseInstant(at) ?? 0) + deletionTimeoutMs >= now
  })
  const isGoing = ({ metadata }: Obj) =>
    metadata.deletionTimestamp || disrupted.some(([name]) => name === metadata.name)
  const currentHealthy = pods.filter(pod => !isGoing(pod) && isReady(pod)).length
  const allowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0
  return {
    observedGeneration: budget.metadata.generation,
    ...(disrupted.length > 0 && { disruptedPods: Object.fromEntries(disrupted) }),
    disruptionsAllowed: allowed,
    currentHealthy,
    desiredHealthy,
    expectedPods,
    conditions: withAllowed(old.conditions, now, {
      status: allowed > 0 ? "True" : "False",
      reason: allowed > 0 ? "SufficientPods" : "InsufficientPods",
      message: "",
      observedGeneration: budget.metadata.generation ?? 0,
    }),
  }
}

/** minAvailable as a number is compared with the existing pods; all else needs the desired number. */
const needsScale = ({ spec }: Obj) => spec.maxUnavailable !== undefined || typeof spec.minAvailable === "string"

type Allowed = { status: string; reason: string; message: string; observedGeneration: number }

function withAllowed(conditions: readonly Json[] = [], now: Instant, next: Allowed): Json[] {
  const current = findCondition(conditions, "DisruptionAllowed")
  const since = current?.status === next.status ? current.lastTransitionTime : undefined
  const condition = { type: "DisruptionAllowed", ...next, lastTransitionTime: since ?? formatInstant(now) }
  return current
    ? conditions.map(each => (each.type === "DisruptionAllowed" ? condition : each))
    : [...conditions, condition]
}

/** Updates the status of PodDisruptionBudgets. Reads them, Pods and the Pods' controllers; writes their status. */
export function disruptionController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const budgets = servedKind(storage, "policy/v1", "PodDisruptionBudget")
  const podKind = servedKind(storage, "v1", "Pod")
  const record = createRecorder(world, "controllermanager")

  const selected = ({ metadata, spec }: Obj) =>
    storage
      .list(podKind, { namespace: metadata.namespace })
      .items.filter(pod => selects(spec.selector, pod.metadata.labels))

  /** Follows a ReplicaSet to its Deployment; for other controllers reads the scale subresource. */
  function scaleOf(pods: readonly Obj[]): Scale {
    const counts = new Map<string, number>()
    for (const pod of pods) {
      const { namespace, name } = pod.metadata
      let owner = controllerOf(pod)
      if (!owner || counts.has(owner.uid)) continue
      let kind = storage.kind(owner.apiVersion, owner.kind)
      let object = kind && storage.find(kind, { namespace, name: owner.name })
      const above = object && owner.kind === "ReplicaSet" ? controllerOf(object) : undefined
      if (above?.kind === "Deployment") {
        owner = above
        kind = storage.kind(above.apiVersion, above.kind)
        object = kind && storage.find(kind, { namespace, name: above.name })
      }
      if (!kind || !object || object.metadata.uid !== owner.uid)
        return { trouble: `found no controllers for pod ${JSON.stringify(name)}` }
      if (!kind.subresources.includes("scale")) {
        const resource = kind.group ? `${kind.plural}.${kind.group}` : kind.plural
        return { trouble: `${resource} does not implement the scale subresource` }
      }
      const path = (kind.scale?.spec ?? ".spec.replicas").split(".").filter(Boolean)
      counts.set(owner.uid, path.reduce((value: Json, field) => value?.[field], object) ?? 0)
    }
    return { count: [...counts.values()].reduce((total, count) => total + count, 0) }
  }

  return loop(world, {
    name: "disruption-controller",
    watches: [
      { apiVersion: "policy/v1", kind: "PodDisruptionBudget", keys: ({ object }) => [keyOf(object)] },
      {
        apiVersion: "v1",
        kind: "Pod",
        keys: ({ object, before }) =>
          storage
            .list(budgets, { namespace: object.metadata.namespace })
            .items.filter(
              ({ spec }) =>
                selects(spec.selector, object.metadata.labels) ||
                (before && selects(spec.selector, before.metadata.labels)),
            )
            .map(keyOf),
      },
    ],
    reconcile(key) {
      const budget = storage.find(budgets, nameOf(key))
      if (!budget || budget.metadata.deletionTimestamp) return undefined
      const pods = selected(budget)
      if (pods.length === 0) record(budget, "Normal", "NoPods", "No matching pods found")
      const scale = needsScale(budget) ? scaleOf(pods) : { count: pods.length }
      if ("trouble" in scale) {
        const message = `Failed to calculate the number of expected pods: ${scale.trouble}`
        record(budget, "Warning", "CalculateExpectedPodCountFailed", message)
      }
      const now = clock.now()
      const next = status({ budget, pods, scale, now })
      if (!same(next, budget.status))
        storage.update(budgets, { ...budget, status: next }, { ...manager, subresource: "status" })
      const waits = Object.values((next.disruptedPods ?? {}) as Record<string, string>)
      if (waits.length === 0) return undefined
      return Math.min(...waits.map(at => (parseInstant(at) ?? now) + deletionTimeoutMs + 1 - now))
    },
  })
}
