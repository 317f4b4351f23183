import { describe, expect, test } from "vitest"
import { recordedBy } from "#runtime/cri/index.ts"
import type { Json, Obj } from "../../object.ts"
import { type TestWorld, type TestWorldOptions, testWorld } from "../node/test-world.ts"
import type { NodeRuntime } from "./index.ts"

const spec = (image = "web:1", more: Json = {}, pod: Json = {}) => ({
  containers: [{ name: "app", image, ...more }],
  ...pod,
})
const runtimeOf = (world: TestWorld, node = "node-0") => world.cluster.node(node)?.runtime as NodeRuntime
const statusOf = (world: TestWorld, name = "app") =>
  world.pod("pod")?.status.containerStatuses.find((each: Json) => each.name === name)
const idOf = (world: TestWorld, name = "app"): string => statusOf(world, name).containerID.replace("containerd://", "")

/** A world in which one pod runs. */
async function running(image: Json = {}, podSpec: Json = spec("ghcr.io/web:1"), options: TestWorldOptions = {}) {
  const world = testWorld(options)
  world.registries.push("ghcr.io/web:1", image)
  world.create("pod", podSpec)
  await world.advance("5s")
  const runtime = runtimeOf(world)
  return { world, runtime, client: runtime.connect() }
}

/** How a promise stands, without waiting for it. */
function watched<T>(promise: Promise<T>, clock: { now(): number }) {
  const since = clock.now()
  const seen: { is: "pending" | "resolved" | "rejected"; value?: T; error?: Json; afterMs?: number } = { is: "pending" }
  promise.then(
    value => Object.assign(seen, { is: "resolved", value, afterMs: clock.now() - since }),
    error => Object.assign(seen, { is: "rejected", error, afterMs: clock.now() - since }),
  )
  return seen
}

describe("containers", () => {
  test("have the kubelet's labels and annotations", async () => {
    const lifecycle = { preStop: { exec: { command: ["/bin/drain"] } } }
    const ports = [{ name: "http", containerPort: 8080 }]
    const pod = spec("ghcr.io/web:1", { lifecycle, ports }, { terminationGracePeriodSeconds: 7 })
    const { world, client } = await running({}, pod)
    const { uid } = (world.pod("pod") as Obj).metadata
    const [listed, ...others] = await client.listContainers({ labels: { "io.kubernetes.pod.uid": uid } })
    expect(others).toEqual([])
    expect(listed).toMatchObject({ id: idOf(world), name: "app", attempt: 0, state: "Running" })
    expect(listed && recordedBy(listed)).toEqual({
      podUid: uid,
      podName: "pod",
      podNamespace: "default",
      restartCount: 0,
      preStop: lifecycle.preStop,
      ports: [{ ...ports[0], protocol: "TCP" }],
      terminationGracePeriodSeconds: 7,
    })
    expect(listed?.annotations["io.kubernetes.container.hash"]).toMatch(/^[0-9a-f]{1,8}$/)
    expect(await client.listContainers({ labels: { "io.kubernetes.pod.uid": "another" } })).toEqual([])
    const sandbox = await client.podSandboxStatus(listed?.podSandboxId ?? "")
    expect(sandbox).toMatchObject({ uid, name: "pod", isReady: true, addresses: [world.pod("pod")?.status.podIP] })
  })

  test("of one name: the newest dead one is kept beside the running one, and all go with the pod", async () => {
    const { world, client } = await running({ exits: { afterMs: 1000, exitCode: 3 } })
    await world.advance("2m")
    const listed = await client.listContainers()
    const dead = listed.filter(({ state }) => state === "Exited").map(({ attempt }) => attempt)
    expect(dead).toHaveLength(1)
    expect(dead[0]).toBeGreaterThanOrEqual(3)
    world.remove("pod", 0)
    await world.advance("5s")
    expect(await client.listContainers()).toEqual([])
  })

  test("of an ended pod are kept as long as its object", async () => {
    const { world, client } = await running(
      { exits: { afterMs: 1000, exitCode: 0 } },
      spec("ghcr.io/web:1", {}, { restartPolicy: "Never" }),
    )
    await world.advance("1h")
    expect(await client.listContainers()).toMatchObject([{ state: "Exited" }])
    world.remove("pod")
    expect(await client.listContainers()).toEqual([])
  })
})

