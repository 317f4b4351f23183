import { aborted } from "#lib/aborted.ts"
import { sharedCaches } from "./cache/index.ts"
import { type Client, createClient, type Transport } from "./client/index.ts"
import type { Clock } from "./clock.ts"
import { type Controller, type RunningController, startController } from "./controller.ts"
import { createEventRecorder, type EventRecorder } from "./events.ts"
import { type Check, startHealthServer } from "./health.ts"
import { type Election, takePartInElection } from "./leader.ts"
import type { Logger } from "./log.ts"
import { createMetrics, type Labels, type Metrics } from "./metrics.ts"
import type { Random } from "./random.ts"

export type ManagerOptions = {
  /** Shared by all clients of the cluster; closed at the end. */
  transport: Transport
  controllers: readonly Controller[]
  /** Where the Lease is; `false` runs without election and without a guard. */
  leaderElect:
    | { namespace: string; name: string; trustAbsence?: boolean | ((client: Client) => Promise<boolean>) }
    | false
  /**
   * A candidate keeps its caches open and in sync, and decides from the moment it leads. Otherwise it keeps nothing in
   * memory, and lists everything when it leads. On by default.
   */
  warm?: boolean
  /** Where `/livez`, `/readyz` and `/metrics` are served. In a pod the host must be one that the kubelet reaches. */
  metrics?: { host: string; port: number } | undefined
  /** Whether the delay of the event loop is among the metrics. On by default. */
  hasLoopDelay?: boolean
  /** On every metric of the process. */
  metricLabels?: Labels
  clock: Clock
  random: Random
  log: Logger
  /** Aborted on SIGTERM: work in progress is finished, then this ends. */
  signal: AbortSignal
  userAgent?: string | undefined
  /** How long work in progress may go on. With the release of the Lease it fits into the 30 s that a pod has to end. */
  graceMs?: number
}

/** A look that takes this long is stuck: every request of ours ends within a minute. */
const stuckMs = 15 * 60_000
/** How long a candidate may fail to read the Lease before it no longer counts as a standby. */
const troubleMs = 30_000
const flushMs = 3_000
const handOnMs = 5_000
const heartbeatMs = 1_000

/**
 * Runs controllers until the signal is aborted or leadership is lost. Resolves with the exit code: 0 after the signal,
 * 1 if the process has to be started again.
 *
 *   health server → election → controllers … signal → work in hand ends → events are sent → the Lease is released
 *
 * Warm controllers start beside the election: they open their caches, and begin to work when it is won. Two clients
 * share the transport. The election's client may always write and has connections of its own. The controllers' client
 * writes only while the guard passes, so a candidate's writes are refused before they leave the process.
 */
export async function runManager(options: ManagerOptions): Promise<number> {
  const { transport, clock, random, log, signal, leaderElect, warm = true, hasLoopDelay = true } = options
  const identity = random.uuid()
  const metrics = createMetrics({ clock, hasLoopDelay, labels: options.metricLabels ?? {} })
  const basics = { transport, clock, random, userAgent: options.userAgent, onRequest: metrics.onRequest }
  const running: RunningController[] = []
  let election: Election | undefined
  let hasLost = false

  const closeServer = await serve(options, metrics, {
    livez: {
      lease: () => (hasLost ? "leadership is lost" : undefined),
      workers: () => stuck(running),
    },
    readyz: {
      shutdown: () => (signal.aborted ? "shutting down" : undefined),
      lease: () => standbyTrouble(election, clock),
      caches: () => unsynced(running) ?? cold(running, election),
    },
  }).catch(error => {
    log.error("cannot serve health and metrics", { ...options.metrics, error })
    return undefined
  })
  if (!closeServer) return 1
  const stopHeartbeat = beat(clock, metrics)

  const toldToEnd = aborted(signal)
  try {
    if (leaderElect) {
      const client = createClient({ ...basics, isUrgent: true })
      const { trustAbsence = false } = leaderElect
      const isTrusted = typeof trustAbsence === "boolean" ? trustAbsence : () => trustAbsence(client)
      const terms = { ...leaderElect, trustAbsence: isTrusted, identity }
      election = takePartInElection({ client, clock, random, log }, terms)
      metrics.watchElection(leaderElect.name, {
        isLeader: () => election?.isLeader === true,
        isWarm: () => isWarm(running, options.controllers.length),
      })
      election.lost.then(() => {
        hasLost = true
      })
      if (!warm) await Promise.race([election.acquired, toldToEnd])
      if (signal.aborted) {
        await within(clock, handOnMs, election.release())
        return 0
      }
    }
    return await run()
  } finally {
    stopHeartbeat()
    await closeServer()
    transport.close()
  }

  async function run(): Promise<number> {
    const working = new AbortController()
    const client = createClient({
      ...basics,
      guard: election && (() => election?.guard()),
      onWarning: message => log.warn("the API server warns", { warning: message }),
    })
    const events = createEventRecorder({ client, clock, random, log, identity })
    const context = { client, clock, random, log, events, identity, metrics, signal: working.signal }
    // Controllers watch the same pods; each pod is read and parsed once for all of them.
    const openCache = sharedCaches({ client, clock, random, log })
    for (const controller of options.controllers) {
      const started = startController(controller, context, {
        openCache,
        observer: metrics.controller(controller.name),
        lead: warm ? election?.acquired : undefined,
        ...(options.graceMs !== undefined && { graceMs: options.graceMs }),
      })
      metrics.watchController(started)
      running.push(started)
    }

    const failed = Promise.race(running.map(({ name, done }) => done.then(never, error => ({ name, error }))))
    const why = await Promise.race([
      toldToEnd.then(() => "told" as const),
      ...(election ? [election.lost.then(() => "lost" as const)] : []),
      ...(running.length > 0 ? [failed] : []),
    ])
    if (typeof why === "object") log.error("a controller failed, ending", { controller: why.name, error: why.error })
    else if (why === "told") log.info("told to end, finishing what is in hand")
    working.abort(new Error(why === "told" ? "told to end" : "the process has to end"))

    const ended = Promise.allSettled(running.map(({ done }) => done))
    // A process that has lost the lead can only read: there is nothing to wait for.
    if (why === "lost") await within(clock, 1_000, ended)
    else await ended
    await depart({ events, isIdle: why !== "lost" && running.every(controller => controller.inWork().length === 0) })
    return why === "told" ? 0 : 1
  }

  /** Sends the last events, and releases the Lease unless a write of ours may still be under way. */
  async function depart({ events, isIdle }: { events: EventRecorder; isIdle: boolean }) {
    await within(clock, flushMs, events.flush())
    if (election) await within(clock, handOnMs, isIdle ? election.release() : election.abandon())
  }
}

