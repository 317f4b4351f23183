import { readFile } from "node:fs/promises"
import { describe, expect, test } from "vitest"
import { parse } from "yaml"
import { inRepository } from "../file.ts"
import { alerts } from "./alerts.ts"
import { type Dashboard, dashboardFile } from "./dashboard.ts"
import { metricsIn, monitored, processRows } from "./files.ts"

const kinds = Object.entries(monitored)
const shownIn = ({ rows }: Dashboard) =>
  rows.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)))
const declaredBy = (metrics: object) => Object.keys(metrics).map(name => `aim_${name}`)
const shown = kinds.flatMap(([, { dashboard }]) => shownIn(dashboard))
const declared = kinds.flatMap(([, { metrics }]) => declaredBy(metrics))

test("reads the metrics out of an expression, and nothing else", () => {
  const cases: Record<string, string[]> = {
    "time() - max by (service_image) (aim_a_seconds) > 86400": ["aim_a_seconds"],
    'sum(rate(aim_b_total{some_label=~"$aim_c"}[$__rate_interval])) / (aim_d > 0)': ["aim_b_total", "aim_d"],
    "histogram_quantile(0.9, sum by (le) (rate(aim_g_seconds_bucket[5m])))": ["aim_g_seconds"],
    "aim_e and on (not_this) min_over_time(aim_f[1d])": ["aim_e", "aim_f"],
  }
  for (const [expr, metrics] of Object.entries(cases)) expect(metricsIn(expr), expr).toEqual(metrics)
})

test("dashboard and alerts ask only for metrics that exist", async () => {
  const known = new Set([...declared, ...(await processRows()).map(([name = ""]) => name.replaceAll("`", ""))])
  for (const expr of [...shown, ...alerts.map(({ expr }) => expr)]) {
    const names = metricsIn(expr)
    expect(names.length, expr).toBeGreaterThan(0)
    expect(
      names.filter(name => !known.has(name)),
      expr,
    ).toEqual([])
  }
})

for (const [kind, { metrics, dashboard }] of kinds)
  test(`every metric of ${kind} has a panel`, () => {
    const asked = new Set(shownIn(dashboard).flatMap(metricsIn))
    expect(declaredBy(metrics).filter(name => !asked.has(name))).toEqual([])
  })

describe.each(kinds)("the dashboard of %s", (_, { dashboard: described }) => {
  const text = dashboardFile(described)
  const dashboard = JSON.parse(text)

  test("leaves the choice of Prometheus to Grafana", () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36)
    expect(dashboard.templating.list).toContainEqual(
      expect.objectContaining({ name: "datasource", type: "datasource" }),
    )
    const uids = [...text.matchAll(/"uid": "([^"]*)"/g)].map(([, uid]) => uid)
    expect(new Set(uids)).toEqual(new Set([dashboard.uid, "$datasource"]))
  })

  test("gives each panel an id and a place of its own", () => {
    const ids = dashboard.panels.map(({ id }: { id: number }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    const taken = new Set<string>()
    for (const { title, gridPos } of dashboard.panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(x).toBeLessThan(24)
          expect(taken.has(`${x} ${y}`), `${title} covers another at ${x} ${y}`).toBe(false)
          taken.add(`${x} ${y}`)
        }
  })

  test("names the queries of a panel apart", () => {
    for (const { title, targets = [] } of dashboard.panels) {
      const names = targets.map(({ refId }: { refId: string }) => refId)
      expect(new Set(names).size, title).toBe(names.length)
    }
  })
})

test("each alert is shown to fire and to stay quiet, in the cases promtool runs", async () => {
  const { tests } = parse(await readFile(inRepository("test/support/alerts.yaml"), "utf8"))
  type Case = { alertname: string; exp_alerts?: unknown[] }
  const cases: Case[] = tests.flatMap((each: { alert_rule_test: Case[] }) => each.alert_rule_test)
  for (const { name } of alerts) {
    const sizes = cases.filter(each => each.alertname === name).map(each => each.exp_alerts?.length ?? 0)
    expect(
      sizes.some(size => size > 0),
      `${name} fires`,
    ).toBe(true)
    expect(sizes.includes(0), `${name} stays quiet`).toBe(true)
  }
})
