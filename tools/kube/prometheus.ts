import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Json } from "./api.ts"

type Series = { labels: Record<string, string>; value: number }

/** What is asked of a running Prometheus. */
export type Prometheus = {
  readonly url: string
  /** What an expression gives now. After a scrape that failed, on a busy machine, it gives nothing until the next. */
  query(expr: string): Promise<Series[]>
  /** Every value that was scraped of the one series a selector matches, the oldest first. */
  scraped(selector: string, since: Date): Promise<number[]>
  get(path: string): Promise<Json>
  isReady(): Promise<boolean>
}

/** Where its data lies. */
export const prometheusData = (folder: string) => join(folder, "prometheus")

/** The words after the program's name. It scrapes and evaluates every second, and its data goes with the folder. */
export function prometheusArguments(options: { folder: string; config: object; listen: string }): string[] {
  const { folder, config, listen } = options
  const file = join(folder, "prometheus.yml")
  const everySecond = { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" }
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ global: everySecond, ...config }))
  return [
    `--config.file=${file}`,
    `--storage.tsdb.path=${prometheusData(folder)}`,
    // Samples of a simulated cluster have the times of its clock.
    "--storage.tsdb.retention.time=100y",
    `--web.listen-address=${listen}`,
    "--log.level=warn",
  ]
}

/** Speaks with the Prometheus at this URL. */
export function askPrometheus(url: string): Prometheus {
  async function get(path: string): Promise<Json> {
    const answer = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(10_000) })
    const { status, data, error } = (await answer.json()) as Json
    if (status !== "success") throw new Error(`asking Prometheus for ${path}: ${error}`)
    return data
  }
  const ask = (expr: string) => get(`/api/v1/query?query=${encodeURIComponent(expr)}`)
  return {
    url,
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
    isReady: () =>
      fetch(`${url}/-/ready`, { signal: AbortSignal.timeout(10_000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
  }
}
