import { alternateImageSourceMetrics } from "#controllers/alternateimagesource/metrics.ts"
import type { Dashboard, Query } from "./dashboard.ts"

type Metric = keyof typeof alternateImageSourceMetrics

const chosen = '{namespace=~"$namespace", alternateimagesource=~"$alternateimagesource"}'
const name = "{{namespace}}/{{alternateimagesource}}"

/** After a hand-over two processes export the same for a moment; the labels of the process are left out. */
const show = (metric: Metric, legend: string): Query => ({
  expr: `max by (${alternateImageSourceMetrics[metric].labels.join(", ")}) (aim_${metric}${chosen})`,
  legend,
})

/** How many in the time between two points, over all processes. */
const added = (metric: Metric, by: string, legend: string, which = chosen): Query => ({
  expr: `sum by (${by}) (increase(aim_${metric}${which}[$__rate_interval]))`,
  legend,
})

export const alternateImageSourceDashboard: Dashboard = {
  uid: "aim-alternateimagesource",
  title: "AutoImageManager: AlternateImageSources",
  variables: [
    { name: "namespace", label: "Namespace", metric: "aim_alternateimagesource_incidents" },
    { name: "alternateimagesource", label: "AlternateImageSource", metric: "aim_alternateimagesource_incidents" },
  ],
  rows: [
    {
      title: "Now",
      panels: [
        {
          title: "Cannot be pulled",
          description: "Containers of workloads that cannot be pulled, and run from nowhere else yet.",
          type: "stat",
          width: 12,
          queries: [show("alternateimagesource_incidents", name)],
        },
        {
          title: "Run from elsewhere",
          description: "Containers of workloads that run from another repository than their workload names.",
          type: "stat",
          width: 12,
          queries: [show("alternateimagesource_switched", name)],
        },
        {
          title: "Over time",
          description: "An outage shows as a peak of what cannot be pulled, and then as what runs from elsewhere.",
          type: "timeseries",
          width: 24,
          queries: [
            show("alternateimagesource_incidents", `${name} cannot be pulled`),
            show("alternateimagesource_switched", `${name} from elsewhere`),
          ],
        },
      ],
    },
    {
      title: "What was done",
      panels: [
        {
          title: "Switches by reason",
          description: "To another repository, by why the one before could not serve.",
          type: "timeseries",
          width: 12,
          queries: [added("alternateimagesource_switches_total", "reason", "{{reason}}")],
        },
        {
          title: "Pods repaired",
          description: "Pods that were given another source in place.",
          type: "timeseries",
          width: 12,
          queries: [added("alternateimagesource_repairs_total", "namespace, alternateimagesource", name)],
        },
        {
          title: "Answers of registries",
          description: "To the question whether they have an image, for all namespaces together.",
          type: "timeseries",
          width: 12,
          queries: [added("alternateimagesource_probes_total", "result", "{{result}}", "")],
        },
        {
          title: "Looks per second",
          description: "At an AlternateImageSource, by how they ended.",
          type: "timeseries",
          width: 12,
          unit: "ops",
          queries: [
            {
              expr: 'sum by (result) (rate(controller_runtime_reconcile_total{controller="alternateimagesource"}[$__rate_interval]))',
              legend: "{{result}}",
            },
          ],
        },
      ],
    },
  ],
}
