export type Query = { expr: string; legend: string }
export type Panel = {
  title: string
  description: string
  type: "stat" | "timeseries" | "bargauge"
  /** Of 24 columns. */
  width: number
  unit?: "none" | "percent" | "s" | "ops" | "bytes"
  /** The text for a number. */
  words?: Record<string, string>
  queries: readonly Query[]
}
export type Row = { title: string; panels: readonly Panel[] }

const height = 8
const datasource = { type: "prometheus", uid: "$datasource" }

export type Dashboard = {
  uid: string
  title: string
  /** The labels that filter it, each with the metric that has it. */
  variables: readonly { name: string; label: string; metric: string }[]
  rows: readonly Row[]
}

/** A dashboard as Grafana imports it; which Prometheus it asks is chosen there. */
export function dashboardFile({ uid, title, variables, rows }: Dashboard): string {
  const panels: object[] = []
  let y = 0
  const add = (panel: object) => panels.push({ id: panels.length + 1, ...panel })
  for (const { title, panels: inRow } of rows) {
    add({ type: "row", title, collapsed: false, gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] })
    y += 1
    let x = 0
    for (const panel of inRow) {
      if (x + panel.width > 24) {
        x = 0
        y += height
      }
      add({ ...drawn(panel), gridPos: { x, y, w: panel.width, h: height } })
      x += panel.width
    }
    y += height
  }
  const dashboard = {
    uid,
    title,
    description: "Generated from tools/generate/monitoring by npm run generate.",
    tags: ["autoimagemanager"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    timezone: "",
    annotations: { list: [] },
    links: [],
    templating: { list: [datasourceVariable, ...variables.map(variableOf)] },
    panels,
  }
  return `${JSON.stringify(dashboard, null, 2)}\n`
}

const datasourceVariable = {
  name: "datasource",
  label: "Prometheus",
  type: "datasource",
  query: "prometheus",
  refresh: 1,
  hide: 0,
}

const variableOf = ({ name, label, metric }: Dashboard["variables"][number]) => ({
  name,
  label,
  type: "query",
  datasource,
  query: { query: `label_values(${metric}, ${name})`, refId: name },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  allValue: ".*",
  current: { text: "All", value: "$__all" },
  hide: 0,
})

function drawn({ title, description, type, unit = "none", words, queries }: Panel): object {
  const mappings = words
    ? [{ type: "value", options: Object.fromEntries(Object.entries(words).map(([is, text]) => [is, { text }])) }]
    : []
  const instant = type === "timeseries" ? {} : { instant: true, range: false }
  return {
    type,
    title,
    description,
    datasource,
    fieldConfig: {
      defaults: {
        unit,
        mappings,
        ...(unit === "percent" && { min: 0, max: 100 }),
        ...(unit === "none" && { decimals: 0 }),
      },
      overrides: [],
    },
    options: optionsOf(type),
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      datasource,
      editorMode: "code",
      expr,
      legendFormat: legend,
      ...instant,
    })),
  }
}

function optionsOf(type: Panel["type"]): object {
  if (type === "timeseries")
    return { legend: { displayMode: "list", placement: "bottom", showLegend: true }, tooltip: { mode: "multi" } }
  const reduceOptions = { calcs: ["lastNotNull"], fields: "", values: false }
  return type === "stat"
    ? { reduceOptions, colorMode: "none", graphMode: "none", textMode: "value_and_name" }
    : { reduceOptions, displayMode: "basic", orientation: "horizontal" }
}
