import type { Instant } from "#lib/instant.ts"
import type { Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { nanoseconds } from "../recorder.ts"
import type { PhysicsWorld } from "../world.ts"

export type SchedulerEvent = { type: "Normal" | "Warning"; reason: string; action: string; message: string }

/** Events with the newer fields: they have a series in place of a count. */
export function createSchedulerEvents({
  storage,
  clock,
  random,
}: PhysicsWorld): (pod: Obj, event: SchedulerEvent) => void {
  const kind = storage.kind("v1", "Event")
  const written = new Map<string, { name: string; count: number }>()
  const controller = "default-scheduler"
  return (pod, { type, reason, action, message }) => {
    if (!kind) return
    const now = clock.now()
    const { name, namespace, uid, resourceVersion } = pod.metadata
    const key = `${uid} ${resourceVersion} ${reason} ${message}`
    const known = reason === "Scheduled" ? undefined : written.get(key)
    try {
      if (known && storage.find(kind, { name: known.name, namespace })) {
        known.count++
        const series = { count: known.count, lastObservedTime: microTime(now) }
        storage.patch(kind, { name: known.name, namespace }, { type: "merge", body: { series } }, asScheduler)
        return
      }
      const event = {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: `${name}.${nanoseconds(now, Math.floor(random.next() * 1e6))}`, namespace },
        involvedObject: { apiVersion: "v1", kind: "Pod", name, namespace, resourceVersion, uid },
        reason,
        message,
        source: {},
        firstTimestamp: null,
        lastTimestamp: null,
        type,
        eventTime: microTime(now),
        action,
        reportingComponent: controller,
        reportingInstance: `${controller}-cluster-sim`,
      }
      const created = storage.create(kind, event, asScheduler)
      if (reason === "Scheduled") return
      written.set(key, { name: created.metadata.name, count: 1 })
      if (written.size > 4096) written.delete(written.keys().next().value as string)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }
}

const asScheduler = { fieldManager: "kube-scheduler" }

/** As `metav1.MicroTime`: six digits after the second. */
export const microTime = (at: Instant) => new Date(at).toISOString().replace("Z", "000Z")
