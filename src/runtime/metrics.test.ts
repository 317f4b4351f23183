import { register } from "@prometheus-io/client"
import { describe, expect, test } from "vitest"
import { virtualClock } from "./clock.ts"
import type { RunningController } from "./controller.ts"
import { createMetrics } from "./metrics.ts"
import { core } from "./resource.ts"

const pods = core("pods", "Pod")
const metrics = () => createMetrics({ clock: virtualClock(1_000_000) })
const lines = async (from: { text(): Promise<string> }, begin: string) =>
  (await from.text()).split("\n").filter(line => line.startsWith(begin))

describe("metrics", () => {
  test("live in a registry of their own", async () => {
    const text = await metrics().text()
    expect(text).toContain("process_start_time_seconds 1000")
    expect(await register.metrics()).toBe("\n")
  })

  test("leave the delay of the event loop out where it costs too much", async () => {
    const text = await createMetrics({ clock: virtualClock(), hasLoopDelay: false }).text()
    expect(text).not.toContain("nodejs_eventloop")
    expect(text).toContain("process_resident_memory_bytes")
  })

  test("report how late timers fire, from the first scrape on", async () => {
    const all = metrics()
    const lagSeconds = async () => Number((await lines(all, "nodejs_eventloop_lag_p99_seconds"))[0]?.split(" ")[1])
    await expect
      .poll(async () => {
        for (const until = performance.now() + 100; performance.now() < until; );
        await new Promise(resolve => setTimeout(resolve, 20))
        return lagSeconds()
      })
      .toBeGreaterThan(0.05)
  })

  test("of a loop have controller-runtime's names, and begin at zero", async () => {
    const all = metrics()
    const observer = all.controller("stamper")
    expect(await lines(all, "controller_runtime_reconcile_total")).toContain(
      'controller_runtime_reconcile_total{controller="stamper",result="error"} 0',
    )
    observer.queue.added()
    observer.queue.taken(30)
    observer.queue.retried()
    observer.reconciled("success", 40)
    observer.reconciled("error", 2_000)
    const text = await all.text()
    for (const line of [
      'workqueue_adds_total{name="stamper",controller="stamper"} 1',
      'workqueue_retries_total{name="stamper",controller="stamper"} 1',
      'workqueue_queue_duration_seconds_sum{name="stamper",controller="stamper"} 0.03',
      'controller_runtime_reconcile_total{controller="stamper",result="success"} 1',
      'controller_runtime_reconcile_errors_total{controller="stamper"} 1',
      'controller_runtime_reconcile_time_seconds_sum{controller="stamper"} 2.04',
      'controller_runtime_reconcile_time_seconds_bucket{le="0.05",controller="stamper"} 1',
    ]) {
      expect(text).toContain(line)
    }
  })

  test("of a running controller are read at each scrape", async () => {
    const all = metrics()
    let keys = [
      { key: "a", ms: 61_000 },
      { key: "b", ms: 2_000 },
    ]
    all.watchController({ name: "stamper", depth: 7, inWork: () => keys } as unknown as RunningController)
    expect(await lines(all, "workqueue_")).toEqual(
      expect.arrayContaining([
        'workqueue_depth{name="stamper",controller="stamper"} 7',
        'workqueue_unfinished_work_seconds{name="stamper",controller="stamper"} 63',
        'workqueue_longest_running_processor_seconds{name="stamper",controller="stamper"} 61',
      ]),
    )
    keys = []
    expect(await lines(all, "workqueue_longest")).toEqual([
      'workqueue_longest_running_processor_seconds{name="stamper",controller="stamper"} 0',
    ])
  })

  test("of caches add up per resource, show the stalest, and go when they are closed", async () => {
    const all = metrics()
    const observer = all.controller("stamper")
    const closers = [
      observer.cacheOpened(pods, { size: 3, stalenessMs: () => 1000 }),
      observer.cacheOpened(pods, { size: 4, stalenessMs: () => 9000 }),
    ]
    expect(await lines(all, "aim_cache")).toEqual([
      'aim_cache_objects{controller="stamper",resource="pods"} 7',
      'aim_cache_staleness_seconds{controller="stamper",resource="pods"} 9',
    ])
    for (const close of closers) close()
    expect(await lines(all, "aim_cache")).toEqual([])
  })

  test("of requests have few label values, whatever path was asked", async () => {
    const all = metrics()
    all.onRequest({ verb: "update", resource: "leases.coordination.k8s.io", code: 409, durationMs: 20 })
    all.onRequest({ verb: "get", resource: "/readyz?secret=1", code: 0, durationMs: 20 })
    all.onRequest({ verb: "watch", resource: "pods", code: 200, durationMs: 20 })
    expect(await lines(all, "rest_client_requests_total")).toEqual([
      'rest_client_requests_total{code="409",method="PUT",verb="update",resource="leases.coordination.k8s.io"} 1',
      'rest_client_requests_total{code="<error>",method="GET",verb="get",resource="raw"} 1',
      'rest_client_requests_total{code="200",method="GET",verb="watch",resource="pods"} 1',
    ])
    expect(await lines(all, "rest_client_request_duration_seconds_count")).toHaveLength(2)
  })

  test("of an election show whether this process leads now", async () => {
    const all = metrics()
    let leads = false
    all.watchElection("aim", { isLeader: () => leads, isWarm: () => true })
    expect(await lines(all, "leader_")).toEqual(['leader_election_master_status{name="aim"} 0'])
    leads = true
    expect(await lines(all, "leader_")).toEqual(['leader_election_master_status{name="aim"} 1'])
  })

  test("of a controller's own carry the prefix, and a second declaration shares the first", async () => {
    const all = metrics()
    const stamps = { name: "stamps_total", help: "Images written.", labels: ["kind"] }
    all.counter(stamps).add({ kind: "Deployment" })
    all.counter(stamps).add({ kind: "Deployment" }, 2)
    all.counter(stamps).add({ kind: "Gone" })
    all.counter(stamps).remove({ kind: "Gone" })
    const tiers = all.gauge({ name: "tiers", help: "Tiers.", labels: ["state"] })
    tiers.set({ state: "open" }, 3)
    tiers.set({ state: "gone" }, 1)
    tiers.remove({ state: "gone" })
    all.histogram({ name: "probe_duration_seconds", help: "Probes.", buckets: [1, 2] }).observe({}, 1.5)
    expect(await lines(all, "aim_")).toEqual([
      'aim_stamps_total{kind="Deployment"} 3',
      'aim_tiers{state="open"} 3',
      'aim_probe_duration_seconds_bucket{le="1"} 0',
      'aim_probe_duration_seconds_bucket{le="2"} 1',
      'aim_probe_duration_seconds_bucket{le="+Inf"} 1',
      "aim_probe_duration_seconds_sum 1.5",
      "aim_probe_duration_seconds_count 1",
    ])
  })
})
