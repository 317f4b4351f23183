import assert from "node:assert/strict"
import { aborted } from "#lib/aborted.ts"
import type { Cache, CacheOptions, Projected, WatchedCache } from "./cache/cache.ts"
import type { Client } from "./client/client.ts"
import { KubeError } from "./client/errors.ts"
import { type Clock, type Instant, sleep } from "./clock.ts"
import type { EventRecorder } from "./events.ts"
import type { Logger } from "./log.ts"
import type { MetricFactory } from "./metrics.ts"
import { createOpenCaches } from "./open-caches.ts"
import { createQueue, type Queue, type QueueObserver, type Turns } from "./queue.ts"
import type { Random } from "./random.ts"
import type { Resource } from "./resource.ts"
import { createStandby } from "./standby.ts"

/** One line of RBAC that a controller needs, declared where it is needed; the roles are generated from these. */
export type Permission = {
  resource: Pick<Resource, "group" | "plural">
  subresource?: string
  /** Only objects of these names. A list or watch must then select them by `metadata.name`. */
  names?: readonly string[]
  verbs: readonly ("get" | "list" | "watch" | "create" | "update" | "patch" | "delete")[]
}

/** Everything that a controller may use of the process it runs in. */
export type Context = {
  client: Client
  clock: Clock
  random: Random
  log: Logger
  events: EventRecorder
  /** For a controller's own metrics; absent where none are served. */
  metrics?: MetricFactory | undefined
  /** A fresh UUID of this process: the holder of the Lease, the election ID on what it writes. */
  identity: string
  /** Aborted when the process must end: work in progress is finished, none is started. */
  signal: AbortSignal
}

/** Opens the caches of a controller and reports to the loop which keys need a look. */
export type Wiring = Context & {
  /**
   * A cache that lives until it is closed or the controller ends. Caches opened during `setup` are in sync before the
   * first reconcile; a cache opened later reports that (`hasSynced`). A decision that depends on the last leader's
   * writes must wait for `current`.
   */
  watch<T extends Projected>(resource: Resource, options: CacheOptions<T>): WatchedCache<T>
  enqueue(key: string, options?: { background?: boolean }): void
  enqueueAfter(key: string, ms: number): void
}

export type Reconciler = {
  /** Looks at one object, decides, acts. May return when to look again if no event comes before. */
  // biome-ignore lint/suspicious/noConfusingVoidType: "returns nothing" is the ordinary case
  reconcile(key: string): Promise<Instant | void>
  /**
   * Opens the caches that `reconcile` of this key would open, and does nothing else. While another process leads, it is
   * called instead of `reconcile` whenever the key is enqueued.
   */
  warm?(key: string): void
  /** Resolves when no work that a look started is under way. Called after the last look. */
  drain?(): Promise<void>
}

export type Controller = {
  name: string
  permissions: readonly Permission[]
  /** How many keys are looked at in parallel; default 1. */
  concurrency?: number
  /** For keys of many tenants: each tenant has its turn, however many keys the others have. */
  turns?: Turns
  setup(wiring: Wiring): Reconciler
}

export type OpenCache = <T extends Projected>(resource: Resource, options: CacheOptions<T>) => Cache<T>

/** How one look at a key ended, named as in controller-runtime; `refused` is a deposed leader's. */
export type ReconcileResult = "success" | "requeue" | "requeue_after" | "error" | "refused"

/** Receives what happens in a controller, for its metrics. */
export type ControllerObserver = {
  queue: QueueObserver
  reconciled(result: ReconcileResult, tookMs: number): void
  /** Returns what to call when the cache is closed. */
  cacheOpened(resource: Resource, cache: Pick<Cache<Projected>, "size" | "stalenessMs">): () => void
}

export type ControllerDeps = {
  openCache: OpenCache
  observer?: ControllerObserver
  /** Resolves when this process leads; until then it stands by with warm caches. Absent: it leads from the start. */
  lead?: Promise<void> | undefined
  /** How long work in progress may go on once the signal is aborted. A pod has 30 s to end by default. */
  graceMs?: number
}

export type RunningController = {
  readonly name: string
  /**
   * Resolves when it has ended because of the signal, or because this process may not write any more. Rejects if it
   * could not be set up or a cache died: it would decide from old facts for ever, so the process has to end.
   */
  readonly done: Promise<void>
  /** True once the caches opened during `setup` are in sync: the workers are at work, or will be as soon as it leads. */
  readonly hasSynced: boolean
  /** Every open cache is in sync, except those that the server refuses. */
  readonly isWarm: boolean
  /** It waits only for a kind that the server does not serve. Until that is installed, there is nothing to do. */
  readonly lacksKind: boolean
  readonly depth: number
  /** Keys being looked at and for how long, the longest first. A look that hangs shows here. */
  inWork(): { key: string; ms: number }[]
}

/**
 * Looks at keys until the signal is aborted. Every error that a reconcile throws is caught here: that key is tried
 * again later, and the others are not affected.
 *
 *   setup → caches in sync → N workers … signal → no new key → work in hand ends, or its grace → caches close
 *
 * A standby controller waits before the workers start: its caches are open, keys are collected, and no worker runs.
 */
