import type { Instant } from "#lib/instant.ts"
import type { Json } from "../../object.ts"
import type { Behaviour } from "../node/behaviour.ts"

/** What the kubelet passes when it creates a container. */
export type ContainerConfig = {
  readonly name: string
  /** As in the pod's spec when the container was created. If the spec has another one now, it must be replaced. */
  readonly image: string
  /** As the container runtime names it, and its digest (`repo@sha256:…`). */
  readonly imageName: string
  readonly imageId: string
  readonly restartCount: number
  readonly behaviour: Behaviour
  /** What labels and annotations are made of, when a client asks for them. */
  readonly source: ContainerSource
}

/** The pod as it was when the container was created. Later changes of the pod do not reach the container. */
export type ContainerSource = {
  readonly pod: { name: string; namespace: string; uid: string; spec: Json; deletionGracePeriodSeconds?: number }
  readonly container: Json
}

/** One container of the runtime, from its creation to its removal. */
export type Container = ContainerConfig & {
  /** 64 hexadecimal digits. */
  readonly id: string
  readonly createdAt: Instant
  startedAt: Instant
  state: "created" | "running" | "exited"
  finishedAt?: Instant
  exitCode?: number
  reason?: string
  /** A stop has sent the stop signal. It is sent once, however many stops follow. */
  isSignalled?: boolean
  /** The results of the kubelet's probes; absent: no result yet. */
  startup?: boolean
  readiness?: boolean
  liveness?: boolean
}

/** The sandbox of a pod. */
export type Sandbox = {
  isReady: boolean
  readonly ip: string | undefined
  readonly isOnHostNetwork: boolean
  readonly attempt: number
}
