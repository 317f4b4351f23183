import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Json, Obj } from "../../object.ts"
import { podOf } from "../node/recorded/cases.ts"
import {
  type NodeSighting,
  type NodeStep,
  nodeSeconds,
  nodeSteps,
  nodeStoryLine,
  runtimeSeconds,
  runtimeSteps,
} from "../node/recorded/node-story.ts"
import { type TestWorld, testWorld } from "../node/test-world.ts"
import { nodeLifecycle } from "./node-lifecycle.ts"

const worldOf = (nodes: string[]) => testWorld({ nodes, more: [nodeLifecycle] })
const spec = (more: Json = {}) => ({ containers: [{ name: "app", image: "web:1" }], ...more })
const node = (world: TestWorld, name: string) => world.storage.get(world.kind("Node"), { name })
const taints = (world: TestWorld, name: string): string[] =>
  (node(world, name).spec.taints ?? []).map(({ key, effect }: Json) => `${key}:${effect}`)
const ready = ({ status }: Obj) => status.conditions.find(({ type }: Json) => type === "Ready").status

const recorded: Record<"nodeStory" | "runtimeStory", NodeSighting[]> = JSON.parse(
  readFileSync(join(import.meta.dirname, "../node/recorded/recorded.json"), "utf8"),
)

/** Lives a recorded story of a node again, compares what was seen, and returns it. */
async function relive(real: NodeSighting[], steps: readonly NodeStep[], seconds: number): Promise<NodeSighting[]> {
  const world = worldOf(["real-0"])
  await world.advance("1s")
  const seen: NodeSighting[] = []
  const see = (type: string, object: Obj) => {
    const about = `${object.kind} ${object.metadata.name}`
    const text = type === "DELETED" ? `${about} gone` : nodeStoryLine(object)
    if (text && seen.findLast(each => each.about === about)?.text !== text)
      seen.push({ atMs: world.clock.now() - begin, about, text })
  }
  const begin = world.clock.now()
  see("ADDED", node(world, "real-0"))
  for (const event of world.storage.list(world.kind("Event")).items) see("ADDED", event)
  for (const kind of ["Node", "Pod", "Event"])
    world.storage.subscribe(world.kind(kind), ({ type, object }) => see(type, object))
  for (const step of steps) {
    await world.clock.advance(begin + 1000 * step.atSeconds - world.clock.now())
    if (step.do === "stopKubelet") world.machines.stopKubelet("real-0")
    if (step.do === "startKubelet") world.machines.startKubelet("real-0")
    if (step.do === "stopRuntime") world.cluster.node("real-0")?.runtime.die()
    if (step.do === "startRuntime") world.cluster.node("real-0")?.runtime.revive()
    if (step.do === "patchNode")
      world.storage.patch(world.kind("Node"), { name: "real-0" }, { type: "merge", body: step.body })
    if (step.do === "pod") world.create(step.name, podOf({ name: step.name, spec: spec(step.spec), seconds: 0 }).spec)
  }
  await world.clock.advance(begin + 1000 * seconds - world.clock.now())

  const told = (all: NodeSighting[], about: RegExp) =>
    all.filter(each => about.test(each.about)).map(({ text }) => text)
  expect(told(seen, /^Node /)).toEqual(told(real, /^Node /))
  for (const { name } of steps.filter(step => step.do === "pod")) {
    const about = new RegExp(`^Pod ${name}$`)
    expect(told(seen, about)).toEqual(told(real, about))
  }
  expect(told(seen, /^Event /).sort()).toEqual(told(real, /^Event /).sort())
  return seen
}

const firstAt = (all: NodeSighting[], what: RegExp) => all.find(({ text }) => what.test(text))?.atMs ?? 0

test("a node that is cordoned, tainted, lost and found, and its pods, as on the real one", async () => {
  const seen = await relive(recorded.nodeStory, nodeSteps, nodeSeconds)
  const lost = (all: NodeSighting[]) => firstAt(all, /Ready Unknown/)
  // Up to ten seconds are between the last renewal and the death, and five between two checks.
  expect(Math.abs(lost(seen) - lost(recorded.nodeStory))).toBeLessThan(10_000)
})

test("a node whose container runtime dies and returns, as on the real one", async () => {
  const seen = await relive(recorded.runtimeStory, runtimeSteps, runtimeSeconds)
  const down = (all: NodeSighting[]) => firstAt(all, /container runtime is down/)
  expect(Math.abs(down(seen) - down(recorded.runtimeStory))).toBeLessThan(5000)
})

describe("a node that falls silent among others", () => {
  test("is tainted; its pods are deleted after their toleration, and end only when it is back", async () => {
    const world = worldOf(["a", "b", "c"])
    world.create("pod", spec({ nodeSelector: { "kubernetes.io/hostname": "a" } }))
    await world.advance("5s")
    world.machines.stopKubelet("a")
    await world.advance("60s")
    expect(ready(node(world, "a"))).toBe("Unknown")
    expect(taints(world, "a")).toEqual([
      "node.kubernetes.io/unreachable:NoSchedule",
      "node.kubernetes.io/unreachable:NoExecute",
    ])
    expect(ready(world.pod("pod") as Obj)).toBe("False")
    expect(world.pod("pod")?.metadata.deletionTimestamp).toBeUndefined()
    await world.advance("5m")
    expect(world.pod("pod")?.metadata.deletionTimestamp).toBeDefined()
    await world.advance("10m")
    expect(world.pod("pod")?.status.phase).toBe("Running") // no kubelet is there to end it
    world.machines.startKubelet("a")
    await world.advance("40s")
    expect(world.pod("pod")).toBeUndefined()
    expect([ready(node(world, "a")), taints(world, "a")]).toEqual(["True", []])
  })

  test("keeps its pods when it is back in time", async () => {
    const world = worldOf(["a", "b"])
    world.create("pod", spec({ nodeSelector: { "kubernetes.io/hostname": "a" } }))
    await world.advance("5s")
    world.machines.stopKubelet("a")
    await world.advance("2m")
    world.machines.startKubelet("a")
    await world.advance("10m")
    expect(world.pod("pod")?.metadata.deletionTimestamp).toBeUndefined()
    expect(ready(world.pod("pod") as Obj)).toBe("True")
    expect(world.events("pod")).toContain("Normal TaintManagerEviction Cancelling deletion of Pod default/pod")
  })

  test("a container that crashes meanwhile is found and restarted afterwards", async () => {
    const world = worldOf(["a", "b"])
    world.registries.push("ghcr.io/web:1", { exits: { afterMs: 30_000, exitCode: 1 } })
    world.create("pod", { nodeName: "a", containers: [{ name: "app", image: "ghcr.io/web:1" }] })
    await world.advance("5s")
    world.machines.stopKubelet("a")
    await world.advance("1m")
    expect(world.pod("pod")?.status.containerStatuses[0]).toMatchObject({ restartCount: 0, state: { running: {} } })
    world.machines.startKubelet("a")
    await world.advance("5s")
    expect(world.pod("pod")?.status.containerStatuses[0]).toMatchObject({ restartCount: 1 })
  })
})

test("pods of a node that is removed are removed too", async () => {
  const world = worldOf(["a", "b"])
  world.create("pod", spec({ nodeSelector: { "kubernetes.io/hostname": "a" } }))
  await world.advance("5s")
  world.storage.delete(world.kind("Node"), { name: "a" })
  await world.advance("30s")
  expect(world.pod("pod")).toBeDefined()
  await world.advance("30s")
  expect(world.pod("pod")).toBeUndefined()
})
