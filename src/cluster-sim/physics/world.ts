import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import type { KindStorage } from "../apiserver/storage.ts"
import type { Json, Obj } from "../object.ts"
import type { NodeRuntime } from "./container-runtime/index.ts"

/** The environment of the moving parts of a simulated cluster. They use nothing else of the machine. */
export type PhysicsWorld = {
  storage: KindStorage
  clock: Clock
  random: Random
}

/** One of the moving parts: a workload controller, the scheduler, a kubelet. */
export type Part = {
  readonly name: string
  /** Starts to watch and act; returns a function that stops it. A restarted part resumes from the API. */
  start(): () => void
  /** One of the nodes that this part plays. */
  node?(name: string): SimulatedNode | undefined
}

/** A machine of the simulated cluster, from the view of processes that run on it. */
export type SimulatedNode = { readonly runtime: NodeRuntime }

export type { Json, Obj }
