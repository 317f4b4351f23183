import { describe, expect, test } from "vitest"
import type { Json, Obj } from "../../object.ts"
import { type TestWorld, testWorld } from "./test-world.ts"

const spec = (image = "web:1", more: Json = {}, pod: Json = {}) => ({
  containers: [{ name: "app", image, ...more }],
  ...pod,
})
const app = (pod: Obj | undefined) => pod?.status.containerStatuses?.[0]
const condition = (pod: Obj | undefined, type: string) =>
  pod?.status.conditions?.find((each: Json) => each.type === type)?.status

/** The times of image pulls, in seconds since the start. Events do not suffice: after 25 about one pod they stop. */
function pullsOf(world: TestWorld): number[] {
  const seen: number[] = []
  const begin = world.clock.now()
  const { pull } = world.registries
  world.registries.pull = (image, at) => {
    seen.push((at.now - begin) / 1000)
    return pull(image, at)
  }
  return seen
}

/** The start times of the pod's container, in seconds. */
function startsOf(world: TestWorld): number[] {
  const seen: number[] = []
  world.storage.subscribe(world.kind("Pod"), ({ object }) => {
    const { running } = app(object)?.state ?? {}
    const at = running && Date.parse(running.startedAt) / 1000
    if (at && at !== seen.at(-1)) seen.push(at)
  })
  return seen
}
const gaps = (at: number[]) => at.slice(1).map((each, i) => each - (at[i] ?? 0))

describe("images", () => {
  test("a pull that fails is tried again after 10 s, twice that, and so on up to five minutes", async () => {
    const world = testWorld({ contents: [{ host: "ghcr.io", images: {} }] })
    const pulls = pullsOf(world)
    world.create("pod", spec("ghcr.io/shop/web:1"))
    await world.advance("40m")
    const waits = gaps(pulls)
    for (const [i, least] of [10, 20, 40, 80, 160, 300, 300].entries()) {
      expect(waits[i]).toBeGreaterThanOrEqual(least)
      // A failed sync is repeated every 10 to 16 s, so a pull may be that much later.
      expect(waits[i]).toBeLessThan(least + 17)
    }
  })

  test("many pulls at once: ten start, then five a second, and the others back off as after a failure", async () => {
    const world = testWorld({ contents: [{ host: "ghcr.io", images: {} }], parallelPulls: Number.POSITIVE_INFINITY })
    const pulls = pullsOf(world)
    const names = Array.from({ length: 20 }, (_, index) => `pod-${index}`)
    for (const name of names) world.create(name, spec("ghcr.io/web:1"))
    await world.advance("3s")
    expect(pulls.length).toBeGreaterThanOrEqual(10)
    expect(pulls.length).toBeLessThan(20)
    const held = names.map(name => app(world.pod(name))?.state.waiting).filter(({ message }) => /QPS/.test(message))
    expect(held).toHaveLength(20 - pulls.length)
    expect(held[0]?.message).toMatch(/^(Back-off pulling image "ghcr.io\/web:1": ErrImagePull: )?pull QPS exceeded$/)
    await world.advance("20s")
    expect(pulls.length).toBeGreaterThanOrEqual(20)
  })

  test("another image is pulled at once, however long the back-off of the old one is", async () => {
    const world = testWorld({ contents: [{ host: "ghcr.io", images: { web: { 2: {} } } }] })
    world.create("pod", spec("ghcr.io/web:1"))
    await world.advance("20m")
    const { uid } = world.pod("pod")?.metadata ?? {}
    world.setImage("pod", "ghcr.io/web:2")
    await world.advance("3s")
    expect(app(world.pod("pod"))).toMatchObject({ ready: true, restartCount: 0, image: "ghcr.io/web:2" })
    expect(world.pod("pod")?.metadata.uid).toBe(uid)
  })

  test("pulls are serial by default, and their events have the waiting time", async () => {
    const pulled = async (parallelPulls: number) => {
      const world = testWorld({ parallelPulls })
      for (const name of ["a", "b"]) world.create(name, spec(`${name}:1`))
      await world.advance("5s")
      return ["a", "b"].map(
        name =>
          world
            .events(name)
            .find(text => / Pulled /.test(text))
            ?.match(/in (.*)\. I/)?.[1],
      )
    }
    expect(await pulled(1)).toEqual(["600ms (600ms including waiting)", "600ms (1.197s including waiting)"])
    expect(await pulled(2)).toEqual(["600ms (600ms including waiting)", "600ms (600ms including waiting)"])
  })

  test("a moved tag is pulled again only with imagePullPolicy Always", async () => {
    const world = testWorld()
    const old = world.registries.push("ghcr.io/web:1")
    world.create("first", spec("ghcr.io/web:1"))
    await world.advance("3s")
    const moved = world.registries.push("ghcr.io/web:1", { sizeBytes: 1000 })
    world.create("second", spec("ghcr.io/web:1", { imagePullPolicy: "IfNotPresent" }))
    world.create("third", spec("ghcr.io/web:1", { imagePullPolicy: "Always" }))
    await world.advance("3s")
    const ids = ["first", "second", "third"].map(name => app(world.pod(name)).imageID)
    expect(ids).toEqual([old, old, moved].map(digest => `ghcr.io/web@${digest}`))
  })

  test("the node lists its images, biggest first", async () => {
    const world = testWorld()
    world.registries.push("ghcr.io/big:1", { sizeBytes: 99_000_000 })
    world.create("a", spec("ghcr.io/small:1"))
    world.create("b", spec("ghcr.io/big:1"))
    await world.advance("15s")
    const node = world.storage.get(world.kind("Node"), { name: "node-0" })
    expect(node.status.images.map(({ names, sizeBytes }: Json) => [names[1], sizeBytes])).toEqual([
      ["ghcr.io/big:1", 99_000_000],
      ["ghcr.io/small:1", 50_000_000],
    ])
  })
})

