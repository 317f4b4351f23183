import type { ImagePullJobStatus } from "#api/v1alpha1/imagepulljob/index.ts"
import { failedEnds } from "#api/v1alpha1/imagepulljob/reasons.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { nameOf } from "#runtime/resource.ts"
import { seriesOf, sumsOf } from "#runtime/series.ts"
import { type Plan, type Snapshot, verdictAfter } from "./plan.ts"

/** Every metric of ImagePullJobs, without the prefix `aim_`. A tenant may create many jobs, so none has a series. */
export const imagePullJobMetrics = {
  imagepulljob_jobs: {
    type: "gauge",
    unit: "jobs",
    labels: ["namespace", "reason"],
    help: "Jobs that have not ended, by what they do or wait for.",
  },
  imagepulljob_nodes: {
    type: "gauge",
    unit: "nodes",
    labels: ["namespace", "state"],
    help: "Nodes of jobs that have not ended, by state of the image there: Waiting, Active, Succeeded or Failed. A node counts once for each job.",
  },
  imagepulljob_completed_total: {
    type: "counter",
    unit: "jobs",
    labels: ["reason"],
    help: "Jobs that this process saw end, by how they ended.",
  },
  imagepulljob_agents_missing_total: {
    type: "counter",
    unit: "nodes",
    labels: [],
    help: "Nodes that were asked for an image and whose agent has not answered for a minute.",
  },
} as const

export type ImagePullJobMetrics = {
  /** Call at each look, with the number of nodes that begin with it. */
  publish(key: string, seen: Snapshot, plan: Plan, started: number): void
  agentsMissing(nodes: number): void
  /** Call with each status that was written. */
  reported(status: ImagePullJobStatus | undefined): void
  forget(key: string): void
}

/** One series for all jobs together. */
const all = ""
const ends = ["Completed", ...failedEnds]

export function createImagePullJobMetrics(factory: MetricFactory | undefined): ImagePullJobMetrics {
  const { imagepulljob_jobs, imagepulljob_nodes, ...counters } = imagePullJobMetrics
  const sums = sumsOf(factory, { imagepulljob_jobs, imagepulljob_nodes })
  const series = seriesOf(factory, counters)
  // A rate needs a first zero.
  for (const reason of ends) series.add(all, "imagepulljob_completed_total", { reason }, 0)
  series.add(all, "imagepulljob_agents_missing_total", {}, 0)
  return {
    publish(key, { isListed, isOver, view }, plan, started) {
      if (!isListed) return
      if (isOver || plan.ends) return sums.forget(key)
      const { namespace = "" } = nameOf(key)
      const nodes = (state: string, value: number) =>
        ({ metric: "imagepulljob_nodes", labels: { namespace, state }, value }) as const
      const { Waiting = 0, Starting = 0, Active = 0, Succeeded = 0, Failed = 0 } = view ?? {}
      sums.publish(key, [
        { metric: "imagepulljob_jobs", labels: { namespace, reason: verdictAfter(plan, started).reason }, value: 1 },
        nodes("Waiting", Waiting - started),
        nodes("Active", Starting + Active + started),
        nodes("Succeeded", Succeeded),
        nodes("Failed", Failed),
      ])
    },
    agentsMissing: nodes => series.add(all, "imagepulljob_agents_missing_total", {}, nodes),
    reported(status) {
      const reason = conditionOf(status?.conditions, "Ready")?.reason
      // A job that has ended is not reported again.
      if (reason && status?.completionTime) series.add(all, "imagepulljob_completed_total", { reason })
    },
    forget: sums.forget,
  }
}
