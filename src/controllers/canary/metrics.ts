import { type Canary, type CanaryStatus, results } from "#api/v1alpha1/canary/index.ts"
import { type Strategy, strategyOf } from "#core/canary/steps.ts"
import { parseInstant } from "#lib/instant.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { nameOf } from "#runtime/resource.ts"
import { type Sample, seriesOf } from "#runtime/series.ts"

const ofCanary = { type: "gauge", labels: ["namespace", "canary"] } as const

/**
 * Every metric of Canaries, without the prefix `aim_`. A Canary at rest has two or three series; those of a run end with
 * it. What a run measures has the names of the metrics of its spec, which the schema limits.
 */
export const canaryMetrics = {
  canary_phase: {
    type: "gauge",
    unit: "0 or 1",
    labels: ["namespace", "canary", "phase"],
    help: "1 for the phase that the Canary is in; the other phases are absent.",
  },
  canary_stalled: {
    type: "gauge",
    unit: "0 or 1",
    labels: ["namespace", "canary", "reason"],
    help: "1 for a Canary that does not go on without a person, by why; otherwise absent.",
  },
  canary_weight: {
    ...ofCanary,
    unit: "percent",
    help: "Requests that go to the new revision, as the route has it; absent without a run.",
  },
  canary_failed_checks: {
    ...ofCanary,
    unit: "checks",
    help: "Checks of the run that have failed; absent without a run.",
  },
  canary_run_started_timestamp_seconds: {
    ...ofCanary,
    unit: "unix seconds",
    help: "When the run started; absent without one.",
  },
  canary_last_run_duration_seconds: {
    ...ofCanary,
    unit: "seconds",
    help: "How long the last run took, from its start to its end.",
  },
  canary_metric_value: {
    type: "gauge",
    unit: "of the metric",
    labels: ["namespace", "canary", "metric"],
    help: "What a metric of the run had at its last round; absent without a number.",
  },
  canary_metric_verdict: {
    type: "gauge",
    unit: "0 or 1",
    labels: ["namespace", "canary", "metric", "verdict"],
    help: "1 for the last verdict on a metric of the run: Good, Bad, NoData or Error.",
  },
  canary_runs_total: {
    type: "counter",
    unit: "runs",
    labels: ["strategy", "result"],
    help: "Runs that this process saw end, by their result.",
  },
  canary_alerts_total: {
    type: "counter",
    unit: "alerts",
    labels: ["result"],
    help: "Alerts and event hooks, by whether they were accepted: sent or failed.",
  },
} as const

type Gauge = Exclude<keyof typeof canaryMetrics, `${string}_total`>

export type CanaryMetrics = {
  /** Call with each status that was reported. `canary` has the one that it replaced. */
  publish(key: string, canary: Canary, status: CanaryStatus): void
  forget(key: string): void
}

const strategies: readonly Strategy[] = ["Weighted", "HeaderOrCookie", "BlueGreen"]
/** One series for all Canaries together. */
const all = ""

export function createCanaryMetrics(factory: MetricFactory | undefined): CanaryMetrics {
  const { canary_alerts_total: _, ...ofRuns } = canaryMetrics
  const series = seriesOf(factory, ofRuns)
  // A rate needs a first zero.
  for (const strategy of strategies)
    for (const result of Object.keys(results)) series.add(all, "canary_runs_total", { strategy, result }, 0)
  return {
    publish(key, { spec, status: before }, status) {
      series.publish(key, samplesOf(key, status))
      const [ended] = status.history
      if (ended && ended.id !== before?.history?.[0]?.id)
        series.add(all, "canary_runs_total", { strategy: strategyOf(spec.analysis), result: ended.result })
    },
    forget: key => series.forget(key),
  }
}

function samplesOf(key: string, { phase, conditions, run, history }: CanaryStatus): Sample<Gauge>[] {
  const { namespace = "", name: canary } = nameOf(key)
  const samples: Sample<Gauge>[] = []
  const say = (metric: Gauge, value: number | undefined, more: Record<string, string> = {}) => {
    if (value !== undefined) samples.push({ metric, labels: { namespace, canary, ...more }, value })
  }
  if (phase) say("canary_phase", 1, { phase })
  const stalled = conditionOf(conditions, "Stalled")
  if (stalled?.status === "True") say("canary_stalled", 1, { reason: stalled.reason })
  const [last] = history
  say("canary_last_run_duration_seconds", last && secondsBetween(last.startedAt, last.endedAt))
  if (!run) return samples
  say("canary_weight", run.weight)
  say("canary_failed_checks", run.failedChecks)
  say("canary_run_started_timestamp_seconds", (parseInstant(run.startedAt) ?? 0) / 1000)
  for (const { name: metric, value, verdict } of run.metrics) {
    say("canary_metric_value", value === undefined ? undefined : Number(value), { metric })
    say("canary_metric_verdict", 1, { metric, verdict })
  }
  return samples
}

function secondsBetween(from: string, to: string): number | undefined {
  const [start, end] = [parseInstant(from), parseInstant(to)]
  return start === undefined || end === undefined ? undefined : Math.max(0, end - start) / 1000
}
