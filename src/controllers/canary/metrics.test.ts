import { expect, test } from "vitest"
import type { Canary, CanaryStatus } from "#api/v1alpha1/canary/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { createMetrics } from "#runtime/metrics.ts"
import { createCanaryMetrics } from "./metrics.ts"

const analysis = { stepWeights: [20, 50] }
const stalled = (status: "True" | "False", reason: string) => [{ type: "Stalled", status, reason }]
const status = (more: object): CanaryStatus =>
  ({
    phase: "Initialized",
    conditions: stalled("False", "NotStalled"),
    history: [],
    ...more,
  }) as unknown as CanaryStatus
const run = {
  id: "r1",
  weight: 20,
  failedChecks: 1,
  startedAt: "2026-11-17T10:00:00Z",
  metrics: [
    { name: "errors", verdict: "Good", value: "0.5" },
    { name: "latency", verdict: "NoData" },
  ],
}
const ended = (id: string, result: string) => ({
  id,
  result,
  startedAt: "2026-11-17T10:00:00Z",
  endedAt: "2026-11-17T10:04:10Z",
})

function world() {
  const registry = createMetrics({ clock: virtualClock() })
  const metrics = createCanaryMetrics(registry)
  let before: CanaryStatus | undefined
  return {
    metrics,
    publish(more: object) {
      const after = status(more)
      metrics.publish("shop/web", { spec: { analysis }, status: before } as unknown as Canary, after)
      before = after
    },
    shown: async () =>
      (await registry.text())
        .split("\n")
        .filter(line => line.startsWith("aim_canary_") && !/_total.* 0$/.test(line))
        .map(line =>
          line.replace("aim_canary_", "").replace('namespace="shop",canary="web"', "web").replace("web,", ""),
        ),
  }
}

test("a run is shown while it lasts, and its end is counted once", async () => {
  const { publish, shown } = world()
  publish({})
  expect(await shown()).toEqual(['phase{phase="Initialized"} 1'])
  publish({ phase: "Progressing", run })
  expect(await shown()).toEqual([
    'phase{phase="Progressing"} 1',
    "weight{web} 20",
    "failed_checks{web} 1",
    "run_started_timestamp_seconds{web} 1794909600",
    'metric_value{metric="errors"} 0.5',
    'metric_verdict{metric="errors",verdict="Good"} 1',
    'metric_verdict{metric="latency",verdict="NoData"} 1',
  ])
  for (let look = 0; look < 3; look++) publish({ phase: "Succeeded", history: [ended("r1", "Promoted")] })
  expect(await shown()).toEqual([
    'phase{phase="Succeeded"} 1',
    "last_run_duration_seconds{web} 250",
    'runs_total{strategy="Weighted",result="Promoted"} 1',
  ])
})

test("a person is needed: Stalled has its reason, also after a failed run, until the template is taken back", async () => {
  const { publish, shown } = world()
  publish({ conditions: stalled("True", "InvalidQuery") })
  expect(await shown()).toContain('stalled{reason="InvalidQuery"} 1')
  publish({ phase: "Failed", conditions: stalled("True", "Rejected"), history: [ended("r1", "RolledBack")] })
  expect((await shown()).filter(line => line.startsWith("stalled"))).toEqual(['stalled{reason="Rejected"} 1'])
  expect(await shown()).toContain('runs_total{strategy="Weighted",result="RolledBack"} 1')
  publish({ phase: "Failed", conditions: stalled("False", "Reverted"), history: [ended("r1", "RolledBack")] })
  expect((await shown()).filter(line => line.startsWith("stalled"))).toEqual([])
})

test("the series of a Canary end with it", async () => {
  const { metrics, publish, shown } = world()
  publish({ phase: "Progressing", run })
  metrics.forget("shop/web")
  expect(await shown()).toEqual([])
})
