import { monitorEventLoopDelay } from "node:perf_hooks"
import { Counter, Gauge, Histogram, Registry } from "@prometheus-io/client"
import type { RequestInfo } from "./client/index.ts"
import type { Clock } from "./clock.ts"
import type { ControllerObserver, ReconcileResult, RunningController } from "./controller.ts"
import { resourceName } from "./resource.ts"

export type Labels = Record<string, string>

/** A controller's own metrics, under the prefix `aim_`. Declaring the same name twice returns the same metric. */
export type MetricFactory = {
  counter(metric: MetricName): { add(labels?: Labels, by?: number): void; remove(labels: Labels): void }
  gauge(metric: MetricName): { set(labels: Labels, value: number): void; remove(labels: Labels): void }
  histogram(metric: MetricName & { buckets?: number[] }): { observe(labels: Labels, value: number): void }
}

export type MetricName = {
  /** Without the prefix, with its unit, as Prometheus names metrics: `stamps_total`, `probe_duration_seconds`. */
  name: string
  help: string
  /**
   * Label values must be few: kinds and reasons. Names are allowed only for objects of which there are few
   * (cluster-scoped kinds of ours) and whose series are removed with them; never for the objects of a fleet.
   */
  labels?: readonly string[]
}

export type Metrics = MetricFactory & {
  /** The observer of one controller's loop, queue and caches. */
  controller(name: string): ControllerObserver
  /** Reads a running controller at each scrape, for values that are not counted. */
  watchController(controller: RunningController): void
  watchElection(lease: string, candidate: Candidate): void
  /** For `createClient`. */
  onRequest(info: RequestInfo): void
  text(): Promise<string>
  readonly contentType: string
}

export type MetricsOptions = {
  clock: Clock
  /** From the first scrape on, a hundred timers a second measure the event loop: too many for a process that is quiet. */
  hasLoopDelay?: boolean
  /** On every series of the process. A label of the scrape with the same name comes before it. */
  labels?: Labels
}

type Candidate = {
  isLeader: () => boolean
  /** All its caches are in sync. */
  isWarm: () => boolean
}
type Size = { readonly size: number; stalenessMs(): number }

const results: readonly ReconcileResult[] = ["success", "requeue", "requeue_after", "error", "refused"]
const seconds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const methods = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
}

/**
 * Metrics under the names of controller-runtime and client-go where they have one, so that known dashboards and alerts
 * work. They have a registry of their own: the library's global one is shared with every other importer.
 */
