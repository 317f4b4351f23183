import type { Dashboard, Panel } from "./dashboard.ts"

/** A metric as a controller declares it, without the prefix `aim_`. */
export type Declared = { type: string; labels: readonly string[]; unit: string; help: string }

export type Plain = {
  name: string
  title: string
  controllers: readonly string[]
  /** How a gauge that several processes export becomes one: of leaders the larger, of agents all together. */
  joins: "max" | "sum"
}

/** The dashboard of what has none of its own: a panel for each metric, with a filter for each label. */
export function plainDashboard(plain: Plain, metrics: Record<string, Declared>): Dashboard {
  const { name, title, controllers, joins } = plain
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
      {
        title,
        panels: all.map(([metric, declared]) => panelOf(metric, metric.replace(`${name}_`, ""), declared, joins)),
      },
      { title: "Controller", panels: [reconciles(controllers)] },
    ],
  }
}

function panelOf(metric: string, title: string, declared: Declared, joins: Plain["joins"]): Panel {
  const { type, labels, unit, help } = declared
  const filters = labels.map(label => `${label}=~"$${label}"`).join(", ")
  const chosen = `aim_${metric}${filters && `{${filters}}`}`
  // After a hand-over two processes export the same for a moment; the labels of the process are left out.
  const by = labels.length > 0 ? ` by (${labels.join(", ")})` : ""
  const isCounter = type === "counter"
  const isTime = unit === "unix seconds"
  const value = isCounter ? `sum${by} (increase(${chosen}[$__rate_interval]))` : `${joins}${by} (${chosen})`
  return {
    title: isTime ? `since ${inWords(title.replace("_timestamp_seconds", ""))}` : `${inWords(title)} (${unit})`,
    description: help,
    type: "timeseries",
    width: 12,
    ...(isTime && { unit: "s" }),
    ...(unit === "bytes" && { unit: "bytes" }),
    queries: [
      {
        expr: isTime ? `time() - ${value}` : value,
        legend: labels.map(label => `{{${label}}}`).join(" "),
      },
    ],
  }
}

const inWords = (name: string) => name.replaceAll("_", " ")

const reconciles = (controllers: readonly string[]): Panel => ({
  title: "Looks",
  description: "At an object, by how they ended.",
  type: "timeseries",
  width: 24,
  unit: "ops",
  queries: [
    {
      expr: `sum by (result) (rate(controller_runtime_reconcile_total{controller=~"${controllers.join("|")}"}[$__rate_interval]))`,
      legend: "{{result}}",
    },
  ],
})
