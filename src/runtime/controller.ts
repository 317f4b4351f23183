import type { Cache, CacheOptions, Projected } from "./cache/cache.ts"
import type { Client } from "./client/client.ts"
import type { Clock, Instant } from "./clock.ts"
import type { EventRecorder } from "./events.ts"
import type { Logger } from "./log.ts"
import type { Random } from "./random.ts"
import type { Resource } from "./resource.ts"

/** One line of RBAC that a controller needs, declared where it is needed; the roles are generated from these. */
export type Permission = {
  resource: Pick<Resource, "group" | "plural">
  subresource?: string
  verbs: readonly ("get" | "list" | "watch" | "create" | "update" | "patch" | "delete")[]
}

/** What every controller is handed. Nothing else of the machine is reached for. */
export type Context = {
  client: Client
  clock: Clock
  random: Random
  log: Logger
  events: EventRecorder
  /** A fresh UUID of this process: the holder of the Lease, the election ID on what it writes. */
  identity: string
  /** Aborted when the process is to end; work in hand is finished, none is begun. */
  signal: AbortSignal
}

/** Opens what a controller watches and tells the loop which keys need a look. */
export type Wiring = Context & {
  /**
   * A cache that lives until the controller ends or it is closed. Those opened during `setup` are in sync before the
   * first reconcile; one opened later says so itself (`hasSynced`).
   */
  watch<T extends Projected>(resource: Resource, options: CacheOptions<T>): Cache<T> & { close(): void }
  enqueue(key: string, options?: { background?: boolean }): void
  enqueueAfter(key: string, ms: number): void
}

export type Reconciler = {
  /** Looks at one object, decides, acts. May return when to look again though nothing happens until then. */
  // biome-ignore lint/suspicious/noConfusingVoidType: "returns nothing" is the ordinary case
  reconcile(key: string): Promise<Instant | void>
}

export type Controller = {
  name: string
  permissions: readonly Permission[]
  /** How many keys at once; default 1. */
  concurrency?: number
  setup(wiring: Wiring): Reconciler
}
