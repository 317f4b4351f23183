import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import type { KindStorage } from "../apiserver/storage.ts"
import type { Json, Obj } from "../object.ts"

/** What everything that moves in a simulated cluster is given. Nothing else of the machine is reached for. */
export type PhysicsWorld = {
  storage: KindStorage
  clock: Clock
  random: Random
}

/** One of the moving parts: a workload controller, the scheduler, a kubelet. */
export type Part = {
  readonly name: string
  /** Begins to watch and act; returns how to stop it. A stopped part can be started again and goes on from the API. */
  start(): () => void
}

export type { Json, Obj }
