import { type ContainerState, limitPrefix } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { seriesOf, sumsOf } from "#runtime/series.ts"

/** Every metric of the agent's stops, without the prefix `aim_`. The node is a label of the scrape. */
export const recreateMetrics = {
  agent_stops_total: {
    type: "counter",
    unit: "containers",
    labels: ["result"],
    help: "Stops of containers that ended: Stopped, Failed where the runtime refused, Unknown where it did not answer.",
  },
  agent_stops_in_progress: {
    type: "gauge",
    unit: "containers",
    labels: [],
    help: "Containers that are being stopped.",
  },
  agent_stops_waiting: {
    type: "gauge",
    unit: "containers",
    labels: [],
    help: "Containers whose stop waits for --stops-per-minute.",
  },
} as const

export type StopResult = "Stopped" | "Failed" | "Unknown"

export type RecreateMetrics = {
  /** Call at each look at a request. */
  looked(key: string, states: readonly ContainerState[]): void
  begun(stop: string): void
  ended(stop: string, result: StopResult): void
  forget(key: string): void
}

/** A key that no request has: with it, a sum over nothing is shown as 0. */
const none = ""
const results: readonly StopResult[] = ["Stopped", "Failed", "Unknown"]

export function createRecreateMetrics(factory: MetricFactory | undefined): RecreateMetrics {
  const { agent_stops_total, ...gauges } = recreateMetrics
  const sums = sumsOf(factory, gauges)
  const series = seriesOf(factory, { agent_stops_total })
  const waiting = (value: number) => ({ metric: "agent_stops_waiting", labels: {}, value }) as const
  const inProgress = (value: number) => ({ metric: "agent_stops_in_progress", labels: {}, value }) as const
  sums.publish(none, [waiting(0), inProgress(0)])
  for (const result of results) series.add(none, "agent_stops_total", { result }, 0) // a rate needs a first zero
  return {
    looked(key, states) {
      const limited = states.filter(({ phase, message }) => phase === "Pending" && message?.startsWith(limitPrefix))
      sums.publish(key, limited.length > 0 ? [waiting(limited.length)] : [])
    },
    begun: stop => sums.publish(`stop ${stop}`, [inProgress(1)]),
    ended(stop, result) {
      sums.forget(`stop ${stop}`)
      series.add(none, "agent_stops_total", { result })
    },
    forget: sums.forget,
  }
}
