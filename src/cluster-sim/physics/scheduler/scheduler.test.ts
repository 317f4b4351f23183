import { describe, expect, test } from "vitest"
import type { Json } from "../../object.ts"
import { type TestWorld, testWorld } from "../node/test-world.ts"
import { explain } from "./fitting.ts"

const spec = (more: Json = {}) => ({ containers: [{ name: "app", image: "web:1" }], ...more })
const asking = (requests: Json) => ({ containers: [{ name: "app", image: "web:1", resources: { requests } }] })
const scheduled = (world: TestWorld, name: string) =>
  world.pod(name)?.status.conditions?.find(({ type }: Json) => type === "PodScheduled")

describe("one pod and two nodes, of which b is small", () => {
  const cases: Record<string, { nodes?: [Json, Json]; pod: Json; on?: string; message?: string }> = {
    "goes where its selector matches": { pod: spec({ nodeSelector: { size: "small" } }), on: "b" },
    "goes where its affinity matches": {
      pod: spec(affinity({ key: "size", operator: "NotIn", values: ["small"] })),
      on: "a",
    },
    "goes to the node that it selects by name": {
      pod: spec({
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["b"] }] }],
            },
          },
        },
      }),
      on: "b",
    },
    "goes where there is room": { pod: asking({ cpu: "3" }), on: "a" },
    "avoids a taint": { nodes: [{ taints: [{ key: "x", effect: "NoSchedule" }] }, {}], pod: spec(), on: "b" },
    "tolerates a taint": {
      nodes: [{ taints: [{ key: "x", value: "y", effect: "NoSchedule" }] }, { unschedulable: true }],
      pod: spec({ tolerations: [{ key: "x", operator: "Equal", value: "y" }] }),
      on: "a",
    },
    "waits: nothing matches": {
      pod: spec({ nodeSelector: { zone: "nowhere" } }),
      message:
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    },
    "waits: a taint and a cordon": {
      nodes: [{ taints: [{ key: "x", effect: "NoExecute" }] }, { unschedulable: true }],
      pod: spec(),
      message:
        "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    },
    "waits: more than any node has": {
      pod: asking({ cpu: "1000", memory: "100000Gi" }),
      message:
        "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
    },
  }
  for (const [name, { nodes: [a, b] = [{}, {}], pod, on, message }] of Object.entries(cases))
    test(name, async () => {
      const world = testWorld({ nodes: [] })
      world.node({ name: "a", cpu: "4", ...a })
      world.node({ name: "b", cpu: "2", labels: { size: "small" }, ...b })
      world.create("pod", pod)
      await world.advance("1s")
      expect(world.pod("pod")?.spec.nodeName).toBe(on)
      expect(scheduled(world, "pod")).toMatchObject(
        on ? { status: "True" } : { status: "False", reason: "Unschedulable", observedGeneration: 1, message },
      )
      if (message) expect(world.events("pod")).toEqual([`Warning FailedScheduling ${message}`])
    })
})

function affinity(expression: Json) {
  const nodeSelectorTerms = [{ matchExpressions: [expression] }]
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } }
}

test("a waiting pod is bound when a node is added, is uncordoned, or has room again", async () => {
  const world = testWorld({ nodes: [] })
  world.create("first", asking({ cpu: "3" }))
  await world.advance("1s")
  expect(scheduled(world, "first")).toMatchObject({ message: "no nodes available to schedule pods" })
  world.node({ name: "a", cpu: "4" })
  await world.advance("5s")
  expect(world.pod("first")?.spec.nodeName).toBe("a")

  world.create("second", asking({ cpu: "3" }))
  await world.advance("1s")
  expect(scheduled(world, "second").message).toBe(
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
  )
  world.remove("first")
  await world.advance("20s")
  expect(world.pod("second")?.spec.nodeName).toBe("a")
})

test("a gated pod is not scheduled until its gates are gone", async () => {
  const world = testWorld({ nodes: ["a"] })
  world.create("pod", spec({ schedulingGates: [{ name: "example.com/wait" }] }))
  await world.advance("1s")
  expect(scheduled(world, "pod")).toMatchObject({ status: "False", reason: "SchedulingGated" })
  world.patch("pod", { spec: { schedulingGates: null } })
  await world.advance("1s")
  expect(world.pod("pod")?.spec.nodeName).toBe("a")
})

test("where there is room for one, it is the one of higher priority", async () => {
  const world = testWorld({ nodes: [] })
  world.node({ name: "a", pods: "1" })
  for (const [name, priority] of [
    ["low", 0],
    ["high", 10],
    ["middle", 5],
  ] as const)
    world.create(name, spec({ priority }))
  await world.advance("2s")
  expect(["low", "high", "middle"].map(name => world.pod(name)?.spec.nodeName)).toEqual([undefined, "a", undefined])
  expect(scheduled(world, "low").message).toMatch(/^0\/1 nodes are available: 1 Too many pods\. /)
})

test("pods of one owner are spread", async () => {
  const world = testWorld({ nodes: ["a", "b", "c"] })
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "r-1", controller: true }]
  for (let i = 0; i < 9; i++) world.create(`pod-${i}`, spec(), { ownerReferences })
  await world.advance("1s")
  const nodes = Array.from({ length: 9 }, (_, i) => world.pod(`pod-${i}`)?.spec.nodeName).sort()
  expect(nodes.join("")).toBe("aaabbbccc")
})

test("another seed spreads in another order, the same seed in the same", async () => {
  const places = async (seed: number) => {
    const world = testWorld({ nodes: ["a", "b", "c", "d"], seed })
    for (let i = 0; i < 4; i++) world.create(`pod-${i}`, spec())
    await world.advance("1s")
    return Array.from({ length: 4 }, (_, i) => world.pod(`pod-${i}`)?.spec.nodeName).join("")
  }
  expect(await places(1)).toBe(await places(1))
  expect(new Set([await places(1), await places(2), await places(3)]).size).toBeGreaterThan(1)
})

test("the message counts reasons over nodes, and sorts them as text", () => {
  const no = (reason: string, couldPreempt = false) => ({ reasons: [reason], couldPreempt })
  expect(explain(12, [...Array(10).fill(no("Insufficient cpu", true)), no("Too many pods", true)], 1)).toBe(
    "0/12 nodes are available: 1 Too many pods, 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 10 Insufficient cpu. no new claims to deallocate, preemption: 0/12 nodes are available: 1 Preemption is not helpful for scheduling, 11 No preemption victims found for incoming pod.",
  )
})
