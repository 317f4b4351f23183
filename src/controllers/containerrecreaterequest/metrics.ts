import { type ContainerRecreateRequestStatus, stuck } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { IndexedHeap } from "#lib/indexed-heap.ts"
import { parseInstant } from "#lib/instant.ts"
import { conditionOf } from "#runtime/conditions.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { nameOf } from "#runtime/resource.ts"
import { seriesOf, sumsOf } from "#runtime/series.ts"

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
  const { containerrecreaterequest_open, ...others } = containerRecreateRequestMetrics
  const open = sumsOf(factory, { containerrecreaterequest_open })
  const series = seriesOf(factory, others)
  // A rate needs a first zero.
  for (const reason of ["Succeeded", ...stuck])
    series.add(all, "containerrecreaterequest_completed_total", { reason }, 0)
  const started = new Map<string, IndexedHeap>()

  function setStart(key: string, startedAt: number | undefined): void {
    const { namespace = "" } = nameOf(key)
    const heap = started.get(namespace) ?? new IndexedHeap()
    if (startedAt === undefined) heap.delete(key)
    else heap.set(key, startedAt)
    const first = heap.first()
    if (!first) {
      started.delete(namespace)
      series.forget(namespace)
      return
    }
    started.set(namespace, heap)
    const metric = "containerrecreaterequest_oldest_open_timestamp_seconds"
    series.publish(namespace, [{ metric, labels: { namespace }, value: first.rank / 1000 }])
  }

  function forget(key: string): void {
    open.forget(key)
    setStart(key, undefined)
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
      setStart(key, parseInstant(after.startTime))
    },
    forget,
  }
}
