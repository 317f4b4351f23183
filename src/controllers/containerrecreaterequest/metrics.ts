import { type ContainerRecreateRequestStatus, stuck } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { parseInstant } from "#lib/instant.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { nameOf } from "#runtime/resource.ts"
import { earliestOf, seriesOf, sumsOf } from "#runtime/series.ts"

/** Every metric of ContainerRecreateRequests, without the prefix `aim_`. There are many requests, so none has a series. */
export const containerRecreateRequestMetrics = {
  containerrecreaterequest_open: {
    type: "gauge",
    unit: "requests",
    labels: ["namespace", "reason"],
    help: "Requests that are not complete, by what they do or wait for.",
  },
  containerrecreaterequest_oldest_open_timestamp_seconds: {
    type: "gauge",
    unit: "unix seconds",
    labels: ["namespace"],
    help: "When the oldest request that is not complete started; absent without one.",
  },
  containerrecreaterequest_completed_total: {
    type: "counter",
    unit: "requests",
    labels: ["reason"],
    help: "Requests that this process saw complete, by their result.",
  },
} as const

export type ContainerRecreateRequestMetrics = {
  /** Call with each status that was written. `before` is the one that it replaced. */
  publish(
    key: string,
    before: ContainerRecreateRequestStatus | undefined,
    after: ContainerRecreateRequestStatus | undefined,
  ): void
  forget(key: string): void
}

/** One series for all requests together. */
const all = ""

export function createContainerRecreateRequestMetrics(
  factory: MetricFactory | undefined,
): ContainerRecreateRequestMetrics {
  const {
    containerrecreaterequest_open,
    containerrecreaterequest_oldest_open_timestamp_seconds,
    containerrecreaterequest_completed_total,
  } = containerRecreateRequestMetrics
  const open = sumsOf(factory, { containerrecreaterequest_open })
  const oldest = earliestOf(factory, { containerrecreaterequest_oldest_open_timestamp_seconds })
  const series = seriesOf(factory, { containerrecreaterequest_completed_total })
  // A rate needs a first zero.
  for (const reason of ["Succeeded", ...stuck])
    series.add(all, "containerrecreaterequest_completed_total", { reason }, 0)

  function forget(key: string): void {
    open.forget(key)
    oldest.forget(key)
  }

  return {
    publish(key, before, after) {
      const reason = conditionOf(after?.conditions, "Ready")?.reason
      if (!after || !reason) return
      if (after.phase === "Completed") {
        if (before?.phase !== "Completed") series.add(all, "containerrecreaterequest_completed_total", { reason })
        return forget(key)
      }
      const { namespace = "" } = nameOf(key)
      open.publish(key, [{ metric: "containerrecreaterequest_open", labels: { namespace, reason }, value: 1 }])
      const startedAt = parseInstant(after.startTime)
      if (startedAt !== undefined) oldest.set(key, startedAt)
    },
    forget,
  }
}