describe("a stop", () => {
  test("ends a polite container with its own exit code, and the kubelet starts the next one", async () => {
    const { world, client } = await running({ stopsAfterMs: 400 })
    const id = idOf(world)
    const stop = watched(client.stopContainer(id, { graceSeconds: 30 }), world.clock)
    await world.advance("399ms")
    expect(stop.is).toBe("pending")
    await world.advance("1ms")
    expect(stop.is).toBe("resolved")
    expect(await client.containerStatus(id)).toMatchObject({ state: "Exited", exitCode: 0, reason: "Completed" })
    await world.advance("3s")
    expect(idOf(world)).not.toBe(id)
    expect(statusOf(world)).toMatchObject({ restartCount: 1, ready: true })
    expect(await client.containerStatus(id)).toMatchObject({ state: "Exited", attempt: 0 })
  })

  test("kills a stubborn container at the end of the grace period", async () => {
    const { world, client } = await running({ ignoresTerm: true })
    const id = idOf(world)
    const stop = watched(client.stopContainer(id, { graceSeconds: 3 }), world.clock)
    await world.advance("10s")
    expect(stop).toMatchObject({ is: "resolved", afterMs: 3000 })
    expect(await client.containerStatus(id)).toMatchObject({ exitCode: 137, reason: "Error" })
  })

  test("without a grace period kills at once", async () => {
    const { world, client } = await running()
    const id = idOf(world)
    await client.stopContainer(id, { graceSeconds: 0 })
    expect(await client.containerStatus(id)).toMatchObject({ state: "Exited", exitCode: 137 })
  })

  test("whose caller is gone has sent SIGTERM and kills no more; the next one starts from the beginning", async () => {
    const { world, client } = await running({ ignoresTerm: true })
    const id = idOf(world)
    const caller = new AbortController()
    const first = watched(client.stopContainer(id, { graceSeconds: 3 }, { signal: caller.signal }), world.clock)
    await world.advance("1s")
    caller.abort(new Error("the agent died"))
    await world.advance("1h")
    expect(first).toMatchObject({ is: "rejected", afterMs: 1000 })
    expect(idOf(world)).toBe(id)
    const second = watched(client.stopContainer(id, { graceSeconds: 3 }), world.clock)
    await world.advance("10s")
    expect(second).toMatchObject({ is: "resolved", afterMs: 3000 })
  })

  test("whose caller is gone still ends a polite container", async () => {
    const { world, client } = await running({ stopsAfterMs: 5000 })
    const id = idOf(world)
    const caller = new AbortController()
    client.stopContainer(id, { graceSeconds: 30 }, { signal: caller.signal }).catch(() => {})
    caller.abort()
    await world.advance("4s")
    expect(idOf(world)).toBe(id)
    await world.advance("4s")
    expect(statusOf(world)).toMatchObject({ restartCount: 1 })
  })

  test("beside another one: the shorter grace period ends both", async () => {
    const { world, client } = await running({ ignoresTerm: true })
    const id = idOf(world)
    const [long, short] = [5, 2].map(graceSeconds => watched(client.stopContainer(id, { graceSeconds }), world.clock))
    await world.advance("10s")
    expect([long, short]).toMatchObject([{ afterMs: 2000 }, { afterMs: 2000 }])
  })

  test("of an ended or unknown container is done at once", async () => {
    const { world, client } = await running()
    const id = idOf(world)
    await client.stopContainer(id, { graceSeconds: 0 })
    await client.stopContainer(id, { graceSeconds: 30 })
    await client.stopContainer("0".repeat(64), { graceSeconds: 30 })
    expect(await client.containerStatus("0".repeat(64))).toBeUndefined()
  })

  test("of one container leaves the pod and its other container alone; repeated, it waits 10 s and then 20 s", async () => {
    const two = { containers: [...spec("ghcr.io/web:1").containers, { name: "side", image: "side:1" }] }
    const { world, client } = await running({}, two)
    const before = world.pod("pod") as Obj
    const waits: number[] = []
    for (let turn = 0; turn < 3; turn++) {
      const id = idOf(world)
      await client.stopContainer(id, { graceSeconds: 0 })
      const since = world.clock.now()
      while (idOf(world) === id || !statusOf(world).state.running) await world.clock.advance(100)
      waits.push((world.clock.now() - since) / 1000)
    }
    for (const [turn, least] of [0, 10, 20].entries()) {
      expect(waits[turn]).toBeGreaterThanOrEqual(least)
      expect(waits[turn]).toBeLessThan(1.5 * least + 3)
    }
    const after = world.pod("pod") as Obj
    expect([after.metadata.uid, after.status.podIP]).toEqual([before.metadata.uid, before.status.podIP])
    expect(statusOf(world)).toMatchObject({ restartCount: 3 })
    expect(statusOf(world, "side")).toEqual(before.status.containerStatuses[1])
  })

  test("by a kubelet that dies is repeated when it is back", async () => {
    const { world } = await running(
      { ignoresTerm: true },
      spec("ghcr.io/web:1", {}, { terminationGracePeriodSeconds: 20 }),
    )
    world.remove("pod")
    await world.advance("5s")
    world.machines.stopKubelet("node-0")
    await world.advance("10m")
    expect([...runtimeOf(world).containers.all()]).toMatchObject([{ state: "running" }])
    world.machines.startKubelet("node-0")
    await world.advance("19s")
    expect(world.pod("pod")).toBeDefined()
    await world.advance("5s")
    expect(world.pod("pod")).toBeUndefined()
  })
})

test("a command runs as the image says", async () => {
  const { world, client } = await running({ exec: { takesMs: 2000, exitCode: 4, output: "drained" } })
  const id = idOf(world)
  const run = (timeoutSeconds: number) => client.execSync(id, { command: ["/bin/drain"], timeoutSeconds })
  const [enough, short] = [watched(run(5), world.clock), watched(run(1), world.clock)]
  await world.advance("3s")
  expect(enough).toMatchObject({ is: "resolved", afterMs: 2000, value: { exitCode: 4, output: "drained" } })
  expect(short).toMatchObject({ is: "rejected", afterMs: 1000, error: { kind: "DeadlineExceeded" } })
  const other = await running({ exec: ([name = ""]: string[]) => (name === "ls" ? { exitCode: 2 } : undefined) })
  const each = (command: string[]) => other.client.execSync(idOf(other.world), { command, timeoutSeconds: 1 })
  const [known, unknown] = [["ls"], ["ps"]].map(command => watched(each(command), other.world.clock))
  await other.world.advance("1ms")
  expect(known).toMatchObject({ value: { exitCode: 2 } })
  expect(unknown).toMatchObject({ error: { kind: "Failed" } })
  const missing = watched(client.execSync("0".repeat(64), { command: [], timeoutSeconds: 1 }), world.clock)
  await world.advance("1ms")
  expect(missing).toMatchObject({ error: { kind: "NotFound" } })
})
