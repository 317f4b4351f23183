import { inPlaceMetrics } from "#controllers/in-place/metrics.ts"
import type { Dashboard, Query } from "./dashboard.ts"

type Metric = keyof typeof inPlaceMetrics

/** After a hand-over two processes export the same for a moment; the labels of the process are left out. */
const select = (metric: Metric) =>
  `max by (${inPlaceMetrics[metric].labels.join(", ")}) (aim_${metric}{namespace=~"$namespace", kind=~"$kind"})`

/** How many in the time between two points, over all processes. */
const added = (metric: Metric, by: string): Query => ({
  expr: `sum by (${by}) (increase(aim_${metric}{kind=~"$kind"}[$__rate_interval]))`,
  legend: `{{${by}}}`,
})

const quantile = (share: number): Query => ({
  expr: `histogram_quantile(${share}, sum by (step, le) (rate(aim_in_place_pod_step_seconds_bucket{kind=~"$kind"}[$__rate_interval])))`,
  legend: `{{step}} ${100 * share} %`,
})

export const inPlaceDashboard: Dashboard = {
  uid: "aim-in-place",
  title: "AutoImageManager: updates in place",
  variables: [
    { name: "namespace", label: "Namespace", metric: "aim_in_place_held" },
    { name: "kind", label: "Kind", metric: "aim_in_place_released_total" },
  ],
  rows: [
    {
      title: "Now",
      panels: [
        {
          title: "Held workloads",
          description: "By what their update does or waits for.",
          type: "timeseries",
          width: 12,
          queries: [
            {
              expr: `sum by (kind, reason) (${select("in_place_held")})`,
              legend: "{{kind}} {{reason}}",
            },
          ],
        },
        {
          title: "Pods of held workloads",
          description: "Restarting ones have their new image and are not proven yet.",
          type: "timeseries",
          width: 12,
          queries: [{ expr: `sum by (state) (${select("in_place_pods")})`, legend: "{{state}}" }],
        },
        {
          title: "Held for longest",
          description: "Since this process has seen the oldest hold of each namespace.",
          type: "bargauge",
          width: 24,
          unit: "s",
          queries: [
            {
              expr: `time() - ${select("in_place_oldest_held_timestamp_seconds")}`,
              legend: "{{namespace}} {{kind}}",
            },
          ],
        },
      ],
    },
    {
      title: "What was done",
      panels: [
        {
          title: "Pods by result",
          description: "Updated, went back, or failed with the reason.",
          type: "timeseries",
          width: 12,
          queries: [added("in_place_pod_updates_total", "result")],
        },
        {
          title: "Workloads given back",
          description: "To their own controller, by how the update ended.",
          type: "timeseries",
          width: 12,
          queries: [added("in_place_released_total", "reason")],
        },
        {
          title: "Seconds of a pod, by step",
          description: "Half of the pods and nine of ten take no longer.",
          type: "timeseries",
          width: 12,
          unit: "s",
          queries: [quantile(0.5), quantile(0.9)],
        },
        {
          title: "Answers of budgets",
          description: "To the last question before a pod is touched. Refused: a PodDisruptionBudget has no room.",
          type: "timeseries",
          width: 12,
          queries: [added("in_place_budget_answers_total", "answer")],
        },
        {
          title: "Looks per second",
          description: "At a held workload, by how they ended.",
          type: "timeseries",
          width: 24,
          unit: "ops",
          queries: [
            {
              expr: 'sum by (result) (rate(controller_runtime_reconcile_total{controller="in-place"}[$__rate_interval]))',
              legend: "{{result}}",
            },
          ],
        },
      ],
    },
  ],
}