export function createMetrics({ clock, hasLoopDelay = true, labels = {} }: MetricsOptions): Metrics {
  const registry = new Registry()
  registry.setDefaultLabels(labels)
  const instruments = instrumentsOf(registry)
  const loops = loopMetrics(instruments)
  const { onRequest } = requestMetrics(instruments)
  const { watchController } = workMetrics(instruments)
  const caches = cacheMetrics(instruments)
  const { watchElection } = electionMetrics(instruments)
  processMetrics(instruments, clock)
  if (hasLoopDelay) loopDelayMetric(instruments)
  return {
    ...metricFactory(instruments),
    controller: name => ({ ...loops(name), cacheOpened: caches(name) }),
    watchController,
    watchElection,
    onRequest,
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}

type Instruments = ReturnType<typeof instrumentsOf>

function instrumentsOf(registry: Registry) {
  const registers = [registry]
  return {
    counter: (name: string, help: string, labelNames: readonly string[] = [], collect?: () => number) =>
      new Counter<string>({
        name,
        help,
        labelNames,
        registers,
        ...(collect && {
          collect() {
            this.reset()
            this.inc(collect())
          },
        }),
      }),
    gauge: (name: string, help: string, labelNames: readonly string[] = []) =>
      new Gauge<string>({ name, help, labelNames, registers }),
    histogram: (name: string, help: string, labelNames: readonly string[], buckets = seconds) =>
      new Histogram<string>({ name, help, labelNames, buckets, registers }),
    /** A gauge that is read at each scrape, and shows only what exists then. */
    pulled: (name: string, help: string, labelNames: readonly string[], read: () => Iterable<[Labels, number]>) =>
      new Gauge<string>({
        name,
        help,
        labelNames,
        registers,
        collect() {
          this.reset()
          for (const [labels, value] of read()) this.set(labels, value)
        },
      }),
  }
}

function metricFactory({ counter, gauge, histogram }: Instruments): MetricFactory {
  /** Each name once, however many controllers declare it. */
  const known = new Map<string, unknown>()
  function ours<T>({ name }: MetricName, create: (name: string) => T): T {
    if (!known.has(name)) known.set(name, create(`aim_${name}`))
    return known.get(name) as T
  }
  return {
    counter: metric =>
      ours(metric, name => {
        const own = counter(name, metric.help, metric.labels)
        return { add: (labels = {}, by = 1) => own.inc(labels, by), remove: labels => own.remove(labels) }
      }),
    gauge: metric =>
      ours(metric, name => {
        const own = gauge(name, metric.help, metric.labels)
        return { set: (labels, value) => own.set(labels, value), remove: labels => own.remove(labels) }
      }),
    histogram: metric =>
      ours(metric, name => {
        const own = histogram(name, metric.help, metric.labels ?? [], metric.buckets)
        return { observe: (labels, value) => own.observe(labels, value) }
      }),
  }
}

const queue = ["name", "controller"]
const queueLabels = (name: string) => ({ name, controller: name })

/** What a controller's queue and loop report, as it happens. */
function loopMetrics({ counter, histogram }: Instruments) {
  const adds = counter("workqueue_adds_total", "Keys added to the queue.", queue)
  const retries = counter("workqueue_retries_total", "Keys added again with back-off.", queue)
  const waits = histogram("workqueue_queue_duration_seconds", "How long keys wait before they are taken.", queue)
  const works = histogram("workqueue_work_duration_seconds", "How long a key is in work.", queue)
  const reconciles = counter("controller_runtime_reconcile_total", "Looks at a key, by how they ended.", [
    "controller",
    "result",
  ])
  const errors = counter("controller_runtime_reconcile_errors_total", "Looks at a key that failed.", ["controller"])
  const times = histogram("controller_runtime_reconcile_time_seconds", "How long a look at a key takes.", [
    "controller",
  ])
  return (name: string): Omit<ControllerObserver, "cacheOpened"> => {
    const labels = queueLabels(name)
    for (const result of results) reconciles.inc({ controller: name, result }, 0) // a rate needs a first zero
    errors.inc({ controller: name }, 0)
    adds.inc(labels, 0)
    return {
      queue: {
        added: () => adds.inc(labels),
        taken: waitedMs => waits.observe(labels, waitedMs / 1000),
        retried: () => retries.inc(labels),
      },
      reconciled(result, tookMs) {
        reconciles.inc({ controller: name, result })
        if (result === "error") errors.inc({ controller: name })
        times.observe({ controller: name }, tookMs / 1000)
        works.observe(labels, tookMs / 1000)
      },
    }
  }
}

function requestMetrics({ counter, histogram }: Instruments): Pick<Metrics, "onRequest"> {
  const requests = counter("rest_client_requests_total", "Requests to the API server, retries included.", [
    "code",
    "method",
    "verb",
    "resource",
  ])
  const latencies = histogram("rest_client_request_duration_seconds", "Until the answer of the API server begins.", [
    "verb",
  ])
  return {
    onRequest({ verb, resource, code, durationMs }) {
      requests.inc({
        code: code === 0 ? "<error>" : String(code), // the word that client-go uses
        method: methods[verb],
        verb,
        resource: resource.startsWith("/") ? "raw" : resource,
      })
      if (verb !== "watch") latencies.observe({ verb }, durationMs / 1000)
    },
  }
}

/** What waits for each controller and is in work, read at each scrape. */
function workMetrics({ pulled }: Instruments): Pick<Metrics, "watchController"> {
  const running = new Map<string, RunningController>()
  const perController = (value: (controller: RunningController) => number) =>
    function* (): Iterable<[Labels, number]> {
      for (const controller of running.values()) yield [queueLabels(controller.name), value(controller)]
    }
  const inWork = (controller: RunningController) => controller.inWork().map(({ ms }) => ms / 1000)
  pulled(
    "workqueue_depth",
    "Keys that wait to be taken.",
    queue,
    perController(controller => controller.depth),
  )
  pulled(
    "workqueue_unfinished_work_seconds",
    "Time spent so far on the keys in work, all together.",
    queue,
    perController(controller => inWork(controller).reduce((sum, time) => sum + time, 0)),
  )
  pulled(
    "workqueue_longest_running_processor_seconds",
    "How long the longest look has been going on. One that hangs shows here.",
    queue,
    perController(controller => Math.max(0, ...inWork(controller))),
  )
  pulled("controller_runtime_active_workers", "Keys in work.", ["controller"], function* () {
    for (const controller of running.values()) yield [{ controller: controller.name }, controller.inWork().length]
  })
  return { watchController: controller => void running.set(controller.name, controller) }
}

/** Size and age of the open caches of each controller, read at each scrape. */
function cacheMetrics({ pulled }: Instruments) {
  const caches = new Map<string, { controller: string; resource: string; open: Set<Size> }>()
  const cached = ["controller", "resource"]
  const perCache = (value: (open: Size[]) => number) =>
    function* (): Iterable<[Labels, number]> {
      for (const { controller, resource, open } of caches.values()) yield [{ controller, resource }, value([...open])]
    }
  pulled(
    "aim_cache_objects",
    "Objects held in a cache.",
    cached,
    perCache(open => open.reduce((sum, { size }) => sum + size, 0)),
  )
  pulled(
    "aim_cache_staleness_seconds",
    "Since the API server last said anything about a resource; the worst of its caches.",
    cached,
    perCache(open => Math.max(...open.map(cache => cache.stalenessMs() / 1000))),
  )
  return (controller: string): ControllerObserver["cacheOpened"] =>
    (of, cache) => {
      const resource = resourceName(of)
      const key = `${controller}\n${resource}`
      const group = caches.get(key) ?? { controller, resource, open: new Set<Size>() }
      caches.set(key, group)
      group.open.add(cache)
      return () => {
        group.open.delete(cache)
        if (group.open.size === 0) caches.delete(key)
      }
    }
}

function electionMetrics({ pulled }: Instruments): Pick<Metrics, "watchElection"> {
  const elections = new Map<string, Candidate>()
  pulled("leader_election_master_status", "1 while this process leads.", ["name"], function* () {
    for (const [name, { isLeader }] of elections) yield [{ name }, isLeader() ? 1 : 0]
  })
  pulled(
    "aim_standby_warm",
    "1 while this process waits for the Lease with all its caches in sync.",
    ["name"],
    function* () {
      for (const [name, { isLeader, isWarm }] of elections) yield [{ name }, !isLeader() && isWarm() ? 1 : 0]
    },
  )
  return { watchElection: (lease, candidate) => void elections.set(lease, candidate) }
}

function processMetrics({ counter, pulled }: Instruments, clock: Clock): void {
  const startedAt = clock.now() / 1000
  const one = (name: string, help: string, value: () => number) =>
    pulled(name, help, [], function* () {
      yield [{}, value()]
    })
  one("process_start_time_seconds", "When this process began.", () => startedAt)
  one("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss())
  one("nodejs_heap_size_used_bytes", "Heap in use.", () => process.memoryUsage().heapUsed)
  counter("process_cpu_seconds_total", "CPU time, user and system.", [], () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
}

function loopDelayMetric({ pulled }: Instruments): void {
  pulled("nodejs_eventloop_lag_p99_seconds", "How late timers came since the last scrape.", [], function* () {
    yield [{}, eventLoopLag()]
  })
}

const resolutionMs = 10
let delays: ReturnType<typeof monitorEventLoopDelay> | undefined

/** Measures from the first scrape on: a process that is never scraped has no timer a hundred times a second. */
function eventLoopLag(): number {
  if (!delays) {
    delays = monitorEventLoopDelay({ resolution: resolutionMs })
    delays.enable()
    return 0
  }
  const p99 = delays.percentile(99) / 1e9 - resolutionMs / 1000
  delays.reset()
  return Math.max(0, p99)
}
