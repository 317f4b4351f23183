import type { ImageListPullJobStatus } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { nameOf } from "#runtime/resource.ts"
import { seriesOf, sumsOf } from "#runtime/series.ts"

/** Every metric of ImageListPullJobs, without the prefix `aim_`. Their nodes are counted by their ImagePullJobs. */
export const imageListPullJobMetrics = {
  imagelistpulljob_lists: {
    type: "gauge",
    unit: "lists",
    labels: ["namespace", "reason"],
    help: "Lists that have not ended, by what they do or wait for.",
  },
  imagelistpulljob_completed_total: {
    type: "counter",
    unit: "lists",
    labels: ["reason"],
    help: "Lists that this process saw end, by how they ended.",
  },
} as const

export type ImageListPullJobMetrics = {
  /** Call with each status that was written. A list that has ended is not reported again. */
  publish(key: string, status: ImageListPullJobStatus | undefined): void
  forget(key: string): void
}

/** One series for all lists together. */
const all = ""

export function createImageListPullJobMetrics(factory: MetricFactory | undefined): ImageListPullJobMetrics {
  const { imagelistpulljob_lists, imagelistpulljob_completed_total } = imageListPullJobMetrics
  const sums = sumsOf(factory, { imagelistpulljob_lists })
  const series = seriesOf(factory, { imagelistpulljob_completed_total })
  // A rate needs a first zero.
  for (const reason of ["Completed", "ImagesFailed"]) series.add(all, "imagelistpulljob_completed_total", { reason }, 0)
  return {
    publish(key, status) {
      const reason = conditionOf(status?.conditions, "Ready")?.reason
      if (!reason) return
      const { namespace = "" } = nameOf(key)
      if (status?.completionTime) {
        series.add(all, "imagelistpulljob_completed_total", { reason })
        sums.forget(key)
      } else sums.publish(key, [{ metric: "imagelistpulljob_lists", labels: { namespace, reason }, value: 1 }])
    },
    forget: sums.forget,
  }
}
