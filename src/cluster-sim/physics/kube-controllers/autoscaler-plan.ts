import type { Instant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"

/** The current value of a metric, in the unit of its target: percent for a utilization. Undefined: no value. */
export type Measured = (autoscaler: Obj, metric: Json) => number | undefined

export type Recommendation = { readonly at: Instant; readonly replicas: number }

export type Snapshot = {
  autoscaler: Obj
  /** What the target wants now. */
  replicas: number
  measure: Measured
  /** Earlier recommendations, without this one. */
  earlier: readonly Recommendation[]
  now: Instant
}

export type Said = { type: string; status: "True" | "False"; reason: string; message: string }

export type Plan = {
  /** The wanted size. */
  desired: number
  /** Set where the target is to be written. */
  why?: string
  conditions: Said[]
  /** What the metrics recommend, before it is bounded. */
  recommended?: number
}

const tolerance = 0.1
const downWindowMs = 300_000

/** Decides the size of one target, as the HPA controller does: bounds first, then metrics, stabilised and bounded. */
export function plan(snapshot: Snapshot): Plan {
  const { autoscaler, replicas } = snapshot
  const { minReplicas = 1, maxReplicas } = autoscaler.spec
  const able = said(
    "AbleToScale",
    true,
    "SucceededGetScale",
    "the HPA controller was able to get the target's current scale",
  )
  if (replicas === 0) {
    const message = "scaling is disabled since the replica count of the target is zero"
    return { desired: 0, conditions: [able, said("ScalingActive", false, "ScalingDisabled", message)] }
  }
  if (replicas > maxReplicas) return rescaled(maxReplicas, "Current number of replicas above Spec.MaxReplicas", [able])
  if (replicas < minReplicas) return rescaled(minReplicas, "Current number of replicas below Spec.MinReplicas", [able])
  return byMetrics(snapshot, able)
}

const said = (type: string, isTrue: boolean, reason: string, message: string): Said => ({
  type,
  status: isTrue ? "True" : "False",
  reason,
  message,
})

const rescaled = (desired: number, why: string, conditions: Said[], recommended?: number): Plan => ({
  desired,
  why,
  conditions: [
    said(
      "AbleToScale",
      true,
      "SucceededRescale",
      `the HPA controller was able to update the target scale to ${desired}`,
    ),
    ...conditions.filter(({ type }) => type !== "AbleToScale"),
  ],
  ...(recommended !== undefined && { recommended }),
})

function byMetrics(snapshot: Snapshot, able: Said): Plan {
  const { autoscaler, replicas, measure } = snapshot
  const proposals = (autoscaler.spec.metrics ?? []).flatMap((metric: Json) => {
    const value = measure(autoscaler, metric)
    return value === undefined ? [] : [{ name: nameOf(metric), replicas: proposed(replicas, value / targetOf(metric)) }]
  })
  // A metric without a value keeps the others from scaling down.
  const isPartial = proposals.length < (autoscaler.spec.metrics ?? []).length
  const best = proposals.toSorted((a: Json, b: Json) => b.replicas - a.replicas)[0]
  if (!best || (isPartial && best.replicas < replicas)) {
    const [first] = autoscaler.spec.metrics ?? []
    const [reason, message] = missing(first)
    return { desired: replicas, conditions: [able, said("ScalingActive", false, reason, message)] }
  }
  const active = `the HPA was able to successfully calculate a replica count from ${best.name}`
  const { size, conditions } = bounded(snapshot, best.replicas)
  const all = [...conditions, said("ScalingActive", true, "ValidMetricFound", active)]
  if (size === replicas) return { desired: size, conditions: all, recommended: best.replicas }
  const why = best.replicas > replicas ? `${best.name} above target` : "All metrics below target"
  return rescaled(size, why, all, best.replicas)
}

const proposed = (replicas: number, ratio: number): number =>
  Math.abs(ratio - 1) <= tolerance ? replicas : Math.ceil(ratio * replicas)

/** The highest of the last five minutes, or of `behavior`'s windows, and within the bounds. */
function bounded(
  { autoscaler, replicas, earlier, now }: Snapshot,
  recommended: number,
): { size: number; conditions: Said[] } {
  const { minReplicas = 1, maxReplicas, behavior } = autoscaler.spec
  const downMs = (behavior?.scaleDown?.stabilizationWindowSeconds ?? downWindowMs / 1000) * 1000
  const upMs = (behavior?.scaleUp?.stabilizationWindowSeconds ?? 0) * 1000
  const within = (ms: number) => [...earlier.filter(({ at }) => at > now - ms).map(each => each.replicas), recommended]
  const ceiling = Math.max(...within(downMs))
  const floor = Math.min(...within(upMs))
  // Up no faster than the lowest of its window, down no faster than the highest of its own.
  let stable = Math.min(Math.max(replicas, floor), ceiling)
  if (behavior?.scaleDown?.selectPolicy === "Disabled") stable = Math.max(stable, replicas)
  if (behavior?.scaleUp?.selectPolicy === "Disabled") stable = Math.min(stable, replicas)
  const able =
    stable === recommended
      ? said("AbleToScale", true, "ReadyForNewScale", "recommended size matches current size")
      : said(
          "AbleToScale",
          true,
          "ScaleDownStabilized",
          "recent recommendations were higher than current one, applying the highest recent recommendation",
        )
  const fastest = Math.max(2 * replicas, 4)
  const most = Math.min(maxReplicas, fastest)
  const size = Math.min(Math.max(stable, minReplicas), most)
  return { size, conditions: [able, limited(stable, { minReplicas, most, isFast: fastest < maxReplicas })] }
}

function limited(
  stable: number,
  { minReplicas, most, isFast }: { minReplicas: number; most: number; isFast: boolean },
): Said {
  if (stable < minReplicas)
    return said(
      "ScalingLimited",
      true,
      "TooFewReplicas",
      "the desired replica count is less than the minimum replica count",
    )
  if (stable <= most)
    return said("ScalingLimited", false, "DesiredWithinRange", "the desired count is within the acceptable range")
  return isFast
    ? said(
        "ScalingLimited",
        true,
        "ScaleUpLimit",
        "the desired replica count is increasing faster than the maximum scale rate",
      )
    : said(
        "ScalingLimited",
        true,
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
      )
}

const sourceOf = ({ resource, containerResource, pods, object, external }: Json): Json =>
  resource ?? containerResource ?? pods ?? object ?? external ?? {}

const nameOf = (metric: Json): string => {
  const { name, metric: named, target } = sourceOf(metric)
  const isUtilization = target?.type === "Utilization"
  if (metric.type === "Resource")
    return isUtilization ? `${name} resource utilization (percentage of request)` : `${name} resource`
  return `${metric.type.toLowerCase()} metric ${named?.name ?? name}`
}

function targetOf(metric: Json): number {
  const { averageUtilization, averageValue, value } = sourceOf(metric).target ?? {}
  return Number(averageUtilization ?? averageValue ?? value ?? 1)
}

/** As without a metrics server. */
function missing(metric: Json): [reason: string, message: string] {
  const { name } = sourceOf(metric ?? {})
  const kind =
    sourceOf(metric ?? {}).target?.type === "Utilization" ? `${name} utilization` : `${name} resource metric value`
  const why = `unable to get metrics for resource ${name}: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)`
  return ["FailedGetResourceMetric", `the HPA was unable to compute the replica count: failed to get ${kind}: ${why}`]
}
