import type { Instant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import type { Runtime, StartFailure } from "./pod-status.ts"
import type { Probe } from "./probes.ts"

/** The kubelet's state for one pod. It works on one step at a time. */
export type Worker = {
  pod: Obj
  readonly uid: string
  readonly runtime: Runtime
  /** The last computed status, including parts that must not be written to the API yet. */
  status: Json | undefined
  readonly failures: Map<string, StartFailure>
  readonly pullErrors: Map<string, string>
  probes: Map<string, Probe[]> | undefined
  /** Only moves forward. */
  stage: "running" | "terminating" | "terminated" | "finished"
  eviction: { reason: string; message: string } | undefined
  /** The object is gone, so nothing is reported any more. */
  isGone: boolean
  /** Its volumes were mounted once; the kubelet does not check again. */
  isMounted: boolean
  mountTries: number
  isWorking: boolean
  isPending: boolean
  lastSyncAt: Instant
  relistedAt: Instant
  /** Something changed in the runtime that the next relist will find. */
  isDirty: boolean
  cancelRelist: (() => void) | undefined
  cancelRequeue: (() => void) | undefined
  cancelDeadline: (() => void) | undefined
}

export type SyncResult = { hasFailed: boolean; retryAt?: Instant; didSomething: boolean; isTerminal?: boolean }

export function createWorker(pod: Obj): Worker {
  return {
    pod,
    uid: pod.metadata.uid,
    runtime: { sandbox: undefined, containers: new Map() },
    status: undefined,
    failures: new Map(),
    pullErrors: new Map(),
    probes: undefined,
    stage: "running",
    eviction: undefined,
    isGone: false,
    isMounted: false,
    mountTries: 0,
    isWorking: false,
    isPending: false,
    lastSyncAt: Number.NEGATIVE_INFINITY,
    relistedAt: Number.NEGATIVE_INFINITY,
    isDirty: false,
    cancelRelist: undefined,
    cancelRequeue: undefined,
    cancelDeadline: undefined,
  }
}

/** Records an event about a container. */
export type Say = (
  worker: Worker,
  spec: Json,
  about: { type: "Normal" | "Warning"; reason: string; message: string },
) => void
