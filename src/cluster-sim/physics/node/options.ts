import type { NodeRuntime } from "../container-runtime/index.ts"
import type { Recorder } from "../recorder.ts"
import type { Timers } from "../timers.ts"
import type { PhysicsWorld } from "../world.ts"
import type { Registries } from "./registries.ts"

/** How long small steps take on a node, in milliseconds, as on a machine without load. */
export type Pace = {
  /** From the binding of a pod to the kubelet's first sync. */
  see: number
  sandbox: number
  create: number
  start: number
  /** A container that ends on SIGTERM, from SIGTERM to its end. */
  stop: number
  stopSandbox: number
  /** How often the kubelet asks the container runtime for changes. */
  relist: number
}

export const calmPace: Pace = { see: 10, sandbox: 150, create: 15, start: 60, stop: 40, stopSandbox: 100, relist: 1000 }

export type KubeletOptions = {
  world: PhysicsWorld
  timers: Timers
  registries: Registries
  runtime: NodeRuntime
  recorder: Recorder
  nodeName: string
  hostIP: string
  pace: Pace
  /** How many images are pulled at the same time; the others wait. */
  parallelPulls: number
  /** The addresses of the node's pods. */
  addresses: { take(): string; free(ip: string): void; hold(ip: string): void }
}
