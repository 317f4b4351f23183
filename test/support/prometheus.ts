import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { stringify } from "yaml"
import { type Json, until } from "#tools/kube/api.ts"
import { findProgram, run } from "#tools/kube/command.ts"
import { preparePackages } from "#tools/kube/packages.ts"
import { unusedPort } from "./ports.ts"
import { startProgram } from "./program.ts"

type Series = { labels: Record<string, string>; value: number }

export type Prometheus = {
  /** What an expression gives now. After a scrape that failed, on a busy machine, it gives nothing until the next. */
  query(expr: string): Promise<Series[]>
  /** Every value that was scraped of the one series a selector matches, the oldest first. */
  scraped(selector: string, since: Date): Promise<number[]>
  get(path: string): Promise<Json>
}

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

/** A real Prometheus that has these samples and scrapes nothing; a query is asked as of an instant. */
export async function prometheusWith(openMetrics: string): Promise<(query: string, at: number) => Promise<Json>> {
  const folder = mkdtempSync(join(tmpdir(), "aim-prometheus-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string) => join(folder, name)
  writeFileSync(file("samples"), openMetrics)
  writeFileSync(file("prometheus.yml"), "{}")
  await run("promtool", ["tsdb", "create-blocks-from", "openmetrics", file("samples"), file("data")])
  const get = await serve(file("prometheus.yml"), file("data"))
  return (query, at) => get(`/api/v1/query?query=${encodeURIComponent(query)}&time=${at / 1000}`)
}

/** A real Prometheus that scrapes one process every second; it and its data go when the test ends. */
export async function startPrometheus({ scrape, rules }: { scrape: number; rules: string }): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "aim-prometheus-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: [rules],
    scrape_configs: [{ job_name: "aim", static_configs: [{ targets: [`127.0.0.1:${scrape}`] }] }],
  }
  writeFileSync(join(folder, "prometheus.yml"), stringify(config))
  const get = await serve(join(folder, "prometheus.yml"), join(folder, "data"))
  const ask = (expr: string) => get(`/api/v1/query?query=${encodeURIComponent(expr)}`)

  return {
    get,
    async query(expr) {
      const { result } = await ask(expr)
      return result.map(({ metric, value }: Json) => ({ labels: metric, value: Number(value[1]) }))
    },
    async scraped(selector, since) {
      const seconds = Math.ceil((Date.now() - since.getTime()) / 1000) + 1
      const { result } = await ask(`${selector}[${seconds}s]`)
      if (result.length !== 1) throw new Error(`${selector} matches ${result.length} series`)
      return result[0].values
        .filter(([at]: [number, string]) => at * 1000 >= since.getTime())
        .map(([, value]: [number, string]) => Number(value))
    },
  }
}

/** Starts it, and gives what asks it. */
async function serve(config: string, data: string): Promise<Prometheus["get"]> {
  const port = await unusedPort()
  startProgram(findProgram("prometheus")!, [
    `--config.file=${config}`,
    `--storage.tsdb.path=${data}`,
    "--storage.tsdb.retention.time=100y",
    `--web.listen-address=127.0.0.1:${port}`,
    "--log.level=warn",
  ])
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until("Prometheus to be ready", isReady)
  return async path => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(10_000) })
    const { status, data: found, error } = (await answer.json()) as Json
    if (status !== "success") throw new Error(`asking Prometheus for ${path}: ${error}`)
    return found
  }
}
