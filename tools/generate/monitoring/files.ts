import { readFile } from "node:fs/promises"
import { kindNames } from "#api/names.ts"
import { virtualClock } from "#runtime/clock.ts"
import { createMetrics } from "#runtime/metrics.ts"
import { type GeneratedFile, inRepository, withPlace, withSections } from "../file.ts"
import { agentMetrics, dashboards, metrics } from "../kinds.generated.ts"
import { code, table } from "../markdown.ts"
import { alerts, rulesFile } from "./alerts.ts"
import { type Dashboard, dashboardFile } from "./dashboard.ts"
import { type Declared, plainDashboard } from "./plain.ts"

const drawn: Record<string, Dashboard> = dashboards
const titleOf = (name: string) => kindNames.find(({ kind }) => kind.toLowerCase() === name)?.kind ?? `the ${name}s`

type Monitored = { metrics: Record<string, Declared>; dashboard: Dashboard }

function ofController([name, metrics]: [name: string, metrics: Record<string, Declared>]): [string, Monitored] {
  const plain = { name, title: titleOf(name), controllers: [name], joins: "max" } as const
  return [name, { metrics, dashboard: drawn[name] ?? plainDashboard(plain, metrics) }]
}

/** The agents are one program: one dashboard shows all that they do, over all nodes. */
function ofAgents(): Monitored {
  const all: Record<string, Declared> = Object.assign({}, ...Object.values(agentMetrics))
  const plain = { name: "agent", title: "agents", controllers: Object.keys(agentMetrics), joins: "sum" } as const
  return { metrics: all, dashboard: plainDashboard(plain, all) }
}

/** The metrics of each controller and of the agents, and the dashboard that shows them. */
export const monitored: Record<string, Monitored> = {
  ...Object.fromEntries(Object.entries<Record<string, Declared>>(metrics).map(ofController)),
  agent: ofAgents(),
}

/** Dashboards, alert rules, and the tables of docs/metrics.md, all from the declared metrics. */
export async function monitoringFiles(): Promise<GeneratedFile[]> {
  const page = inRepository("docs/metrics.md")
  const sections = {
    ...Object.fromEntries(Object.entries(monitored).map(([kind, each]) => [kind, metricTable(each)])),
    process: table(["Metric", "Type", "Meaning"], await processRows()),
    alerts: alertTable(),
  }
  const before = "\n## Every metric of a process\n"
  const placed = Object.keys(monitored).reduce(
    (text, name) => withPlace(text, name, { heading: `Every metric of ${titleOf(name)}`, before }),
    await readFile(page, "utf8"),
  )
  return [
    ...Object.entries(monitored).map(([kind, { dashboard }]) => ({
      path: inRepository(`charts/aim/dashboards/${kind}.json`),
      content: dashboardFile(dashboard),
    })),
    { path: inRepository("charts/aim/rules/aim.yaml"), content: rulesFile() },
    { path: page, content: withSections(placed, sections) },
  ]
}

/** Every metric that an expression names; of a histogram, the metric behind its buckets. */
export const metricsIn = (expr: string): string[] => {
  // Quotes, brackets and `by (…)` hold values, times and labels.
  const bare = expr.replace(/"[^"]*"|\[[^\]]*\]|\b(?:by|on) \([^)]*\)/g, " ").replace(/\{[^}]*\}/g, " ")
  const words = bare.match(/[a-z_][a-z0-9_]*(?!\w|\s*\()/g) ?? []
  return [...new Set(words.filter(word => word.includes("_")).map(word => word.replace(/_bucket$/, "")))]
}

function metricTable({ metrics, dashboard }: { metrics: Record<string, Declared>; dashboard: Dashboard }): string {
  const shownIn = (name: string) => {
    const all = dashboard.rows.flatMap(row => row.panels)
    const panels = all.filter(panel => panel.queries.some(({ expr }) => names(expr, name)))
    const watchers = alerts.filter(({ expr }) => names(expr, name))
    return [...panels.map(({ title }) => title), ...watchers.map(alert => code(alert.name))].join(", ")
  }
  const names = (expr: string, name: string) => metricsIn(expr).includes(name)
  return table(
    ["Metric", "Type", "Labels", "Unit", "Meaning", "Panels and alerts"],
    Object.entries(metrics).map(([name, { type, labels, unit, help }]) => [
      code(`aim_${name}`),
      type,
      labels.map(code).join(", "),
      unit,
      help,
      shownIn(`aim_${name}`),
    ]),
  )
}

/** The metrics of every process: read from the registry itself. */
export async function processRows(): Promise<string[][]> {
  const text = await createMetrics({ clock: virtualClock() }).text()
  return [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$/gm)].map(([, name = "", help = "", type = ""]) => [
    code(name),
    type,
    help,
  ])
}

const alertTable = () =>
  table(
    ["Alert", "Severity", "After", "What to do"],
    alerts.map(({ name, for: lasts, severity, description }) => [
      code(name),
      severity,
      lasts ?? "at once",
      description,
    ]),
  )