export function startController(controller: Controller, context: Context, deps: ControllerDeps): RunningController {
  const { clock, signal } = context
  const { observer, graceMs = 20_000 } = deps
  const log = context.log.with({ controller: controller.name })
  const queue = createQueue({ clock, turns: controller.turns, ...(observer && { observer: observer.queue }) })
  const caches = createOpenCaches(deps)
  const standby = deps.lead && createStandby(clock, deps.lead)
  const startedAt = new Map<string, number>()
  const graceIsOver = Promise.withResolvers<void>()
  let cancelGrace: (() => void) | undefined
  let hasSynced = false
  let breathedAt = clock.monotonic()

  function windDown() {
    queue.shutDown()
    cancelGrace = clock.after(graceMs, () => {
      if (startedAt.size > 0) log.warn("ending though work is in hand", { keys: [...startedAt.keys()], graceMs })
      graceIsOver.resolve()
    })
  }

  async function run() {
    if (signal.aborted) return
    signal.addEventListener("abort", windDown, { once: true })
    try {
      const reconciler = controller.setup({
        ...context,
        log,
        watch: caches.open,
        enqueue: (key, options) => (standby && !standby.isOver ? standby : queue).add(key, options),
        enqueueAfter: (key, ms) => (standby && !standby.isOver ? standby.add(key) : queue.addAfter(key, ms)),
      })
      if (!(await unlessEnded(caches.synced(signal)))) return
      hasSynced = true
      if (standby) {
        log.info("caches are in sync, standing by")
        if (!(await unlessEnded(standby.untilLead(reconciler.warm)))) return
        for (const [key, options] of standby.keys) queue.add(key, options)
      }
      log.info("caches are in sync, starting workers", { waiting: queue.depth })
      const workers = Array.from({ length: controller.concurrency ?? 1 }, () => work(reconciler))
      const ended = Promise.all(workers).then(() => reconciler.drain?.())
      await Promise.race([ended, caches.broken, graceIsOver.promise])
    } finally {
      cancelGrace?.()
      queue.shutDown()
      caches.closeAll()
      signal.removeEventListener("abort", windDown)
    }
  }

  /** False if the controller must end before the event. */
  async function unlessEnded(event: Promise<unknown>): Promise<boolean> {
    const ended = aborted(signal)
    try {
      await Promise.race([event, caches.broken, ended])
      return !signal.aborted
    } catch (error) {
      if (signal.aborted) return false
      throw error
    }
  }

  async function work(reconciler: Reconciler) {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      const began = clock.monotonic()
      startedAt.set(key, began)
      const result = await look(reconciler, key)
      startedAt.delete(key)
      queue.done(key)
      observer?.reconciled(result, clock.monotonic() - began)
      await breathe()
    }
  }

  /**
   * Looks that wait for nothing would follow each other without a turn of the event loop. If more keys wait, the event
   * loop gets its turn here.
   */
  async function breathe() {
    if (queue.depth === 0 || clock.monotonic() - breathedAt < breathMs) return
    await sleep(clock, 0)
    breathedAt = clock.monotonic()
  }

  async function look(reconciler: Reconciler, key: string): Promise<ReconcileResult> {
    try {
      const lookAgainAt = await reconciler.reconcile(key)
      if (lookAgainAt === undefined) {
        queue.forget(key)
        return "success"
      }
      assert(Number.isFinite(lookAgainAt), `reconcile returned ${lookAgainAt}, which is no instant`)
      queue.forget(key)
      queue.addAfter(key, lookAgainAt - clock.now())
      return "requeue_after"
    } catch (error) {
      return retry({ queue, log, signal, key, error })
    }
  }

  return {
    name: controller.name,
    done: run(),
    get hasSynced() {
      return hasSynced
    },
    get isWarm() {
      return hasSynced && caches.areInSync()
    },
    get lacksKind() {
      return !hasSynced && caches.lackKind()
    },
    get depth() {
      return queue.depth
    },
    inWork: () =>
      [...startedAt].map(([key, since]) => ({ key, ms: clock.monotonic() - since })).sort((a, b) => b.ms - a.ms),
  }
}

/** Roughly how long looks may occupy the event loop in one piece. */
const breathMs = 10

/** Conflicts in a row after which a warning is logged: no cache is that far behind. */
const conflictsUntilWarning = 10

/** A Retry-After is honoured up to this: one wrong header must not delay an object for a year. */
const retryAfterMsMax = 10 * 60_000

type Failure = { queue: Queue; log: Logger; signal: AbortSignal; key: string; error: unknown }

function retry({ queue, log, signal, key, error }: Failure): ReconcileResult {
  const causes = chainOf(error)
  const failure = causes.find(cause => cause instanceof KubeError)
  if (failure?.kind === "WritesRefused") {
    log.info("no longer allowed to write, ending", { key })
    queue.shutDown()
    return "refused"
  }
  const attempt = queue.attempts(key) + 1
  queue.addRateLimited(key, Math.min(failure?.retryAfterMs ?? 0, retryAfterMsMax))
  if (failure?.kind === "Conflict") {
    const say = attempt % conflictsUntilWarning === 0 ? log.warn : log.debug
    say("another client wrote first, looking again", { key, attempt, error })
    return "requeue"
  }
  if (signal.aborted && causes.includes(signal.reason)) {
    log.debug("reconcile aborted by shutdown", { key })
    return "error"
  }
  const willHeal = failure && ["Throttled", "Unreachable", "UnknownOutcome", "Refused"].includes(failure.kind)
  const say = willHeal ? log.warn : log.error
  say("reconcile failed, trying again later", { key, attempt, error })
  return "error"
}

/** An error and its chain of causes; each wrapper names what was being done. */
function chainOf(error: unknown): unknown[] {
  const chain = [error]
  while (error instanceof Error && error.cause !== undefined && chain.length < 16) {
    error = error.cause
    chain.push(error)
  }
  return chain
}
