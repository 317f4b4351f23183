import type { Recorder } from "../recorder.ts"
import type { Timers } from "../timers.ts"
import type { PhysicsWorld } from "../world.ts"
import type { Registries } from "./registries.ts"

/** How long the small things take on a node, in milliseconds; those of a calm machine. */
export type Pace = {
  /** From the binding of a pod to the kubelet's first look at it. */
  see: number
  sandbox: number
  create: number
  start: number
  /** A polite container, from SIGTERM to its end. */
  stop: number
  stopSandbox: number
  /** How often the kubelet asks the container runtime what has changed. */
  relist: number
}

export const calmPace: Pace = { see: 10, sandbox: 150, create: 15, start: 60, stop: 40, stopSandbox: 100, relist: 1000 }

export type KubeletOptions = {
  world: PhysicsWorld
  timers: Timers
  registries: Registries
  recorder: Recorder
  nodeName: string
  hostIP: string
  platform: string
  pace: Pace
  /** How many images are pulled at the same time; the others wait. */
  parallelPulls: number
  /** Gives an address, and takes it back. */
  addresses: { take(): string; free(ip: string): void; hold(ip: string): void }
  /** Called when an image has come to the node. */
  onImage?: () => void
}
