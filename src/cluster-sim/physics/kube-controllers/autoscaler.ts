import { formatInstant } from "#lib/instant.ts"
import { scaleOf } from "../../apiserver/scale.ts"
import type { Json, Obj } from "../../object.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { type Measured, type Plan, plan, type Recommendation, type Said } from "./autoscaler-plan.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { manager } from "./owned.ts"
import { same } from "./same.ts"

/** The HPA controller looks at an autoscaler this long after a change, and again and again. */
const periodMs = 15_000
const keptMs = 3_600_000

/** Scales the targets of HorizontalPodAutoscalers. Without a scripted metric only the bounds have an effect. */
export function autoscalerController(world: PhysicsWorld, measure: Measured = () => undefined): Part {
  const { storage, clock } = world
  const autoscalers = servedKind(storage, "autoscaling/v2", "HorizontalPodAutoscaler")
  const record = createRecorder(world, "horizontal-pod-autoscaler")
  const recommendations = new Map<string, Recommendation[]>()

  function reconcile(key: string): number | undefined {
    const autoscaler = storage.find(autoscalers, nameOf(key))
    if (!autoscaler) {
      recommendations.delete(key)
      return undefined
    }
    const { scaleTargetRef } = autoscaler.spec
    const kind = storage.kind(scaleTargetRef.apiVersion ?? "", scaleTargetRef.kind)
    const target = kind && storage.find(kind, { namespace: autoscaler.metadata.namespace, name: scaleTargetRef.name })
    if (!kind?.scale || !target) {
      const plural = kind ? `${kind.plural}.${kind.group}` : scaleTargetRef.kind
      lost(
        autoscaler,
        kind ? `${plural} "${scaleTargetRef.name}" not found` : `no matches for kind "${plural}" in group ""`,
      )
      return periodMs
    }
    const replicas = scaleOf(kind, target).spec.replicas ?? 0
    const now = clock.now()
    // The size at the first look counts as a recommendation, so that a new controller does not scale down at once.
    const earlier = recommendations.get(key) ?? [{ at: now, replicas }]
    const next = plan({ autoscaler, replicas, measure, earlier, now })
    const added = next.recommended === undefined ? [] : [{ at: now, replicas: next.recommended }]
    recommendations.set(key, [...earlier.filter(({ at }) => at > now - keptMs), ...added])
    if (next.why !== undefined) {
      const scale = { ...scaleOf(kind, target), spec: { replicas: next.desired } }
      storage.update(kind, scale, { ...manager, subresource: "scale" })
      record(autoscaler, "Normal", "SuccessfulRescale", `New size: ${next.desired}; reason: ${next.why}`)
    }
    write(autoscaler, statusOf(autoscaler, replicas, next))
    return periodMs
  }

  function lost(autoscaler: Obj, trouble: string) {
    record(autoscaler, "Warning", "FailedGetScale", trouble)
    const message = `the HPA controller was unable to get the target's current scale: ${trouble}`
    const said: Said = { type: "AbleToScale", status: "False", reason: "FailedGetScale", message }
    write(autoscaler, { ...autoscaler.status, conditions: conditionsOf(autoscaler, [said]) })
  }

  function statusOf(autoscaler: Obj, currentReplicas: number, { desired, why, conditions, recommended }: Plan): Json {
    const { lastScaleTime, desiredReplicas } = autoscaler.status ?? {}
    const scaledAt = why === undefined ? lastScaleTime : formatInstant(clock.now())
    const isBlind = conditions.some(({ reason }) => reason === "FailedGetResourceMetric")
    return {
      currentReplicas,
      // Without a metric the last wish stays in the status.
      desiredReplicas: isBlind ? (desiredReplicas ?? 0) : desired,
      currentMetrics: recommended === undefined && !isBlind ? null : measuredOf(autoscaler),
      conditions: conditionsOf(autoscaler, conditions),
      ...(scaledAt && { lastScaleTime: scaledAt }),
    }
  }

  function measuredOf(autoscaler: Obj): Json {
    const all = (autoscaler.spec.metrics ?? []).map((metric: Json) => {
      const value = measure(autoscaler, metric)
      if (metric.type !== "Resource" || value === undefined) return { type: "" }
      return { type: "Resource", resource: { name: metric.resource.name, current: { averageUtilization: value } } }
    })
    return all.length > 0 ? all : null
  }

  function conditionsOf({ status }: Obj, said: readonly Said[]): Json[] {
    const now = formatInstant(clock.now())
    const next: Json[] = [...(status?.conditions ?? [])]
    for (const condition of said) {
      const at = next.findIndex(({ type }) => type === condition.type)
      const old = next[at]
      const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : now
      next.splice(at < 0 ? next.length : at, at < 0 ? 0 : 1, { ...condition, lastTransitionTime })
    }
    return next
  }

  function write(autoscaler: Obj, status: Json) {
    if (same(status, autoscaler.status)) return
    storage.update(autoscalers, { ...autoscaler, status }, { ...manager, subresource: "status" })
  }

  return loop(world, {
    name: "horizontal-pod-autoscaler",
    begin() {
      recommendations.clear()
      return () => {}
    },
    watches: [
      {
        apiVersion: "autoscaling/v2",
        kind: "HorizontalPodAutoscaler",
        keys: ({ object }) => [keyOf(object)],
        delayMs: periodMs,
      },
    ],
    reconcile,
  })
}