describe("containers that end", () => {
  test("a crash loop waits 10 s, twice that, up to five minutes", async () => {
    const world = testWorld()
    world.registries.push("ghcr.io/web:1", { exits: { afterMs: 1000, exitCode: 1 } })
    const starts = startsOf(world)
    world.create("pod", spec("ghcr.io/web:1"))
    await world.advance("50m")
    const [first, ...waits] = gaps(starts)
    expect(first).toBeLessThan(4) // the first restart is free
    for (const [i, least] of [10, 20, 40, 80, 160, 300, 300].entries()) {
      expect(waits[i]).toBeGreaterThanOrEqual(least)
      expect(waits[i]).toBeLessThan(Math.min(1.5 * least, least + 92) + 4)
    }
    expect(app(world.pod("pod")).state.waiting?.message ?? "").toMatch(/^back-off 5m0s restarting failed container=app/)
  })

  test("a container killed for memory has the reason OOMKilled", async () => {
    const world = testWorld()
    world.create("pod", spec())
    await world.advance("3s")
    const pod = world.pod("pod") as Obj
    expect(world.machines.endContainer(pod, "app", { exitCode: 137, reason: "OOMKilled" })).toBe(true)
    await world.advance("3s")
    expect(app(world.pod("pod"))).toMatchObject({
      restartCount: 1,
      ready: true,
      lastState: { terminated: { reason: "OOMKilled", exitCode: 137 } },
    })
  })

  test("an image changed in place keeps the pod, its address and its other container", async () => {
    const world = testWorld()
    world.create("pod", { containers: [...spec().containers, { name: "side", image: "side:1" }] })
    await world.advance("4s")
    const before = world.pod("pod") as Obj
    world.setImage("pod", "web:2")
    await world.advance("4s")
    const after = world.pod("pod") as Obj
    expect([after.metadata.uid, after.status.podIP]).toEqual([before.metadata.uid, before.status.podIP])
    expect(after.status.containerStatuses).toMatchObject([
      { name: "app", restartCount: 1, image: "docker.io/library/web:2", ready: true },
      { name: "side", restartCount: 0, containerID: before.status.containerStatuses[1].containerID },
    ])
    expect(after.status.observedGeneration).toBe(2)
  })

  test("a pod of the same name is another pod", async () => {
    const world = testWorld()
    world.registries.push("ghcr.io/web:1", { ignoresTerm: true })
    world.create("pod", spec("ghcr.io/web:1"))
    await world.advance("3s")
    const { podIP } = world.pod("pod")?.status ?? {}
    world.remove("pod", 0)
    expect(world.pod("pod")).toBeUndefined()
    world.create("pod", spec("ghcr.io/web:2"))
    await world.advance("3s")
    expect(app(world.pod("pod"))).toMatchObject({ ready: true, restartCount: 0, image: "ghcr.io/web:2" })
    expect(world.pod("pod")?.status.podIP).not.toBe(podIP) // the old pod is still ending
  })
})

