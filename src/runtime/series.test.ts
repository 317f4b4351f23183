import { expect, test } from "vitest"
import { virtualClock } from "./clock.ts"
import { createMetrics } from "./metrics.ts"
import { earliestOf, sumsOf } from "./series.ts"

const declared = { jobs: { type: "gauge", help: "Jobs.", labels: ["namespace", "reason"] } } as const

function start() {
  const registry = createMetrics({ clock: virtualClock() })
  const sums = sumsOf(registry, declared)
  const job = (namespace: string, reason: string, value = 1) =>
    ({ metric: "jobs", labels: { namespace, reason }, value }) as const
  const shown = async () => (await registry.text()).split("\n").filter(line => line.startsWith("aim_jobs{"))
  return { sums, job, shown }
}

test("a sum is over all objects, and what an object added before is replaced", async () => {
  const { sums, job, shown } = start()
  sums.publish("a/1", [job("a", "Pulling")])
  sums.publish("a/2", [job("a", "Pulling")])
  sums.publish("b/1", [job("b", "Paused", 3)])
  expect(await shown()).toEqual([
    'aim_jobs{namespace="a",reason="Pulling"} 2',
    'aim_jobs{namespace="b",reason="Paused"} 3',
  ])
  sums.publish("a/2", [job("a", "Paused")])
  sums.publish("b/1", [job("b", "Paused", 5)])
  expect(await shown()).toEqual([
    'aim_jobs{namespace="a",reason="Pulling"} 1',
    'aim_jobs{namespace="b",reason="Paused"} 5',
    'aim_jobs{namespace="a",reason="Paused"} 1',
  ])
})

test("a sum ends with the last object that adds to it, and zero is a value", async () => {
  const { sums, job, shown } = start()
  sums.publish("a/1", [job("a", "Pulling", 0)])
  sums.publish("a/2", [job("a", "Pulling", 2)])
  sums.forget("a/2")
  sums.forget("a/2")
  expect(await shown()).toEqual(['aim_jobs{namespace="a",reason="Pulling"} 0'])
  sums.publish("a/1", [])
  expect(await shown()).toEqual([])
})

test("the earliest time of a namespace is shown, and ends with the last of its objects", async () => {
  const registry = createMetrics({ clock: virtualClock() })
  const labels = ["namespace", "kind"] as const
  const oldest = earliestOf(registry, { since: { type: "gauge", help: "Since.", labels } }, { kind: "Job" })
  const shown = async () => (await registry.text()).split("\n").filter(line => line.startsWith("aim_since{"))
  oldest.set("a/1", 5000)
  oldest.set("a/2", 3000)
  oldest.set("b/1", 9000)
  const ofB = 'aim_since{namespace="b",kind="Job"} 9'
  expect(await shown()).toEqual(['aim_since{namespace="a",kind="Job"} 3', ofB])
  oldest.forget("a/2")
  expect(await shown()).toEqual(['aim_since{namespace="a",kind="Job"} 5', ofB])
  oldest.forget("a/1")
  oldest.forget("a/1")
  expect(await shown()).toEqual([ofB])
})
