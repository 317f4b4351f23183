import { pullFailureReasons } from "#api/v1alpha1/pull-fields.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { seriesOf } from "#runtime/series.ts"
import type { Attempt, TagState } from "./state.ts"

/** Every metric of the agent's pulls, without the prefix `aim_`. The node is a label of every metric of the process. */
export const pullMetrics = {
  agent_pulls_total: {
    type: "counter",
    unit: "pulls",
    labels: ["result"],
    help: "Ended attempts to pull an image: Present, the reason of the failure, or Unknown where the runtime did not answer.",
  },
  agent_pulled_bytes_total: {
    type: "counter",
    unit: "bytes",
    labels: [],
    help: "Size of the images that were pulled, as the runtime reports it. Layers that were there before count too.",
  },
  agent_pulls_in_progress: { type: "gauge", unit: "pulls", labels: [], help: "Pulls that are under way." },
  agent_images: {
    type: "gauge",
    unit: "images",
    labels: ["phase"],
    help: "Images that the node is asked for, by phase: Waiting, Pulling, Succeeded or Failed.",
  },
} as const

export type PullMetrics = {
  /** Call at each look. */
  looked(states: ReadonlyMap<string, TagState>, inProgress: number): void
  ended(attempt: Attempt): void
}

const node = "the node"
const phases: readonly TagState["phase"][] = ["Waiting", "Pulling", "Succeeded", "Failed"]

export function createPullMetrics(factory: MetricFactory | undefined): PullMetrics {
  const series = seriesOf(factory, pullMetrics)
  // A rate needs a first zero.
  for (const result of ["Present", "Unknown", ...Object.keys(pullFailureReasons)])
    series.add(node, "agent_pulls_total", { result }, 0)
  series.add(node, "agent_pulled_bytes_total", {}, 0)
  return {
    looked(states, inProgress) {
      const counts = new Map(phases.map(phase => [phase, 0]))
      for (const { phase } of states.values()) counts.set(phase, (counts.get(phase) ?? 0) + 1)
      series.publish(node, [
        { metric: "agent_pulls_in_progress", labels: {}, value: inProgress },
        ...[...counts].map(([phase, value]) => ({ metric: "agent_images", labels: { phase }, value }) as const),
      ])
    },
    ended(attempt) {
      const result = attempt.is === "Failed" ? attempt.reason : attempt.is
      series.add(node, "agent_pulls_total", { result })
      if (attempt.is === "Present") series.add(node, "agent_pulled_bytes_total", {}, attempt.pulledBytes ?? 0)
    },
  }
}
