import type { FailureReason, Phase, ServiceImage, ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { endOfOperation } from "#core/fleet/rollout-state.ts"
import { parseInstant } from "#lib/instant.ts"
import type { Labels, MetricFactory } from "#runtime/metrics.ts"
import { seriesOf } from "#runtime/series.ts"

type Declared = {
  type: "gauge" | "counter"
  /** The unit of the number, or what it stands for. */
  unit: "instances" | "pods" | "unix seconds" | "0 or 1" | "priority" | "stamps" | "rollouts" | "checks"
  labels: readonly string[]
  help: string
}

const overall = { type: "gauge", labels: ["serviceimage"] } as const
const perTier = { type: "gauge", labels: ["serviceimage", "tier"] } as const
const instances = { unit: "instances" } as const

/** Of tiers with an analysis. */
const judgementMetrics = {
  serviceimage_tier_failed_checks: {
    ...perTier,
    unit: "checks",
    help: "Failed checks of the tier's analysis in this upgrade; absent where the tier has none.",
  },
  serviceimage_tier_judged_timestamp_seconds: {
    ...perTier,
    unit: "unix seconds",
    help: "When the tier was last judged by its analysis; absent before.",
  },
  serviceimage_tier_verdict: {
    type: "gauge",
    unit: "0 or 1",
    labels: ["serviceimage", "tier", "verdict"],
    help: "1 for what the last round of the tier's analysis found: Good, BadMetric, HookSaidNo, NoData or MetricError.",
  },
} as const satisfies Record<string, Declared>

/**
 * Every metric of a ServiceImage, without the prefix `aim_`. Documentation, dashboard and alerts are generated from
 * these. A time is a Unix time, and `time() - x` gives the duration: a gauge that had to grow by itself would be wrong
 * between two looks.
 */
export const serviceImageMetrics = {
  serviceimage_instances: { ...overall, ...instances, help: "Objects that are managed." },
  serviceimage_instances_up_to_date: {
    ...overall,
    ...instances,
    help: "Objects at the latest image with every pod. Deleting objects lowers it.",
  },
  serviceimage_instances_to_update: {
    ...overall,
    ...instances,
    help: "Objects that this upgrade still has to bring to the latest image. New ones do not count, so it falls; it rises only where an object falls back.",
  },
  serviceimage_instances_unmanaged: {
    ...overall,
    ...instances,
    help: "Objects left alone because they say manuallySpecifiedImage.",
  },
  serviceimage_instances_regressed: {
    ...overall,
    ...instances,
    help: "Objects that were up to date and are no longer healthy, with the right image.",
  },
  serviceimage_ignored_failures: {
    ...overall,
    ...instances,
    help: "Objects that failed without stopping the upgrade.",
  },
  serviceimage_lost_pods: {
    ...overall,
    unit: "pods",
    help: "Pods on nodes that no longer answer, which may still run another image.",
  },
  serviceimage_old_endpoints: {
    ...overall,
    unit: "pods",
    help: "Pods with another version that a Service led to when the upgrade was complete; absent where none were found.",
  },
  serviceimage_upgrading: {
    ...overall,
    unit: "0 or 1",
    help: "1 from the start of an upgrade to its end, also while it is paused or halted.",
  },
  serviceimage_upgrade_started_timestamp_seconds: {
    ...overall,
    unit: "unix seconds",
    help: "When the current or last upgrade started.",
  },
  serviceimage_upgrade_ended_timestamp_seconds: {
    ...overall,
    unit: "unix seconds",
    help: "When an upgrade was last complete, or had been taken back; absent before the first.",
  },
  serviceimage_stalled: {
    type: "gauge",
    unit: "0 or 1",
    labels: ["serviceimage", "reason"],
    help: "1 while it does not go on without a person, with the reason of the condition Stalled.",
  },
  serviceimage_current_priority: {
    ...overall,
    unit: "priority",
    help: "The priority being worked; when complete, the lowest.",
  },
  serviceimage_current_priority_started_timestamp_seconds: {
    ...overall,
    unit: "unix seconds",
    help: "When the current priority last changed.",
  },
  serviceimage_current_priority_instances: {
    ...overall,
    ...instances,
    help: "Objects that are managed, in the tiers of the current priority.",
  },
  serviceimage_current_priority_instances_up_to_date: {
    ...overall,
    ...instances,
    help: "Objects at the latest image with every pod, in the tiers of the current priority.",
  },
  serviceimage_current_priority_instances_to_update: {
    ...overall,
    ...instances,
    help: "Objects that this upgrade still has to bring to the latest image, in the tiers of the current priority.",
  },
  serviceimage_current_priority_instances_unmanaged: {
    ...overall,
    ...instances,
    help: "Objects left alone because they say manuallySpecifiedImage, in the tiers of the current priority.",
  },
  serviceimage_current_priority_ignored_failures: {
    ...overall,
    ...instances,
    help: "Objects that failed without stopping the upgrade, in the tiers of the current priority.",
  },
  serviceimage_tier_priority: { ...perTier, unit: "priority", help: "The priority of the tier; higher goes first." },
  serviceimage_tier_instances: { ...perTier, ...instances, help: "Objects of the tier that are managed." },
  serviceimage_tier_instances_updated: {
    ...perTier,
    ...instances,
    help: "Objects of the tier that have the latest image in their spec, up to date or not yet.",
  },
  serviceimage_tier_instances_up_to_date: {
    ...perTier,
    ...instances,
    help: "Objects of the tier at the latest image with every pod.",
  },
  serviceimage_tier_instances_to_update: {
    ...perTier,
    ...instances,
    help: "Objects of the tier that this upgrade still has to bring to the latest image.",
  },
  serviceimage_tier_instances_unmanaged: {
    ...perTier,
    ...instances,
    help: "Objects of the tier left alone because they say manuallySpecifiedImage.",
  },
  serviceimage_tier_instances_regressed: {
    ...perTier,
    ...instances,
    help: "Objects of the tier that were up to date and are no longer healthy, with the right image.",
  },
  serviceimage_tier_ignored_failures: {
    ...perTier,
    ...instances,
    help: "Objects of the tier that failed without stopping the upgrade.",
  },
  serviceimage_tier_failures: {
    type: "gauge",
    ...instances,
    labels: ["serviceimage", "tier", "reason"],
    help: "Objects of the tier that fail, by why.",
  },
  ...judgementMetrics,
  serviceimage_stamps_total: {
    type: "counter",
    unit: "stamps",
    labels: ["serviceimage"],
    help: "Images written to objects by this process.",
  },
  serviceimage_rollouts_total: {
    type: "counter",
    unit: "rollouts",
    labels: ["serviceimage", "outcome"],
    help: "Upgrades that this process saw end, by the phase they ended in. One that halted and went on counts in both.",
  },
} as const satisfies Record<string, Declared>

type Declarations = typeof serviceImageMetrics
export type ServiceImageMetric = keyof Declarations
type NameOf<Type extends Declared["type"]> = {
  [Name in ServiceImageMetric]: Declarations[Name]["type"] extends Type ? Name : never
}[ServiceImageMetric]
type GaugeName = NameOf<"gauge">

/** One tier, counted. */
export type TierNumbers = {
  name: string
  priority: number
  total: number
  updated: number
  upToDate: number
  /** Objects that existed when the operation started and are not up to date yet; none in a finished tier. */
  toUpdate: number
  unmanaged: number
  ignored: number
  regressed: number
  failures: readonly { reason: FailureReason; count: number }[]
}

/**
 * What is published after a plan. Without tiers nothing is known about the objects, and nothing is published about
 * them.
 */
export type MetricsView = {
  serviceImage: { metadata: Pick<ServiceImage["metadata"], "name"> }
  status: ServiceImageStatus
  tiers: readonly TierNumbers[]
}

export type Sample = { metric: GaugeName; labels: Labels; value: number }

/** The tier "" has no name, and Prometheus treats an empty label as none. No tier can have this name. */
const defaultTierLabel = "(default)"

/** Every gauge of one ServiceImage. What is not known is absent rather than zero. */
export function samplesOf({ serviceImage, status, tiers }: MetricsView): Sample[] {
  const labels = { serviceimage: serviceImage.metadata.name }
  const samples: Sample[] = []
  const say = (metric: GaugeName, value: number | undefined, more: Labels = {}) => {
    if (value !== undefined) samples.push({ metric, labels: { ...labels, ...more }, value })
  }

  const stalled = status.conditions.find(({ type }) => type === "Stalled")
  if (stalled) say("serviceimage_stalled", stalled.status === "True" ? 1 : 0, { reason: stalled.reason })
  if (status.operation) say("serviceimage_upgrading", underWay.has(status.operation.phase) ? 1 : 0)
  say("serviceimage_upgrade_started_timestamp_seconds", unixSeconds(status.startedAt))
  say("serviceimage_upgrade_ended_timestamp_seconds", unixSeconds(endOfOperation(status) ?? status.completedAt))
  if (tiers.length === 0) return samples

  const all = total(tiers)
  say("serviceimage_instances", all.total)
  say("serviceimage_instances_up_to_date", all.upToDate)
  say("serviceimage_instances_to_update", all.toUpdate)
  say("serviceimage_instances_unmanaged", all.unmanaged)
  say("serviceimage_instances_regressed", all.regressed)
  say("serviceimage_ignored_failures", all.ignored)
  say("serviceimage_lost_pods", status.lostPods)
  say("serviceimage_old_endpoints", status.oldEndpoints?.pods)

  const current = total(tiers.filter(({ priority }) => priority === status.currentPriority))
  say("serviceimage_current_priority", status.currentPriority)
  say("serviceimage_current_priority_started_timestamp_seconds", unixSeconds(status.priorityStartedAt))
  say("serviceimage_current_priority_instances", current.total)
  say("serviceimage_current_priority_instances_up_to_date", current.upToDate)
  say("serviceimage_current_priority_instances_to_update", current.toUpdate)
  say("serviceimage_current_priority_instances_unmanaged", current.unmanaged)
  say("serviceimage_current_priority_ignored_failures", current.ignored)

  for (const numbers of tiers) {
    const tier = { tier: numbers.name || defaultTierLabel }
    say("serviceimage_tier_priority", numbers.priority, tier)
    say("serviceimage_tier_instances", numbers.total, tier)
    say("serviceimage_tier_instances_updated", numbers.updated, tier)
    say("serviceimage_tier_instances_up_to_date", numbers.upToDate, tier)
    say("serviceimage_tier_instances_to_update", numbers.toUpdate, tier)
    say("serviceimage_tier_instances_unmanaged", numbers.unmanaged, tier)
    say("serviceimage_tier_instances_regressed", numbers.regressed, tier)
    say("serviceimage_tier_ignored_failures", numbers.ignored, tier)
    for (const { reason, count } of numbers.failures) say("serviceimage_tier_failures", count, { ...tier, reason })
  }
  for (const { upgradeTier, analysis } of status.tierStatus) {
    if (!analysis) continue
    const tier = { tier: upgradeTier || defaultTierLabel }
    say("serviceimage_tier_failed_checks", analysis.failedChecks, tier)
    say("serviceimage_tier_judged_timestamp_seconds", unixSeconds(analysis.checkedAt), tier)
    say("serviceimage_tier_verdict", 1, { ...tier, verdict: analysis.verdict })
  }
  return samples
}

/** A tier as the fleet counts it, as far as it is published here. */
type CountedTier = Pick<
  TierNumbers,
  "total" | "updated" | "upToDate" | "toUpdate" | "unmanaged" | "ignored" | "regressed"
> & {
  rule: Pick<TierNumbers, "name">
  troubles: TierNumbers["failures"]
}

export function tierNumbers(view: CountedTier, of: { priority: number; isComplete: boolean }): TierNumbers {
  const { total, updated, upToDate, toUpdate, unmanaged, ignored, regressed, troubles } = view
  return {
    name: view.rule.name,
    priority: of.priority,
    total,
    updated,
    upToDate,
    toUpdate: of.isComplete ? 0 : toUpdate,
    unmanaged,
    ignored,
    regressed,
    failures: troubles,
  }
}

export type ServiceImageMetrics = {
  /** Call after each look. Writes only what has changed, and removes series that no longer occur. */
  publish(view: MetricsView): void
  stamped(serviceImage: string, count: number): void
  /** Removes all series of a deleted ServiceImage. */
  forget(serviceImage: string): void
}

/** The operation whose end is awaited. */
type Followed = { operation?: { id: string; phase: Phase; ends: Set<Phase> } | undefined }

export function createServiceImageMetrics(factory: MetricFactory | undefined): ServiceImageMetrics {
  const series = seriesOf(factory, serviceImageMetrics)
  const followed = new Map<string, Followed>()

  function begin(serviceimage: string): Followed {
    series.add(serviceimage, "serviceimage_stamps_total", { serviceimage }, 0)
    for (const outcome of outcomes)
      series.add(serviceimage, "serviceimage_rollouts_total", { serviceimage, outcome }, 0)
    const fresh: Followed = {}
    followed.set(serviceimage, fresh)
    return fresh
  }

  return {
    publish(view) {
      const { name: serviceimage } = view.serviceImage.metadata
      const before = followed.get(serviceimage) ?? begin(serviceimage)
      series.publish(serviceimage, samplesOf(view))
      for (const outcome of follow(before, view.status))
        series.add(serviceimage, "serviceimage_rollouts_total", { serviceimage, outcome })
    },
    stamped: (serviceimage, count) => series.add(serviceimage, "serviceimage_stamps_total", { serviceimage }, count),
    forget(serviceimage) {
      followed.delete(serviceimage)
      series.forget(serviceimage)
    },
  }
}

const underWay = new Set<Phase>(["InProgress", "Halted", "RollingBack"])
const outcomes: readonly Phase[] = ["Complete", "Halted", "RolledBack", "Superseded"]

/**
 * How operations ended since the last look, each end once: a tier that is reopened and completed again is not another
 * rollout.
 */
function follow(told: Followed, { operation }: ServiceImageStatus): Phase[] {
  const before = told.operation
  if (!operation) return []
  const { id, phase } = operation
  const isNew = before?.id !== id
  const ends = isNew ? new Set<Phase>() : before.ends
  told.operation = { id, phase, ends }
  const found: Phase[] = isNew && before && underWay.has(before.phase) ? ["Superseded"] : []
  if (!outcomes.includes(phase) || ends.has(phase)) return found
  ends.add(phase)
  // An operation that ended before this process first looked was counted by another process.
  return before ? [...found, phase] : found
}

function unixSeconds(time: string | undefined): number | undefined {
  const at = parseInstant(time)
  return at === undefined ? undefined : at / 1000
}

type Totals = Record<"total" | "upToDate" | "toUpdate" | "unmanaged" | "ignored" | "regressed", number>

function total(tiers: readonly TierNumbers[]): Totals {
  const sum = { total: 0, upToDate: 0, toUpdate: 0, unmanaged: 0, ignored: 0, regressed: 0 }
  for (const tier of tiers) for (const name of Object.keys(sum) as (keyof Totals)[]) sum[name] += tier[name]
  return sum
}
