import { canaryMetrics } from "#controllers/canary/metrics.ts"
import type { Dashboard, Panel, Query } from "./dashboard.ts"

type Metric = keyof typeof canaryMetrics

/** After a hand-over two processes export the same for a moment; the labels of the process are left out. */
const select = (metric: Metric) =>
  `max by (${canaryMetrics[metric].labels.join(", ")}) (aim_${metric}{namespace=~"$namespace", canary=~"$canary"})`

const canary = "{{namespace}}/{{canary}}"
const over = (title: string, description: string, query: Query, more: Partial<Panel> = {}): Panel => ({
  title,
  description,
  type: "timeseries",
  width: 12,
  queries: [query],
  ...more,
})

/** How many in the time between two points, over all processes. */
const added = (metric: Metric, by: string): Query => ({
  expr: `sum by (${by}) (increase(aim_${metric}[$__rate_interval]))`,
  legend: `{{${by}}}`,
})

export const canaryDashboard: Dashboard = {
  uid: "aim-canary",
  title: "AutoImageManager: Canary",
  variables: [
    { name: "namespace", label: "Namespace", metric: "aim_canary_phase" },
    { name: "canary", label: "Canary", metric: "aim_canary_phase" },
  ],
  rows: [
    {
      title: "Now",
      panels: [
        over("Canaries by phase", "Progressing ones have a run under way.", {
          expr: `sum by (phase) (${select("canary_phase")})`,
          legend: "{{phase}}",
        }),
        over("Waiting for a person", "By why they do not go on by themselves.", {
          expr: `sum by (reason) (${select("canary_stalled")})`,
          legend: "{{reason}}",
        }),
        over(
          "Weight of the new revision",
          "As the route has it.",
          { expr: select("canary_weight"), legend: canary },
          { unit: "percent" },
        ),
        over(
          "Runs under way",
          "For how long.",
          { expr: `time() - ${select("canary_run_started_timestamp_seconds")}`, legend: canary },
          { type: "bargauge", unit: "s" },
        ),
      ],
    },
    {
      title: "Judgement",
      panels: [
        over("Measured values", "At the last round of each metric.", {
          expr: select("canary_metric_value"),
          legend: `${canary} {{metric}}`,
        }),
        over("Verdicts that are not good", "Bad counts to the threshold; NoData and Error hold the weight.", {
          expr: `sum by (namespace, canary, metric, verdict) (${select("canary_metric_verdict").replace("{", '{verdict!="Good", ')})`,
          legend: `${canary} {{metric}} {{verdict}}`,
        }),
        over("Failed checks", "Of the run that is under way.", {
          expr: select("canary_failed_checks"),
          legend: canary,
        }),
        over(
          "Seconds of the last run",
          "From its start to its end.",
          { expr: select("canary_last_run_duration_seconds"), legend: canary },
          { unit: "s" },
        ),
      ],
    },
    {
      title: "What was done",
      panels: [
        over("Runs by result", "Over all Canaries.", added("canary_runs_total", "result")),
        over("Alerts and event hooks", "Failed ones delay nothing.", added("canary_alerts_total", "result")),
        over(
          "Looks per second",
          "At a Canary, by how they ended.",
          {
            expr: 'sum by (result) (rate(controller_runtime_reconcile_total{controller="canary"}[$__rate_interval]))',
            legend: "{{result}}",
          },
          { width: 24, unit: "ops" },
        ),
      ],
    },
  ],
}