describe("pods that are deleted", () => {
  test("one that has ended is removed at once", async () => {
    const world = testWorld()
    world.registries.push("ghcr.io/job:1", { exits: { afterMs: 1000, exitCode: 0 } })
    world.create("pod", spec("ghcr.io/job:1", {}, { restartPolicy: "Never" }))
    await world.advance("10s")
    expect(world.pod("pod")?.status.phase).toBe("Succeeded")
    world.remove("pod")
    expect(world.pod("pod")).toBeUndefined()
  })

  test("one with a finalizer ends and then waits for it", async () => {
    const world = testWorld()
    world.create("pod", spec(), { finalizers: ["example.com/wait"] })
    await world.advance("5s")
    world.remove("pod")
    await world.advance("1m")
    expect(world.pod("pod")?.status.phase).toBe("Succeeded")
    const { revision } = world.cluster.store
    await world.advance("1m")
    expect(world.cluster.store.revision).toBe(revision)
    world.patch("pod", { metadata: { finalizers: null } })
    expect(world.pod("pod")).toBeUndefined()
  })

  test("one whose image is still being pulled is removed when the pull is over", async () => {
    const world = testWorld()
    world.registries.setSpeed("ghcr.io", { bytesPerSecond: 1_000_000 })
    world.create("pod", spec("ghcr.io/web:1"))
    await world.advance("10s")
    world.remove("pod")
    await world.advance("30s")
    expect(world.pod("pod")).toBeDefined()
    await world.advance("30s")
    expect(world.pod("pod")).toBeUndefined()
  })
})

describe("readiness", () => {
  test("follows a readiness gate that another client sets", async () => {
    const world = testWorld()
    world.create("pod", spec("web:1", {}, { readinessGates: [{ conditionType: "example.com/gate" }] }))
    await world.advance("3s")
    expect([condition(world.pod("pod"), "ContainersReady"), condition(world.pod("pod"), "Ready")]).toEqual([
      "True",
      "False",
    ])
    const pod = world.pod("pod") as Obj
    const gate = {
      type: "example.com/gate",
      status: "True",
      lastProbeTime: null,
      lastTransitionTime: "2026-01-01T00:00:03Z",
    }
    const status = { ...pod.status, conditions: [...pod.status.conditions, gate] }
    world.storage.update(world.kind("Pod"), { ...pod, status }, { subresource: "status", fieldManager: "test" })
    await world.advance("2s")
    expect(condition(world.pod("pod"), "Ready")).toBe("True")
    expect(condition(world.pod("pod"), "example.com/gate")).toBe("True")
  })
})

describe("a cluster that is started again", () => {
  test("resumes from the state in the API", async () => {
    const world = testWorld()
    world.registries.push("ghcr.io/web:1", { exits: { afterMs: 60_000, exitCode: 3 } })
    world.create("runs", spec("web:1", { readinessProbe: { httpGet: { port: 80 } } }))
    world.create("crashes", spec("ghcr.io/web:1"))
    await world.advance("10s")
    const before = app(world.pod("runs"))
    world.cluster.stop()
    world.registries.setFault("ghcr.io", { kind: "refused" }) // images on the node do not need the registry
    await world.advance("2m")
    world.cluster.start()
    await world.advance("5s")
    expect(app(world.pod("runs"))).toEqual(before)
    expect(app(world.pod("crashes"))).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 3 } } })
    world.remove("runs")
    await world.advance("10s")
    expect(world.pod("runs")).toBeUndefined()
  })
})

test("a run is a function of its seed", async () => {
  const life = async (seed: number) => {
    const world = testWorld({ seed, nodes: ["a", "b", "c"] })
    world.registries.push("ghcr.io/web:1", { exits: { afterMs: 5000, exitCode: 1 } })
    for (let i = 0; i < 10; i++) world.create(`pod-${i}`, spec(i % 2 ? "ghcr.io/web:1" : "web:1"))
    await world.advance("3m")
    return JSON.stringify(world.cluster.store.dump())
  }
  expect(await life(5)).toBe(await life(5))
  expect(await life(5)).not.toBe(await life(6))
})

test("idle running pods cost nothing", async () => {
  const world = testWorld({ nodes: Array.from({ length: 3 }, (_, i) => `node-${i}`) })
  const probe = { readinessProbe: { httpGet: { port: 80 }, periodSeconds: 5 } }
  for (let i = 0; i < 100; i++) world.create(`pod-${i}`, spec("web:1", probe))
  await world.advance("1m")
  const { items } = world.storage.list(world.kind("Pod"))
  expect(items.filter(pod => condition(pod, "Ready") === "True").length).toBe(100)
  const { revision } = world.cluster.store
  await world.advance("24h")
  expect(world.cluster.store.revision).toBe(revision)
  expect(world.clock.nextAt()).toBeUndefined()
})