async function serve(
  { metrics: at, log }: ManagerOptions,
  metrics: Metrics,
  checks: { livez: Record<string, Check>; readyz: Record<string, Check> },
): Promise<() => Promise<void>> {
  if (!at) return async () => {}
  const { close } = await startHealthServer({ ...at, ...checks, metrics, log })
  return close
}

/** Measures how late timers fire: a long computation or a starved CPU delays everything else as much, the Lease too. */
function beat(clock: Clock, metrics: Metrics): () => void {
  const lag = metrics.gauge({ name: "event_loop_lag_seconds", help: "How late the last of a timer per second came." })
  let cancel: () => void
  const next = () => {
    const due = clock.monotonic() + heartbeatMs
    cancel = clock.after(heartbeatMs, () => {
      lag.set({}, Math.max(0, clock.monotonic() - due) / 1000)
      next()
    })
  }
  next()
  return () => cancel()
}

/** Every controller has started and has all its caches in sync. */
const isWarm = (running: readonly RunningController[], controllers: number) =>
  running.length === controllers && running.every(controller => controller.isWarm)

function stuck(running: readonly RunningController[]): string | undefined {
  for (const controller of running) {
    const [longest] = controller.inWork()
    if (longest && longest.ms > stuckMs) {
      return `${controller.name} has looked at ${longest.key} for ${Math.round(longest.ms / 60_000)} minutes`
    }
  }
  return undefined
}

/**
 * A kind that is not installed has no objects, and the other kinds are reconciled: the process is still ready. Where no
 * kind is reconciled, something is wrong with the installation.
 */
function unsynced(running: readonly RunningController[]): string | undefined {
  const isOfUse = running.some(({ hasSynced }) => hasSynced)
  const waiting = running
    .filter(({ hasSynced, lacksKind }) => !hasSynced && !(isOfUse && lacksKind))
    .map(({ name }) => name)
  return waiting.length > 0 ? `waiting for the caches of ${waiting.join(", ")}` : undefined
}

/** A warm candidate is ready when it is warm: a rolling update ends the old leader only then. */
function cold(running: readonly RunningController[], election: Election | undefined): string | undefined {
  if (!election || election.isLeader) return undefined
  const waiting = running.filter(controller => controller.hasSynced && !controller.isWarm).map(({ name }) => name)
  return waiting.length > 0 ? `standing by, and warming the caches of ${waiting.join(", ")}` : undefined
}

/**
 * A standby process is ready: it does all that it is there for. If a new pod had to lead before it is ready, a rolling
 * update would wait for the old pod for ever. A process that cannot even read the Lease is no standby.
 */
function standbyTrouble(election: Election | undefined, clock: Clock): string | undefined {
  const trouble = election?.trouble
  if (!trouble || clock.monotonic() - trouble.since < troubleMs) return undefined
  return `the Lease is out of reach: ${trouble.error instanceof Error ? trouble.error.message : trouble.error}`
}

/** Waits at most this long, and leaves no timer behind. */
function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise(resolve => {
    const cancel = clock.after(ms, resolve)
    work.finally(() => {
      cancel()
      resolve()
    })
  })
}

const never = () => new Promise<never>(() => {})
