import type { Dashboard, Panel } from "./dashboard.ts"

/** A metric as a controller declares it, without the prefix `aim_`. */
export type Declared = { type: string; labels: readonly string[]; unit: string; help: string }

/** The dashboard of a controller that has none of its own: a panel for each metric, with a filter for each label. */
export function plainDashboard(name: string, title: string, metrics: Record<string, Declared>): Dashboard {
  const all = Object.entries(metrics)
  const labels = [...new Set(all.flatMap(([, { labels }]) => labels))]
  return {
    uid: `aim-${name}`,
    title: `AutoImageManager: ${title}`,
    variables: labels.map(label => ({
      name: label,
      label,
      metric: `aim_${all.find(([, metric]) => metric.labels.includes(label))![0]}`,
    })),
    rows: [
      { title, panels: all.map(([metric, declared]) => panelOf(metric, metric.replace(`${name}_`, ""), declared)) },
      { title: "Controller", panels: [reconciles(name)] },
    ],
  }
}

function panelOf(metric: string, title: string, { type, labels, unit, help }: Declared): Panel {
  const chosen = `aim_${metric}{${labels.map(label => `${label}=~"$${label}"`).join(", ")}}`
  // After a hand-over two processes export the same for a moment; the labels of the process are left out.
  const by = labels.length > 0 ? ` by (${labels.join(", ")})` : ""
  const isCounter = type === "counter"
  return {
    title: `${title.replaceAll("_", " ")} (${unit})`,
    description: help,
    type: "timeseries",
    width: 12,
    queries: [
      {
        expr: isCounter ? `sum${by} (increase(${chosen}[$__rate_interval]))` : `max${by} (${chosen})`,
        legend: labels.map(label => `{{${label}}}`).join(" "),
      },
    ],
  }
}

const reconciles = (name: string): Panel => ({
  title: "Looks",
  description: "At an object, by how they ended.",
  type: "timeseries",
  width: 24,
  unit: "ops",
  queries: [
    {
      expr: `sum by (result) (rate(controller_runtime_reconcile_total{controller="${name}"}[$__rate_interval]))`,
      legend: "{{result}}",
    },
  ],
})
