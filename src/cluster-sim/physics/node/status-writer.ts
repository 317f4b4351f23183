import type { Json } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import type { PhysicsWorld } from "../world.ts"
import { isEnd } from "./pod-status.ts"
import type { Worker } from "./worker.ts"

/** Writes the status of a worker's pod, unless the stored one is equal. */
export function writeStatus({ storage }: PhysicsWorld, worker: Worker): void {
  const kind = storage.kind("v1", "Pod")
  if (!kind || worker.isGone) return
  const { name, namespace } = worker.pod.metadata
  const stored = storage.find(kind, { name, namespace })
  if (stored?.metadata.uid !== worker.uid) return
  // A pod that may still have containers is not reported as ended: other pods would take its resources.
  const couldRun = worker.stage === "running" || worker.stage === "terminating"
  const isTooEarly = couldRun && !isEnd(stored.status?.phase) && isEnd(worker.status.phase)
  const { reason: _, message: __, ...rest } = worker.status
  const { phase, reason, message } = stored.status ?? {}
  const told = isTooEarly ? { ...rest, phase, ...(reason && { reason }), ...(message && { message }) } : worker.status
  const foreign = (stored.status?.conditions ?? []).filter(
    (each: Json) => !told.conditions.some((own: Json) => own.type === each.type),
  )
  const conditions = foreign.length > 0 ? [...foreign, ...told.conditions] : told.conditions
  const next = { ...stored, status: { ...told, conditions } }
  if (isEqual(stored.status, next.status)) return
  try {
    const written = storage.update(kind, next, { subresource: "status", fieldManager: "kubelet" })
    // A watcher may have written again before this returns.
    const isNewer = Number(written.metadata.resourceVersion) > Number(worker.pod.metadata.resourceVersion)
    if (isNewer) worker.pod = written
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
  }
}

/** Removes the object of a pod that has ended on its node. */
export function deletePod({ storage }: PhysicsWorld, { pod, uid }: Worker): void {
  const kind = storage.kind("v1", "Pod")
  const { name, namespace } = pod.metadata
  if (!kind) return
  try {
    storage.delete(kind, { name, namespace }, { gracePeriodSeconds: 0, preconditions: { uid } })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
  }
}

/** Whether two values are equal. Statuses share most of their parts, so this is fast. */
export function isEqual(a: Json, b: Json): boolean {
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => isEqual(each, b[i]))
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every(key => Object.hasOwn(b, key) && isEqual(a[key], b[key]))
}
