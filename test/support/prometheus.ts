import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { type Json, until } from "#tools/kube/api.ts"
import { findProgram, run } from "#tools/kube/command.ts"
import { preparePackages } from "#tools/kube/packages.ts"
import { askPrometheus, type Prometheus, prometheusArguments, prometheusData } from "#tools/kube/prometheus.ts"
import { unusedPort } from "./ports.ts"
import { startProgram } from "./program.ts"

export const preparePrometheus = () =>
  preparePackages({ prometheus: true, say: line => process.stderr.write(`prometheus: ${line}\n`) })

/** Whether Prometheus' own linter accepts what a process on loopback serves. */
export const checkMetrics = async (port: number): Promise<void> =>
  checkMetricsText(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())

/** Whether Prometheus' own linter accepts names, units and help. */
export async function checkMetricsText(served: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "aim-metrics-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, "metrics"), served)
  await run("sh", ["-c", 'promtool check metrics <"$0"', join(folder, "metrics")])
}

/** A real Prometheus that scrapes one process every second; it and its data go when the test ends. */
export async function startPrometheus({ scrape, rules }: { scrape: number; rules: string }): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "aim-prometheus-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const config = {
    rule_files: [rules],
    scrape_configs: [{ job_name: "aim", static_configs: [{ targets: [`127.0.0.1:${scrape}`] }] }],
  }
  return serve(folder, config)
}

/** A real Prometheus that has these samples and scrapes nothing; a query is asked as of an instant. */
export async function prometheusWith(openMetrics: string): Promise<(query: string, at: number) => Promise<Json>> {
  const folder = mkdtempSync(join(tmpdir(), "aim-prometheus-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const samples = join(folder, "samples")
  writeFileSync(samples, openMetrics)
  await run("promtool", ["tsdb", "create-blocks-from", "openmetrics", samples, prometheusData(folder)])
  const { get } = await serve(folder, {})
  return (query, at) => get(`/api/v1/query?query=${encodeURIComponent(query)}&time=${at / 1000}`)
}

async function serve(folder: string, config: object): Promise<Prometheus> {
  const listen = `127.0.0.1:${await unusedPort()}`
  startProgram(findProgram("prometheus")!, prometheusArguments({ folder, config, listen }))
  const prometheus = askPrometheus(`http://${listen}`)
  await until("Prometheus to be ready", prometheus.isReady)
  return prometheus
}
